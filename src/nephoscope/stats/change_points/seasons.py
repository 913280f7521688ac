"""Seasons of a series: the columns of a day and of a weekend, and a profile of earlier days.

A window of several days has its season estimated beside a step, as columns of a regression. A
window of less than three days cannot: there the usual course of a day, a median over the days of
the whole series, is subtracted first, if the days show one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array

Indices = NDArray[np.intp]

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
HARMONICS = 2
"""Sine waves that describe a daily season: of a day and of half a day."""
SEASON_DAYS = 3.0
"""Days from which on a daily season is estimated, where a series has several points a day."""
_ZONES_S = 3 * 3600.0 * np.arange(-3, 4)
"""Distances from UTC at which weekends are tried, for a series does not state its time zone."""
_PARTS = (48, 24, 8, 4)
"""Numbers of parts of a day; the most that each have a point are used."""
_WEEKS = 3
"""Weeks from which on the usual level of weekends is known."""
_WINDOW = 200
"""Points that are tested together."""
_KNOWN_PART = 0.75
"""Part of a day that needs values, so that its median is that of the day."""
_CLARITY = 3.0
"""Square of a profile over that of its error from which on a series has that profile."""
_EPOCH_WEEKDAY_S = 3 * DAY_S
"""The epoch began on a Thursday; weeks begin on Mondays."""


def has_season(at_s: Array) -> bool:
    """States whether points lie densely enough that a daily season shows in them."""
    return at_s.size > 1 and float(np.median(np.diff(at_s))) < DAY_S / 2


def covers_season(at_s: Array) -> bool:
    """States whether points are dense and long enough to estimate a daily season from them."""
    return has_season(at_s) and float(at_s[-1] - at_s[0]) >= SEASON_DAYS * DAY_S


def is_coarse(at_s: Array) -> bool:
    """States whether a full window of points at this distance covers a season, so that the edge of
    a weekend is no more likely in it than in any other."""
    usual_s = float(np.median(np.diff(at_s))) if at_s.size > 1 else 0.0
    return SEASON_DAYS * DAY_S / _WINDOW <= usual_s < DAY_S / 2


def season(at_s: Array) -> Array:
    """Returns the columns of a daily season."""
    columns = []
    for harmonic in range(1, HARMONICS + 1):
        angle = 2 * np.pi * harmonic * at_s / DAY_S
        columns += [np.cos(angle), np.sin(angle)]
    return np.stack(columns, axis=1)


def is_weekend(at_s: Array) -> Array:
    """Returns whether times are on a Saturday or Sunday in UTC."""
    return np.asarray((at_s + _EPOCH_WEEKDAY_S) % WEEK_S >= 5 * DAY_S)


def weekends(at_s: Array, fewest: int) -> Array:
    """Returns one column for each time zone in which points lie on both sides of a weekend.

    fewest: points on each side.
    """
    columns = is_weekend(at_s[:, None] + _ZONES_S).astype(float)
    inside = columns.sum(axis=0)
    usable = (inside >= fewest) & (inside <= at_s.size - fewest)
    return np.asarray(columns[:, usable])


@dataclass(frozen=True)
class Profile:
    """The usual course of a day, about its median. usual: of each part of a day; with `weekly` of
    working days and then of weekends."""

    usual: Array
    weekly: bool

    def at(self, at_s: Array) -> Array:
        """Returns the usual deviation at times."""
        parts = self.usual.size // (1 + self.weekly)
        return np.asarray(self.usual[_bins(at_s, parts, weekly=self.weekly)])


def knows_weekends(at_s: Array) -> bool:
    """States whether a series is long enough that its profile has the level of weekends."""
    return at_s.size > 1 and float(at_s[-1] - at_s[0]) >= _WEEKS * WEEK_S


def profile(at_s: Array, values: Array) -> Profile | None:
    """Returns the usual course of a day, and of a weekend; None where the days show none.

    Days are compared about their own medians, so that a change of level is no season. From three
    weeks on weeks are compared, which leaves the level of weekends in.
    """
    if not covers_season(at_s):
        return None
    usual_s = float(np.median(np.diff(at_s)))
    parts = next(
        count_of_parts for count_of_parts in (*_PARTS, 1) if DAY_S / count_of_parts >= usual_s
    )
    weekly = knows_weekends(at_s)
    group = ((at_s + _EPOCH_WEEKDAY_S) // (WEEK_S if weekly else DAY_S)).astype(np.intp)
    group -= group[0]
    count = parts * (1 + weekly)
    keys = group * count + _bins(at_s, parts, weekly=weekly)
    table = _medians(keys, values, (int(group[-1]) + 1) * count).reshape(-1, count)
    table = table[np.isfinite(table).mean(axis=1) >= _KNOWN_PART]
    if len(table) < 2 or not np.all(np.isfinite(table).any(axis=0)):
        return None
    table = table - np.nanmedian(table, axis=1, keepdims=True)
    usual = np.nanmedian(table, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(table - usual), axis=0)
    error = 1.2533 * spread / np.sqrt(np.isfinite(table).sum(axis=0))
    is_clear = float(np.mean(usual**2)) > _CLARITY * float(np.mean(error**2))
    return Profile(usual, weekly) if is_clear else None


def _bins(at_s: Array, parts: int, *, weekly: bool) -> Indices:
    bins = (at_s % DAY_S // (DAY_S / parts)).astype(np.intp)
    return bins + parts * is_weekend(at_s).astype(np.intp) if weekly else bins


def _medians(keys: Indices, values: Array, count: int) -> Array:
    """The median of the values of each key; NaN for a key without values."""
    order = np.lexsort((values, keys))
    sizes = np.bincount(keys, minlength=count)
    ends = np.cumsum(sizes)
    out = np.full(count, np.nan)
    has = sizes > 0
    out[has] = values[order][(ends - sizes + sizes // 2)[has]]
    return out
