"""The command line itself: verbs, the one line of an error, exit codes, what stays unloaded."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nephoscope import catalog, command_line
from nephoscope.app import FEATURES
from nephoscope.cli.kit import output
from nephoscope.cli.kit.summaries import summary_of
from nephoscope.core.errors import Lacking, StoreError
from nephoscope.features.datasets import command as export
from nephoscope.results.feature import command_name
from nephoscope.store.export import FORMATS

PACKAGE = Path(command_line.__file__).parent
COMMANDS = PACKAGE / "cli" / "commands"
BELOW = "(elastic|traffic|tariff|utility)"
"""Commands of other features below a verb, with files of their own."""
VERBS = [command_name(reference) for entry in FEATURES for reference in entry.commands]


def one_line(text: str) -> str:
    """The only line of stderr; fails when there are more, or none."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("nephoscope: ")
    assert "Traceback" not in text
    return lines[0]


@functools.cache
def docstring_of(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_a_file(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([verb, "-h"]) == 0
    out = capsys.readouterr().out
    assert verb in out
    assert "..." not in out.partition("\nCommands:\n")[2], "a summary was cut off"
    names = [COMMANDS / f"{verb}.py", COMMANDS / f"{verb}_.py"]
    names += sorted(PACKAGE.rglob("*command.py"))
    files = [path for path in names if path.is_file()]
    texts = [docstring_of(path) for path in files]
    assert sum(bool(re.match(rf"`nephoscope {verb}(?! {BELOW})\b", text)) for text in texts) == 1


def test_the_reference_has_a_heading_for_every_verb() -> None:
    text = command_line.reference_markdown()
    assert re.findall(r"^## nephoscope (\w+)$", text, flags=re.M) == VERBS


def test_no_verb_is_usage_and_shows_the_help_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commands:" in captured.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["survay"], "Did you mean 'survey'"),
        (["survey", "--bugdet", "3s"], "--budget"),
        (["survey", "--seed", "x"], "--seed"),
        (["survey", "--seed", "-1"], "--seed"),
        (["survey", "--quick", "--full"], "exclude each other"),
        (["survey", "--budget", "soon"], "--budget: 'soon' is no duration."),
        (["run"], "PLAN"),
        (["bench", "null", "--set", "value"], "--set takes NAME=VALUE"),
        (["noise", "null", "--command", "true"], "--command and ID exclude each other."),
        (["noise", "--command", "true", "--command", "false"], "one command with itself"),
        (["noise", "--command", "true", "--runs", "3"], "--runs has no meaning for `noise`."),
        (["noise", "--prepare", "true"], "there is no command line for --prepare."),
        (["noise", "--set", "value=1"], "there is no benchmark for --set."),
        (["noise", "absent.yaml"], "absent.yaml: there is no such file."),
        (["noise", "--for", "1s"], "'1s' is out of range (5 s to 1 h)."),
        (["noise", "--difference", "0"], "'0' is out of range (0.01 % to 100 %)."),
        (["export", "latest", "--format", "xml"], "'csv', 'jsonl', 'parquet'"),
        (
            ["bench", "net.rtt", "--target", "lab:office/client"],
            "Name the other end: `--peer TARGET`",
        ),
        (
            ["bench", "iperf3.tcp", "--target", "ssh:a", "--target", "ssh:b"],
            "iperf3.tcp measures a path, of which ssh:a and ssh:b are ends.",
        ),
        (["bench", "ab", "--client", "ssh:a"], "--client ssh:a has no server to measure."),
        (
            ["bench", "ab", "--client", "ssh:a", "--target", "ssh:a", "--target", "ssh:b"],
            "ssh:a is the client and also a server of the comparison.",
        ),
        (
            ["bench", "ab", "--client", "ssh:a", "--peer", "ssh:b", "--target", "ssh:c"],
            "--client and --peer exclude each other",
        ),
        (
            ["bench", "ab", "--peer", "ssh:a", "--target", "ssh:a", "--target", "ssh:b"],
            "ssh:a is a target and also the server of the others",
        ),
        (
            ["bench", "cpu.pi", "--client", "ssh:a", "--target", "ssh:b"],
            "cpu.pi has no server of its own, so --client means nothing. Omit --client.",
        ),
        (
            ["bench", "http.load", "--client", "ssh:a", "--target", "ssh:b"],
            "write {server} for its address in `--set url=…`.",
        ),
        (
            ["bench", "ab", "--client", "local", "--target", "lab:office/a"],
            "'local' cannot reach 'a': a lab has no way out",
        ),
        (["bench", "ab", "--target", "ssh:a", "--target", "ssh:a"], "Two targets have the name"),
        (
            ["bench", "--command", "true", "--target", "ssh:a", "--target", "ssh:b"],
            "--command takes one --target.",
        ),
        (["bench", "--command", "true", "--until-decided"], "--until-decided compares commands."),
        (
            ["bench", "--command", "true", "--command", "false", "--until-decided", "--runs", "9"],
            "--runs is the exact number. Omit --until-decided.",
        ),
        (["compare", "a", "b", "--until-decided"], "--until-decided is for a new run."),
        (["compare"], "'A'"),
        (["compare", "no-such-file.txt", "b.txt"], "There is no file 'no-such-file.txt'."),
        (["compare", "x", "y", "--margin", "2"], "--margin: '2' is no ratio."),
        (["compare", "x", "y", "--confidence", "0.2"], "--confidence: '0.2' is out of range"),
        (["compare", "x", "y", "--budget", "9s"], "--budget limits a new run."),
        (["compare", "x", "y", "--label", "a=b"], "--label is for a new run."),
        (["compare", "local", "--interleave"], "--interleave takes two settings"),
        (["compare", "local", "no.yaml", "--interleave"], "There is no plan 'no.yaml'."),
        (["survey", "--gap", "9s"], "--gap is the time between repeated runs."),
        (["survey", "--repeat-runs", "2", "--gap", "soon"], "--gap: 'soon' is no duration."),
        (["survey", "--repeat-runs", "2", "--gap", "31d"], "--gap: '31d' is out of range"),
        (["list", "cpu.gasp"], "did you mean 'cpu.gaps'"),
        (["list", "a\nb"], "There is no benchmark 'a b'"),
    ],
)
def test_bad_words_are_one_sentence_and_exit_code_2(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in one_line(captured.err)


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (StoreError("The disk is full.", "Free space."), 3, "nephoscope: The disk is full. Free"),
        (Lacking("No probe.", "make survey"), 4, "nephoscope: No probe. make survey"),
        (KeyboardInterrupt(), 130, "repeat the same command to resume"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_every_ending_has_its_exit_code(
    error: BaseException,
    code: int,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> int:
        raise error

    monkeypatch.setattr("nephoscope.cli.kit.output.reader_left", lambda: 0)
    monkeypatch.setattr("nephoscope.catalog.load", fail)
    assert command_line.main(["--version"]) == code
    captured = capfd.readouterr()
    assert captured.out == ""
    assert expected in captured.err


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "The machine has no more memory for this process"),
        (RuntimeError("can't start new thread"), "Raise its limit (`ulimit -u`)"),
    ],
)
def test_a_limit_on_memory_or_threads_is_no_defect(
    capsys: pytest.CaptureFixture[str], error: Exception, words: str
) -> None:
    assert output.complain_of_defect(error) == 3
    said = capsys.readouterr().err
    assert words in said
    assert "defect" not in said


def test_a_defect_is_one_sentence_and_a_file_with_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(**_: object) -> int:
        raise ZeroDivisionError("seventeen")

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("nephoscope.catalog.load", fail)
    assert command_line.main(["--version"]) == 3
    sentence = one_line(capsys.readouterr().err)
    assert "ZeroDivisionError: seventeen" in sentence
    (file,) = tmp_path.glob("nephoscope-defect-*.txt")
    assert str(file) in sentence
    assert "Traceback" in file.read_text()


def test_the_formats_of_export_are_those_that_can_be_written() -> None:
    assert list(export.FORMATS) == [*FORMATS, export.RECORDING]


@pytest.mark.parametrize("words", [["--help"], ["list"], ["--version"], ["survey", "--help"]])
def test_help_and_list_load_no_heavy_library(words: list[str]) -> None:
    """Start-up time is kept by counting what is loaded, not by a stopwatch on a busy machine."""
    program = (
        "import sys; from nephoscope.command_line import main; main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    heavy = {"numpy", "scipy", "pyarrow", "pydantic", "rich", "yaml", "asyncio"}
    assert not loaded & heavy


def test_a_benchmark_of_a_command_loads_what_it_uses(tmp_path: Path) -> None:
    program = (
        "import sys; from nephoscope.command_line import main; code = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    words = ["bench", "--command", "true", "--runs", "2", "--store", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    unused = {"scipy", "rich", "numpy.ma", "pyarrow.compute", "fastapi", "asyncssh"}
    unused.add("xml.etree.ElementTree")
    unused |= {
        f"nephoscope.{name}"
        for name in (
            "catalog.adapters.fio",
            "features.comparison.result",
            "report.terminal_output",
        )
    }
    assert "numpy" in loaded
    assert not loaded & unused
    words = ["show", "--store", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    # A stored plan is validated by its models; nothing is read by these.
    assert "numpy" in loaded
    assert not loaded & {"scipy", "fastapi", "asyncssh", "pyarrow.compute"}


def test_the_summary_of_each_command_is_the_first_sentence_of_its_help() -> None:
    for entry in FEATURES:
        for reference in entry.commands:
            command = command_line.program.commands[command_name(reference)]
            assert command.get_short_help_str(200) == summary_of(reference)


def test_only_the_called_command_is_imported() -> None:
    program = (
        "import sys; from nephoscope.command_line import main; main(['schema']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = set(done.stderr.split())
    assert "nephoscope.cli.commands.schema" in loaded
    assert not loaded & {"nephoscope.cli.commands.bench", "nephoscope.features.isolation.command"}


def test_the_help_imports_no_command() -> None:
    program = (
        "import sys; from nephoscope.command_line import main; main(['--help']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    commands = re.compile(r"nephoscope\.(cli\.commands\.(?!feature).+|features\..*command)")
    assert not [name for name in done.stderr.split() if commands.fullmatch(name)]


def test_only_the_output_module_and_the_frame_print() -> None:
    for path in COMMANDS.glob("*.py"):
        if path.name != "output.py":
            tree = ast.parse(path.read_text())
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            names = {func.id for func in calls if isinstance(func, ast.Name)}
            assert "print" not in names, path


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_without_unicode_gets_question_marks_not_a_crash(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "nephoscope", "list", "cpu.gäps µ"],
        capture_output=True,
        env=environment,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_stdout_that_nobody_reads_is_no_failure() -> None:
    program = f"{sys.executable} -m nephoscope list --json | head -c 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nephoscope", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 3
    assert "No space left on device" in one_line(done.stderr)


def test_list_json_is_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    native = json.loads(catalog.contract_path("benchmarks.json").read_text())["benchmarks"]
    adapters = json.loads(catalog.contract_path("adapters.json").read_text())["adapters"]
    # Between them stand those of the runner, which no contract declares.
    own = [told["benchmarks"].pop(len(native))["id"] for _ in range(2)]
    assert own == ["host.boot", "volume.restore"]
    simulated = json.loads(catalog.contract_path("simulations.json").read_text())["benchmarks"]
    only = [item for item in simulated if item["id"].startswith(catalog.SIMULATED)]
    wanted = [*native, *adapters, *only]
    assert [item["id"] for item in told["benchmarks"]] == [item["id"] for item in wanted]
    # The document states what a contract leaves out because it is the default.
    printed, stated = (
        [
            catalog.parse_spec({key: item[key] for key in item if key != "here"}).metrics
            for item in items
        ]
        for items in (told["benchmarks"], wanted)
    )
    assert printed == stated


def test_the_page_of_a_benchmark_has_its_parameters_metrics_and_method(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command_line.main(["list", "null"]) == 0
    out = capsys.readouterr().out
    for word in ("noise_ratio", "0 to 3600s", "null_latency_ns", "# Known truth"):
        assert word in out
