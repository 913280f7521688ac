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
    for each change of the number.
    """
    changes = demand.changes(0.0, end_s)
    if clock.series("desired_count"):
        return tuple(_of_decisions(clock, changes, end_s))
    return tuple(_of_counts(supply, changes, end_s))


def _demanded(
    changes: Sequence[tuple[float, float]], at_s: float, since_s: float, sign: int
) -> float | None:
    """Returns the last change of the demand in a direction, unless the demand changed back."""
    before = [(time_s, size) for time_s, size in changes if since_s < time_s <= at_s]
    return before[-1][0] if before and before[-1][1] * sign > 0 else None


def _of_counts(
    supply: StepFunction, changes: Sequence[tuple[float, float]], end_s: float
) -> Iterator[ScalingTimes]:
    last_s = -1.0
    for at_s, size in supply.changes(0.0, end_s):
        sign = 1 if size > 0 else -1
        demanded_s = _demanded(changes, at_s, last_s, sign)
        last_s = demanded_s or last_s
        yield ScalingTimes(int(size), demanded_s=demanded_s, in_rotation_s=at_s)


def _of_decisions(
    clock: TrialClock, changes: Sequence[tuple[float, float]], end_s: float
) -> Iterator[ScalingTimes]:
    present = clock.counts("present")
    assert present is not None
    decisions = [(at_s, int(sample.value)) for at_s, sample in clock.series("desired_count")]
    steps = clock.series("steps_count")
    answered_s = -1.0
    for (at_s, desired), (until_s, _) in pairwise([*decisions, (end_s, 0)]):
        if not 0 <= at_s < end_s:
            continue
        size = desired - int(present.at(at_s))
        if not size:
            continue
        sign = 1 if size > 0 else -1
        demanded_s = _demanded(changes, at_s, answered_s, sign)
        visible_s = None
        if demanded_s is not None:
            # Further decisions for the same change of the demand have no lag of their own.
            answered_s = demanded_s
            visible_s = next(
                (
                    seen_s
                    for seen_s, sample in clock.series("visible_wanted_count")
                    if demanded_s < seen_s <= at_s
                    and (sample.value - float(present.at(seen_s))) * sign > 0
                ),
                None,
            )
        first = "created" if sign > 0 else "out_of_rotation"
        machines = [
            (step_s, str(sample.factors["machine"]))
            for step_s, sample in steps
            if at_s <= step_s < until_s and sample.factors["step"] == first
        ]
        for number, (began_s, machine) in enumerate(machines):
            # One decision has one lag, however many machines it starts.
            seen = visible_s if number == 0 else None
            after = {"demanded_s": demanded_s, "visible_s": seen, "decided_s": at_s}
            if sign < 0:
                yield ScalingTimes(-1, **after, in_rotation_s=began_s)
                continue
            reached = _reached(steps, machine, began_s)
            yield ScalingTimes(1, **after, created_s=began_s, **reached)


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
