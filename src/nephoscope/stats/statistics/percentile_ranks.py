"""Where does a value stand among those of a group of machines?"""

from __future__ import annotations

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Array, Refused

_GROUP_CONFIDENCE = 0.95


def percentile_rank(
    group: Array,
    value: float,
    low: float,
    high: float,
    *,
    confidence: float,
    better: Better = Better.HIGHER,
) -> Estimate:
    """Returns the share of machines like those of a group that a value is better than, a ratio.

    group: one value a machine, shape (machines,). Equal ones count half. low, high: interval of the
    value with this confidence. The share's interval has two parts: the rank of the value at both
    ends of its own interval, and at each of them Wilson's interval for the group as a sample of all
    such machines. It holds with the sum of both errors (Bonferroni). Raises Refused for an empty
    group, and for numbers that are none.
    """
    if group.size == 0:
        raise Refused("A rank needs at least one machine to compare with.")
    if not (np.isfinite(group).all() and low <= value <= high < np.inf):
        raise Refused("A value or an end of its interval is no number, or the ends are swapped.")
    sign = -1.0 if better is Better.LOWER else 1.0
    values = sign * group
    worst, best = sorted((sign * low, sign * high))
    machines = int(group.size)
    below, not_above = (
        int((values < worst).sum()),
        int((values <= best).sum()),
    )
    share = ((values < sign * value).sum() + (values <= sign * value).sum()) / (2 * machines)
    lower = wilson(below, machines, confidence=_GROUP_CONFIDENCE).low
    upper = wilson(not_above, machines, confidence=_GROUP_CONFIDENCE).high
    return Estimate(
        float(share),
        lower,
        upper,
        confidence + _GROUP_CONFIDENCE - 1,
        machines,
        "ratio",
        "rank at the ends of the value's interval; Wilson score interval of each",
    )
