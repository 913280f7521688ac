"""One metric over the stored runs of a target: each point is the estimate of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nephoscope.analysis import facts
from nephoscope.errors import StoreError
from nephoscope.model import Better, Estimate, factors_key
from nephoscope.serve.answers import Sources, document, stored_result
from nephoscope.serve.workers import Answer
from nephoscope.store import StoredRun

MAX_RUNS = 500
"""Newest runs of one series."""

LineName = tuple[str, str, str, str]
"""Benchmark, metric, target, canonical factors."""


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """The estimate of one run. started_at: seconds since the epoch. cpu_model, kernel: of the
    target then; empty where the machine hides them."""

    run: str
    started_at: float
    estimate: Estimate
    cpu_model: str
    kernel: str


@dataclass(frozen=True, slots=True)
class Series:
    """A metric of a target at one setting over runs, oldest first.

    left_out: run -> why it has no point.
    """

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    better: Better
    points: tuple[SeriesPoint, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LineOfTarget:
    """A metric that runs of a target measured. headline: whether its benchmark is judged by it."""

    benchmark: str
    metric: str
    target: str
    factors: str
    unit: str
    headline: bool


def lines(sources: Sources, runs: Sequence[str]) -> Answer:
    """Returns the metrics of these runs, headlines first."""
    rows: dict[LineName, LineOfTarget] = {}
    for run_id in runs:
        for name, (estimate, _, headline) in _lines(sources, run_id).items():
            rows.setdefault(name, LineOfTarget(*name, estimate.unit, headline))
    ordered = sorted(rows.values(), key=lambda row: not row.headline)
    return document({"lines": ordered})


def series(
    sources: Sources, runs: Sequence[str], benchmark: str, metric: str, target: str, factors: str
) -> Answer:
    """Returns the series of a metric over these runs."""
    points: list[SeriesPoint] = []
    left_out: dict[str, str] = {}
    unit, better = "", Better.NONE
    for run_id in runs:
        stored = sources.run(run_id)
        line = _lines(sources, run_id).get((benchmark, metric, target, factors))
        if line is None:
            reported = stored_result(stored) is not None
            left_out[run_id] = (
                "it did not measure this" if reported else "it has no report; see `nephoscope show`"
            )
            continue
        estimate, better, _ = line
        if unit and estimate.unit != unit:
            left_out[run_id] = f"its unit is {estimate.unit}"
            continue
        unit = estimate.unit
        points.append(_point(stored, target, estimate))
    points.sort(key=lambda point: point.started_at)
    return document(
        Series(benchmark, metric, target, factors, unit, better, tuple(points), left_out)
    )


def _point(run: StoredRun, target: str, estimate: Estimate) -> SeriesPoint:
    fingerprint = (run.manifest.get("fingerprints") or {}).get(target)
    return SeriesPoint(
        run.id,
        float(run.manifest.get("started_at") or 0),
        estimate,
        facts.text(fingerprint, "cpu.model") or "",
        facts.text(fingerprint, "kernel.release") or "",
    )


def _lines(sources: Sources, run_id: str) -> Mapping[LineName, tuple[Estimate, Better, bool]]:
    run = sources.run(run_id)
    try:
        changed_ns = (run.report_path / "result.json").stat().st_mtime_ns
    except OSError:
        return {}
    return _read_lines(sources, run_id, changed_ns)


@lru_cache(maxsize=MAX_RUNS)
def _read_lines(
    sources: Sources, run_id: str, changed_ns: int
) -> Mapping[LineName, tuple[Estimate, Better, bool]]:
    """Returns the lines of a run's stored result; its time of change only tells versions apart."""
    text = stored_result(sources.run(run_id))
    if text is None:
        return {}
    try:
        metrics: list[dict[str, Any]] = json.loads(text)["metrics"]
        return {
            (
                line["benchmark"],
                line["metric"],
                line["target"],
                factors_key(line["factors"]),
            ): (Estimate(**line["estimate"]), Better(line["better"]), bool(line["headline"]))
            for line in metrics
        }
    except (ValueError, LookupError, TypeError) as error:
        raise StoreError(
            f"{run_id}: its result is of another version.", f"Run `nephoscope show {run_id}`."
        ) from error
