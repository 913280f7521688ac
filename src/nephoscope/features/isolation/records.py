"""The records of what neighbours take."""

from __future__ import annotations

from typing import Literal

from nephoscope.core.model import Better, Estimate, Factors, stated
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass
from nephoscope.features.isolation.dose_response import Response
from nephoscope.features.isolation.recovery import Drift, Recovery
from nephoscope.stats.attribution import Attribution
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.interference import Triple, Variation

Pairing = Literal["adjacent baseline trials", "baseline trials of the round"]
BY_NEIGHBOUR: Pairing = "adjacent baseline trials"
BY_ROUND: Pairing = "baseline trials of the round"

UNHARMED_VERDICTS = ("equivalent", "different but negligible", "better")
"""Verdicts that exclude a loss beyond the margin."""


@dataclass(frozen=True, slots=True)
class VictimLine:
    """One line that is watched. factors: its own, without those of the load beside it."""

    benchmark: str
    metric: str
    target: str
    factors: Factors
    better: Better
    unit: str

    @stated
    def label(self) -> str:
        """Returns the line's name in a sentence."""
        return line_name(self.benchmark, self.metric, self.factors)


@dataclass(frozen=True, slots=True)
class Cell:
    """One victim beside one load: resource, intensity (0..1, asked) and number of neighbours.

    comparison: loaded against quiet, paired by round, its verdict corrected over all cells.
    factor: its ratio, above 1 is worse (the median's kind); factor_mean: of means (Fieller);
    factor_p99: of the 99th percentiles of merged histograms of `p99_metric`, None without any.
    achieved: what the load reached of what it reaches alone at intensity 1. rounds: the triples
    behind it; trials: their loaded trials' names. pairing: with which baseline trials. notes: what
    was not given, and why. lost: part of the price of the victim that the slowdown takes away, or
    money per hour where its price is known (features/isolation/money.py).
    """

    victim: VictimLine
    resource: str
    intensity: float
    neighbours: int
    comparison: TwoSampleComparison
    factor: Estimate | None
    factor_mean: Estimate | None
    factor_p99: Estimate | None
    p99_metric: str
    variation: Variation
    recovery: Recovery
    achieved: Estimate | None
    attribution: Attribution | None
    rounds: tuple[Triple, ...]
    trials: tuple[str, ...]
    rounds_left_out: int
    pairing: Pairing
    notes: tuple[str, ...] = ()
    lost: Estimate | None = None

    @property
    def has_interval(self) -> bool:
        """Returns whether the factor has both sides of an interval."""
        return self.factor is not None and None not in (self.factor.low, self.factor.high)

    @property
    def excludes_one(self) -> bool:
        """Returns whether the plain interval of the factor leaves out 1."""
        if self.factor is None or self.factor.low is None or self.factor.high is None:
            return False
        return self.factor.low > 1 or self.factor.high < 1


@dataclass(frozen=True, slots=True)
class DosePoint:
    """One dose: what was requested and reached of full load (0..1), and the factor there."""

    requested: float
    achieved: Estimate | None
    factor: Estimate | None


@dataclass(frozen=True, slots=True)
class DoseResponse:
    """One victim over the intensities of one resource, the quiet (dose 0) among them.

    by: "achieved" or "requested", the dose that the slope is by. i_qos: Krebs' metric between the
    lowest load and the highest; None with fewer than two.
    """

    victim: VictimLine
    resource: str
    neighbours: int
    points: tuple[DosePoint, ...]
    response: Response
    by: Literal["achieved", "requested"]
    i_qos: Estimate | None


@dataclass(frozen=True, slots=True)
class Index:
    """Isolation of one victim from one resource's load at full intensity.

    index: 1 nothing is taken, 0 as much as fair sharing would take (analysis/fairness.py). jain:
    fairness between the victim and its neighbours, each by what it gets of what it gets alone.
    own: the victim is the resource's own; chosen: the one that stands for the resource.
    """

    victim: VictimLine
    resource: str
    neighbours: int
    index: Estimate
    jain: Estimate | None
    own: bool
    chosen: bool


@dataclass(frozen=True, slots=True)
class IdleControl:
    """Cells of a neighbour that does nothing: how many intervals exclude 1 (chance gives 1 in 20).

    share: Wilson's interval; None without cells that have an interval.
    """

    cells: int
    outside: int
    share: Estimate | None
    sentence: str


@dataclass(frozen=True, slots=True)
class BaselineDrift:
    """Drift of a victim's baseline trials over the run."""

    victim: VictimLine
    drift: Drift


@dataclass(frozen=True, slots=True)
class NamedLoad:
    """A load with the resource that the losses of all victims beside it indicate.

    resource: what the load really takes. word: the resource that was inferred, `none` or
    `unclear`. lost: canaries that lost something. distance: to the nearest reference of that word;
    None where nothing was compared. second: the next best word, None where there is none.
    """

    target: str
    resource: str
    intensity: float
    neighbours: int
    word: str
    sentence: str
    lost: tuple[str, ...] = ()
    distance: float | None = None
    second: str | None = None


@dataclass(frozen=True, slots=True)
class Isolation:
    """All that a run with loads beside its victims tells. notes: what was not given, and why.

    named: the resource that the counters name, by target (naming.py); empty where nothing was
    named.
    """

    cells: tuple[Cell, ...]
    responses: tuple[DoseResponse, ...]
    indices: tuple[Index, ...]
    idle: IdleControl | None
    drifts: tuple[BaselineDrift, ...]
    named: tuple[NamedLoad, ...]
    notes: tuple[str, ...]
