"""The answers of a search for scaling settings, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.core.naming import plural
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.scaling.records import (
    ReplayedDecisions,
    ScalingCandidate,
    ScalingFigures,
    TraceBound,
)


@dataclass(frozen=True, slots=True)
class ScalingAnswer:
    """Parts of an analysis that its sentences state; candidates: the best first."""

    objective: LatencyObjective
    allowed: float
    trace: str
    candidates: Sequence[ScalingCandidate]
    bound: TraceBound
    test_bound: TraceBound | None
    replays: Sequence[ReplayedDecisions]


def name_of(candidate: ScalingCandidate) -> str:
    """Returns the rule with its settings as one line."""
    return " ".join(
        (candidate.rule, *(f"{name}={value}" for name, value in candidate.settings.items()))
    )


def hours(cost: Estimate) -> str:
    """Returns instance-hours with their interval, where the replications differ."""
    if cost.low is None or cost.high is None or cost.high - cost.low <= 1e-9:
        return f"{units.format_number(cost.value, 4)} instance-hours"
    low, high = (units.format_number(end, 4) for end in (cost.low, cost.high))
    return f"{units.format_number(cost.value, 4)} instance-hours [{low}, {high}]"


def share(ratio: float) -> str:
    """Returns a share in per cent."""
    return f"{100 * ratio:.3g} %"


def _figures(figures: ScalingFigures, limit: str) -> str:
    return f"{hours(figures.cost_h)}, {share(figures.slow_ratio.value)} of requests over {limit}"


def best_sentence(answer: ScalingAnswer) -> str:
    """Returns which rule and settings are best on the trace, or what the only one costs."""
    best = answer.candidates[0]
    limit = units.format_value(float(answer.objective.limit_ns), "ns")
    figures = _figures(best.figures, limit)
    verdict = "meets" if best.meets else "misses"
    if len(answer.candidates) == 1:
        return f"{answer.trace}: {name_of(best)} {verdict} {answer.objective}: {figures}."
    equal = sum(candidate.is_best for candidate in answer.candidates) - 1
    count = len(answer.candidates)
    tied = "another setting" if equal == 1 else f"{equal} other settings"
    if not best.meets:
        more = f"; {tied} cannot be distinguished from it" if equal else ""
        return (
            f"{answer.trace}: none of {count} settings meets {answer.objective}; "
            f"{name_of(best)} comes nearest: {figures}{more}."
        )
    if not equal:
        meeting = sum(each.meets for each in answer.candidates)
        which = (
            f"the only one of {plural(count, 'setting')} that meets"
            if meeting == 1
            else f"the cheapest of the {meeting} settings (of {count}) that meet"
        )
        return f"{answer.trace}: {name_of(best)} is {which} {answer.objective}: {figures}."
    return (
        f"{answer.trace}: {name_of(best)} meets {answer.objective} at the lowest cost, {figures}; "
        f"of {count} settings, {tied} cannot be distinguished from it."
    )


def remarks(answer: ScalingAnswer, test_best: Sequence[str] | None) -> Iterator[str]:
    """Yields the lower bound, the back-test, and the replay. test_best: best ones on the test
    trace."""
    best, bound = answer.candidates[0], answer.bound
    extra = best.figures.cost_h.value / bound.cost_h - 1 if bound.cost_h else 0.0
    yield (
        f"Lower bound ({bound.model}, instances at once): {units.format_number(bound.cost_h, 4)} "
        f"instance-hours, at most {bound.peak_count:,} instances at "
        f"{units.format_number(bound.peak_rate_per_s, 4)} requests/s; "
        + (f"the rule costs {share(extra)} more." if extra >= 0 else _cheaper(extra))
    )
    if answer.test_bound is not None and best.test is not None:
        yield _tested(answer, best, best.test, test_best or ())
    for replay in answer.replays:
        yield _replayed(replay)


def _cheaper(extra: float) -> str:
    return f"the rule costs {share(-extra)} less, because it misses the objective at times."


def _tested(
    answer: ScalingAnswer, best: ScalingCandidate, test: ScalingFigures, test_best: Sequence[str]
) -> str:
    assert answer.test_bound is not None
    limit = units.format_value(float(answer.objective.limit_ns), "ns")
    verdict = "meets" if best.test_meets else "misses"
    text = (
        f"Back-test on {answer.test_bound.trace}: it {verdict} the objective: "
        f"{_figures(test, limit)}"
    )
    if len(answer.candidates) == 1:
        return f"{text}."
    if name_of(best) in test_best:
        return f"{text}; no other setting is better there."
    there = next(each for each in answer.candidates if name_of(each) == test_best[0])
    assert there.test is not None
    return f"{text}; there {name_of(there)} would be best: {_figures(there.test, limit)}."


def _replayed(replay: ReplayedDecisions) -> str:
    if replay.first_difference_s is None:
        return (
            f"Replay of {replay.rule}: all {replay.decisions:,} recorded decisions follow from the "
            "rule and what was observed."
        )
    return (
        f"Replay of {replay.rule}: {replay.equal:,} of {replay.decisions:,} recorded decisions "
        "follow from the rule and what was observed; the first that differs is at "
        f"{replay.first_difference_s:g} s."
    )
