"""Burst, baseline, knee, credit and refill of a recognised token bucket, with intervals."""

from __future__ import annotations

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics import estimates
from nephoscope.stats.statistics.distributions import normal_quantile
from nephoscope.stats.statistics.values import Array, Numbers
from nephoscope.stats.token_bucket import segments
from nephoscope.stats.token_bucket.detection import (
    LEAST_DEPTH,
    Drop,
    Points,
    RateSeries,
    Recognised,
    rate_series,
    recognise,
)
from nephoscope.stats.token_bucket.records import BurstCredit

_DUTY_RANGE = 0.1
"""Relative range of the busy time from which on baseline and refill are told apart by it."""
_WORK = {"per_s": "count", "bytes_per_s": "bytes", "ratio": "s"}
"""Unit of rates -> unit of what passes at a rate; of a ratio the seconds at the full rate."""
_FULL = 0.9
"""Part of the first credit from which on a later one may have been full."""


def burst_credit(
    at_s: Numbers,
    rates: Numbers,
    busy: Numbers | None = None,
    *,
    unit: str = "none",
    confidence: float = 0.95,
    least_depth: float = LEAST_DEPTH,
) -> BurstCredit:
    """Returns the token bucket behind rates over time, or why there is none.

    at_s: seconds, increasing; gaps are taken for pauses. rates: work per second while there is
    load, of a load that takes what it gets; 0 for none. busy: share of the time of each point in
    which there was load, where it was not always; the rates are those of that share. least_depth:
    smallest drop, relative to the burst. Raises Refused for what is no series of rates.
    """
    series = rate_series(at_s, rates, busy)
    recognised = recognise(series, least_depth)
    if isinstance(recognised, BurstCredit):
        return recognised
    return _estimated(recognised, unit, confidence)


def _estimated(recognised: Recognised, unit: str, confidence: float) -> BurstCredit:
    series, drops = recognised.series, recognised.drops
    notes: list[str] = []
    high = np.concatenate([_inner(drop.high) for drop in drops])
    low = np.concatenate([_inner(drop.low, at_start=True) for drop in drops])
    burst = estimates.median(series.rates[high], unit=unit, confidence=confidence)
    baseline, idle_refill = _baseline(series, low, unit, confidence, notes)
    first = drops[0]
    knee, low_s, high_s = _knee(recognised, first, burst.value, confidence)
    begin = first.high[0]
    fall = burst.value - baseline.value
    per_idle = idle_refill.value if idle_refill is not None else baseline.value
    drain, credit, missing_s = _drained(
        recognised, first, knee, burst.value, baseline.value, per_idle
    )
    uncertain_s = max(high_s - knee, knee - low_s)
    spread = np.hypot(_half(burst), _half(baseline))
    # Where the load was pausing, a second of it uses up less than a second of full load.
    per_s = min(fall, credit / drain) if drain else fall
    half = float(np.hypot(uncertain_s * per_s, spread * drain))
    method = "knee by least squares"
    refill = idle_refill
    if refill is None:
        refill, note = _refill(recognised, baseline.value, credit, unit, confidence)
        if note:
            notes.append(note)
    if missing_s:
        notes.append(
            f"{missing_s:.4g} s before the knee have no points; the load is taken to have gone on."
        )
    if begin == 0 and len(drops) == 1:
        notes.append(
            "The credit is what was there at the start; a longer pause before it could give more."
        )
    work = _WORK.get(unit, "none")
    n = len(drops)
    return BurstCredit(
        "on credit",
        "The rate falls from a burst to a baseline and does not rise again under load."
        if refill is None
        else "The rate falls from a burst to a baseline, and rises again only after a pause.",
        series.rates.size,
        series.span_s,
        burst,
        baseline,
        Estimate(knee, low_s, high_s, confidence, n, "s", method),
        Estimate(
            drain,
            max(0.0, drain - uncertain_s - missing_s),
            drain + uncertain_s,
            confidence,
            n,
            "s",
            method,
        ),
        Estimate(
            credit,
            max(0.0, credit - half - missing_s * (fall + per_idle)),
            credit + half,
            confidence,
            n,
            work,
            "integral",
        ),
        refill,
        n,
        tuple(notes),
    )


def _half(estimate: Estimate) -> float:
    if estimate.low is None or estimate.high is None:
        return 0.0
    return (estimate.high - estimate.low) / 2


def _inner(points: Points, *, at_start: bool = False) -> Points:
    """Returns the points without the one at the edge, where there are enough: it may be mixed."""
    if points.size < 4:
        return points
    return points[1:] if at_start else points[:-1]


def _baseline(
    series: RateSeries,
    low: Points,
    unit: str,
    confidence: float,
    notes: list[str],
) -> tuple[Estimate, Estimate | None]:
    """Returns the baseline and, where the busy time varies, the refill of a second without load."""
    rates = series.rates[low]
    if series.busy is not None:
        busy = series.busy[low]
        if float(np.ptp(busy)) > _DUTY_RANGE * float(np.median(busy)):
            return _by_busy_time(rates, busy, unit, confidence)
        if float(np.median(busy)) < 1 - _DUTY_RANGE / 2:
            notes.append(
                f"The load was busy for {100 * float(np.median(busy)):.0f} % of the time, so that "
                "the baseline contains the refill of its pauses."
            )
    return estimates.median(rates, unit=unit, confidence=confidence), None


def _by_busy_time(
    rates: Array, busy: Array, unit: str, confidence: float
) -> tuple[Estimate, Estimate]:
    """Returns baseline and refill of rate x busy = baseline x busy + refill x (1 - busy).

    Least squares with weights against outliers; errors are widened by their autocorrelation.
    """
    design = np.column_stack([busy, 1 - busy])
    done = rates * busy
    weights = np.ones_like(done)
    for _ in range(10):
        root = np.sqrt(weights)
        coefficients, *_ = np.linalg.lstsq(design * root[:, None], done * root, rcond=None)
        error = done - design @ coefficients
        scale = 1.4826 * float(np.median(np.abs(error))) or 1e-9
        weights = np.minimum(1.0, 1.345 * scale / np.maximum(np.abs(error), 1e-12))
    clipped = np.clip(error, -3 * scale, 3 * scale)
    correlation = float(np.clip(np.corrcoef(clipped[:-1], clipped[1:])[0, 1], 0.0, 0.95))
    variance = float(clipped.var()) * (1 + correlation) / (1 - correlation)
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * variance)
    z = normal_quantile((1 + confidence) / 2)
    method = "regression on the busy time"
    baseline, refill = (
        Estimate(
            float(value), float(value - z * sd), float(value + z * sd), confidence, rates.size,
            unit, method,
        )
        for value, sd in zip(coefficients, spread, strict=True)
    )  # fmt: skip
    return baseline, refill


def _knee(
    recognised: Recognised, drop: Drop, burst: float, confidence: float
) -> tuple[float, float, float]:
    """Returns when the credit was used up, and the interval of it.

    The edge is where two levels leave the least squares; as far from it as the noise allows another
    one lies the interval, and one distance of points further, since a point stands for some time.
    """
    series = recognised.series
    own = np.flatnonzero(series.period == series.period[drop.first_low])
    reach = 3 * max(
        8, int(np.ceil((6 * recognised.sigma / max(burst - recognised.baseline, 1e-12)) ** 2))
    )
    first = max(own[0], drop.high[0], drop.first_low - reach)
    last = min(own[-1] + 1, drop.low[-1] + 1, drop.first_low + reach)
    values = series.rates[first:last]
    split = drop.first_low - first
    upper = float(np.median(values[:split]))
    lower = float(np.median(values[split + 1 :] if values.size > split + 1 else values[split:]))
    noise = max(recognised.sigma, 1e-9 * burst)
    # A value between the levels is nearer to one of them, however far from it.
    limit = max(4 * noise, upper - lower) ** 2
    high_cost = np.minimum((values - upper) ** 2, limit)
    low_cost = np.minimum((values - lower) ** 2, limit)
    # The point of the edge is a mixture and costs nothing.
    cost = np.concatenate([[0.0], np.cumsum(high_cost)])[:-1]
    after = np.concatenate([np.cumsum(low_cost[::-1])[::-1], [0.0]])[1:]
    total = np.where(np.arange(values.size) < 1, np.inf, cost + after)
    at = int(np.argmin(total))
    allowed = -2 * np.log(1 - confidence) * noise**2
    near = np.flatnonzero(total <= total[at] + allowed)
    share = float(np.clip((values[at] - lower) / (upper - lower), 0, 1)) if upper > lower else 0.0
    edge = first + at
    width = series.widths[edge]
    knee = float(series.at_s[edge] - width / 2 + share * width)
    before, behind = first + int(near[0]), first + int(near[-1])
    low_s = float(series.at_s[before] - 1.5 * series.widths[before] - series.gap_s[before])
    high_s = float(series.at_s[behind] + 1.5 * series.widths[behind])
    return knee, min(low_s, knee - width), max(high_s, knee + width)


def _drained(
    recognised: Recognised, drop: Drop, knee: float, burst: float, baseline: float, per_idle: float
) -> tuple[float, float, float]:
    """Returns the seconds of load and the credit from the start of a series to a knee, and the
    seconds of gaps among them, in which the load is taken to have gone on.

    What came back meanwhile is subtracted; a full bucket takes no more.
    """
    series = recognised.series
    starts = series.at_s - series.widths / 2
    inside = np.flatnonzero((np.arange(starts.size) < drop.low[-1]) & (starts < knee))
    share = np.clip((knee - starts[inside]) / series.widths[inside], 0, 1)
    seconds = series.widths[inside] * share
    busy = np.ones_like(seconds) if series.busy is None else series.busy[inside]
    # The rate of the point at the edge is a mixture: until the knee it was the burst.
    usual = segments.without_outliers(series.rates, recognised.sigma)
    rates = np.where(share < 1, burst, usual[inside])
    gaps, pauses = series.gap_s[inside], series.pause_s[inside]
    seconds = seconds + gaps
    change = seconds * (busy * (rates - baseline) - (1 - busy) * per_idle) - pauses * per_idle
    used = duration = missing = 0.0
    for amount, length, gap in zip(change, seconds * busy, gaps, strict=True):
        used = max(0.0, used + float(amount))
        duration, missing = (duration + float(length), missing + float(gap)) if used else (0.0, 0.0)
    return duration, used, missing


def _refill(
    recognised: Recognised, baseline: float, credit: float, unit: str, confidence: float
) -> tuple[Estimate | None, str]:
    """Returns the credit that a second of a pause gives, from what the bursts after pauses used."""
    series = recognised.series
    fall = recognised.burst - baseline
    gained = paused = error = 0.0
    cycles = full = 0
    for drop in recognised.drops[1:]:
        begin = drop.high[0]
        pause = float(series.pause_s[begin] + series.gap_s[begin])
        if pause <= 0:
            continue
        after, before = series.part_work[begin]
        knee, low_s, high_s = _knee(recognised, drop, recognised.burst, confidence)
        loaded = (
            knee - float(series.at_s[begin] - series.widths[begin] / 2) + after / recognised.burst
        )
        amount = loaded * fall
        pause -= after / recognised.burst + before / baseline
        if credit and amount >= _FULL * credit:
            full += 1
            continue
        gained, paused, cycles = gained + amount, paused + pause, cycles + 1
        error = float(np.hypot(error, fall * (high_s - low_s) / 2))
    if not cycles:
        if full:
            return None, "After each pause the credit was full again; shorten the pauses."
        return None, "No pause was followed by a burst, so that the refill is not known."
    value = gained / paused
    wide = error / paused
    method = "credit after pauses over their length"
    note = "" if cycles > 1 else "one pause"
    return Estimate(
        value, max(0.0, value - wide), value + wide, confidence, cycles, unit, method, note
    ), ""
