"""What users of other tools type, and the command that does it here."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence

MOVED = {
    "tariff": "cost tariff",
    "utility": "cost utility",
    "traffic": "network traffic",
    "version": "--version",
    "version --licences": "--licences",
}
"""Former words of a command -> what replaces them; accepted for one more release."""

COMMANDS = {
    "ls": "`nephoscope runs` lists stored runs, `nephoscope list` benchmarks.",
    "ps": "`nephoscope runs --state running` lists the runs in progress.",
    "rm": "`nephoscope runs rm RUN` removes a run.",
    "attack": "`nephoscope load URL` puts a web server under load.",
    "benchmark": "`nephoscope bench ID` measures one benchmark.",
    "test": "`nephoscope survey` measures this machine, `nephoscope load URL` a web server.",
    "report": "`nephoscope show RUN -o report.html` writes a report.",
    "diff": "`nephoscope compare A B` compares two runs.",
    "info": "`nephoscope doctor` describes this host, `nephoscope show RUN` a run.",
    "ping": "`nephoscope bench net.rtt --peer ssh:HOST` measures round-trip times.",
    "up": "`nephoscope lab up FILE` starts a lab, `nephoscope cloud up` rents machines.",
    "down": "`nephoscope lab down NAME` ends a lab, `nephoscope cloud down NAME` a rental.",
}
"""Words that are no command, each with the commands that are meant."""

OPTIONS = {
    ("bench", "--rw"): "--set operation=randread",
    ("bench", "--bs"): "--set record_bytes=4KiB",
    ("bench", "--iodepth"): "--set queue_depth=32",
    ("bench", "--size"): "--set file_bytes=1GiB",
    ("bench", "--ioengine"): "--set engine=io_uring",
    ("bench", "--runtime"): "--set duration_ns=10s",
    ("bench", "--direct"): "--set direct=true",
    ("bench", "--filename"): "--set directory=DIR",
    ("bench", "--directory"): "--set directory=DIR",
    ("bench", "--export-markdown"): "`nephoscope show latest -o report.md` afterwards",
    ("bench", "--export-csv"): "`nephoscope export latest --format csv` afterwards",
    ("bench", "--show-output"): "`nephoscope show latest --full-report` afterwards",
    ("load", "--vus"): "--connections",
    ("load", "-u"): "--connections",
    ("load", "--users"): "--connections",
    ("load", "--concurrency"): "--connections",
    ("load", "--qps"): "--rate",
    ("load", "--iterations"): "--duration; the load is limited by time",
    ("load", "-n"): "--duration; the load is limited by time",
    ("load", "-z"): "--duration",
    ("load", "--stages"): "`nephoscope capacity URL --objective 'p99 < 50ms'`",
}
"""(command, option of fio, hyperfine, k6, hey, wrk or ab) -> what replaces it."""


def option_hint(command: str, option: str) -> str:
    """Returns the sentence for an option that a command does not have; '' for none."""
    meant = OPTIONS.get((command, option.partition("=")[0]), "")
    return f"Use {meant}." if meant else ""


def is_command_line(text: str) -> bool:
    """Returns whether a word in place of a benchmark is a command line, as hyperfine takes it: it
    has a blank, or is the name of a program."""
    return " " in text or bool(shutil.which(text))


def bench_line(words: Sequence[str]) -> str:
    """Returns the command that measures these command lines."""
    needs_shell = any(set(word) & set("|<>&;") for word in words)
    lines = " ".join(f"--command {shlex.quote(word)}" for word in words)
    return f"nephoscope bench {'--shell sh ' if needs_shell else ''}{lines}"
