"""Dose and response: how a victim's loss grows with the load beside it.

Rounds are blocks: each holds every dose once, so that what a round did to all of them cancels. The
slope is Theil and Sen's within each round, its interval that of the rounds' slopes; the trend is
Page's test for ordered doses, exact given the ties.
Sources: Theil 1950; Sen 1968; Page 1963; Kendall 1975 (trend of one series).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, permutations
from typing import Literal

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.compare import MARGIN
from nephoscope.stats.statistics import multiplicity, ranks
from nephoscope.stats.statistics.dependence import midranks
from nephoscope.stats.statistics.values import Array, Numbers, Refused, clean, finite
from nephoscope.stats.verdicts import margin_bounds

LEAST_DOSES = 3
"""Two doses are a comparison; only a third can bend."""
EXACT_DOSES = 7
"""7! = 5040 orders of a round are counted out; beyond, the law is taken as normal."""


@dataclass(frozen=True, slots=True)
class Slope:
    """Response for one unit of dose, and the two-sided p of no trend (Mann and Kendall)."""

    estimate: Estimate
    p: float


def _slopes(x: Array, y: Array) -> Array:
    """Slopes between all pairs of distinct x, ascending."""
    i, j = np.triu_indices(x.size, 1)
    apart = x[i] != x[j]
    return np.sort((y[j] - y[i])[apart] / (x[j] - x[i])[apart])


def theil_sen(x: Numbers, y: Numbers, *, confidence: float = 0.95) -> Slope:
    """Median of all pairwise slopes of one series with Sen's interval.

    x, y: shape (n,), finite. The interval comes from Kendall's variance with ties; its sides are
    None when n is too small. Raises Refused below 3 values and when all x are equal.
    """
    from scipy.special import ndtr, ndtri

    xs, ys = finite(x, least=3, statistic="slope"), finite(y, least=3, statistic="slope")
    slopes = _slopes(xs, ys)
    if not slopes.size:
        raise Refused("All doses are equal: there is no slope.")
    i, j = np.triu_indices(xs.size, 1)
    s = float(np.sum(np.sign(xs[j] - xs[i]) * np.sign(ys[j] - ys[i])))
    spread = math.sqrt(_kendall_variance(xs, ys))
    reach = float(ndtri((1 + confidence) / 2)) * spread
    below, above = (slopes.size - reach) / 2, (slopes.size + reach) / 2
    low = float(slopes[math.floor(below) - 1]) if below >= 1 else None
    high = float(slopes[math.ceil(above)]) if math.ceil(above) < slopes.size else None
    # A continuity correction of 1: the statistic moves in steps of 2.
    p = min(1.0, float(2 * ndtr(-max(0.0, abs(s) - 1) / spread))) if spread else 1.0
    note = "" if low is not None and high is not None else "Too few values for an interval."
    method = "Theil-Sen slope; Sen's interval"
    n = int(xs.size)
    return Slope(
        Estimate(float(np.median(slopes)), low, high, confidence, n, "none", method, note), p
    )


def _kendall_variance(x: Array, y: Array) -> float:
    """Variance of Kendall's S without trend, with ties on both sides."""
    n = x.size
    t, u = (np.unique(side, return_counts=True)[1].astype(float) for side in (x, y))
    first = n * (n - 1) * (2 * n + 5) - sum(
        float(np.sum(ties * (ties - 1) * (2 * ties + 5))) for ties in (t, u)
    )
    second = float(np.prod([np.sum(ties * (ties - 1) * (ties - 2)) for ties in (t, u)]))
    third = float(np.prod([np.sum(ties * (ties - 1)) for ties in (t, u)]))
    return first / 18 + second / (9 * n * (n - 1) * (n - 2)) + third / (2 * n * (n - 1))


def slope_of_rounds(
    rounds: Sequence[tuple[Numbers, Numbers]], *, unit: str = "none", confidence: float = 0.95
) -> Estimate:
    """Theil-Sen slope within each round, then their Hodges-Lehmann centre over the rounds.

    rounds: (doses, responses) of each. The interval is the signed-rank one and needs 6 rounds at
    95 %; n counts rounds. Raises Refused without a round that has two distinct doses.
    """
    slopes = []
    for x, y in rounds:
        own = _slopes(finite(x, statistic="slope"), finite(y, statistic="slope"))
        slopes += [float(np.median(own))] if own.size else []
    if not slopes:
        raise Refused("No round has two distinct doses: there is no slope.")
    at = ranks.one_sample_shift(np.array(slopes), confidence)
    note = "" if at.low is not None else "Too few rounds for an interval; 6 are needed at 95 %."
    method = "Theil-Sen slope within rounds; Hodges-Lehmann centre, signed-rank interval"
    return Estimate(at.value, at.low, at.high, confidence, len(slopes), unit, method, note)


@dataclass(frozen=True, slots=True)
class Trend:
    """Page's test. statistic: L; p two-sided; p_rises is small when responses rise with dose."""

    statistic: float
    p: float
    p_rises: float
    p_falls: float
    exact: bool


def page(rows: Array) -> Trend:
    """Page's test of ordered doses in blocks; rows: shape (rounds, doses), doses ascending.

    Without a trend every order of a round's responses is as likely as every other: the law of L
    follows from counting them, round by round, whatever ties there are. Beyond 7 doses it is taken
    as normal. Raises Refused for fewer than 2 doses and without rounds.
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not table.shape[0] or np.isnan(table).any():
        raise Refused("Page's test needs rounds that each hold two doses or more.")
    weights = np.arange(1, table.shape[1] + 1)
    ranked = np.array([midranks(row) for row in table])
    statistic = float(np.sum(ranked @ weights))
    if table.shape[1] > EXACT_DOSES:
        return _page_normal(ranked, statistic)
    law = np.ones(1)
    for row in ranked:
        law = np.convolve(law, _page_law(tuple(sorted(np.round(2 * row).astype(int).tolist()))))
    doubled = round(2 * statistic)
    falls, rises = float(law[: doubled + 1].sum()), float(law[doubled:].sum())
    return Trend(statistic, min(1.0, 2 * min(falls, rises)), min(1.0, rises), min(1.0, falls), True)


@lru_cache(maxsize=512)
def _page_law(doubled_ranks: tuple[int, ...]) -> Array:
    """Chance of each value of 2 L of one round: index is 2 L."""
    orders = np.array(list(permutations(doubled_ranks)), dtype=np.int64)
    values = orders @ np.arange(1, len(doubled_ranks) + 1)
    return np.bincount(values) / len(orders)


def _page_normal(ranked: Array, statistic: float) -> Trend:
    from scipy.special import ndtr

    k = ranked.shape[1]
    weights = np.arange(1, k + 1) - (k + 1) / 2
    mean = ranked.sum() * (k + 1) / 2
    spread = np.sum((ranked - (k + 1) / 2) ** 2) * np.sum(weights**2) / (k - 1)
    if spread == 0:
        return Trend(statistic, 1.0, 1.0, 1.0, False)
    z = (statistic - mean) / math.sqrt(spread)
    rises, falls = float(ndtr(-z)), float(ndtr(z))
    return Trend(statistic, min(1.0, 2 * min(rises, falls)), rises, falls, False)


ResponseWord = Literal["rises", "falls", "flat", "not monotone", "too few"]


@dataclass(frozen=True, slots=True)
class Response:
    """Response to the doses. word: rises, falls, flat, not monotone, or too few; sentence says why.

    slope: change of the factor from no load to full load, were it straight; None where refused.
    """

    word: ResponseWord
    sentence: str
    slope: Estimate | None
    trend: Trend | None


def respond(
    factors: Array,
    doses: Array,
    *,
    requested: Numbers,
    margin: float = MARGIN,
    confidence: float = 0.95,
) -> Response:
    """The response of interference factors (above 1 is worse) to the dose.

    factors: shape (rounds, doses), ascending by dose, the baseline (1 by definition) first, > 0.
    doses: the same shape, what the load achieved (or what was requested, where that is not known).
    requested: the nominal doses, for sentences, shape (doses,).
    """
    table, levels = np.asarray(factors, dtype=np.float64), clean(requested, least=0)
    if table.ndim != 2 or table.shape[1] < LEAST_DOSES or not len(table):
        levels_n = 0 if table.ndim != 2 else table.shape[1]
        text = (
            f"{levels_n} load levels (with the baseline) cannot show a shape; measure at least "
            f"{LEAST_DOSES}."
        )
        return Response("too few", text, None, None)
    if np.any(table <= 0) or not np.all(np.isfinite(table)):
        raise Refused("A factor is zero, negative or infinite: it has no logarithm.")
    rounds = list(zip(np.asarray(doses), table, strict=True))
    slope = slope_of_rounds(rounds, unit="ratio", confidence=confidence)
    trend = page(table)
    word, sentence = _word(np.log(table), levels, trend, margin, 1 - confidence)
    return Response(word, sentence, slope, trend)


def _word(
    logs: Array, levels: Array, trend: Trend, margin: float, alpha: float
) -> tuple[ResponseWord, str]:
    rises, falls = _steps(logs, levels, margin, alpha)
    if rises and falls:
        return "not monotone", (
            f"The loss grows from {rises} of load and shrinks from {falls}: the response is not "
            "monotone, so a slope misleads."
        )
    if trend.p < alpha:
        up = trend.p_rises < trend.p_falls
        if falls if up else rises:
            return "not monotone", (
                f"Overall the loss {('grows' if up else 'shrinks')}, but not from "
                f"{(falls if up else rises)} of load: the response is not monotone."
            )
        verb = "grows" if up else "shrinks"
        text = f"The loss {verb} with the load (Page's test, p = {trend.p:.2g})."
        return ("rises" if up else "falls"), text
    if _all_inside(logs, margin, alpha):
        return "flat", (
            f"No load level changes the victim by more than the margin of ±{100 * margin:g} %."
        )
    return "too few", (
        f"{len(logs)} rounds show neither a trend (Page's test, p = {trend.p:.2g}) nor its "
        "absence; measure more rounds."
    )


def _steps(logs: Array, levels: Array, margin: float, alpha: float) -> tuple[str, str]:
    """The surest pair of doses over which the loss rises, and that over which it falls, in words.

    A step counts when its signed-rank p, corrected by Holm for all pairs, is below alpha and its
    centre lies beyond the margin; '' where there is none.
    """
    pairs = list(combinations(range(logs.shape[1]), 2))
    tests = [ranks.signed_rank(logs[:, j] - logs[:, i]) for i, j in pairs]
    adjusted = multiplicity.holm([test.p for test in tests])
    bound = math.log(margin_bounds(margin)[1])
    surest: dict[bool, tuple[float, str]] = {}
    for (i, j), p in zip(pairs, adjusted, strict=True):
        centre = float(np.median(logs[:, j] - logs[:, i]))
        if p < alpha and abs(centre) > bound:
            text = f"{100 * levels[i]:g} % to {100 * levels[j]:g} %"
            surest[centre > 0] = min(surest.get(centre > 0, (2.0, "")), (p, text))
    return surest.get(True, (0.0, ""))[1], surest.get(False, (0.0, ""))[1]


def _all_inside(logs: Array, margin: float, alpha: float) -> bool:
    """Returns whether every dose is equivalent to quiet: its 1 - 2 alpha interval inside the
    margin."""
    lower, upper = (math.log(bound) for bound in margin_bounds(margin))
    for column in range(1, logs.shape[1]):
        at = ranks.one_sample_shift(logs[:, column] - logs[:, 0], 1 - 2 * alpha)
        if at.low is None or at.high is None or at.low < lower or at.high > upper:
            return False
    return True
