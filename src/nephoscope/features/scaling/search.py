"""Simulates every candidate on a trace, and selects the best by cost and slow requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nephoscope.features.scaling.grid import RuleCandidate
from nephoscope.features.scaling.records import ScalingFigures
from nephoscope.features.scaling.traces import ScalerRecording, Trace
from nephoscope.stats.elasticity import StepFunction, measures
from nephoscope.stats.instance_demand import ScaledService
from nephoscope.stats.scaled_service import ScaledRun, simulate
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.values import Array

CONFIDENCE = 0.95
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SimulatedRule:
    """One candidate on one trace: cost in hours and share of slow requests of each replication."""

    candidate: RuleCandidate
    cost_h: Array
    slow_ratio: Array
    figures: ScalingFigures
    first: ScaledRun

    def meets(self, allowed: float) -> bool:
        """Returns whether the mean share of slow requests is within the allowed one."""
        return float(self.slow_ratio.mean()) <= allowed + _ROUNDING


def simulated(
    candidates: Sequence[RuleCandidate],
    service: ScaledService,
    trace: Trace,
    demand: StepFunction,
    replications: int,
    seed: int,
    watched: Callable[[Iterable[RuleCandidate]], Iterable[RuleCandidate]] = iter,
) -> list[SimulatedRule]:
    """Returns the outcome of each candidate; replication k has the same seed for all of them.

    The first replication has no sampling errors where it is the only one.
    """
    return [
        _simulated(candidate, service, trace, demand, replications, seed)
        for candidate in watched(candidates)
    ]


def runs_of(
    candidate: RuleCandidate, service: ScaledService, trace: Trace, replications: int, seed: int
) -> list[list[ScaledRun]]:
    """Returns the simulations of each replication: one, or one for each recorded trial.

    Those have the clock of their trial: where its decisions fall against the steps of the load
    decides as much as the rule does.
    """
    services = [service]
    if recordings := candidate.recordings or trace.recordings:
        services = [_started_as(service, recording) for recording in recordings]
    return [
        [
            simulate(
                candidate.rule,
                own,
                trace.rate,
                trace.end_s,
                np.random.default_rng((seed, replication)) if replications > 1 else None,
            )
            for own in services
        ]
        for replication in range(replications)
    ]


def _started_as(service: ScaledService, recording: ScalerRecording) -> ScaledService:
    count = service.start_count
    return replace(
        service,
        start_count=max(1, round(recording.supply.counts[0])) if count is None else count,
        first_decision_s=recording.first_decision_s,
        first_value_s=recording.first_value_s,
    )


def _simulated(
    candidate: RuleCandidate,
    service: ScaledService,
    trace: Trace,
    demand: StepFunction,
    replications: int,
    seed: int,
) -> SimulatedRule:
    runs = runs_of(candidate, service, trace, replications, seed)
    cost_h = np.array([[run.billed_h(service.billed_s) for run in own] for own in runs])
    slow = np.array([[run.slow_ratio for run in own] for own in runs])
    cost_h, slow = cost_h.mean(axis=1), slow.mean(axis=1)
    every = [run for own in runs for run in own]
    sampling_s = min(service.interval_s, trace.end_s - trace.start_s)
    each = [
        measures(run.supply, demand, trace.start_s, trace.end_s, sampling_s=sampling_s)
        for run in every
    ]
    figures = ScalingFigures(
        means.mean_t(cost_h, unit="h", confidence=CONFIDENCE, least=0.0),
        means.mean_t(slow, unit="ratio", confidence=CONFIDENCE, least=0.0),
        float(np.mean([run.violated_s for run in every])),
        float(np.mean([measured.under_provisioned for measured in each])),
        float(np.mean([measured.over_provisioned for measured in each])),
        float(np.mean([len(run.supply.times_s) - 1 for run in every])),
    )
    return SimulatedRule(candidate, cost_h, slow, figures, every[0])


def best_of(
    outcomes: Sequence[SimulatedRule], allowed: float
) -> tuple[SimulatedRule, list[SimulatedRule]]:
    """Returns the best candidate, and all that cannot be distinguished from it (it is among them).

    The goal is the cost among those that meet the objective; where none does, the share of slow
    requests. A difference counts where its paired interval excludes 0, at a confidence that allows
    for all pairs (Bonferroni), because the best of several equal ones is chosen by chance.
    """
    meeting = [outcome for outcome in outcomes if outcome.meets(allowed)]

    def goal(outcome: SimulatedRule) -> Array:
        return outcome.cost_h if meeting else outcome.slow_ratio

    pool = meeting or list(outcomes)
    best = min(pool, key=lambda outcome: float(goal(outcome).mean()))
    confidence = 1 - (1 - CONFIDENCE) / max(1, math.comb(len(pool), 2))
    return best, [outcome for outcome in pool if _is_equal(goal(outcome) - goal(best), confidence)]


def _is_equal(differences: Array, confidence: float) -> bool:
    scale = float(np.abs(differences).max())
    if scale <= _ROUNDING:
        return True
    if differences.size < 2 or float(np.ptp(differences)) <= _ROUNDING:
        return False
    interval = means.t_interval(differences, unit="h", confidence=confidence)
    return interval.low is None or interval.low <= 0


def frontier(outcomes: Sequence[SimulatedRule]) -> list[SimulatedRule]:
    """Returns the candidates that no other beats in cost without more slow requests, or in slow
    requests without more cost; the cheapest first."""
    ordered = sorted(
        outcomes,
        key=lambda outcome: (float(outcome.cost_h.mean()), float(outcome.slow_ratio.mean())),
    )
    members: list[SimulatedRule] = []
    for outcome in ordered:
        if not members or outcome.slow_ratio.mean() < members[-1].slow_ratio.mean() - _ROUNDING:
            members.append(outcome)
    return members
