"""The commands of the guide to simulated autoscaling, with the trace that it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "simulate.md"
PART = GUIDE.read_text(encoding="utf-8").partition("\n## Autoscaling\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", PART, re.M)
(TRACE,) = re.findall(r'```csv title="day.csv"\n(.*?)```', PART, re.S)
ANSWERS = (
    r"day\.csv: tracking metric=cpu target=0\.6 meets p95 < 200 ms: .* Lower bound \(M/M/c",
    r"metric=cpu target=0\.8 is the cheapest of the \d settings \(of 6\).* Back-test on other\.csv",
    r"day\.csv: .*(of 34\)|of 34 settings)",
)


def test_every_command_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head, *rows = TRACE.split()
    days: dict[str, list[str]] = {"day.csv": [head], "other.csv": [head]}
    for row in rows:
        time_s, rate = map(float, row.split(","))
        days["day.csv"].append(row)
        days["other.csv"].append(f"{time_s:g},{1.1 * rate:g}")
    for name, lines in days.items():
        (tmp_path / name).write_text("\n".join(lines))
    assert len(COMMANDS) == len(ANSWERS)
    for command, answer in zip(COMMANDS, ANSWERS, strict=True):
        # One replication instead of ten, for the time of this test.
        done = run_inside([*shlex.split(command), "--replications", "1"])
        assert done.code == 0, (command, done.err)
        assert re.search(answer, " ".join(done.out.split())), (command, done.out)
    assert "scaling-supply" in (tmp_path / "search.html").read_text(encoding="utf-8")
