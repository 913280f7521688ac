"""Every load of the probe as a background of a plan, on this machine, with its far side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nephoscope import catalog
from nephoscope.core.model import TrialStatus
from nephoscope.measure import runs
from nephoscope.measure.plans import Plan
from nephoscope.store import Store

SMALL: dict[str, dict[str, Any]] = {
    "load.cache": {"threads": 1, "buffer_bytes": 1 << 20},
    "load.cpu": {"threads": 1, "intensity_ratio": 0.2},
    "load.disk": {"file_bytes": 1 << 20, "operations_per_s": 100, "threads": 1},
    "load.memory": {"threads": 1, "buffer_bytes": 1 << 20},
    "load.net": {"rate_bits_per_s": 8e6},
    "load.packets": {"packets_per_s": 1000, "direction": "receive"},
    "load.switches": {"threads": 1, "switches_per_s": 1000},
}


SETTINGS = {"load.merging"}
"""Loads that are a setting of the kernel: they have no intensity, and not every kernel has them."""


def native_loads() -> list[str]:
    found = [spec.id for spec in catalog.load().benchmarks.values() if spec.load]
    return [name for name in found if name.startswith("load.") and name not in SETTINGS]


@pytest.mark.parametrize("name", native_loads())
def test_it_runs_beside_a_trial_and_its_samples_are_kept(
    tmp_path: Path, probe: Path, name: str
) -> None:
    background: dict[str, Any] = {
        "name": "noise",
        "benchmark": name,
        "params": SMALL.get(name, {}),
        "settle_s": 0.2,
    }
    spec = catalog.load().benchmark(name)
    if spec.two_sided:
        background["peer"] = "far"
    targets = [{"name": "victim"}, {"name": "near", "roles": ["aggressor"]}]
    plan = Plan.model_validate(
        {
            "name": "beside",
            "warmup": 0,
            "repeat": {"min": 1, "max": 1},
            "targets": [*targets, *([{"name": "far"}] if spec.two_sided else [])],
            "benchmarks": [
                {"benchmark": "null", "params": {"wait_ns": 300_000_000}, "on": ["victim"]}
            ],
            "backgrounds": [background],
        }
    )
    run = runs.execute(plan, Store(tmp_path))
    ((record, table),) = [
        (record, table) for record, table in run.tables() if record.key.target == "victim"
    ]
    assert record.status is TrialStatus.VALID, record.reasons
    (load,) = record.loads
    assert load["covered_ratio"] == 1.0
    rows = [row for row in table.to_pylist() if row["benchmark"] == name]
    metrics = {row["metric"] for row in rows}
    # What it reached is a sample, as a whole and as a series.
    assert {"load_intensity_ratio", "interval_intensity_ratio"} <= metrics
    headlines = {metric.id for metric in spec.metrics if metric.headline}
    assert headlines <= metrics
    values = [row["value"] for row in rows if row["metric"] in headlines]
    assert all(value > 0 for value in values)
