"""Tools of disks and file systems, live in a scratch folder that is gone afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live import measured, values
from tests.tools import needs

JOB = """\
[global]
size=1m
ioengine=sync
[readers]
rw=randrw
bs=4k
[writer]
stonewall
rw=write
bs=64k
"""


@needs("fio")
def test_fio_reports_each_job_and_operation(probe: Path) -> None:
    trial, _ = measured("fio", {"job": JOB, "space_bytes": 2 << 20})
    rates = {
        (sample.factors["job"], sample.factors["operation"]): sample.value
        for sample in trial.samples
        if sample.metric == "cached_operations_per_s"
    }
    assert set(rates) == {("readers", "read"), ("readers", "write"), ("writer", "write")}
    assert all(value > 0 for value in rates.values())


@pytest.mark.parametrize("operation", ["write", "read"])
def test_dd_moves_its_blocks(probe: Path, operation: str) -> None:
    params = {"operation": operation, "block_bytes": 65_536, "blocks": 16}
    found = values(measured("dd", params)[0])
    moved = found["disk_bytes_per_s"] * found["elapsed_ns"] / 1e9
    assert moved == pytest.approx(1 << 20, rel=1e-6)


@needs("ioping")
@pytest.mark.parametrize("operation", ["randread", "write"])
def test_times_of_ioping_are_ordered(probe: Path, operation: str) -> None:
    found = values(measured("ioping", {"operation": operation, "requests": 20})[0])
    times = [found[f"disk_latency_{name}_ns"] for name in ("min", "mean", "max")]
    assert times == sorted(times)
    # One at a time: the rate is the inverse of the mean time.
    assert found["disk_operations_per_s"] * times[1] / 1e9 == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize(
    ("benchmark", "params", "metric"),
    [
        pytest.param(
            *("dbench", {"duration_ns": 2_000_000_000}, "throughput_bytes_per_s"),
            marks=needs("dbench"),
        ),
        pytest.param(
            *("bonnie", {"file_bytes": 64 << 20}, "write_bytes_per_s"), marks=needs("bonnie++")
        ),
    ],
)
def test_file_systems_are_measured(
    probe: Path, benchmark: str, params: dict[str, Any], metric: str
) -> None:
    try:
        found = values(measured(benchmark, params)[0])
    except AssertionError as error:
        # bonnie++ has no figure on a disk that is that fast.
        assert "less than half a second" in str(error)  # noqa: PT017
    else:
        assert found[metric] > 0
