"""Where does variation come from: between instances, between boots of one, or between rounds?

Random effects of up to three nested levels, by the mean squares of the analysis of variance with
their expectations for unequal numbers (Searle, Casella & McCulloch 1992, ch. 5; Sokal & Rohlf 1995,
ch. 10). The unit of replication is the outermost level that was repeated: its interval rests on
that mean square, since rounds of one instance are no independent samples of the cloud.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array, Refused, finite

LEVELS = ("instance", "boot", "round")


@dataclass(frozen=True, slots=True)
class Component:
    """One level's part of the variance. share: of the sum of all components, 0..1.

    mean_square, df: of its line in the analysis of variance. negative: the estimate was below zero
    and is reported as zero: this level adds no variation that can be seen.
    """

    level: str
    variance: float
    share: float
    mean_square: float
    df: int
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Nested:
    """Components of variance, outermost first; only levels that were repeated are there.

    mean: grand mean with the interval of the outermost level, (repetitions - 1) degrees of freedom.
    pooled_low, pooled_high: what treating all rounds as independent would have said (wrong).
    """

    components: tuple[Component, ...]
    mean: Estimate
    pooled_low: float
    pooled_high: float


def components(
    values: Sequence[float],
    instances: Sequence[int],
    boots: Sequence[int],
    *,
    unit: str,
    confidence: float = 0.95,
) -> Nested:
    """Split the variance of values[i], taken in boot boots[i] of instance instances[i].

    boots: numbered within their instance. A level that was not repeated (one instance, or one boot
    of each) is left out. Raises Refused when no level above the rounds was repeated, or when no
    group has two values.
    """
    array = finite(values, least=3, statistic="component of variance")
    outer = [(instance,) for instance in instances]
    inner = list(zip(instances, boots, strict=True))
    labels: list[tuple[str, list[tuple[int, ...]]]] = []
    if len(set(outer)) > 1:
        labels.append(("instance", list(outer)))
    if len(set(inner)) > len(set(outer)):
        labels.append(("boot", list(inner)))
    if not labels:
        raise Refused("Neither instances nor boots were repeated, so there are no components.")
    groups = [len(set(label)) for _, label in labels]
    if array.size <= groups[-1]:
        raise Refused("No boot has two rounds, so rounds and boots cannot be separated.")
    n = int(array.size)
    fitted = [np.full(n, float(array.mean())), *(_means(array, cells) for _, cells in labels)]
    counts = [np.full(n, float(n)), *(_counts(cells) for _, cells in labels)]
    names = [name for name, _ in labels] + ["round"]
    sizes = [1, *groups, n]
    dfs = [sizes[i + 1] - sizes[i] for i in range(len(names))]
    fitted.append(array)
    counts.append(np.ones(n))
    squares = [float(np.sum((fitted[i + 1] - fitted[i]) ** 2)) / dfs[i] for i in range(len(names))]
    raw = _solve(squares, counts, dfs)
    positive = [max(0.0, component) for component in raw]
    total = sum(positive)
    parts = tuple(
        Component(name, p, p / total if total else 0.0, ms, df, r < 0)
        for name, p, ms, df, r in zip(names, positive, squares, dfs, raw, strict=True)
    )
    grand, k = float(array.mean()), groups[0]
    half = t_quantile(k - 1, confidence) * math.sqrt(squares[0] / n)
    naive = t_quantile(n - 1, confidence) * float(np.std(array, ddof=1)) / math.sqrt(n)
    words = {"instance": "instances", "boot": "boots"}[names[0]]
    mean = Estimate(
        grand,
        grand - half,
        grand + half,
        confidence,
        k,
        unit,
        f"grand mean of {k} {words}; Student t on the mean square between {words}",
    )
    return Nested(parts, mean, grand - naive, grand + naive)


def _solve(squares: Sequence[float], counts: Sequence[Array], dfs: Sequence[int]) -> list[float]:
    """Components from mean squares, innermost first.

    E(MS of level i) = sum over levels j >= i of c_ij * variance_j, where c_ij is the sum over all
    values of n_j / n_i minus n_j / n_(i-1), divided by the degrees of freedom; n_j: size of the
    group of level j that a value is in (1 for the rounds).
    """
    size = len(squares)
    solution = [0.0] * size
    for i in range(size - 1, -1, -1):
        rest = squares[i]
        for j in range(size - 1, i, -1):
            rest -= _coefficient(counts, i, j, dfs) * solution[j]
        solution[i] = rest / _coefficient(counts, i, i, dfs)
    return solution


def _coefficient(counts: Sequence[Array], i: int, j: int, dfs: Sequence[int]) -> float:
    within, above, own = counts[i + 1], counts[i], counts[j + 1]
    return float(np.sum(own / within) - np.sum(own / above)) / dfs[i]


def _means(array: Array, labels: Sequence[tuple[int, ...]]) -> Array:
    out = np.empty_like(array)
    for places in group_by(range(len(labels)), lambda at: labels[at]).values():
        out[places] = array[places].mean()
    return out


def _counts(labels: Sequence[tuple[int, ...]]) -> Array:
    sizes = Counter(labels)
    return np.array([float(sizes[label]) for label in labels])
