"""The order over all benchmarks: geometric means, rank intervals, probabilities, Pareto front.

Sources: Fleming & Wallace 1986 (geometric mean of ratios); Lahdelma, Hokkanen & Salminen 1998
(share of weightings by which an alternative comes first).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.records import dataclass
from nephoscope.features.rank.records import MeanRanks, Overall, OverallCell, RankSettings, Score
from nephoscope.features.rank.rows import RankRow, log_costs, weighted, weights_over
from nephoscope.features.rank.standing import Standing
from nephoscope.stats.statistics import friedman
from nephoscope.stats.statistics.values import Array

METHOD = "weighted geometric mean of cost ratios; Student t on logarithms, over all pairs together"
WEIGHTINGS = 2_000
CONCENTRATION = 20.0
"""Of the Dirichlet distribution about the user's weights: a weight of 0.5 varies by ±0.11."""
MOST_GAPS = 0.2
"""Share of alternatives that may lack a benchmark of the overall order; they have no rank then."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Rows and alternatives of the overall order. omitted: benchmarks that too many lack."""

    rows: Sequence[RankRow]
    names: Sequence[str]
    left_out: Sequence[str]
    omitted: Sequence[str]


def scope_of(rows: Sequence[RankRow], names: Sequence[str]) -> Scope:
    """Returns what the overall order is about.

    A benchmark that more than a fifth of the alternatives lack is omitted; alternatives that lack
    one of the others are left out.
    """
    values = [row for row in rows if row.kind == "value"]
    most = MOST_GAPS * len(names)
    common = [row for row in values if len(names) - len(row.lines) <= most]
    having = set(names).intersection(*(row.lines for row in common))
    if common and len(having) < 2:
        common = [row for row in values if row.covers(names)]
        having = set(names)
    ranked = [name for name in names if name in having]
    omitted = dict.fromkeys(row.benchmark for row in values if row not in common)
    left_out = [name for name in names if name not in having]
    return Scope(common, ranked, left_out, list(omitted))


def overall(scope: Scope, front: set[str], names: Sequence[str], settings: RankSettings) -> Overall:
    """Returns the order over the benchmarks of a scope; names: of all alternatives, in order."""
    rows, ranked = scope.rows, scope.names
    benchmarks = tuple(dict.fromkeys(row.benchmark for row in rows))
    shares = _shares(rows, settings.weights)
    by_name: Mapping[str, OverallCell] = {}
    score: Score = "none"
    tested = False
    agreement, lead = None, None
    if rows:
        costs = log_costs(rows, ranked)
        agreement = _agreement(rows, costs, ranked)
        score = "geometric mean" if all(row.has_ratio for row in rows) else "mean rank"
        if score == "mean rank":
            costs = friedman.mid_ranks(np.round(costs, 12))
        by_row = weights_over(rows, shares)
        if score == "geometric mean":
            standing = weighted(rows, by_row, ranked, settings.confidence)
        else:  # of published ranks, which have no errors
            standing = Standing(
                tuple(ranked), np.asarray(by_row) @ costs, None, settings.confidence
            )
        tested = standing.tested
        if score == "geometric mean":
            first, second = standing.order[:2].tolist()
            lead = standing.ratios(first, METHOD)[second]
        blocks = _by_benchmark(rows, costs)
        by_name = _cells(standing, blocks, shares, benchmarks, score, front, settings)
    return Overall(
        benchmarks,
        score,
        tested,
        agreement,
        _agreement(*_variations(rows, ranked), ranked),
        shares,
        bool(settings.weights),
        settings.top,
        tuple(by_name.get(name) or OverallCell(name) for name in names),
        lead,
        tuple(scope.left_out),
        tuple(scope.omitted),
    )


def _shares(rows: Sequence[RankRow], weights: Mapping[str, float]) -> dict[str, float]:
    """The weight of each benchmark, sum 1; that of a parameter is divided among its benchmarks."""
    parameters: dict[str, str] = {row.benchmark: row.parameter for row in rows}
    shares = dict.fromkeys(parameters, 0.0 if weights else 1.0)
    for name, weight in weights.items():
        of = [benchmark for benchmark, title in parameters.items() if name in (benchmark, title)]
        if not of:
            known = list(dict.fromkeys([*parameters, *parameters.values()]))
            raise UsageError(
                f"--weight: nothing is named '{name}' that all alternatives have"
                f"{did_you_mean(name, known)}.",
                f"Use {', '.join(known)}." if known else "",
            )
        for benchmark in of:
            shares[benchmark] += weight / len(of)
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()} if total else {}


def _by_benchmark(rows: Sequence[RankRow], values: Array) -> Array:
    """The mean over the rows of each benchmark: (rows, alternatives) to (benchmarks, …)."""
    labels = [row.benchmark for row in rows]
    return np.array(
        [
            values[[label == benchmark for label in labels]].mean(axis=0)
            for benchmark in dict.fromkeys(labels)
        ]
    )


def _variations(rows: Sequence[RankRow], names: Sequence[str]) -> tuple[list[RankRow], Array]:
    """The rows that have enough repetitions, and their robust coefficients of variation."""
    usable = [
        row
        for row in rows
        if all(row.lines[name].consistency.robust_cv is not None for name in names)
    ]
    values = [[row.lines[name].consistency.robust_cv or 0.0 for name in names] for row in usable]
    return usable, np.array(values)


def _agreement(rows: Sequence[RankRow], costs: Array, names: Sequence[str]) -> MeanRanks | None:
    """Friedman's test over benchmarks; within one, the ranks of its rows are averaged first."""
    if not rows or len(names) < 2:
        return None
    # Not the costs themselves: variations and ranks of different metrics share no unit.
    blocks = _by_benchmark(rows, friedman.mid_ranks(np.round(costs, 12)))
    if len(blocks) < 2:
        return None
    test = friedman.friedman(blocks)
    k = len(names)
    return MeanRanks(
        test.chi_square,
        test.df,
        test.p,
        min(1.0, test.chi_square / (test.blocks * (k - 1))),
        test.blocks,
        dict(zip(names, test.mean_ranks, strict=True)),
    )


def _cells(
    standing: Standing,
    blocks: Array,
    shares: Mapping[str, float],
    benchmarks: Sequence[str],
    score: Score,
    front: set[str],
    settings: RankSettings,
) -> dict[str, OverallCell]:
    """Returns the cell of each alternative. blocks: costs by benchmark."""
    ratios: Sequence[Estimate | None] = [None] * len(standing.names)
    if score == "geometric mean":
        ratios = standing.ratios(_reference(standing, settings), METHOD)
    drawn = standing.draws(settings.seed)
    first = standing.among_best(drawn, 1)
    top = standing.among_best(drawn, settings.top)
    weights = np.array([shares[name] for name in benchmarks])
    without_low, without_high = _without_one(standing, blocks, weights)
    by_weights = _first_of_weightings(blocks, weights, bool(settings.weights), settings.seed)
    columns = zip(
        standing.names,
        standing.ranks.tolist(),
        standing.low.tolist(),
        standing.high.tolist(),
        ratios,
        first,
        top,
        without_low.tolist(),
        without_high.tolist(),
        by_weights.tolist(),
        strict=True,
    )
    return {
        name: OverallCell(
            name,
            rank,
            low if standing.tested else None,
            high if standing.tested else None,
            ratio,
            p_first,
            p_top,
            least,
            most,
            share,
            name in front,
        )
        for name, rank, low, high, ratio, p_first, p_top, least, most, share in columns
    }


def _reference(standing: Standing, settings: RankSettings) -> int:
    """The position of the reference; that of the best one where the reference has no rank."""
    if settings.reference in standing.names:
        return standing.names.index(settings.reference)
    return int(standing.order[0])


def _without_one(standing: Standing, blocks: Array, weights: Array) -> tuple[Array, Array]:
    """The range of ranks with all benchmarks and without any one of them."""
    low, high = standing.ranks, standing.ranks
    for index in range(len(weights)):
        rest = weights.copy()
        rest[index] = 0.0
        if rest.sum() > 0:
            costs = rest / rest.sum() @ blocks
            ranks = Standing(standing.names, costs, None, standing.confidence).ranks
            low, high = np.minimum(low, ranks), np.maximum(high, ranks)
    return low, high


def _first_of_weightings(blocks: Array, weights: Array, is_near: bool, seed: int) -> Array:
    """The share of weightings by which each alternative comes first; equal ones share theirs.

    is_near: weights vary about the user's weights; else uniformly over all (Dirichlet).
    """
    used = weights > 0
    alpha = CONCENTRATION * weights[used] if is_near else np.ones(int(used.sum()))
    rng = np.random.default_rng(seed)
    shares = np.zeros(blocks.shape[1])
    for drawn in np.array_split(rng.dirichlet(alpha, WEIGHTINGS), 20):
        scores = np.round(drawn @ blocks[used], 12)
        first = scores == scores.min(axis=1, keepdims=True)
        shares += (first / first.sum(axis=1, keepdims=True)).sum(axis=0)
    return shares / WEIGHTINGS
