"""Native and third-party figures of one run: which are compared, and with which ratio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import make_run

from nephoscope.core.model import RunResult, Sample, Setting
from nephoscope.features.crosscheck import section
from nephoscope.features.crosscheck.result import CrossCheck
from nephoscope.results import analyse_run

PLAN = """version: 1
name: disks
benchmarks:
  - {benchmark: disk.io, params: {operation: randread}}
  - {benchmark: ioping, params: {operation: randread, record_bytes: 8192}}
repeat: {min: 10, max: 10}
"""


def answers(setting: Setting, round_number: int, target: str) -> Sequence[Sample]:
    """A disk whose rate changes from round to round, which ioping reports 10 % higher."""
    rate = 1000.0 + 50 * (round_number % 3)
    if setting.benchmark == "ioping":
        samples = [Sample("disk_operations_per_s", 1.1 * rate)]
        return [*samples, Sample("disk_latency_mean_ns", 1e9 / rate)]
    return [Sample("disk_operations_per_s", rate), Sample("disk_latency_ns", 1e9 / rate)]


def run(tmp_path: Path, plan: str = PLAN) -> RunResult:
    return analyse_run.build(make_run(tmp_path, plan, answers))


def test_the_ratio_is_that_of_the_rounds(tmp_path: Path) -> None:
    check = run(tmp_path).part(CrossCheck)
    assert check is not None
    (line,) = check.lines
    assert (line.native, line.tool, line.metric) == ("disk.io", "ioping", "disk_operations_per_s")
    assert line.ratio is not None
    assert line.ratio.value == pytest.approx(1.1)
    assert line.ratio.n == 10
    assert "record_bytes: 4096 and 8192" in line.different_parameters
    assert not any(text.startswith("operation") for text in line.different_parameters)


def test_the_section_has_both_values_and_the_difference(tmp_path: Path) -> None:
    built = section.build(run(tmp_path))
    assert built is not None
    (row,) = built.blocks[1].rows  # type: ignore[union-attr]
    assert "+10 % [+10, +10]" in str(row[5])
    assert "record_bytes" in str(row[7])


def test_a_run_of_one_kind_has_no_cross_check(tmp_path: Path) -> None:
    alone = PLAN.replace("  - {benchmark: disk.io, params: {operation: randread}}\n", "")
    assert run(tmp_path, alone).part(CrossCheck) is None
