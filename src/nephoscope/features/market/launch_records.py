"""Documents of launch times: segments by provider, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class LaunchSegment:
    """A part of a launch, between two moments. two_clocks: they are of different machines."""

    name: str
    start: str
    end: str
    title: str
    two_clocks: bool


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """A segment at a provider. median, p90: seconds; n of them counts types, which are the units.

    launches: behind them. left_out: reason -> launches.
    """

    provider: str
    segment: str
    median: Estimate
    p90: Estimate
    launches: int
    types: int
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LaunchComparison:
    """Ratio of the medians of a segment at two providers, with an interval that holds for all pairs
    together. verdict: of `provider`: faster, slower, equivalent or inconclusive.
    """

    provider: str
    reference: str
    segment: str
    ratio: Estimate
    verdict: str


@dataclass(frozen=True, slots=True)
class ProviderLaunchTimes:
    """Launch times of imported measurements. compared: the segment that the comparisons are of."""

    segments: tuple[LaunchSegment, ...]
    times: tuple[LaunchTime, ...]
    compared: str
    comparisons: tuple[LaunchComparison, ...]
    launches: int
    source: str
    notes: tuple[str, ...] = ()
