"""The examples of the guide are the files beside it, and their commands do what the guide says."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from nephoscope import command_line
from nephoscope.measure import plans

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "continuous-integration.md"
FOLDER = GUIDE.parent / "ci"
PLAN = """version: 1
name: side
benchmarks:
  - {{benchmark: "null", params: {{value: {value}, noise_ratio: 1%, samples: 20, seed: {seed}}}}}
repeat: {{min: 15, max: 15}}
"""
"""Values that do not depend on the machine: these tests measure nothing."""
OUR_METRIC = {"wall_ns": "null_ns"}
"""Metric of the example -> that of the plan above."""


def commands(file: str) -> list[str]:
    """The shell lines of an example, in the order in which the service runs them."""
    document: dict[str, Any] = yaml.safe_load((FOLDER / file).read_text(encoding="utf-8"))
    if "jobs" in document:
        steps = document["jobs"]["compare"]["steps"]
        return [line for step in steps for line in step.get("run", "").splitlines()]
    job = document["performance"]
    return [*job["before_script"], *job["script"], *job["after_script"]]


def exit_codes(file: str, folder: Path, change: float, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the example's commands on two plans of which the second takes `change` more time."""
    (folder / "ci").mkdir()
    for seed, name, value in ((1, "before", 100.0), (2, "after", 100.0 * (1 + change))):
        (folder / "ci" / f"{name}.yaml").write_text(PLAN.format(value=value, seed=seed))
    monkeypatch.chdir(folder)
    words = [shlex.split(line) for line in commands(file)]
    assert words[0] == ["pip", "install", "$NEPHOSCOPE_WHEEL"]
    assert {one[0] for one in words} <= {"pip", "make", "git", "nephoscope"}
    ours = [[OUR_METRIC.get(word, word) for word in one] for one in words if one[0] == "nephoscope"]
    return {one[1]: command_line.main(one[1:]) for one in ours}


@pytest.mark.parametrize("file", ["github-actions.yml", "gitlab-ci.yml"])
@pytest.mark.parametrize(("change", "code"), [(0.0, 0), (0.1, 1)])
def test_the_example_fails_where_the_change_costs_ten_percent(
    file: str,
    change: float,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_codes(file, tmp_path, change, monkeypatch) == {"compare": code, "export": 0}
    assert (tmp_path / "samples.parquet").stat().st_size
    outcome = "failed, by" if code else "passed, by none of"
    assert f"--fail-on worse: {outcome}" in capsys.readouterr().err


def test_the_guide_shows_the_files() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for file in ("github-actions.yml", "gitlab-ci.yml", "before.yaml"):
        assert (FOLDER / file).read_text(encoding="utf-8") in text


@pytest.mark.parametrize("file", ["before.yaml", "after.yaml"])
def test_the_plans_of_the_guide_can_be_run(file: str) -> None:
    plan = plans.load(FOLDER / file)
    assert [entry.benchmark for entry in plan.benchmarks] == ["command"]


PI = """version: 1
name: pi
benchmarks:
  - {{benchmark: cpu.pi, params: {{digits: {digits}, threads: 1}}}}
repeat: {{min: 20, max: 20}}
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(("digits", "code"), [(10_000, 0), (11_000, 1)])
def test_measured_work_of_ten_percent_more_fails(
    digits: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, count in (("a", 10_000), ("b", digits)):
        files.append(str(tmp_path / f"{name}.yaml"))
        Path(files[-1]).write_text(PI.format(digits=count))
    words = ["--metric", "pi_time_ns", "--fail-on", "worse"]
    assert command_line.main(["compare", "--interleave", *files, *words]) == code
    assert "1 metric" in capsys.readouterr().err
