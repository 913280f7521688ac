"""The interval of the shift between two samples: rank intervals, widened for dependence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nephoscope.stats import anytime
from nephoscope.stats.statistics import dependence, ranks
from nephoscope.stats.statistics.reach import NOT_ENOUGH, is_too_wide, range_of_differences
from nephoscope.stats.statistics.values import Array, all_equal

Interval = Callable[[float], ranks.Shift]
"""A shift with its interval, by confidence."""


TOO_WIDE = (
    f"There are {NOT_ENOUGH} of the size of the difference: it reaches far beyond the values. What "
    "it excludes still holds."
)


def allow_for_dependence(
    names: Sequence[str], series: Sequence[Array], prior: Array | None
) -> tuple[list[str], Callable[[float], float]]:
    """Returns what the dependence of one or two series does to an interval: warnings, widening by
    level.

    prior: None for values that cannot depend on each other.
    """
    if prior is None or min(values.size for values in series) < 2:
        return [], lambda _: 1.0
    share, posteriors = 1.0, [dependence.posterior(series[0], prior)]
    if len(series) == 2:
        a, b = series
        share = dependence.share_of_variance(a, b)
        posteriors = [*dependence.posteriors_of_sides(a, b, share, prior)]
    weights = [
        dependence.INDEPENDENT if all_equal(values) else own
        for values, own in zip(series, posteriors, strict=True)
    ]
    texts = [
        f"{name}: {text}"
        for name, values, own in zip(names, series, weights, strict=True)
        if (text := dependence.sentence(values, own, series=len(series)))
    ]
    factors = [
        dependence.widening(values.size, own)
        if own is not dependence.INDEPENDENT
        else lambda _: 1.0
        for values, own in zip(series, weights, strict=True)
    ]
    if len(series) == 1:
        return texts, factors[0]
    return texts, lambda level: dependence.widening_of_difference(
        share, [factor(level) for factor in factors]
    )


def interval_of(
    widening: Callable[[float], float], *, paired: bool, is_anytime: bool = False
) -> Callable[[Array, Array], Interval]:
    """Returns the shift of two samples, on any scale, with its widened interval by level.

    is_anytime: of pairs, one that holds however often one looks (`anytime`).
    """
    of_pairs = anytime.mean_shift if is_anytime else ranks.one_sample_shift

    def interval(x: Array, y: Array) -> Interval:
        if paired:
            differences = y - x
            signed: Interval = partial(of_pairs, differences)
            return _widened(signed, widening, float(np.ptp(differences)))
        return _widened(ranks.SafeShift(x, y), widening, range_of_differences(x, y))

    return interval


def _widened(interval: Interval, factor: Callable[[float], float], data_range: float) -> Interval:
    """Returns the interval with both bounds as many times as far from its value.

    data_range: of the differences of the sides.
    """

    def widened(level: float) -> ranks.Shift:
        at = interval(level).widened(factor(level))
        return replace(at, too_wide=is_too_wide(at.low, at.high, data_range))

    return widened
