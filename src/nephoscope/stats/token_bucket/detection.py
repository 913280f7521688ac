"""Recognises a token bucket in a series of rates: CPU credits, disk bursts, network shapers.

A machine on credit delivers its burst rate while credit lasts and its baseline afterwards. Credit
comes back only while the load is below the baseline, so a rate that rises again under load is no
token bucket. A drop is recognised by its depth and its edge: noise and drift are no plateaus, and a
slope (a day's rhythm, a machine that warms up) has no edge. See
docs/decisions/0088-credit-is-a-drop-that-load-does-not-undo.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array, Numbers, Refused, finite, percent
from nephoscope.stats.statistics.variation import robust_cv
from nephoscope.stats.token_bucket import segments
from nephoscope.stats.token_bucket.records import BurstCredit, CreditWord
from nephoscope.stats.token_bucket.segments import Plateau

LEAST_POINTS = 8
LEAST_DEPTH = 0.15
"""Drop, relative to the burst rate, from which on a plateau may be a baseline: clocks that slow
down under heat or wide vectors stay below it."""
_STEP = 0.03
"""Smallest step between two plateaus, relative to the highest rates."""
_IDLE = 0.01
"""Rate, relative to the highest ones, below which there was no load."""
_BELOW = 0.9
"""Level, relative to the first baseline, below which a load was too low to use credit."""
_GAP = 5.0
"""Distance of two points, in usual ones, from which on the series has a gap."""
_BRIEF = 0.01
"""Part of all points that a plateau may have and still be an outlier."""
_LEAST_LOW, _ENOUGH_LOW = 0.05, 20
"""Part of all points that have to lie on the baseline, and how many are enough of any series."""
_RISES = 0.1
"""Time above the baseline after a knee, relative to that on it, which no pause explains."""
_EDGES = 0.5
"""Part of the fall that has to happen in edges."""
_FIRST = 0.1
"""Part of the fall that a first step has at least."""
_LEAST_SMOOTH = 12
"""Points from which on a curve is told from a step."""
_BUSIER = 0.9
"""Change of the busy time that explains a rise."""
_VARIES = 0.10


Points = NDArray[np.int_]
"""Indices of points."""


@dataclass(frozen=True, slots=True)
class RateSeries:
    """Checked points under load. widths: seconds for which each stands. period: number of the time
    of load without a pause that a point belongs to. busy: share of its width with load; None where
    nobody recorded it. pause_s, gap_s: seconds without load, and without points, before each point.
    part_work: work of the points at the edges of a pause, which are partly under load and left out:
    of that after the pause and of that before it. usual_s: usual distance of points."""

    at_s: Array
    rates: Array
    widths: Array
    period: NDArray[np.intp]
    busy: Array | None
    pause_s: Array
    gap_s: Array
    part_work: NDArray[np.float64]
    usual_s: float
    span_s: float


@dataclass(frozen=True, slots=True)
class Drop:
    """Where the credit of a period was used up. high, low: points of burst and baseline, in order;
    between them lies the edge."""

    high: Points
    low: Points
    first_low: int


@dataclass(frozen=True, slots=True)
class Recognised:
    """The drops of a series and its plateaus."""

    series: RateSeries
    drops: Sequence[Drop]
    sigma: float
    burst: float
    baseline: float


def rate_series(at_s: Numbers, rates: Numbers, busy: Numbers | None = None) -> RateSeries:
    """Returns the points under load of a series. Raises Refused for what is no series."""
    values = finite(rates, statistic="token bucket")
    times = finite(at_s, statistic="token bucket")
    if times.shape != values.shape:
        raise Refused(f"{times.size} times and {values.size} rates are not one series.")
    if (values < 0).any():
        raise Refused(f"{int((values < 0).sum())} of {values.size} rates are negative.")
    steps = np.diff(times)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0)) + 1
        raise Refused(
            f"The times do not increase: point {at + 1} of {times.size} is not later than the "
            "previous point; sort the series, and analyse one series at a time."
        )
    shares = None
    if busy is not None:
        shares = finite(busy, statistic="token bucket")
        if shares.shape != values.shape or (shares < 0).any() or (shares > 1.05).any():
            raise Refused("The busy time of a point has to be between none and all of its time.")
        shares = np.minimum(shares, 1.0)
    return _under_load(times, values, shares, steps)


def _under_load(times: Array, values: Array, shares: Array | None, steps: Array) -> RateSeries:
    """Returns the points with load of a series that was checked."""
    usual = float(np.median(steps)) if steps.size else 1.0
    # A point stands for the time that is nearer to it than to another one; a gap for none.
    is_gap = steps > _GAP * usual
    near = np.where(is_gap, usual, steps) / 2
    edge = near if near.size else np.array([usual / 2])
    widths = np.concatenate([edge[:1], near]) + np.concatenate([near, edge[-1:]])
    idle = values <= _IDLE * float(np.percentile(values, 95)) if values.size else values > 0
    if shares is not None:
        idle |= shares == 0
    after = np.concatenate([[False], idle[:-1]]) & ~idle
    before = np.concatenate([idle[1:], [False]]) & ~idle
    used = ~idle & ~after & ~before
    where = np.flatnonzero(used)
    skipped = np.diff(where, prepend=where[0] - 1 if where.size else 0) > 1
    gaps = np.concatenate([[0.0], np.where(is_gap, steps - usual, 0.0)])
    pauses, parts = np.zeros(where.size), np.zeros((where.size, 2))
    for place in np.flatnonzero(skipped):
        left, right = where[place - 1] + 1, where[place]
        pauses[place] = float((widths[left:right] + gaps[left:right]).sum() + gaps[right])
        parts[place] = [
            float((values * widths)[left:right][mask[left:right]].sum()) for mask in (after, before)
        ]
    return RateSeries(
        times[where],
        values[where],
        widths[where],
        np.cumsum(skipped),
        None if shares is None else shares[where],
        pauses,
        np.where(skipped, 0.0, gaps[where]),
        parts,
        usual,
        float(times[-1] - times[0]) if times.size > 1 else 0.0,
    )


def recognise(series: RateSeries, least_depth: float = LEAST_DEPTH) -> Recognised | BurstCredit:
    """Returns the drops of a series from burst to baseline, else the verdict on what it is."""
    n = series.rates.size
    if n < LEAST_POINTS:
        return _verdict(
            series,
            "cannot be told",
            f"{n} points under load are too few: a token bucket needs {LEAST_POINTS}.",
        )
    sigma = segments.noise_of(series.rates)
    parts = _plateaus_by_period(series, sigma)
    every = [part for period in parts for part in period]
    least = 2 if n < 40 else 3
    wide = [part for part in every if part.width >= least] or every
    burst = max(part.level for part in wide)
    baseline = _baseline(parts, burst, least, least_depth)
    if baseline is None:
        return _no_drop(series, wide, burst, least_depth)
    middle = (burst + baseline) / 2
    parts = [_without_brief(period, middle, max(2, _BRIEF * n)) for period in parts if period]
    drops, low, unexplained = _drops(series, parts, middle, baseline, burst, sigma)
    if not drops:
        return _no_drop(series, wide, burst, least_depth)
    if unexplained > _RISES * low:
        return _verdict(
            series,
            "varies",
            f"The rate falls by {percent(1 - baseline / burst, 2)} and rises again under load, "
            "which a token bucket does not allow: other load on the host is likelier.",
        )
    if low < max(least, min(_LEAST_LOW * n, _ENOUGH_LOW)):
        return _verdict(
            series,
            "cannot be told",
            f"Only {low} of {n} points lie below the burst rate, at the end; measure for longer.",
        )
    has_edge = _edges(series, parts, middle, sigma) >= _EDGES * (burst - baseline)
    if not has_edge or _is_smooth(series, drops[0], sigma):
        return _verdict(
            series,
            "varies",
            f"The rate falls by {percent(1 - baseline / burst, 2)} as a slope without an edge: "
            "credit that ends would show an edge.",
        )
    return Recognised(series, drops, sigma, burst, baseline)


def _verdict(series: RateSeries, word: CreditWord, reason: str) -> BurstCredit:
    return BurstCredit(word, reason, series.rates.size, series.span_s)


def _no_drop(
    series: RateSeries, wide: Sequence[Plateau], burst: float, least_depth: float
) -> BurstCredit:
    lowest = min(part.level for part in wide)
    spread = float(robust_cv(series.rates))
    if lowest >= (1 - least_depth) * burst and spread <= _VARIES:
        return _verdict(
            series,
            "steady",
            f"No drop of {percent(least_depth, 2)} or more: no credit was used up under this load "
            "in this time. A credit that lasts longer would not show.",
        )
    return _verdict(
        series,
        "varies",
        f"The rate varies by {percent(max(spread, 1 - lowest / burst), 2)} without a fall from a "
        "burst rate to a baseline.",
    )


def _plateaus_by_period(series: RateSeries, sigma: float) -> list[list[Plateau]]:
    """Returns the plateaus of each time under load, as points of the whole series."""
    top = float(np.percentile(series.rates, 95))
    recognised = []
    for number in range(int(series.period[-1]) + 1):
        first, last = np.searchsorted(series.period, [number, number + 1])
        values = segments.without_outliers(series.rates[first:last], sigma)
        _, few, group = segments.thinned(series.at_s[first:last], values)
        noise = segments.noise_of(few) if group > 1 else sigma
        parts = segments.plateaus(few, noise, 2 if few.size < 40 else 3)
        parts = segments.merged(parts, few, _STEP * top)
        scaled = [
            Plateau(int(first) + part.first * group, int(first) + part.last * group, part.level)
            for part in parts
        ]
        scaled[-1] = Plateau(scaled[-1].first, int(last), scaled[-1].level)
        recognised.append(scaled)
    return recognised


def _baseline(
    parts: Sequence[Sequence[Plateau]], burst: float, least: int, depth: float
) -> float | None:
    """Returns the level that follows bursts: the lowest one that no burst follows."""
    limit = (1 - depth) * burst
    after: list[Plateau] = []
    for period in parts:
        was_high = False
        for place, part in enumerate(period):
            following = period[place + 1].level if place + 1 < len(period) else 0.0
            if part.level > limit:
                was_high = True
            elif was_high and part.width >= least:
                is_low_load = bool(after) and part.level < _BELOW * after[0].level
                if not (is_low_load and following > part.level):
                    after.append(part)
    if not after:
        return None
    wide = max(part.width for part in after)
    return min(part.level for part in after if part.width >= wide / 10)


def _without_brief(parts: Sequence[Plateau], middle: float, brief: float) -> list[Plateau]:
    """Returns the plateaus; a brief one between two on the other side of the middle is theirs."""
    retained = list(parts)
    at = 1
    while at < len(retained) - 1:
        before, part, after = retained[at - 1 : at + 2]
        sides = [each.level > middle for each in (before, part, after)]
        if part.width <= brief and sides[0] == sides[2] != sides[1]:
            level = (before if before.width >= after.width else after).level
            retained[at - 1 : at + 2] = [Plateau(before.first, after.last, level)]
            at = max(1, at - 1)
        else:
            at += 1
    return retained


def _drops(
    series: RateSeries,
    parts: Sequence[Sequence[Plateau]],
    middle: float,
    baseline: float,
    burst: float,
    sigma: float,
) -> tuple[list[Drop], int, int]:
    """Returns the drops, the points on the baseline, and those above it that nothing explains."""
    drops: list[Drop] = []
    low_points = unexplained = 0
    for period in parts:
        was_low = False
        high_from: int | None = None
        for place, part in enumerate(period):
            if part.level > middle:
                if was_low and not _rise_is_explained(series, period[place - 1], part, baseline):
                    unexplained += part.width
                elif high_from is None:
                    high_from, was_low = place, False
                continue
            if part.level >= _BELOW * baseline:
                low_points += part.width
                was_low = True
            else:
                was_low = False
            if high_from is not None and part.level >= _BELOW * baseline:
                edge = _edge(series, period, high_from, place, burst, sigma)
                drops.append(
                    Drop(
                        np.arange(period[high_from].first, edge),
                        np.arange(edge, _end_of_low(period, place, middle)),
                        edge,
                    )
                )
            high_from = None
    return drops, low_points, unexplained


def _end_of_low(period: Sequence[Plateau], place: int, middle: float) -> int:
    end = place
    while end + 1 < len(period) and period[end + 1].level <= middle:
        end += 1
    return period[end].last


def _rise_is_explained(series: RateSeries, before: Plateau, part: Plateau, baseline: float) -> bool:
    """Returns whether a rise under load follows a load below the baseline, or a shorter one."""
    if before.level < _BELOW * baseline:
        return True
    if series.gap_s[max(0, part.first - 1) : part.first + 2].any():
        return True
    if series.busy is None:
        return False
    shares = [float(np.median(series.busy[each.first : each.last])) for each in (before, part)]
    return shares[1] <= _BUSIER * shares[0]


def _edge(
    series: RateSeries,
    period: Sequence[Plateau],
    high_from: int,
    place: int,
    burst: float,
    sigma: float,
) -> int:
    """Returns the first point after the burst: the first edge that led down to the baseline."""
    fall_in_all = burst - period[place].level
    for at in range(high_from + 1, place):
        before, part = period[at - 1 : at + 1]
        floor = min(each.level for each in period[high_from:at])
        least = max(_STEP * burst, _FIRST * fall_in_all, 4 * sigma / np.sqrt(part.width))
        fall = before.level - part.level
        is_below = all(each.level <= floor - least for each in period[at:place])
        if is_below and _fall_at(series, part.first, sigma, fall) >= _EDGES * fall:
            return part.first
    return period[place].first


def _fall_at(series: RateSeries, point: int, sigma: float, fall: float) -> float:
    """Returns by how much the rate falls within a few points: as many as the noise takes."""
    width = max(3, int(np.ceil((4 * sigma / max(abs(fall), sigma)) ** 2)))
    own = series.period == series.period[point]
    first = int(np.argmax(own))
    last = first + int(own.sum())
    before = series.rates[max(first, point - width) : point]
    # The point of the edge itself may be a mixture of both levels.
    after = series.rates[point + 1 : min(last, point + 1 + width)]
    if not before.size or not after.size:
        return 0.0
    return float(np.median(before) - np.median(after))


def _is_smooth(series: RateSeries, drop: Drop, sigma: float) -> bool:
    """Returns whether a cubic explains the fall better than two levels do."""
    if drop.high.size + drop.low.size < _LEAST_SMOOTH:
        return False
    points = np.concatenate([drop.high, drop.low])
    values = segments.without_outliers(series.rates[points], sigma)
    scale = max(4 * sigma, (values.max() - values.min()) / 2)
    at = np.linspace(-1, 1, values.size)
    curve = np.polynomial.legendre.legval(at, np.polynomial.legendre.legfit(at, values, 3))
    levels = np.where(
        points < drop.first_low,
        np.median(series.rates[drop.high]),
        np.median(series.rates[drop.low]),
    )
    squares = [float((np.clip(values - fit, -scale, scale) ** 2).sum()) for fit in (curve, levels)]
    return squares[0] < squares[1]


def _edges(
    series: RateSeries, parts: Sequence[Sequence[Plateau]], middle: float, sigma: float
) -> float:
    """Returns the part of the deepest fall that happens in edges."""
    best = 0.0
    for period in parts:
        total = 0.0
        for before, part in pairwise(period):
            fall = before.level - part.level
            if part.level > middle:
                # Rises and falls above the middle are noise, or the first steps of the fall.
                total = max(0.0, total + min(fall, _fall_at(series, part.first, sigma, fall)))
            elif before.level > middle:
                total += max(0.0, min(fall, _fall_at(series, part.first, sigma, fall)))
                best = max(best, total)
    return best
