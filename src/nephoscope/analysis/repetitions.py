"""How many repetitions are enough? Asked before (planning) and after (from history).

Sources: Noether 1987; Maricq et al., OSDI 2018 (CONFIRM); Kalibera & Jones 2013 (levels).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nephoscope.analysis.estimates import rank_bounds
from nephoscope.analysis.values import Numbers, Refused, finite

MEDIAN_EFFICIENCY = 1.2533
"""sqrt(pi / 2): how much wider than the mean's the median's error is for normal values."""


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def _positive(**figures: float) -> None:
    for name, figure in figures.items():
        if not (math.isfinite(figure) and figure > 0):
            raise Refused(f"{name} is {figure}; planning needs a figure above zero.")


def for_mean(cov: float, relative_half_width: float, confidence: float = 0.95) -> float:
    """Repetitions for a mean within ±relative_half_width: (z CoV / r)^2, not yet rounded up.

    cov: ratio, from a pilot of at least 10 repetitions. CoV 25 %, r 5 % gives 96.04, so 97.
    """
    _positive(cov=cov, relative_half_width=relative_half_width)
    return (_z(confidence) * cov / relative_half_width) ** 2


def for_median(cov: float, relative_half_width: float, confidence: float = 0.95) -> float:
    """As `for_mean`, for the median of near-normal values: (1.2533 z CoV / r)^2.

    Undershoots at small n, where rank intervals move in steps; `confirm` does not.
    """
    return MEDIAN_EFFICIENCY**2 * for_mean(cov, relative_half_width, confidence)


def for_comparison(superiority: float, power: float = 0.8, confidence: float = 0.95) -> float:
    """Repetitions of both sides together for a rank test to find P(b > a) = superiority.

    (z_{alpha/2} + z_beta)^2 / (3 (P - 1/2)^2). P 0.65 at power 0.8 gives 116.28.
    """
    from scipy.special import ndtri

    if not 0 < power < 1 or not 0 <= superiority <= 1 or superiority == 0.5:
        raise Refused("Planning a comparison needs a power below 1 and a P(b > a) other than 0.5.")
    return float((_z(confidence) + ndtri(power)) ** 2 / (3 * (superiority - 0.5) ** 2))


def confirm(
    values: Numbers,
    relative_half_width: float,
    *,
    confidence: float = 0.95,
    seed: int = 1,
    subsets: int = 200,
) -> int | None:
    """Repetitions that would have been enough, from a long history; None: more than n / 2.

    For s = 10, 11, … n / 2, `subsets` subsets of size s are drawn without replacement; the answer
    is the first s whose mean lower and mean upper bound of the median both lie within
    ±relative_half_width of the median of all. Beyond n / 2 subsets resemble the whole too much.
    """
    array = finite(values, least=20, statistic="subset")
    _positive(relative_half_width=relative_half_width)
    centre = float(np.median(array))
    if centre == 0:
        raise Refused("The median of the history is 0: a relative width has no meaning.")
    allowed = relative_half_width * abs(centre)
    rng = np.random.default_rng(seed)
    table = np.tile(array, (subsets, 1))
    for size in range(10, array.size // 2 + 1):
        drawn = np.sort(rng.permuted(table, axis=1)[:, :size], axis=1)
        low, high, _ = rank_bounds(size, 0.5, confidence)
        lower, upper = float(drawn[:, low - 1].mean()), float(drawn[:, high - 1].mean())
        if centre - lower <= allowed and upper - centre <= allowed:
            return size
    return None


def levels(costs: Sequence[float], variances: Sequence[float]) -> list[int]:
    """How often to repeat each level inside the next (iterations, runs, boots; not the outermost).

    costs: of one repetition at each level, lowest first; variances: its component of variance T^2.
    n_i = ceil(sqrt(c_{i+1} / c_i * T_i^2 / T_{i+1}^2)), at least 1; one entry fewer than levels.
    The outermost level takes what the budget allows.
    """
    if len(costs) != len(variances) or len(costs) < 2:
        raise Refused("Levels need a cost and a variance each, and at least two of them.")
    _positive(**{f"cost of level {i + 1}": cost for i, cost in enumerate(costs)})
    found = []
    for i in range(len(costs) - 1):
        if variances[i] < 0 or variances[i + 1] <= 0:
            raise Refused(
                f"The variance of level {i + 2} is not above zero: repeating it teaches nothing; "
                "leave that level out."
            )
        ratio = costs[i + 1] / costs[i] * variances[i] / variances[i + 1]
        found.append(max(1, math.ceil(math.sqrt(ratio) - 1e-9)))
    return found
