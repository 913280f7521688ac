"""Records of a ranking: rows of metrics, the overall order, and advice by application domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nephoscope.model import Better, Consistency, Estimate, Factors

RowKind = Literal["value", "consistency", "average"]
AdviceWord = Literal["best", "no difference", "several", "undecided", "not tested", "not measured"]


MARGIN = 0.03
CONFIDENCE = 0.95
SEED = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ranking.

    reference: alternative to which ratios are; the first one when empty. weights: by benchmark or
    parameter; equal when empty. margin: relative difference that is not worth a change.
    """

    reference: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    margin: float = MARGIN
    confidence: float = CONFIDENCE
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class RankedCell:
    """An alternative in a row. estimate: None where there is a gap, with its reason.

    rank: shared by alternatives that cannot be told apart; None in a gap. rank_low, rank_high:
    range of ranks that the pairs told apart leave. ratio: to the reference, above 1 is worse
    whatever the metric's direction; None for ranks, and for values that are not above zero.
    consistency_rank: 1 varies least; None below 6 repetitions.
    """

    alternative: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    estimate: Estimate | None = None
    ratio: Estimate | None = None
    consistency: Consistency | None = None
    consistency_rank: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A metric at one setting. parameter: what it stands for, such as memory.

    kind: `consistency` and `average` are rows of published tables, which count in nothing else.
    resource: what an application domain needs of it; '' for none. tested: False where repetitions
    are missing, so that the ranks are the order of the values. note: of the source.
    """

    parameter: str
    benchmark: str
    metric: str
    factors: Factors
    kind: RowKind
    resource: str
    better: Better
    unit: str
    tested: bool
    cells: tuple[RankedCell, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class MeanRanks:
    """Friedman's test over benchmarks, and the ranks that Nemenyi's test tells apart.

    critical_difference: of two mean ranks. pairs: p by 'A, B'.
    """

    chi_square: float
    df: int
    p: float
    benchmarks: int
    mean_ranks: Mapping[str, float]
    ranks: Mapping[str, int]
    critical_difference: float
    pairs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OverallCell:
    """An alternative over all benchmarks.

    ratio: geometric mean of its ratios to the reference, above 1 is worse; its interval is that of
    a sample of benchmarks. weighted_ratio: by the weights, with the error of measurement alone.
    rank_probabilities: of rank 1, 2, … by the weighted ratio, where measurements and weights vary;
    empty where a metric has no interval.
    on_pareto_front: no other alternative has a better rank in some row and a worse one in none.
    """

    alternative: str
    ratio: Estimate | None
    weighted_ratio: Estimate | None
    rank_probabilities: tuple[float, ...]
    on_pareto_front: bool


@dataclass(frozen=True, slots=True)
class Overall:
    """The order over all benchmarks that every alternative has.

    performance, consistency: None below 2 benchmarks. weights: by benchmark, sum 1. weights_given:
    False where all weights are equally likely in the probabilities.
    """

    benchmarks: tuple[str, ...]
    performance: MeanRanks | None
    consistency: MeanRanks | None
    weights: Mapping[str, float]
    weights_given: bool
    cells: tuple[OverallCell, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """The alternatives that suit an application domain.

    word: `no difference`: all alternatives are equivalent within the margin, so that none is worth
    a change; `several`: those of `choice` are, and the others are worse; `undecided`: those of
    `choice` cannot be told apart. certainty: probability that the first of `choice` is within the
    margin of the best; None where values have no interval. ratios: to the first of `choice`.
    """

    domain: str
    word: AdviceWord
    choice: tuple[str, ...]
    certainty: float | None
    ratios: Mapping[str, Estimate]
    basis: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Alternatives ranked by metric, overall and by application domain.

    margin: relative difference that is not worth a change. excluded: metrics and alternatives that
    are left out, each with its reason.
    """

    alternatives: tuple[str, ...]
    reference: str
    confidence: float
    margin: float
    seed: int
    rows: tuple[RankedRow, ...]
    overall: Overall
    domains: tuple[Advice, ...]
    excluded: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
