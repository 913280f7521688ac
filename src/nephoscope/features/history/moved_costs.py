"""Tells changes that are no regression: those that went away, and costs that moved to a sibling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from nephoscope.core import units
from nephoscope.features.history.records import ChangePoint, SeriesHistory
from nephoscope.report import wording

REMAINDER = 0.25
"""Part of a change that may be left of it where it went away, or moved to a sibling."""
LEVEL_POINTS = 40
"""Points on either side of a change that describe its levels."""


def with_returns(changes: Sequence[ChangePoint]) -> list[ChangePoint]:
    """Returns the changes of a series, with the later run in which each was undone."""
    out = []
    for place, change in enumerate(changes):
        sum_of_sizes = size = change.size
        returned = ""
        for later in changes[place + 1 :]:
            sum_of_sizes += later.size
            if abs(sum_of_sizes) <= REMAINDER * abs(size):
                returned = later.run
                break
        out.append(replace(change, went_away=returned))
    return out


def with_cost_shifts(histories: Sequence[SeriesHistory]) -> list[SeriesHistory]:
    """Returns the histories, with changes marked whose cost moved between two of them.

    Two series of one target and unit are siblings. A cost moved where one rose as much as the other
    fell, at the same time.
    """
    siblings: dict[tuple[int, int], str] = {}
    for (a, left), (b, right) in combinations(enumerate(histories), 2):
        if (left.target, left.unit, left.better) != (right.target, right.unit, right.better):
            continue
        for i, first in enumerate(left.changes):
            for j, second in enumerate(right.changes):
                if first.size * second.size < 0 and _is_moved(left, first, right, second):
                    siblings[a, i] = _sentence(right, second)
                    siblings[b, j] = _sentence(left, first)
    return [
        replace(
            history,
            changes=tuple(
                replace(change, cost_shift=siblings.get((place, number), ""))
                for number, change in enumerate(history.changes)
            ),
        )
        for place, history in enumerate(histories)
    ]


def _is_moved(
    entry: SeriesHistory, first: ChangePoint, two: SeriesHistory, second: ChangePoint
) -> bool:
    apart_s = max(_usual_distance(entry), _usual_distance(two))
    if first.first_s - apart_s > second.last_s or second.first_s - apart_s > first.last_s:
        return False
    moves = [after - before for before, after in (levels(entry, first), levels(two, second))]
    return abs(sum(moves)) <= REMAINDER * max(map(abs, moves))


def _usual_distance(series: SeriesHistory) -> float:
    at_s = [point.at_s for point in series.points]
    return float(np.median(np.diff(at_s))) if len(at_s) > 1 else 0.0


def levels(series: SeriesHistory, change: ChangePoint) -> tuple[float, float]:
    """Returns the medians of the points before and behind a change, in the unit of the series."""
    place = next(n for n, point in enumerate(series.points) if point.run == change.run)
    values = [point.estimate.value for point in series.points]
    before = values[max(0, place - LEVEL_POINTS) : place]
    return float(np.median(before)), float(np.median(values[place : place + LEVEL_POINTS]))


def _sentence(sibling: SeriesHistory, change: ChangePoint) -> str:
    before, after = levels(sibling, change)
    verb = "rose" if after > before else "fell"
    name = wording.full_name(sibling.benchmark, sibling.metric)
    setting = wording.factors_text(sibling.factors)
    amount = units.format_value(abs(after - before), sibling.unit)
    return f"{name}{f' ({setting})' if setting else ''} {verb} by {amount} at the same time"
