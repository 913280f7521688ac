"""The time of a period of which there are events: gaps in them are no data, not good service.

A time without events is a gap where it is longer than `--holds` allows, or else longer than random
arrivals at the mean rate of the events would leave: the mean distance times (ln n + 5) is exceeded
once in 150 times at n events. Regular probes stay far below that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.records import dataclass
from nephoscope.features.sla.events import UNKNOWN, Stream
from nephoscope.features.sla.periods import Period, text_of
from nephoscope.features.sla.slots import JudgementContext
from nephoscope.stats.statistics.values import percent

_RARE = 5.0
"""Distance of a gap from the expected longest one, in mean distances: exp(-5) is 0.7 %."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Time of a period until now, without exclusions, and its part without data, in ns.

    longest: the longest gap in it, null without one.
    """

    elapsed_ns: int
    missing_ns: int
    longest: tuple[int, int] | None

    @property
    def share(self) -> Fraction:
        """Returns the share of the elapsed time of which there are data."""
        if not self.elapsed_ns:
            return Fraction(0)
        return 1 - Fraction(self.missing_ns, self.elapsed_ns)

    def sentence(self, zone: str) -> str:
        """Returns a sentence on the time without data; empty where there is none."""
        if self.longest is None:
            return ""
        start, end = (text_of(at_ns, zone) for at_ns in self.longest)
        return f"{no_data(1 - self.share)} (longest gap: {start} to {end})."


def no_data(share: Fraction) -> str:
    """Returns words on the share of the elapsed time of a period that has no data."""
    # Neither all of it nor nothing is what a rounded share looks like.
    text = percent(float(share))
    if share < 1 and text == "100 %":
        text = "more than 99.9 %"
    return f"{text} of the time until now has no data"


def coverage(streams: Sequence[Stream], period: Period, around: JudgementContext) -> Coverage:
    """Returns which time of a period the events of all observers cover."""
    end_ns = max(period.start_ns, min(period.end_ns, around.now_ns))
    start_ns = min(end_ns, max(period.start_ns, around.good_before_ns))
    times = [
        part.times_ns[part.states != UNKNOWN]
        for part in (stream.between(start_ns, end_ns) for stream in streams)
    ]
    at = np.unique(np.concatenate([*times, np.empty(0, dtype=np.int64)]))
    edges = np.concatenate([[start_ns], at, [end_ns]]).astype(np.int64)
    counted = edges - _excluded_before(edges, around)
    gaps = np.diff(counted)
    limit_ns = float(around.holds_ns)
    if not limit_ns and at.size > 1:
        mean_ns = float(counted[-2] - counted[1]) / (at.size - 1)
        limit_ns = mean_ns * (math.log(at.size) + _RARE)
    missing = np.flatnonzero(gaps > limit_ns)
    longest = None
    if missing.size:
        index = int(missing[np.argmax(gaps[missing])])
        longest = (int(edges[index]), int(edges[index + 1]))
    return Coverage(int(counted[-1] - counted[0]), int(gaps[missing].sum()), longest)


def _excluded_before(at_ns: NDArray[np.int64], around: JudgementContext) -> NDArray[np.int64]:
    """Returns the excluded time before each instant; overlapping exclusions count once."""
    total = np.zeros_like(at_ns)
    covered_ns = 0
    for start_ns, end_ns in sorted(around.exclusions):
        first = max(start_ns, covered_ns)
        total += np.clip(at_ns, first, max(first, end_ns)) - first
        covered_ns = max(covered_ns, end_ns)
    return total
