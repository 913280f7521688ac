"""Prediction intervals for a new machine of a platform, and how often they were right."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics import estimates
from nephoscope.stats.statistics.dependence import INDEPENDENT
from nephoscope.stats.statistics.means import summary, t_quantile
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import EQUAL_NOTE, Array, all_equal, finite

LEAST_MACHINES = 3
"""Machines from which on there is an interval; two tell nearly nothing of the spread."""

Values = Mapping[str, Mapping[str, Sequence[float]]]
"""Machine -> run -> trial values. A machine is one draw however often it was measured."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations between machines and within them, as ratios; null where not known."""

    between: float | None
    within: float | None


@dataclass(frozen=True, slots=True)
class BackTest:
    """Predictions of each machine from the others of its platform, held against what it showed.

    coverage: share of values inside their intervals; its own interval counts a machine once,
    because its metrics depend on each other. error: relative error, the median over the machines
    of their medians. error_any_platform: of predictions that ignore the platform. skipped: values
    of platforms with too few machines.
    """

    confidence: float
    predictions: int
    machines: int
    coverage: Estimate | None
    error: Estimate | None
    error_any_platform: Estimate | None
    skipped: int


def machine_values(values: Values) -> dict[str, float]:
    """Returns the value of each machine: the median over its runs of their medians."""
    return {
        machine: median(median(trials) for trials in runs.values())
        for machine, runs in values.items()
        if any(runs.values())
    }


def predict(values: Sequence[float], *, unit: str, confidence: float) -> Estimate:
    """Returns the value of one more machine with its prediction interval.

    values: one a machine. With enough machines the ends are order statistics, right for every
    distribution; with fewer, the logarithms are taken as normal (Student t, widened by 1 + 1/n).
    Below three machines there is a value and no interval. Raises Refused without any.
    """
    array = finite(values, statistic="prediction")
    if array.size < LEAST_MACHINES:
        note = f"Too few machines: {array.size} measured, and an interval needs {LEAST_MACHINES}."
        middle = float(np.median(array))
        return Estimate(middle, None, None, confidence, int(array.size), unit, "median", note)
    note = EQUAL_NOTE.format(n=array.size) if all_equal(array) else ""
    if array.size + 1 >= 2 / (1 - confidence) - 1e-9:
        value, (low, high) = float(np.median(array)), _rank_ends(array, confidence)
        method = "median; prediction interval by interpolated order statistics"
    else:
        value, low, high = _student(array, confidence)
        method = "geometric mean; prediction interval by Student t of logarithms"
        if np.min(array) <= 0:
            method = "mean; prediction interval by Student t"
    return Estimate(value, low, high, confidence, int(array.size), unit, method, note)


def _student(array: Array, confidence: float) -> tuple[float, float, float]:
    is_positive = bool(np.min(array) > 0)
    statistics = summary(np.log(array) if is_positive else array)
    half = t_quantile(statistics.n - 1, confidence) * statistics.s * math.sqrt(1 + 1 / statistics.n)
    ends = (statistics.mean, statistics.mean - half, statistics.mean + half)
    value, low, high = (math.exp(end) for end in ends) if is_positive else ends
    return value, low, high


def _rank_ends(array: Array, confidence: float) -> tuple[float, float]:
    """The ends between which the next value lies with this probability.

    The next of n + 1 exchangeable values is below the k-th of the others with probability
    k / (n + 1); between two ranks the ends are interpolated.
    """
    ordered = np.sort(array)
    tail = (1 - confidence) / 2
    ranks = [max(1.0, share * (array.size + 1)) for share in (tail, 1 - tail)]
    places = [min(rank, float(array.size)) - 1 for rank in ranks]
    low, high = np.interp(places, np.arange(array.size), ordered)
    return float(low), float(high)


def spread(values: Values) -> Spread:
    """Returns the spread between machines and within them, on a logarithmic scale.

    Within: between the runs of a machine, or its trials where each machine has one run.
    """
    by_run = any(len(runs) > 1 for runs in values.values())
    groups = [
        np.array(
            [median(trials) for trials in runs.values() if trials]
            if by_run
            else [value for trials in runs.values() for value in trials]
        )
        for runs in values.values()
        if any(runs.values())
    ]
    if not groups or min(float(group.min()) for group in groups) <= 0:
        return Spread(None, None)
    logs = [np.log(group) for group in groups]
    freedom = sum(group.size - 1 for group in logs)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in logs)
    variance = squares / freedom if freedom else 0.0
    within = math.sqrt(variance) if freedom else None
    if len(logs) < LEAST_MACHINES:
        return Spread(None, within)
    total = summary([float(group.mean()) for group in logs]).s ** 2
    noise = variance * sum(1 / group.size for group in logs) / len(logs)
    return Spread(math.sqrt(max(0.0, total - noise)), within)


def relative_time(shares: Mapping[str, float], speeds: Mapping[str, float]) -> float:
    """Returns the run time relative to the reference: sum of share / relative speed.

    shares: of the time on the reference by resource; what is missing to 1 stays as it is.
    """
    rest = 1 - math.fsum(shares.values())
    return rest + math.fsum(share / speeds[name] for name, share in shares.items())


def back_test(
    platforms: Mapping[tuple[str, str], Mapping[str, float]], *, confidence: float
) -> BackTest:
    """Predicts every machine from the others of its platform.

    platforms: (platform, metric) -> machine -> value.
    """
    outcomes = list(_outcomes(platforms, confidence))
    values = sum(len(machines) for machines in platforms.values())
    machines = {outcome.machine for outcome in outcomes}
    if not outcomes:
        return BackTest(confidence, 0, 0, None, None, None, values)
    return BackTest(
        confidence,
        len(outcomes),
        len(machines),
        _coverage(outcomes, len(machines)),
        _median_error((outcome.machine, outcome.error) for outcome in outcomes),
        _median_error(
            (outcome.machine, outcome.error_any)
            for outcome in outcomes
            if outcome.error_any is not None
        ),
        values - len(outcomes),
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    machine: str
    is_covered: bool
    error: float
    error_any: float | None


def _outcomes(
    platforms: Mapping[tuple[str, str], Mapping[str, float]], confidence: float
) -> Iterator[_Outcome]:
    by_metric: dict[str, list[float]] = {}
    for (_, metric), machines in platforms.items():
        by_metric.setdefault(metric, []).extend(machines.values())
    ordered = {metric: sorted(values) for metric, values in by_metric.items()}
    for (_, metric), machines in platforms.items():
        if len(machines) <= LEAST_MACHINES:
            continue
        every = ordered[metric]
        for machine, actual in machines.items():
            rest = [value for name, value in machines.items() if name != machine]
            predicted = predict(rest, unit="none", confidence=confidence)
            assert predicted.low is not None
            assert predicted.high is not None
            yield _Outcome(
                machine,
                predicted.low <= actual <= predicted.high,
                _relative_error(predicted.value, actual),
                _relative_error(_median_without(every, actual), actual)
                if len(every) > len(machines)
                else None,
            )


def _median_without(ordered: Sequence[float], value: float) -> float:
    """Returns the median of ordered values after one of this value is taken out."""
    place = bisect_left(ordered, value)
    left = len(ordered) - 1
    low, high = ((rank if rank < place else rank + 1) for rank in ((left - 1) // 2, left // 2))
    return (ordered[low] + ordered[high]) / 2


def _relative_error(predicted: float, actual: float) -> float:
    if predicted == actual:
        return 0.0
    return abs(predicted - actual) / abs(actual) if actual else math.inf


def _coverage(outcomes: Sequence[_Outcome], machines: int) -> Estimate:
    share = sum(outcome.is_covered for outcome in outcomes) / len(outcomes)
    by_machine = wilson(round(share * machines), machines)
    method = f"share of {len(outcomes)} values; Wilson score interval of {machines} machines"
    return replace(
        by_machine,
        value=share,
        low=min(share, by_machine.low or 0.0),
        high=max(share, by_machine.high or 0.0),
        method=method,
    )


def _median_error(errors: Iterable[tuple[str, float]]) -> Estimate | None:
    """The median over the machines of each one's median error, whose metrics are one draw."""
    by_machine = group_by(errors, lambda pair: pair[0])
    medians = [median(error for _, error in own) for own in by_machine.values()]
    return estimates.median(medians, unit="ratio", prior=INDEPENDENT) if medians else None
