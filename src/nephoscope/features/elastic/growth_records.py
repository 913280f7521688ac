"""Records of experiments on the growth of a service that is seen from outside alone."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.core.model import Estimate, stated
from nephoscope.stats.compare import TwoSampleComparison


@dataclass(frozen=True, slots=True)
class RampStep:
    """A part of a ramp at one rate, from at_s seconds after the begin of the ramp.

    latency_s: of the objective's percentile, the median of the generators; None without a response.
    errors: failed requests. is_met: whether the objective held.
    """

    at_s: float
    length_s: float
    rate_per_s: float
    responses_per_s: float
    latency_s: float | None
    errors: float
    is_met: bool


@dataclass(frozen=True, slots=True)
class Ramp:
    """A ramp of the rate, which began began_s seconds after the first one.

    knee_per_s, low_per_s, high_per_s: greatest rate that keeps the objective, with its interval;
    is_above, is_below: it may lie beyond the highest, or below the lowest rate of the ramp. due,
    failed: requests. limit: that the generator was at its limit, in a sentence; else empty.
    """

    round: int
    generators: int
    began_s: float
    steps: tuple[RampStep, ...]
    knee_per_s: float
    low_per_s: float
    high_per_s: float
    is_above: bool
    is_below: bool
    due: int
    failed: int
    limit: str = ""


@dataclass(frozen=True, slots=True)
class GrowthLevel:
    """A time in which the knee is the same. since_s: its begin in seconds since the first ramp,
    None of the first level. ramps: number of its ramps. is_above, is_below: as of `Ramp`."""

    knee: Estimate
    since_s: Estimate | None
    ramps: int
    is_above: bool
    is_below: bool


@dataclass(frozen=True, slots=True)
class ServiceGrowth:
    """How the greatest rate that keeps an objective moves over time.

    client: target that states what concerns the whole run. generators: of the ramps that are
    judged. levels: in order of time; none where nothing can be judged. step_ratio: of two adjacent
    rates of a ramp, less one. due, failed: requests of the judged ramps until the last level began,
    at rates up to its knee; of all of these ramps where the knee did not move. generators_compared:
    the knee with all generators over that with one, paired by round; None without both. problems:
    what forbids a judgement. notes: what the figures have to be read with.
    """

    client: str
    url: str
    objective: str
    generators: int
    levels: tuple[GrowthLevel, ...]
    ramps: tuple[Ramp, ...]
    step_ratio: float
    due: int
    failed: int
    generators_compared: TwoSampleComparison | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @stated
    def has_moved(self) -> bool:
        """States whether the knee moved."""
        return len(self.levels) > 1
