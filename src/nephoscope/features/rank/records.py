"""Records of a ranking: rows of metrics, the overall order, and advice by application domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from nephoscope.core.model import Better, Consistency, Estimate, Factors
from nephoscope.core.records import dataclass
from nephoscope.results.run_settings import HiddenSetting

RowKind = Literal["value", "consistency", "average"]
Score = Literal["geometric mean", "mean rank", "none"]
AdviceWord = Literal["best", "no difference", "several", "undecided", "not tested", "not measured"]


MARGIN = 0.03
CONFIDENCE = 0.95
SEED = 1
TOP = 3


@dataclass(frozen=True, slots=True)
class RankSettings:
    """Settings of a ranking.

    reference: alternative to which ratios are; the first one when empty. weights: by benchmark or
    parameter; equal when empty. margin: relative difference that is not worth a change. top: how
    many alternatives are the best ones of `OverallCell.top_probability`.
    """

    reference: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)
    margin: float = MARGIN
    confidence: float = CONFIDENCE
    seed: int = SEED
    top: int = TOP


@dataclass(frozen=True, slots=True)
class RankedCell:
    """An alternative in a row. estimate: None where there is a gap, with its reason.

    rank: 1 plus the number of alternatives with a lower cost; None in a gap. rank_low, rank_high:
    interval of the rank; the intervals of all alternatives of a row hold together at the
    confidence of the ranking. None in a row that is not tested. ratio: to the reference, above 1 is
    worse whatever the metric's direction; its interval excludes 1 where the ranks differ for
    certain. None for ranks, and for values that are not above zero.
    consistency_rank, consistency_rank_low, consistency_rank_high: 1 varies least; None below 6
    repetitions and for many alternatives.
    """

    alternative: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    estimate: Estimate | None = None
    ratio: Estimate | None = None
    consistency: Consistency | None = None
    consistency_rank: int | None = None
    consistency_rank_low: int | None = None
    consistency_rank_high: int | None = None
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
    """Do the benchmarks agree about the order? Friedman's test and Kendall's W over benchmarks.

    agreement: Kendall's W, 0 (no agreement) to 1 (one order). mean_ranks: by alternative, over
    benchmarks. None of it decides ranks: it is the variation between benchmarks, not that of an
    alternative's measurements.
    """

    chi_square: float
    df: int
    p: float
    agreement: float
    benchmarks: int
    mean_ranks: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class OverallCell:
    """An alternative over all benchmarks. Rank, interval, ratio and probabilities are of one score.

    rank: 1 plus the number of alternatives with a lower score; None for an alternative that lacks a
    benchmark of the order. rank_low, rank_high: interval of the rank by the errors of measurement,
    at the confidence of the ranking for all alternatives together; None where a metric has no
    interval. ratio: geometric mean, by the weights, of its costs relative to the reference; above 1
    is worse. None where the score is a mean rank.
    first_probability, top_probability: of rank 1, and of one of the best `top` ranks, by the errors
    of measurement; None where a metric has no interval.
    rank_without_low, rank_without_high: range of its rank where any one benchmark is left out, and
    with all. first_of_weightings: share of all weightings (of those near the given weights) by
    which its values come first. on_pareto_front: no other alternative is better in some row and
    worse in none; None without a rank.
    """

    alternative: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    ratio: Estimate | None = None
    first_probability: float | None = None
    top_probability: float | None = None
    rank_without_low: int | None = None
    rank_without_high: int | None = None
    first_of_weightings: float | None = None
    on_pareto_front: bool | None = None


@dataclass(frozen=True, slots=True)
class Overall:
    """The order over all benchmarks that (nearly) every alternative has.

    score: what the order is by; `none` without a common benchmark. tested: False where a metric has
    too few repetitions, so that the ranks are the order of the values. left_out: alternatives
    without a rank, because they lack one of the benchmarks. omitted: benchmarks that too many
    alternatives lack. agreement, consistency: None below 2 benchmarks. weights: by benchmark, sum
    1. top: of `OverallCell.top_probability`. lead: cost of the second one relative to the first.
    """

    benchmarks: tuple[str, ...]
    score: Score
    tested: bool
    agreement: MeanRanks | None
    consistency: MeanRanks | None
    weights: Mapping[str, float]
    weights_given: bool
    top: int
    cells: tuple[OverallCell, ...]
    lead: Estimate | None = None
    left_out: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DomainAdvice:
    """The alternatives that suit an application domain.

    word: `best`: one is better than all others; `no difference`: all alternatives are equivalent
    within the margin, so that none is worth a change; `several`: those of `choice` are, and the
    others are worse; `undecided`: those of `choice` cannot be told apart. certainty: probability
    that the first of `choice` is within the margin of the best; None where values have no interval.
    ratios: to the first of `choice`, of the rest of `choice` and of the next one.
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
    are left out, each with its reason. hidden_settings: what differs between the alternatives
    beside the machines and the factor.
    """

    alternatives: tuple[str, ...]
    reference: str
    confidence: float
    margin: float
    seed: int
    rows: tuple[RankedRow, ...]
    overall: Overall
    domains: tuple[DomainAdvice, ...]
    excluded: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    hidden_settings: tuple[HiddenSetting, ...] = ()
