"""Analyses scaling rules on a trace: lower bound, best settings, replay of a recorded run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from nephoscope.autoscalers.rules import Scaler
from nephoscope.core.errors import UsageError
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.scaling import search, sentences, settings
from nephoscope.features.scaling.grid import RuleCandidate
from nephoscope.features.scaling.records import (
    ReplayedDecisions,
    ScalingAnalysis,
    ScalingCandidate,
    ScalingCurves,
    TraceBound,
)
from nephoscope.features.scaling.search import SimulatedRule
from nephoscope.features.scaling.traces import RecordedDecision, ScalerRecording, Trace
from nephoscope.stats.elasticity import StepFunction, clairvoyant_billed_s, measures
from nephoscope.stats.instance_demand import ScaledService, demand_of
from nephoscope.stats.statistics.values import Refused

Watched = Callable[[Iterable[RuleCandidate]], Iterable[RuleCandidate]]


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a search needs besides its traces. replications: 1 observes metrics without error."""

    objective: LatencyObjective
    candidates: Sequence[RuleCandidate]
    replications: int = 10
    seed: int = 0


def analyse(
    service: ScaledService,
    wanted: SearchSettings,
    trace: Trace,
    test: Trace | None = None,
    watched: Watched = iter,
) -> ScalingAnalysis:
    """Returns the analysis. Raises UsageError where the trace cannot be simulated."""
    try:
        return _analyse(service, wanted, trace, test, watched)
    except Refused as refusal:
        raise UsageError(
            f"{trace.name}: {refusal}", "Change --objective, --set or --rule."
        ) from None


def _analyse(
    service: ScaledService,
    wanted: SearchSettings,
    trace: Trace,
    test: Trace | None,
    watched: Watched,
) -> ScalingAnalysis:
    allowed = 1 - wanted.objective.share_ratio
    demand = trace.demand or demand_of(service, trace.rate)
    if not any(demand.counts):
        raise Refused("The rate is 0 throughout: nothing can be provisioned for it.")

    def outcomes_on(load: Trace, needed: StepFunction) -> list[SimulatedRule]:
        return search.simulated(
            wanted.candidates, service, load, needed, wanted.replications, wanted.seed, watched
        )

    outcomes = outcomes_on(trace, demand)
    best, equals = search.best_of(outcomes, allowed)
    tested: list[SimulatedRule] = []
    test_bound = None
    if test is not None:
        test_demand = demand_of(service, test.rate)
        tested = outcomes_on(test, test_demand)
        test_bound = _bound(test, test_demand, service)
    candidates = _candidates(outcomes, tested, best, equals, allowed)
    bound = _bound(trace, demand, service)
    replays = tuple(
        _replayed(wanted, service, outcome, recordings, trace, demand)
        for outcome in outcomes
        if (recordings := _recordings_of(outcome.candidate, trace, len(outcomes)))
    )
    answer = sentences.ScalingAnswer(
        wanted.objective, allowed, trace.name, candidates, bound, test_bound, replays
    )
    test_best = search.best_of(tested, allowed) if tested else None
    return ScalingAnalysis(
        sentences.best_sentence(answer),
        tuple(
            sentences.remarks(answer, None if test_best is None else [*map(_named, test_best[1])])
        ),
        str(wanted.objective),
        round(allowed, 12),
        service.services_per_s,
        settings.as_text(service),
        wanted.replications,
        wanted.seed,
        bound,
        candidates,
        test_bound,
        replays,
        ScalingCurves(_points(demand), _points(best.first.supply)),
    )


def _named(outcome: SimulatedRule) -> str:
    return str(outcome.candidate)


def _points(steps: StepFunction) -> tuple[tuple[float, float], ...]:
    return tuple(zip(steps.times_s, steps.counts, strict=True))


def _bound(trace: Trace, demand: StepFunction, service: ScaledService) -> TraceBound:
    model = "M/M/c"
    if trace.demand is not None:
        model = "the capacity of the run"
    elif service.wait_ratio != 1:
        model = "G/G/c"
    return TraceBound(
        model,
        trace.name,
        trace.end_s - trace.start_s,
        trace.rate.area(trace.start_s, trace.end_s),
        max(trace.rate.counts),
        int(max(demand.counts)),
        clairvoyant_billed_s(demand, trace.start_s, trace.end_s, service.billed_s) / 3600,
    )


def _candidates(
    outcomes: Sequence[SimulatedRule],
    tested: Sequence[SimulatedRule],
    best: SimulatedRule,
    equals: Sequence[SimulatedRule],
    allowed: float,
) -> tuple[ScalingCandidate, ...]:
    """Returns the best one, those equal to it, those that meet the objective, and the others."""
    on_frontier = search.frontier(outcomes)

    def rank(place: int) -> tuple[int, float]:
        outcome = outcomes[place]
        group = (outcome is best, outcome in equals, outcome.meets(allowed), True).index(True)
        return group, float(outcome.cost_h.mean())

    return tuple(
        ScalingCandidate(
            outcomes[place].candidate.policy,
            outcomes[place].candidate.settings,
            outcomes[place].figures,
            outcomes[place].meets(allowed),
            outcomes[place] in on_frontier,
            outcomes[place] in equals,
            tested[place].figures if tested else None,
            tested[place].meets(allowed) if tested else None,
        )
        for place in sorted(range(len(outcomes)), key=rank)
    )


def _recordings_of(
    candidate: RuleCandidate, trace: Trace, candidates: int
) -> tuple[ScalerRecording, ...]:
    """Returns the trials that a rule decided: those of a trace are of the only rule."""
    return candidate.recordings or (trace.recordings if candidates == 1 else ())


def _replayed(
    wanted: SearchSettings,
    service: ScaledService,
    outcome: SimulatedRule,
    recordings: Sequence[ScalerRecording],
    trace: Trace,
    demand: StepFunction,
) -> ReplayedDecisions:
    """Makes the recorded decisions again, and compares the trials with their simulations."""
    first, equal = None, 0
    for recording in recordings:
        scaler = Scaler(outcome.candidate.rule)
        for recorded in recording.decisions:
            scaler, is_equal = _decided(scaler, recorded, recording.resolution_s)
            equal += is_equal
            if not is_equal and first is None:
                first = recorded.observation.at_s
    candidate, measured, model = outcome.candidate, [], []
    runs = search.runs_of(candidate, service, trace, wanted.replications, wanted.seed)
    for place, recording in enumerate(recordings):
        from_s = max(trace.start_s, recording.supply.times_s[0])
        measured.append(measures(recording.supply, demand, from_s, trace.end_s))
        model += [measures(own[place].supply, demand, from_s, trace.end_s) for own in runs]
    slow = [each.slow_ratio for each in recordings if each.slow_ratio is not None]
    cost_h = [each.cost_h for each in recordings if each.cost_h is not None]
    return ReplayedDecisions(
        str(candidate),
        len(recordings),
        sum(len(recording.decisions) for recording in recordings),
        equal,
        first,
        fmean(each.under_provisioned for each in measured),
        fmean(each.over_provisioned for each in measured),
        fmean(each.under_provisioned for each in model),
        fmean(each.over_provisioned for each in model),
        fmean(slow) if slow else None,
        float(outcome.slow_ratio.mean()),
        fmean(cost_h) if cost_h else None,
        float(outcome.cost_h.mean()),
    )


def _decided(
    scaler: Scaler, recorded: RecordedDecision, resolution_s: float
) -> tuple[Scaler, bool]:
    """Makes a recorded decision again, at a time that the recording cannot tell from its own.

    Returns the scaler after it, and whether the decision is the recorded one.
    """
    offsets = (0.0, resolution_s, -resolution_s) if resolution_s else (0.0,)
    attempts = []
    for offset_s in offsets:
        attempt = replace(scaler)
        seen = recorded.observation
        decision = attempt.decide(replace(seen, at_s=seen.at_s + offset_s))
        if decision.desired == recorded.desired:
            return attempt, True
        attempts.append(attempt)
    return attempts[0], False
