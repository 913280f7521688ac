"""Which settings get the next trials when time is short: those with the widest intervals.

Every alternative has its least number of repetitions first. From then on the time left is given
out in blocks of rounds: those whose intervals are widest relative to what the plan asked for get
the next block, as many as the time left pays for; then all are compared again. Intervals are
compared between blocks only, because every look at them costs a little coverage; see
docs/decisions/0020-repetitions-go-to-the-widest-intervals.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from nephoscope.measure.runs.schedule.alternatives import Alternative
from nephoscope.stats import stopping


def excess_width(alternative: Alternative, confidence: float) -> float:
    """Returns the relative half-width of its headline intervals over the one asked for: a median.

    1 is as narrow as asked for. A series without a relative width (a median of 0) says nothing.
    """
    widths = [
        stopping.relative_half_width(values, confidence) for values in alternative.values.values()
    ]
    known = [width for width in widths if width is not None]
    goal = alternative.repeat.relative_half_width
    return statistics.median(known) / goal if known and goal > 0 else 0.0


def widest(
    going: Sequence[Alternative], confidence: float, left_s: float
) -> tuple[frozenset[int], int]:
    """Returns the settings of the next block and how many rounds it has; no setting, no round.

    All targets of a setting are measured or none, so that they stay paired by round. left_s: what
    is left of the budget. Ties go to the earlier setting.
    """
    by_setting: dict[int, list[Alternative]] = {}
    for alternative in going:
        by_setting.setdefault(alternative.setting.index, []).append(alternative)
    order = sorted(
        by_setting,
        key=lambda index: (
            -max(excess_width(alternative, confidence) for alternative in by_setting[index])
        ),
    )
    for rounds in (max((alternative.repeat.look_every for alternative in going), default=1), 1):
        chosen: list[int] = []
        spent_s = 0.0
        for index in order:
            cost_s = rounds * sum(alternative.cost_s for alternative in by_setting[index])
            if spent_s + cost_s <= left_s:
                chosen.append(index)
                spent_s += cost_s
        if chosen:
            return frozenset(chosen), rounds
    return frozenset(), 0
