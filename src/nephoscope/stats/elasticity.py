"""Elasticity: how closely the number of instances follows the number that the load needs.

Supply is the number of instances that serve, demand the minimum number with which the objective is
met at the load of that time. Both are step functions of time in seconds.

Sources: Herbst, Kounev, Reussner, "Elasticity in Cloud Computing: What It Is, and What It Is Not",
ICAC 2013; Herbst, Krebs, Oikonomou, Kousiouris, Evangelinou, Iosup, Kounev, "Ready for Rain? A View
from SPEC Research on the Future of Cloud Metrics", SPEC RG 2016 (arXiv 1604.03470); Herbst et al.,
"Quantifying Cloud Performance and Dependability: Taxonomy, Metric Design, and Emerging Challenges",
ACM TOMPECS 3(4), 2018. Below, T is the length of the window, s and d are supply and demand.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.values import Array, Refused

MEASURE_UNITS = {
    "under_provisioned": "count",
    "over_provisioned": "count",
    "under_ratio": "ratio",
    "over_ratio": "ratio",
    "under_time_ratio": "ratio",
    "over_time_ratio": "ratio",
    "instability_ratio": "ratio",
    "opposed_ratio": "ratio",
    "jitter_per_min": "1/min",
}
"""Unit of each field of `ElasticityMeasures`."""
SAMPLING_S = 1.0
"""Distance of the times at which changes of both curves are compared."""
LEAST_REVERSALS = 3
"""Reversals in a row, without a reason in the demand, that are an oscillation: up, down, up, down.
Two occur where one decision was wrong and was corrected."""


@dataclass(frozen=True, slots=True)
class StepFunction:
    """A number of instances over time: counts[i] from times_s[i] up to times_s[i + 1].

    times_s ascend strictly, in seconds; counts are 0 or more. The last count has no end. Raises
    Refused for anything else.
    """

    times_s: tuple[float, ...]
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.counts):
            raise Refused(
                f"{len(self.times_s)} times and {len(self.counts)} counts are no step function; "
                "give one count for each time, and at least one."
            )
        if not all(map(math.isfinite, (*self.times_s, *self.counts))):
            raise Refused("A time or a count of the step function is not finite.")
        if any(after <= before for before, after in itertools.pairwise(self.times_s)):
            raise Refused("The times of the step function do not ascend; sort them, each once.")
        if min(self.counts) < 0:
            raise Refused("A count of the step function is negative.")

    def at(self, times_s: Array | Sequence[float] | float) -> Array:
        """Returns the counts at these times. Raises Refused before the first step."""
        times = np.asarray(times_s, dtype=np.float64)
        if times.size and times.min() < self.times_s[0]:
            raise Refused(
                f"The step function begins at {self.times_s[0]:g} s, after {times.min():g} s."
            )
        places = np.searchsorted(np.asarray(self.times_s), times, side="right") - 1
        return np.asarray(self.counts, dtype=np.float64)[places]

    def changes(self, start_s: float, end_s: float) -> list[tuple[float, float]]:
        """Returns time and size of each change after start_s and up to end_s."""
        steps = zip(self.times_s[1:], itertools.pairwise(self.counts), strict=True)
        return [
            (time_s, after - before)
            for time_s, (before, after) in steps
            if start_s < time_s <= end_s and after != before
        ]

    def beyond_since(self, level: float, at_s: float, sign: int) -> float | None:
        """Returns when the count went above a level (sign 1) or below it (-1), to stay there until
        at_s; None where it is not beyond the level, or was so from its first time on."""
        place = bisect_right(self.times_s, at_s) - 1
        if place < 0 or (self.counts[place] - level) * sign <= 0:
            return None
        while place >= 0 and (self.counts[place] - level) * sign > 0:
            place -= 1
        return None if place < 0 else self.times_s[place + 1]

    def area(self, start_s: float, end_s: float) -> float:
        """Returns the integral over a window: instance-seconds."""
        edges = _edges((self,), start_s, end_s)
        return float((self.at(edges[:-1]) * np.diff(edges)).sum())


def _edges(curves: Sequence[StepFunction], start_s: float, end_s: float) -> Array:
    """Returns the ends of the intervals of a window in which no curve changes."""
    if not start_s < end_s:
        raise Refused(f"The window from {start_s:g} s to {end_s:g} s has no length.")
    inner = {time_s for curve in curves for time_s in curve.times_s if start_s < time_s < end_s}
    return np.array([start_s, *sorted(inner), end_s])


@dataclass(frozen=True, slots=True)
class ElasticityMeasures:
    """SPEC RG's measures of one experiment. Smaller is better; for jitter, closer to 0.

    under_provisioned: (1/T) times the integral of max(d - s, 0), the mean number of instances that
    are missing (accuracy of 2013: the area U over T). over_provisioned: the same of max(s - d, 0).
    under_ratio: theta_U = (1/T) times the integral of max(d - s, 0) / d. over_ratio: theta_O, the
    same of max(s - d, 0) / d; T counts only time at which d > 0. under_time_ratio: tau_U, the share
    of time with s < d. over_time_ratio: tau_O, with s > d. instability_ratio: upsilon, the share of
    sampling intervals in which sgn(delta s) differs from sgn(delta d). opposed_ratio: the share in
    which both change, in opposite directions. jitter_per_min: (E_s - E_d) / T, with E the number of
    adaptations, where changes in one direction within SAMPLING_S are one; negative where a supply
    changes less often than the demand, so its magnitude counts.
    """

    under_provisioned: float
    over_provisioned: float
    under_ratio: float
    over_ratio: float
    under_time_ratio: float
    over_time_ratio: float
    instability_ratio: float
    opposed_ratio: float
    jitter_per_min: float


def measures(
    supply: StepFunction,
    demand: StepFunction,
    start_s: float,
    end_s: float,
    *,
    sampling_s: float = SAMPLING_S,
) -> ElasticityMeasures:
    """Returns the measures over a window in seconds; areas and shares of time are exact.

    sampling_s: distance of the times at which directions of change are compared, because steps have
    no duration. Raises Refused for a window without length, one that begins before a curve, one
    shorter than the sampling, and a demand that is 0 throughout.
    """
    edges = _edges((supply, demand), start_s, end_s)
    widths = np.diff(edges)
    s, d = supply.at(edges[:-1]), demand.at(edges[:-1])
    total = float(widths.sum())
    missing, spare = np.maximum(d - s, 0), np.maximum(s - d, 0)
    needed = d > 0
    if not needed.any():
        raise Refused("The demand is 0 throughout the window: nothing can be provisioned for it.")
    relative = widths[needed] / d[needed] / widths[needed].sum()
    opposed, unstable = _directions(supply, demand, start_s, end_s, sampling_s)
    adaptations = _adaptations(supply, start_s, end_s) - _adaptations(demand, start_s, end_s)
    return ElasticityMeasures(
        under_provisioned=float((missing * widths).sum()) / total,
        over_provisioned=float((spare * widths).sum()) / total,
        under_ratio=float((missing[needed] * relative).sum()),
        over_ratio=float((spare[needed] * relative).sum()),
        under_time_ratio=float(widths[s < d].sum()) / total,
        over_time_ratio=float(widths[s > d].sum()) / total,
        instability_ratio=unstable,
        opposed_ratio=opposed,
        jitter_per_min=adaptations / (total / 60),
    )


def _adaptations(curve: StepFunction, start_s: float, end_s: float) -> int:
    """Returns the number of changes; instances that one decision starts come a moment apart."""
    changes = curve.changes(start_s, end_s)
    return len(changes) - sum(
        size * before > 0 and at_s - before_s <= SAMPLING_S
        for (before_s, before), (at_s, size) in itertools.pairwise(changes)
    )


def _directions(
    supply: StepFunction, demand: StepFunction, start_s: float, end_s: float, sampling_s: float
) -> tuple[float, float]:
    """Returns the shares of sampling intervals with opposite, and with unequal directions.

    upsilon = (1/(T - t_1)) sum over t >= 2 of min(|sgn(delta s_t) - sgn(delta d_t)|, 1) delta t.
    """
    count = math.floor((end_s - start_s) / sampling_s + 1e-9) if sampling_s > 0 else 0
    if count < 1:
        raise Refused(f"A window of {end_s - start_s:g} s has no interval of {sampling_s:g} s.")
    times = np.minimum(start_s + sampling_s * np.arange(count + 1), end_s)
    apart = np.abs(np.sign(np.diff(supply.at(times))) - np.sign(np.diff(demand.at(times))))
    return float((apart > 1).mean()), float((apart > 0).mean())


def speed_up(reference: ElasticityMeasures, scaled: ElasticityMeasures) -> float:
    """Returns the elastic speed-up of a scaler against a reference; above 1, it is better.

    epsilon = ((theta_U,ref/theta_U)(theta_O,ref/theta_O)(tau_U,ref/tau_U)(tau_O,ref/tau_O))^(1/4).
    Raises Refused where one of the eight is 0, because its ratio says nothing.
    """
    names = ("under_ratio", "over_ratio", "under_time_ratio", "over_time_ratio")
    pairs = [(getattr(reference, name), getattr(scaled, name)) for name in names]
    zero = [name for name, pair in zip(names, pairs, strict=True) if min(pair) <= 0]
    if zero:
        raise Refused(
            f"The elastic speed-up has no value: {', '.join(zero)} is 0 in one of both experiments."
        )
    return math.exp(sum(math.log(ref / own) for ref, own in pairs) / len(pairs))


@dataclass(frozen=True, slots=True)
class Oscillation:
    """Changes of the supply to and fro that no change of the demand explains.

    start_s, end_s: first and last change. reversals: changes whose direction is opposite to that of
    the change before. period_s: mean time of a change up and one down. amplitude: largest minus
    smallest count.
    """

    start_s: float
    end_s: float
    reversals: int
    period_s: float
    amplitude: float


def oscillations(
    supply: StepFunction,
    demand: StepFunction,
    start_s: float,
    end_s: float,
    *,
    reaction_s: float,
    least_reversals: int = LEAST_REVERSALS,
) -> tuple[Oscillation, ...]:
    """Returns the oscillations of the supply in a window.

    A reversal is explained where the demand changed in its direction since the change before it, or
    up to reaction_s before that: the time that the scaler takes to answer a change of the demand.
    Unexplained reversals in a row, `least_reversals` or more, are an oscillation.
    """
    changes = supply.changes(start_s, end_s)
    wanted = demand.changes(-math.inf, end_s)
    rows: list[list[int]] = [[]]
    for place in range(1, len(changes)):
        (before_s, before), (time_s, size) = changes[place - 1], changes[place]
        if before * size > 0:
            continue  # a further step in the same direction neither ends nor adds anything
        since_s = before_s - reaction_s
        if any(since_s <= at_s <= time_s and moved * size > 0 for at_s, moved in wanted):
            rows.append([])
        else:
            rows[-1].append(place)
    return tuple(
        _oscillation(supply, changes, row) for row in rows if len(row) >= max(least_reversals, 1)
    )


def _oscillation(
    supply: StepFunction, changes: Sequence[tuple[float, float]], row: Sequence[int]
) -> Oscillation:
    times = [changes[row[0] - 1][0], *(changes[place][0] for place in row)]
    levels = supply.at([time_s for time_s, _ in changes[row[0] - 1 : row[-1] + 1]])
    before = supply.counts[supply.times_s.index(times[0]) - 1]
    levels = np.append(levels, before)
    period_s = 2 * (times[-1] - times[0]) / (len(times) - 1)
    return Oscillation(times[0], times[-1], len(row), period_s, float(np.ptp(levels)))


Lives = Sequence[tuple[float, float]]
"""Start and end of each instance, in seconds."""


def lives(supply: StepFunction, start_s: float, end_s: float) -> list[tuple[float, float]]:
    """Returns lives of instances that have this supply in a window; the youngest are removed first,
    as by the reference autoscaler and by Kubernetes.

    Only where the instances themselves were not observed. Raises Refused for a fraction of an
    instance.
    """
    if any(count != round(count) for count in supply.counts):
        raise Refused("Lives of instances need whole counts.")
    running = [start_s] * round(float(supply.at(start_s)))
    ended: list[tuple[float, float]] = []
    for time_s, size in supply.changes(start_s, end_s):
        running.extend([time_s] * round(max(size, 0)))
        ended += [(running.pop(), time_s) for _ in range(round(max(-size, 0)))]
    return ended + [(start, end_s) for start in running if start < end_s]


def billed_s(instances: Lives, granularity_s: float = 0.0) -> float:
    """Returns the instance-seconds that are billed: each life is rounded up to whole units.

    granularity_s: unit of the bill, 3600 for hours; 0 bills the time itself.
    """
    return sum(_rounded_up(end_s - start_s, granularity_s) for start_s, end_s in instances)


def clairvoyant_billed_s(
    demand: StepFunction, start_s: float, end_s: float, granularity_s: float = 0.0
) -> float:
    """Returns the minimum of instance-seconds that are billed for a demand that is always met.

    A clairvoyant scaler knows the demand and starts instances in no time. Units of the bill are
    intervals of equal length that have to cover the demand: beginning each as late as possible is
    optimal, because a later interval covers whatever an earlier one would have covered from there.
    """
    edges = _edges((demand,), start_s, end_s)
    counts = np.ceil(demand.at(edges[:-1]) - 1e-9)
    if granularity_s <= 0:
        return float((counts * np.diff(edges)).sum())
    units = 0
    running: deque[tuple[float, int]] = deque()  # end and number of units, the first end first
    covering = 0
    for place, count in enumerate(counts):
        now_s, until_s = float(edges[place]), float(edges[place + 1])
        while True:
            while running and running[0][0] <= now_s + 1e-9:
                covering -= running.popleft()[1]
            missing = int(count) - covering
            if missing > 0:
                running.append((now_s + granularity_s, missing))
                covering += missing
                units += missing
            if not running or running[0][0] >= until_s:
                break
            now_s = running[0][0]
    return units * granularity_s


def _rounded_up(length_s: float, granularity_s: float) -> float:
    if granularity_s <= 0:
        return length_s
    return max(1, math.ceil(length_s / granularity_s - 1e-9)) * granularity_s


SEGMENTS = ("metric_lag", "decision", "creation", "boot", "warm_up", "rotation", "first_response")
"""The segments of a change of the supply, in their order."""


@dataclass(frozen=True, slots=True)
class ScalingTimes:
    """When one change of the supply reached each of its steps, in seconds of one clock.

    demanded_s: the demand changed. visible_s: the scaler's metric showed it. decided_s: the scaler
    changed the desired number. created_s: the instance was started, or its end was requested.
    booted_s: it ran, or had ended. ready_s: it was able to serve, after its warm-up.
    in_rotation_s: the balancer sends it requests, or does no more. served_s: its first response.
    None: not observed. size: instances that were added, negative where they were removed.
    """

    size: int
    demanded_s: float | None = None
    visible_s: float | None = None
    decided_s: float | None = None
    created_s: float | None = None
    booted_s: float | None = None
    ready_s: float | None = None
    in_rotation_s: float | None = None
    served_s: float | None = None

    def segments_s(self) -> dict[str, float | None]:
        """Returns the length of each of SEGMENTS; None where one of its ends was not observed."""
        times = [getattr(self, entry.name) for entry in fields(self)[1:]]
        return {
            name: None if before is None or after is None else after - before
            for name, (before, after) in zip(SEGMENTS, itertools.pairwise(times), strict=True)
        }

    def total_s(self) -> float | None:
        """Returns the time from the demand to the rotation; None where one was not observed."""
        if self.demanded_s is None or self.in_rotation_s is None:
            return None
        return self.in_rotation_s - self.demanded_s


def over_repetitions(
    repetitions: Sequence[ElasticityMeasures], *, confidence: float = 0.95
) -> dict[str, Estimate]:
    """Returns the mean of each measure over repetitions of an experiment, with Student's interval.

    Bounds of shares and areas are cut at 0. Raises Refused without repetitions.
    """
    estimates = {}
    for name, unit in MEASURE_UNITS.items():
        values = [float(getattr(each, name)) for each in repetitions]
        estimates[name] = means.mean_t(
            values,
            unit=unit,
            confidence=confidence,
            least=-math.inf if name == "jitter_per_min" else 0.0,
        )
    return estimates
