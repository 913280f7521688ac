"""Outcomes of stored trials at set rates: whether each of them met an objective."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate, Sample, TrialRecord
from nephoscope.features.load.capacity_search import RateRange, estimate
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.load.records import TrialOutcome
from nephoscope.results.names import UNANSWERED
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import StoredRun, counts

NO_RESPONSE = "no_valid_response"
"""Name of the failure of a trial whose server never answered as it should."""
LATE_SENDER = "late_sends"
"""Code of the reason for which a trial is invalid whose generator was behind its schedule."""
_RATE = "rate_per_s"
_BEYOND = 2.0
"""The capacity is searched to so many times the highest rate, and below the lowest one."""


def outcomes_of(run: StoredRun, objective: LatencyObjective) -> list[TrialOutcome]:
    """Returns the outcome of each trial of a run that was sent at a set rate."""
    outcomes = []
    for record, samples in _trials(run):
        if _RATE not in record.factors:
            continue
        latency_ns = objective.latency_of(samples)
        outcomes.append(
            TrialOutcome(
                float(record.factors[_RATE]),
                objective.met_by(samples),
                latency_ns if math.isfinite(latency_ns) else None,
                record.cause == LATE_SENDER,
            )
        )
    return outcomes


def capacity_of_runs(
    runs: Sequence[StoredRun], objective: LatencyObjective, confidence: float = 0.95
) -> Estimate:
    """Returns the capacity under an objective from the trials of stored runs.

    Raises UsageError where there are none at a set rate, and Refused where they do not bound it.
    """
    outcomes = [outcome for run in runs for outcome in outcomes_of(run, objective)]
    names = ", ".join(run.id for run in runs)
    if not outcomes:
        raise UsageError(
            f"{names}: no trial was sent at a set rate.",
            "Name the runs that `nephoscope capacity` lists.",
        )
    rates = [outcome.rate_per_s for outcome in outcomes]
    among = RateRange(min(rates) / _BEYOND, max(rates) * _BEYOND)
    capacity = estimate(outcomes, among, confidence)
    if capacity.reaches_low_end or capacity.reaches_high_end:
        raise Refused(f"the trials of {names} do not bound the rate up to which {objective} holds")
    return Estimate(
        capacity.rate_per_s,
        capacity.low,
        capacity.high,
        confidence,
        capacity.n,
        "per_s",
        "posterior of a logistic curve over rates",
    )


def _trials(run: StoredRun) -> list[tuple[TrialRecord, list[Sample]]]:
    """Each trial that has an outcome, with its samples; without where the server never answered.

    A trial whose only fault is a late sender has one: see `TrialOutcome`.
    """
    names = ("metric", "value", "count", "factors")
    trials: list[tuple[TrialRecord, list[Sample]]] = []
    for record, table in run.tables():
        if record.failure_name == NO_RESPONSE:
            trials.append((record, []))
        elif counts(record) or set(record.reason_codes) == {LATE_SENDER}:
            rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
            samples = [
                Sample(metric, value, count, factors=json.loads(factors))
                for metric, value, count, factors in rows
                if metric in ("latency_ns", UNANSWERED["latency_ns"], "errors_count")
            ]
            trials.append((record, samples))
    return trials
