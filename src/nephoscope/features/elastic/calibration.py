"""Measures how much one machine of the lab serves within the objective, before it is scaled."""

from __future__ import annotations

import time
from collections.abc import Sequence

from nephoscope.cli.kit import measuring
from nephoscope.core.errors import RunFailed
from nephoscope.core.model import Estimate
from nephoscope.features.elastic.plan import ElasticRequest, plan_capacity
from nephoscope.features.load.capacity import (
    CapacityStage,
    SearchLimits,
    StagePlan,
    conclusion,
    search,
)
from nephoscope.features.load.outcomes import outcomes_of
from nephoscope.store import Store, StoredRun

_CLOSED_LOOP_S, _CLOSED_LOOP_TRIALS = 2.0, 2
_SPREAD = 4.0
"""One machine serves a request at a time: what it serves within an objective that one request meets
is near the rate of the closed loop, and each trial starts a machine and a balancer anew."""
_PRECISION = 0.05
_CONFIDENCE = 0.95


def capacity_of_one(request: ElasticRequest, store: Store, budget_s: float) -> Estimate:
    """Returns the requests per second of one machine within the objective, searched as `capacity`
    does.

    Raises RunFailed where no trial is valid, or where the trials do not bound it.
    """
    from nephoscope.results import analyse_run

    began_s = time.monotonic()
    run = _run(request, store, None, _CLOSED_LOOP_TRIALS, _CLOSED_LOOP_S)
    lines = [m for m in analyse_run.build(run).metrics if m.metric == "requests_per_s"]
    if not lines:
        raise RunFailed("The closed loop has no valid trial.", f"See `nephoscope show {run.id}`.")

    def measure(plan: StagePlan) -> CapacityStage:
        rates = sorted({float(f"{rate:.4g}") for rate in plan.rates_per_s})
        made = _run(request, store, rates, plan.rounds, plan.trial_s)
        outcomes = outcomes_of(made, request.objective)
        excluded = max(0, plan.rounds * len(rates) - len(outcomes))
        spent = sorted(made.records(), key=lambda record: record.position)
        return CapacityStage(outcomes, excluded, None, [record.spent_s for record in spent])

    left_s = max(5.0, budget_s - (time.monotonic() - began_s))
    limits = SearchLimits(_PRECISION, left_s, _CONFIDENCE, _SPREAD)
    searched = search(measure, request.objective, lines[0].estimate.value, limits)
    reached = searched.capacity
    sentence, is_bounded = conclusion(searched, request.objective, _CONFIDENCE)
    if not is_bounded:
        raise RunFailed(
            f"The capacity of one machine is not known after {budget_s:.0f} s. {sentence}",
            "State it with --capacity, use a larger --budget, or another --objective.",
        )
    return Estimate(
        reached.rate_per_s, reached.low, reached.high, _CONFIDENCE, reached.n, "per_s",
        "posterior of a logistic curve over rates",
    )  # fmt: skip


def _run(
    request: ElasticRequest,
    store: Store,
    rates_per_s: Sequence[float] | None,
    trials: int,
    trial_s: float,
) -> StoredRun:
    from nephoscope.measure import runs

    plan = plan_capacity(request, rates_per_s, trials, trial_s)
    run = measuring.executed(plan, store, fresh=True)
    runs.mark_reported(run)
    return run
