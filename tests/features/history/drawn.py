"""Series and stores whose every value the test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.store.factory import record

from nephoscope import catalog
from nephoscope.core.model import Better, Estimate, Sample
from nephoscope.features.history.series import HistoryPoint, Series
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_text
from nephoscope.results.run_settings import CPU_MODEL
from nephoscope.stats.statistics.values import Array
from nephoscope.store import FINISHED, Store, StoredRun

START_S = 1_790_000_000.0
HOUR_S = 3600.0
DAY_S = 86_400.0

PLAN = """
version: 1
name: watched
repeat: {min: 1, max: 1}
warmup: 0
targets: [{name: NAME, kind: local}]
benchmarks:
  - {benchmark: "null", params: {value: VALUE}}
  - {benchmark: cpu.pi, params: {digits: 1000}}
"""


def autoregressive(rng: np.random.Generator, points: int, correlation: float) -> Array:
    """A stationary AR(1) series of unit variance."""
    noise = rng.standard_normal(points + 100)
    for index in range(1, noise.size):
        noise[index] = correlation * noise[index - 1] + noise[index] * np.sqrt(1 - correlation**2)
    return np.asarray(noise[100:], dtype=np.float64)


def series(
    values: Sequence[float] | Array,
    *,
    every_s: float = HOUR_S,
    at_s: Sequence[float] | Array | None = None,
    better: Better = Better.LOWER,
    facts: Mapping[int, Mapping[str, str]] | None = None,
    steal: Mapping[int, float] | None = None,
    target: str = "web",
) -> Series:
    """A series of these values. facts, steal: from which point on they hold."""
    moments = START_S + every_s * np.arange(len(values)) if at_s is None else at_s
    known: dict[str, str] = {CPU_MODEL: "Xeon"}
    stolen: float | None = None
    points = []
    for index, (moment, value) in enumerate(zip(moments, values, strict=True)):
        known = {**known, **(facts or {}).get(index, {})}
        stolen = (steal or {}).get(index, stolen)
        estimate = Estimate(float(value), None, None, 0.95, 10, "ns", "drawn")
        points.append(
            HistoryPoint(f"run-{index:04d}", float(moment), estimate, target, known, stolen)
        )
    return Series("null", "null_ns", target, {}, {}, "ns", better, tuple(points))


def append_run(
    store: Path,
    at_s: float,
    values: Mapping[str, float],
    *,
    target: str = "web",
    fingerprint: Mapping[str, Any] | None = None,
    parameter: float = 100.0,
    rounds: int = 1,
    labels: Mapping[str, str] | None = None,
    steal: float | None = None,
) -> StoredRun:
    """A finished run of so many rounds. values: metric -> value of each trial."""
    known = catalog.load()
    text = PLAN.replace("NAME", target).replace("VALUE", str(parameter))
    plan = from_text(text, "plan.yaml", {}, known)
    settings = plans.expand(plan, known)
    run = Store(store).create(plan, 7, catalog=known, settings=settings, labels=labels)
    trials: list[Any] = []
    for round_number in range(1, rounds + 1):
        for setting in settings:
            spec = known.benchmark(setting.benchmark)
            samples = [
                Sample(metric.id, values[metric.id])
                for metric in spec.metrics
                if metric.id in values
            ]
            trial = record(
                setting,
                round_number,
                len(trials),
                target,
                started_at=at_s,
                counters={"steal_ratio": steal},
            )
            trials.append((trial, samples, spec, ()))
    run.store_all(trials)
    run.update(fingerprints={target: dict(fingerprint or machine())}, started_at=at_s)
    run.finish(FINISHED)
    return run


def machine(model: str = "Xeon", host: str = "abc", kernel: str = "6.1.0") -> dict[str, Any]:
    """A fingerprint as far as a history looks."""
    return {
        "identity": {"machine_id_hash": host},
        "cpu": {"by_cpuid": {"brand": model}, "microcode": "0x1"},
        "kernel": {"release": kernel},
    }
