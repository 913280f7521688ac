"""`nephoscope stop`, `show --journal` and `--target`: what a person gets to read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.measure.targets import KINDS
from nephoscope.store import Store

PLAN = """
name: stopped
warmup: 0
repeat: {min: 500, max: 500}
benchmarks:
  - {benchmark: "null", params: {wait_ns: 20ms}}
"""


@pytest.fixture
def running(tmp_path: Path, probe: Path) -> subprocess.Popen[str]:
    """`nephoscope run` of a plan that takes long, with a few trials stored."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    command = [sys.executable, "-m", "nephoscope", "run", str(tmp_path / "plan.yaml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while len(list(tmp_path.glob("store/runs/[!.]*/trials/*.parquet"))) < 3:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)
    return process


def test_a_run_is_stopped_from_another_process_and_goes_on_later(
    running: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["stop"]) == 0
    out = capsys.readouterr().out
    assert f"(process {running.pid}) after " in out
    assert "Repeat its command to resume." in out
    _, err = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "The same command goes on from there." in err
    (run,) = Store().runs()
    assert run.state == "running"
    assert f"{len(run.records())} trials are kept" in out
    # Nobody measures it now: said, and no error.
    assert command_line.main(["stop", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pid"], told["trials"]) == (None, len(run.records()))
    assert command_line.main(["stop", run.id]) == 0
    assert "is not running (state: interrupted)" in capsys.readouterr().out


def test_the_journal_is_shown_in_lines(
    running: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["stop"]) == 0
    running.communicate(timeout=120)
    capsys.readouterr()
    assert command_line.main(["show", "latest", "--journal"]) == 0
    out = capsys.readouterr().out
    assert f"process {running.pid} on " in out
    assert "r0001-s000-local valid, prepare " in out
    assert out.rstrip().endswith("the process stops measuring: interrupted")
    assert command_line.main(["show", "--journal", "--json"]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert events[0]["event"] == "session_started"


def test_stop_without_a_run_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["stop"]) == 2
    assert "There is no run in" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["survey", "--quick"], ["bench", "null"]])
def test_what_is_no_target_is_told_with_what_is(
    verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main([*verb, "--target", "nowhere:x"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    forms = [record.form for record in KINDS.values()]
    assert f"Write {', '.join(forms[:-1])} or {forms[-1]}." in err


def test_two_targets_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["survey", "--target", "local", "--target", "local"]) == 2
    assert "Two targets have the name 'local'" in capsys.readouterr().err
