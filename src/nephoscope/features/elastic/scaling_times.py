"""The segments of each change of the supply, from the steps that an autoscaler logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from nephoscope.core.model import Sample
from nephoscope.features.elastic.trial_clock import TrialClock
from nephoscope.stats.elasticity import ScalingTimes, StepFunction


def scaling_times(
    clock: TrialClock, supply: StepFunction, demand: StepFunction, end_s: float
) -> tuple[ScalingTimes, ...]:
    """Returns the times of each change within a trial.

    Of an autoscaler that logs its steps, one for each machine; of one that is only observed, one
    for each change of the number. A change from n instances answers the moment at which the demand
    went beyond n, and no other one answers that moment for the same n.
    """
    answers = _Answers(demand)
    if clock.series("desired_count"):
        return tuple(_of_decisions(clock, answers, end_s))
    return tuple(_of_counts(supply, answers, end_s))


class _Answers:
    """The moments of the demand, of which each is answered once for each number of instances."""

    def __init__(self, demand: StepFunction) -> None:
        self._demand = demand
        self._answered: dict[tuple[int, int], float] = {}

    def demanded_s(self, level: int, at_s: float, sign: int) -> float | None:
        """Returns when the demand went beyond a number that is left now; None where it did not, or
        where that was answered before."""
        since_s = self._demand.beyond_since(level, at_s, sign)
        if since_s is None or self._answered.get((level, sign)) == since_s:
            return None
        self._answered[level, sign] = since_s
        return since_s


def _of_counts(supply: StepFunction, answers: _Answers, end_s: float) -> Iterator[ScalingTimes]:
    for at_s, size in supply.changes(0.0, end_s):
        sign = 1 if size > 0 else -1
        before = round(float(supply.at(at_s)) - size)
        demanded_s = answers.demanded_s(before, at_s, sign)
        yield ScalingTimes(round(size), demanded_s=demanded_s, in_rotation_s=at_s)


def _of_decisions(clock: TrialClock, answers: _Answers, end_s: float) -> Iterator[ScalingTimes]:
    present = clock.counts("present")
    assert present is not None
    decisions = [(at_s, int(sample.value)) for at_s, sample in clock.series("desired_count")]
    steps = clock.series("steps_count")
    seen = [(at_s, sample.value) for at_s, sample in clock.series("visible_wanted_count")]
    last_seen_s = 0.0
    for (at_s, desired), (until_s, _) in pairwise([*decisions, (end_s, 0)]):
        if not 0 <= at_s < end_s:
            continue
        before = int(present.at(at_s))
        if desired == before:
            continue
        sign = 1 if desired > before else -1
        first = "created" if sign > 0 else "out_of_rotation"
        machines = [
            (step_s, str(sample.factors["machine"]))
            for step_s, sample in steps
            if at_s <= step_s < until_s and sample.factors["step"] == first
        ]
        for number, (began_s, machine) in enumerate(machines):
            demanded_s = answers.demanded_s(before + sign * number, at_s, sign)
            visible_s = None
            if demanded_s is not None and demanded_s > last_seen_s:
                # A change of the demand has one lag, however many machines it brings.
                last_seen_s = demanded_s
                visible_s = _visible_s(seen, present, demanded_s, at_s, sign)
            times = {"demanded_s": demanded_s, "visible_s": visible_s, "decided_s": at_s}
            if sign < 0:
                yield ScalingTimes(-1, **times, in_rotation_s=began_s)
                continue
            reached = _reached(steps, machine, began_s)
            yield ScalingTimes(1, **times, created_s=began_s, **reached)


def _visible_s(
    seen: Sequence[tuple[float, float]],
    present: StepFunction,
    demanded_s: float,
    at_s: float,
    sign: int,
) -> float | None:
    """Returns the time of the first value after the demand at which the rule wanted a change in its
    direction; None where there was none until the decision."""
    for seen_s, wanted in seen:
        if (
            demanded_s < seen_s <= at_s
            and (wanted - float(present.at(max(seen_s, 0.0)))) * sign > 0
        ):
            return seen_s
    return None


def _reached(
    steps: Sequence[tuple[float, Sample]], machine: str, began_s: float
) -> dict[str, float]:
    """Returns when a machine reached each step after its creation, until it was created again."""
    names = {"booted": "booted_s", "ready": "ready_s", "in_rotation": "in_rotation_s"}
    names["served"] = "served_s"
    reached: dict[str, float] = {}
    for at_s, sample in steps:
        factors = sample.factors
        if factors["machine"] != machine or at_s <= began_s:
            continue
        if factors["step"] == "created":
            break
        if factors["step"] in names:
            reached.setdefault(names[factors["step"]], at_s)
    return reached
