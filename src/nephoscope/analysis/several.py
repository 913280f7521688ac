"""More than two systems: do they differ at all, which pairs do, and how do they rank?

Blocks (rounds, or benchmarks) are analysed by ranks inside each block, so that what is easy or hard
for all systems alike does not count. Source: Demsar, Statistical Comparisons of Classifiers over
Multiple Data Sets, JMLR 2006 (Friedman and Nemenyi); Dunn, Technometrics 1964.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nephoscope.analysis.multiplicity import holm
from nephoscope.analysis.values import Refused

MIN_BLOCKS = 4
"""Fewer blocks and no rank test over three systems can reach 0.05."""


@dataclass(frozen=True, slots=True)
class Several:
    """Whether several systems differ, and where.

    statistic, p: of the test over all systems. mean_ranks: 1 is the smallest value; shape
    (systems,). pairs: (i, j) -> p of that pair, corrected for their number.
    critical_difference: mean ranks closer than this are a tie (Nemenyi); None for Dunn.
    method: in words.
    """

    statistic: float
    p: float
    mean_ranks: tuple[float, ...]
    pairs: dict[tuple[int, int], float]
    critical_difference: float | None
    method: str


def _matrix(blocks: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    widths = {len(block) for block in blocks}
    if len(widths) > 1:
        raise Refused("every block needs a value of every system; some blocks are incomplete")
    matrix = np.asarray(blocks, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 3:
        raise Refused("a comparison of several systems needs at least three of them")
    if np.isnan(matrix).any():
        raise Refused("a value is missing (NaN), and missing is not a number")
    return matrix


def _friedman_ranks(matrix: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Friedman's statistic, corrected for ties, and the mean rank of each system."""
    from scipy.stats import rankdata

    n, k = matrix.shape
    ranks = rankdata(matrix, axis=1)
    means = ranks.mean(axis=0)
    # Ties shrink the variance of the ranks; the denominator is the variance they really have.
    spread = float(np.sum(ranks**2) - n * k * (k + 1) ** 2 / 4) / (n * (k - 1))
    if spread == 0:
        raise Refused("all systems tie in every block; there is nothing to rank")
    return n * float(np.sum((means - (k + 1) / 2) ** 2)) / spread, means


def friedman_p(blocks: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Friedman's statistic and its p over all systems, without the pairs; see `friedman`."""
    from scipy.special import chdtrc

    matrix = _matrix(blocks)
    if len(matrix) < MIN_BLOCKS:
        raise Refused(f"{len(matrix)} blocks are too few for a rank test; {MIN_BLOCKS} are needed")
    statistic, _ = _friedman_ranks(matrix)
    return statistic, float(chdtrc(matrix.shape[1] - 1, statistic))


def friedman(blocks: Sequence[Sequence[float]], *, confidence: float = 0.95) -> Several:
    """Friedman's test over blocks x systems, with Nemenyi's comparison of all pairs.

    blocks: shape (blocks, systems), one value each, any unit that is the same inside a block; ties
    get their mean rank. Raises Refused below four blocks or three systems.
    """
    from scipy.stats import studentized_range

    statistic, p = friedman_p(blocks)
    matrix = _matrix(blocks)
    n, k = matrix.shape
    _, means = _friedman_ranks(matrix)
    step = float(np.sqrt(k * (k + 1) / (12 * n)))
    pairs = {
        (i, j): float(studentized_range.sf(abs(means[i] - means[j]) / step, k, np.inf))
        for i, j in combinations(range(k), 2)
    }
    critical = float(studentized_range.ppf(confidence, k, np.inf)) * step
    return Several(
        statistic,
        p,
        tuple(float(mean) for mean in means),
        pairs,
        critical,
        f"Friedman test over {n} blocks, Nemenyi pairs",
    )


def kruskal(groups: Sequence[Sequence[float]]) -> Several:
    """Kruskal and Wallis's test of independent groups, with Dunn's pairs corrected by Holm.

    groups: one sequence a system, lengths may differ, four values each at least.
    Raises Refused below that, or below three groups.
    """
    from scipy.special import chdtrc, ndtr
    from scipy.stats import rankdata

    if len(groups) < 3:
        raise Refused("a comparison of several systems needs at least three of them")
    if min(len(group) for group in groups) < MIN_BLOCKS:
        raise Refused(f"every group needs {MIN_BLOCKS} values")
    values = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    if np.isnan(values).any():
        raise Refused("a value is missing (NaN), and missing is not a number")
    total = len(values)
    ranks = rankdata(values)
    _, counts = np.unique(values, return_counts=True)
    ties = float(np.sum(counts**3 - counts))
    variance = (total * (total + 1) - ties / (total - 1)) / 12
    if variance <= 0:
        raise Refused("all values are equal; there is nothing to rank")
    ends = np.cumsum([len(group) for group in groups])
    parts = np.split(ranks, ends[:-1])
    means = [float(part.mean()) for part in parts]
    between = sum(
        len(part) * (mean - (total + 1) / 2) ** 2 for part, mean in zip(parts, means, strict=True)
    )
    statistic = between / variance
    names = list(combinations(range(len(groups)), 2))
    raw = []
    for i, j in names:
        error = np.sqrt(variance * (1 / len(parts[i]) + 1 / len(parts[j])))
        raw.append(float(2 * ndtr(-abs(means[i] - means[j]) / error)))
    return Several(
        float(statistic),
        float(chdtrc(len(groups) - 1, statistic)),
        tuple(means),
        dict(zip(names, holm(raw), strict=True)),
        None,
        f"Kruskal-Wallis test over {total} values, Dunn pairs with Holm's correction",
    )


def geometric_means(blocks: Sequence[Sequence[float]], *, reference: int = 0) -> tuple[float, ...]:
    """Geometric mean of each system relative to one of them, over blocks.

    blocks: shape (blocks, systems), > 0. A ratio's only honest mean is the geometric one: it does
    not depend on which system is the reference.
    """
    matrix = _matrix(blocks)
    if (matrix <= 0).any():
        raise Refused("ratios need values above zero")
    logs = np.log(matrix)
    relative = np.exp((logs - logs[:, [reference]]).mean(axis=0))
    return tuple(float(value) for value in relative)
