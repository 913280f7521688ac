"""The line of a terminal for work of more than two seconds: how far it is, the time left."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from nephoscope import command_line
from nephoscope.cli.kit import command as kit
from nephoscope.cli.kit.work_line import SILENT_S, WorkLine
from nephoscope.core.counting import counted, ignore, listen

PROGRAM = """
import sys, time
from nephoscope.cli.kit import output, work_line
from nephoscope.core.counting import counted
work_line.SILENT_S = float(sys.argv[1])
with work_line.show_work():
    for number in counted(range(20), "Reading runs"):
        time.sleep(0.05)
    output.say("printed")
    time.sleep(0.3)
    {end}
"""


def seen(silent_s: float, end: str = "pass") -> str:
    """What a terminal gets of a second of work."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", PROGRAM.format(end=end), str(silent_s)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # the terminal is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    return text.decode()


def test_a_terminal_shows_how_far_the_work_is_and_nothing_is_left_of_it() -> None:
    text = seen(0.2)
    assert "Reading runs: " in text
    assert " of 20, about " in text
    assert "left" in text
    before, _, after = text.partition("printed\r\n")
    assert before.endswith("\r\x1b[2K"), "the line is erased before something is printed"
    assert not after or after.endswith("\r\x1b[2K")


def test_quick_work_has_no_line() -> None:
    assert seen(60.0) == "printed\r\n"
    assert SILENT_S == 2.0


def test_the_time_left_follows_from_what_is_done() -> None:
    line = WorkLine()
    began_s = line._began_s
    assert line.text(began_s + 3) == "Working, 3 s"
    line.count("Copying runs", 0, 1000)
    assert line.text(line._began_s + 3) == "Copying runs: 0 of 1,000"
    line.count("Copying runs", 250, 1000)
    assert line.text(line._began_s + 5) == "Copying runs: 250 of 1,000, about 15 s left"


def test_steps_are_counted_for_who_listens() -> None:
    heard: list[tuple[str, int, int]] = []

    def note(what: str, done: int, total: int) -> None:
        heard.append((what, done, total))

    listen(note)
    assert list(counted("ab", "Letters")) == ["a", "b"]
    ignore(note)
    assert list(counted("c", "Letters")) == ["c"]
    assert heard == [("Letters", 0, 2), ("Letters", 1, 2)]


def test_every_command_that_reads_has_the_line() -> None:
    """Those that measure have the live line; the others print steps, or end at once."""
    reading = {
        name
        for name, command in kit.walk(command_line.program)
        if getattr(command.callback, "shows_work", False)
    }
    for name, record in kit.records(command_line.program).items():
        assert (name in reading) or not isinstance(record.requests, kit.Query), name
    assert {"merge", "import", "export", "compact", "verify", "history", "predict"} <= reading
