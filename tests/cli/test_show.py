"""`nephoscope show` and `runs`: states that are true, and archives that cannot be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run

from nephoscope import command_line
from nephoscope.core.model import Sample


def stored(path: Path, **more: str) -> str:
    def sample(*_: object) -> list[Sample]:
        return [Sample("null_ns", 100.0)]

    return make_run(path, NULL_PLAN, sample, rounds=6, **more).id


def test_a_report_that_cannot_be_written_is_printed_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = stored(tmp_path)
    # A file in the folder's place: not even root can write below it, as in a read-only archive.
    (tmp_path / "runs" / run_id / "report").write_text("")
    assert command_line.main(["show", "--store", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "SUMMARY" in out
    assert "report.html" not in out
    assert err.count("\n") == 1
    assert "The report is printed, and not written." in err
    assert command_line.main(["show", "--json", "--store", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["id"] == run_id


def test_an_abandoned_run_is_called_that_and_not_shown_as_the_latest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = stored(tmp_path)
    abandoned = stored(tmp_path, state="running")
    assert command_line.main(["runs", "--json", "--store", str(tmp_path)]) == 0
    states = {row["id"]: row["state"] for row in json.loads(capsys.readouterr().out)["runs"]}
    assert states == {finished: "finished", abandoned: "killed"}
    assert command_line.main(["show", "--json", "--store", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["run"]["id"] == finished
    assert f"Run {abandoned} is newer, but killed" in err
    assert command_line.main(["show", "--json", abandoned, "--store", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["state"] == "killed"
