"""The order over all benchmarks: mean ranks, geometric means, rank probabilities, Pareto front.

Sources: Fleming & Wallace 1986 (geometric mean of ratios); Lahdelma, Hokkanen & Salminen 1998
(rank probabilities over uncertain measurements and weights).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from nephoscope.analysis.statistics import friedman, ratios
from nephoscope.analysis.statistics.dominance import dominates
from nephoscope.analysis.statistics.values import Array
from nephoscope.errors import UsageError
from nephoscope.model import Estimate
from nephoscope.rank.pairs import own_errors, places
from nephoscope.rank.records import MeanRanks, Overall, OverallCell, RankedRow, Settings
from nephoscope.rank.rows import Row, log_costs, weighted_pair, weights_over
from nephoscope.reading.sentences import did_you_mean

DRAWS = 10_000
CONCENTRATION = 20.0
"""Of the Dirichlet distribution about the user's weights: a weight of 0.5 varies by ±0.11."""


def overall(
    rows: Sequence[Row], ranked: Sequence[RankedRow], names: Sequence[str], settings: Settings
) -> Overall:
    """Returns the order over the benchmarks of which every alternative has each row.

    ranked: the same rows with their ranks.
    """
    complete = [
        (row, ranks)
        for row, ranks in zip(rows, ranked, strict=True)
        if row.kind == "value" and row.covers(names)
    ]
    own = [row for row, _ in complete]
    benchmarks = tuple(dict.fromkeys(row.benchmark for row in own))
    with_ratio = [row for row in own if row.has_ratio]
    shares = _shares(with_ratio or own, settings.weights)
    costs = log_costs(own, names)
    return Overall(
        benchmarks,
        _mean_ranks(own, costs, names, settings.confidence),
        _mean_ranks(*_variations(own, names), names, settings.confidence),
        shares,
        bool(settings.weights),
        _cells(with_ratio, complete, names, shares, settings),
    )


def _shares(rows: Sequence[Row], weights: Mapping[str, float]) -> dict[str, float]:
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


def _by_benchmark(rows: Sequence[Row], values: Array) -> Array:
    """The mean over the rows of each benchmark: (rows, alternatives) to (benchmarks, …)."""
    labels = [row.benchmark for row in rows]
    return np.array(
        [
            values[[label == benchmark for label in labels]].mean(axis=0)
            for benchmark in dict.fromkeys(labels)
        ]
    )


def _variations(rows: Sequence[Row], names: Sequence[str]) -> tuple[list[Row], Array]:
    """The rows that have enough repetitions, and their robust coefficients of variation."""
    usable = [
        row
        for row in rows
        if all(row.lines[name].consistency.robust_cv is not None for name in names)
    ]
    values = [[row.lines[name].consistency.robust_cv or 0.0 for name in names] for row in usable]
    return usable, np.array(values)


def _mean_ranks(
    rows: Sequence[Row], costs: Array, names: Sequence[str], confidence: float
) -> MeanRanks | None:
    """Friedman's test over benchmarks; within one, the ranks of its rows are averaged first."""
    if not rows:
        return None
    # Not the costs themselves: variations and ranks of different metrics share no unit.
    blocks = _by_benchmark(rows, friedman.mid_ranks(np.round(costs, 12)))
    if len(blocks) < 2:
        return None
    test = friedman.friedman(blocks)
    means = dict(zip(names, test.mean_ranks, strict=True))
    k = len(names)
    p = {
        (a, b): friedman.nemenyi_p(means[a] - means[b], test.blocks, k)
        for a, b in combinations(names, 2)
    }
    apart = {pair for pair, value in p.items() if value <= 1 - confidence}
    return MeanRanks(
        test.chi_square,
        test.df,
        test.p,
        test.blocks,
        means,
        {name: place.rank for name, place in places(means, apart).items()},
        friedman.critical_difference(test.blocks, k, confidence),
        {f"{a}, {b}": value for (a, b), value in p.items()},
    )


def _cells(
    rows: Sequence[Row],
    complete: Sequence[tuple[Row, RankedRow]],
    names: Sequence[str],
    shares: Mapping[str, float],
    settings: Settings,
) -> tuple[OverallCell, ...]:
    front = pareto_front([ranks for _, ranks in complete], names)
    if not rows:
        return tuple(OverallCell(name, None, None, (), name in front) for name in names)
    reference, confidence = settings.reference, settings.confidence
    to_reference = log_costs(rows, [reference, *names])[:, 1:]
    blocks = np.exp(_by_benchmark(rows, to_reference))
    chances: Sequence[tuple[float, ...]] = [()] * len(names)
    if all(pair.error is not None for row in rows for pair in row.pairs.values()):
        chances = rank_probabilities(rows, names, shares, bool(settings.weights), settings.seed)
    weights = weights_over(rows, shares)
    cells = []
    for column, name in enumerate(names):
        pair = weighted_pair(rows, weights, reference, name)
        weighted = pair.estimate(
            confidence, len(blocks), "weighted geometric mean; errors of measurement"
        )
        if pair.error is None:
            weighted = replace(weighted, note="A metric has too few repetitions for an interval.")
        mean = geometric_mean(blocks[:, column], confidence)
        cells.append(OverallCell(name, mean, weighted, chances[column], name in front))
    return tuple(cells)


def geometric_mean(values: Array, confidence: float) -> Estimate:
    """Returns the geometric mean of ratios; Student's t of the logarithms over benchmarks."""
    mean = ratios.geometric_mean(values, unit="ratio", confidence=confidence)
    method = "geometric mean over benchmarks; Student t on logarithms"
    note = "" if values.size > 1 else "n = 1: an interval needs 2 benchmarks."
    return replace(mean, method=method, note=note)


def rank_probabilities(
    rows: Sequence[Row],
    names: Sequence[str],
    shares: Mapping[str, float],
    weights_given: bool,
    seed: int,
) -> list[tuple[float, ...]]:
    """Returns the probability of each rank by weighted geometric mean, for each alternative.

    Measurements vary by their errors, weights by a Dirichlet distribution: about the user's
    weights, or uniform over all weights.
    """
    rng = np.random.default_rng(seed)
    used = [name for name, share in shares.items() if share > 0]
    alpha = [CONCENTRATION * shares[name] if weights_given else 1.0 for name in used]
    drawn = rng.dirichlet(alpha, DRAWS)
    scores = np.zeros((DRAWS, len(names)))
    for column, benchmark in enumerate(used):
        own = [row for row in rows if row.benchmark == benchmark]
        mean = log_costs(own, names).mean(axis=0)
        errors = np.mean([own_errors(names, row.pair) for row in own], axis=0)
        costs = rng.normal(mean, errors, (DRAWS, len(names)))
        scores += drawn[:, [column]] * costs
    # Equal scores (copies of one file, say) share their ranks, rather than the first one winning.
    rounded = np.round(scores, 12)
    better = (rounded[:, None, :] < rounded[:, :, None]).sum(axis=2)
    equal = (rounded[:, None, :] == rounded[:, :, None]).sum(axis=2)
    shares_of_rank = [
        np.where((better < rank) & (rank <= better + equal), 1 / equal, 0.0).mean(axis=0)
        for rank in range(1, len(names) + 1)
    ]
    return [tuple(map(float, own)) for own in np.transpose(shares_of_rank)]


def pareto_front(ranked: Sequence[RankedRow], names: Sequence[str]) -> set[str]:
    """Returns the alternatives that no other one beats in a row without losing in another."""
    ranks = {
        name: [
            cell.rank or math.inf
            for row in ranked
            for cell in row.cells
            if cell.alternative == name
        ]
        for name in names
    }
    return {
        name for name in names if not any(dominates(ranks[rival], ranks[name]) for rival in names)
    }
