"""The utility of offers to a user, which offer to take with which probability, and the price of
service levels that a provider sells.

The utility of a parameter is a logistic curve through two points that the user states: where it is
0.5 and where it is 0.9. The utility of an offer is the weighted sum over the parameters; the
weighted product beside it forgives no failed parameter. Offers beyond the budget or a hard limit
are out before. A provider may price each level by a function of its own; the best level is the one
with the greatest utility within the budget.

Sources: Menascé & Ngo, Understanding Cloud Computing: Experimentation and Capacity Planning, CMG
2009, for structure and price functions; Saaty, A scaling method for priorities (1977), for weights
from comparisons; Hwang & Yoon, Multiple Attribute Decision Making (1981), for TOPSIS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.pricing.offers import OfferFile, OfferParameter, UtilityOffer
from nephoscope.results import names
from nephoscope.stats.statistics import ratios
from nephoscope.stats.statistics.bootstrap import interval_of_draws
from nephoscope.stats.statistics.dominance import dominates
from nephoscope.stats.statistics.values import Array

DRAWS = 20_000
LOGIT_90 = math.log(9)
"""Logit of a utility of 0.9."""
_RANDOM_INDEX = (0, 0, 0.58, 0.90, 1.12, 1.24, 1.32, 1.41, 1.45, 1.49)
"""Mean consistency index of random comparisons of 1, 2, … parameters (Saaty 1980)."""
MAX_INCONSISTENCY = 0.1


@dataclass(frozen=True, slots=True)
class OfferUtility:
    """The utility of an offer. utilities: by parameter. product: weighted product. per_100: utility
    for 100 units of the currency. rank_1_probability: that it is best under the uncertainty of
    metrics and weights; of an offer that is out it is 0. excluded: why it is out; '' else.
    provider_price: by the provider's price functions; null without them. topsis: closeness to the
    best values of all offers. is_pareto: no other feasible offer is at least as good in all."""

    offer: str
    price: Estimate
    values: Mapping[str, float]
    utilities: Mapping[str, float]
    utility: Estimate
    product: float
    per_100: Estimate
    rank_1_probability: float
    is_pareto: bool
    excluded: str
    topsis: float
    provider_price: float | None


@dataclass(frozen=True, slots=True)
class BestLevel:
    """Service level with the greatest utility that the provider sells within the budget."""

    levels: Mapping[str, float]
    utility: float
    price: float


@dataclass(frozen=True, slots=True)
class UtilityCurve:
    """Utility of a parameter over its values, for a chart."""

    parameter: str
    values: tuple[float, ...]
    utilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class UtilityAnalysis:
    """Offers, the best first. recommended: with the highest utility; '' if all are out.

    consistency_ratio: of the comparisons that gave the weights; null where weights were stated.
    """

    currency: str
    weights: Mapping[str, float]
    consistency_ratio: float | None
    budget: float | None
    recommended: str
    offers: tuple[OfferUtility, ...]
    best_level: BestLevel | None
    curves: tuple[UtilityCurve, ...]
    notes: tuple[str, ...] = ()


def utility_of(values: Array, parameter: OfferParameter) -> Array:
    """Utility from 0 to 1 of values of a parameter."""
    at_half, at_90 = (
        float(_scaled(np.array(value), parameter)) for value in (parameter.half, parameter.good)
    )
    steepness = LOGIT_90 / (at_90 - at_half)
    with np.errstate(over="ignore"):
        utility: Array = 1 / (1 + np.exp(-steepness * (_scaled(values, parameter) - at_half)))
    return utility


def _scaled(values: Array, parameter: OfferParameter) -> Array:
    """Values as they are, or availabilities as their number of nines."""
    return -np.log10(1 - values) if parameter.scale == "nines" else values


class Weights(NamedTuple):
    """Weights by parameter, which sum to 1, and the consistency ratio of comparisons."""

    values: Mapping[str, float]
    consistency_ratio: float | None


def weights_of(file: OfferFile) -> Weights:
    """Returns the weights. Raises UsageError for weights that do not sum to 1 and comparisons that
    contradict each other."""
    parameters = list(file.parameters)
    if file.comparisons is not None:
        return _compared(np.array(file.comparisons), parameters)
    stated = {name: parameter.weight for name, parameter in file.parameters.items()}
    missing = [name for name, weight in stated.items() if weight is None]
    if missing:
        raise UsageError(
            f"{', '.join(missing)}: the weight is missing.", "Add `weight`, or `comparisons`."
        )
    weights = {name: float(weight) for name, weight in stated.items() if weight is not None}
    total = sum(weights.values())
    if abs(total - 1) > 1e-6 and not file.normalise:
        raise UsageError(
            f"The weights sum to {total:g}, not to 1.",
            "Correct them, or write `normalise: true` to divide them by their sum.",
        )
    return Weights({name: weight / total for name, weight in weights.items()}, None)


def _compared(matrix: Array, parameters: Sequence[str]) -> Weights:
    """Weights from pairwise comparisons: the principal eigenvector (analytic hierarchy process)."""
    n = len(parameters)
    if matrix.shape != (n, n):
        raise UsageError(
            f"`comparisons` is no square of {n} parameters.", "Give a row for each parameter."
        )
    if not np.allclose(matrix * matrix.T, 1, rtol=0.02):
        raise UsageError(
            "`comparisons` is not reciprocal.", "If one is 3 times another, that is 1/3 of it."
        )
    values, vectors = np.linalg.eig(matrix)
    largest = int(np.argmax(values.real))
    vector = np.abs(vectors[:, largest].real)
    index = (float(values.real[largest]) - n) / max(1, n - 1)
    random = _RANDOM_INDEX[min(n, len(_RANDOM_INDEX)) - 1]
    ratio = index / random if random else 0.0
    if ratio >= MAX_INCONSISTENCY:
        raise UsageError(
            f"The comparisons contradict each other: their consistency ratio is {ratio:.2f}.",
            f"Correct them until it is below {MAX_INCONSISTENCY}.",
        )
    shares = vector / vector.sum()
    return Weights(dict(zip(parameters, map(float, shares), strict=True)), ratio)


def analyse(file: OfferFile, draws: int = DRAWS) -> UtilityAnalysis:
    """Returns utilities, the recommended offer and the provider's best level."""
    weights = weights_of(file)
    shares = np.array(list(weights.values.values()))
    rng = np.random.default_rng(names.seed_of("utility", *file.offers))
    certainty = file.weight_certainty
    drawn_shares = np.broadcast_to(shares, (draws, shares.size)).copy()
    if certainty is not None:
        weighted = shares > 0
        drawn_shares[:, weighted] = rng.dirichlet(shares[weighted] * certainty, draws)
    excluded = {name: _excluded(offer, file) for name, offer in file.offers.items()}
    utilities, drawn, prices = {}, {}, {}
    for name, offer in file.offers.items():
        utilities[name] = _utilities(offer, file, None, draws)[0]
        drawn[name] = (_utilities(offer, file, rng, draws) * drawn_shares).sum(axis=1)
        prices[name] = _draw(offer.price.estimate(file.currency), rng, draws)
    first = _rank_1(drawn, excluded, draws)
    pareto = _pareto(file, excluded)
    topsis = _topsis(file, shares)
    offers = []
    for name, offer in file.offers.items():
        value = float(utilities[name] @ shares)
        price = offer.price.estimate(file.currency)
        levels = {key: offer.values[key].estimate("").value for key in file.parameters}
        offers.append(
            OfferUtility(
                name,
                price,
                levels,
                dict(zip(file.parameters, map(float, utilities[name]), strict=True)),
                _estimate(value, drawn[name]),
                float(np.prod(utilities[name] ** shares)),
                _estimate(100 * value / price.value, 100 * drawn[name] / prices[name]),
                first[name],
                name in pareto,
                excluded[name],
                topsis[name],
                _provider_price(levels, file),
            )
        )
    offers.sort(key=lambda offer: (bool(offer.excluded), -offer.utility.value))
    recommended = "" if offers[0].excluded else offers[0].offer
    return UtilityAnalysis(
        file.currency,
        weights.values,
        weights.consistency_ratio,
        file.budget,
        recommended,
        tuple(offers),
        _best_level(file, shares),
        tuple(_curve(name, parameter, file) for name, parameter in file.parameters.items()),
        tuple(_notes(file, offers)),
    )


def _utilities(
    offer: UtilityOffer, file: OfferFile, rng: np.random.Generator | None, draws: int
) -> Array:
    """Utilities of the parameters of an offer, shape (draws, parameters); its own without rng."""
    columns = []
    for name, parameter in file.parameters.items():
        estimate = offer.values[name].estimate("none")
        if rng is None:
            values = np.array([estimate.value])
        elif parameter.scale == "nines":
            # Of an availability the unavailability varies in proportion.
            values = 1 - _draw(_complement(estimate), rng, draws)
        else:
            values = _draw(estimate, rng, draws)
        columns.append(utility_of(values, parameter))
    return np.stack(columns, axis=-1)


def _complement(estimate: Estimate) -> Estimate:
    low, high = (None if end is None else 1 - end for end in (estimate.high, estimate.low))
    return Estimate(1 - estimate.value, low, high, estimate.confidence, estimate.n, "none", "")


def _draw(estimate: Estimate, rng: np.random.Generator, draws: int) -> Array:
    """Draws from an interval on the logarithm; an estimate without one is exact."""
    drawn: Array = estimate.value * np.exp(rng.standard_normal(draws) * ratios.log_error(estimate))
    return drawn


def _estimate(value: float, drawn: Array) -> Estimate:
    low, high = interval_of_draws(drawn, value, 0.95)
    if high - low <= 1e-12 * abs(value):
        return Estimate(value, None, None, 0.95, 0, "none", "exact metrics and weights")
    method = f"{drawn.size} draws of metrics and weights"
    return Estimate(value, low, high, 0.95, 0, "none", method)


def _excluded(offer: UtilityOffer, file: OfferFile) -> str:
    """Returns why an offer is out: the budget, or a hard limit of a parameter."""
    if file.budget is not None and offer.price.estimate("").value > file.budget:
        return f"price above the budget of {file.budget:g} {file.currency}"
    for name, parameter in file.parameters.items():
        value = offer.values[name].estimate("").value
        if parameter.minimum is not None and value < parameter.minimum:
            return f"{name} below {parameter.minimum:g}"
        if parameter.maximum is not None and value > parameter.maximum:
            return f"{name} above {parameter.maximum:g}"
    return ""


def _rank_1(
    drawn: Mapping[str, Array], excluded: Mapping[str, str], draws: int
) -> dict[str, float]:
    """Probability that an offer has the highest utility among those that are not out."""
    feasible = [name for name in drawn if not excluded[name]]
    shares = dict.fromkeys(drawn, 0.0)
    if feasible:
        table = np.stack([drawn[name] for name in feasible])
        best = table >= table.max(axis=0) - 1e-12  # offers that are equal share the rank
        counts = (best / best.sum(axis=0)).sum(axis=1)
        shares |= {name: float(count / draws) for name, count in zip(feasible, counts, strict=True)}
    return shares


def _directed(file: OfferFile) -> dict[str, Array]:
    """Values of each offer, the more the better: the parameters, and the price."""
    signs = [1 if parameter.rises else -1 for parameter in file.parameters.values()]
    return {
        name: np.array(
            [
                *(
                    sign * offer.values[key].estimate("").value
                    for sign, key in zip(signs, file.parameters, strict=True)
                ),
                -offer.price.estimate("").value,
            ]
        )
        for name, offer in file.offers.items()
    }


def _pareto(file: OfferFile, excluded: Mapping[str, str]) -> set[str]:
    values = {name: own for name, own in _directed(file).items() if not excluded[name]}
    return {
        name
        for name, own in values.items()
        if not any(dominates(-rival, -own) for rival in values.values())
    }


def _topsis(file: OfferFile, shares: Array) -> dict[str, float]:
    """Closeness to the best values, from 0 to 1; the price counts as one more parameter, with the
    weight `price_weight`."""
    values = _directed(file)
    table = np.stack(list(values.values()))
    weights = np.append(shares * (1 - file.price_weight), file.price_weight)
    scaled = table / np.sqrt((table**2).sum(axis=0)) * weights
    best, worst = (
        np.sqrt(((scaled - end) ** 2).sum(axis=1))
        for end in (scaled.max(axis=0), scaled.min(axis=0))
    )
    total = best + worst
    closeness = np.divide(worst, total, out=np.full_like(total, 0.5), where=total > 0)
    return dict(zip(values, map(float, closeness), strict=True))


def _provider_price(levels: Mapping[str, float], file: OfferFile) -> float | None:
    """Price of a service level by the provider's functions; None where a parameter has none."""
    total = 0.0
    for name, parameter in file.parameters.items():
        if parameter.provider is None:
            return None
        total += float(parameter.provider.price(np.array(levels[name])))
    return total


_LEVELS = 2_001
"""Levels of each parameter that are tried for the best one."""


def _best_level(file: OfferFile, shares: Array) -> BestLevel | None:
    """Maximum of the utility over the levels whose prices sum to at most the budget.

    Utility and price are sums over the parameters, so that the budget is divided among them: for
    each part of it the best level that it buys, and all divisions of it are tried. None without
    price functions or budget.
    """
    if file.budget is None or any(
        parameter.provider is None for parameter in file.parameters.values()
    ):
        return None
    spent = np.linspace(0, file.budget, _LEVELS)
    best = np.zeros(_LEVELS)
    choices: list[tuple[str, Array, Array]] = []
    for (name, parameter), share in zip(file.parameters.items(), shares, strict=True):
        assert parameter.provider is not None
        levels = parameter.levels(_LEVELS)
        costs = parameter.provider.price(levels)
        gains = share * utility_of(levels, parameter)
        affordable = np.array([_most(gains, costs, limit) for limit in spent])
        table = np.full((_LEVELS, _LEVELS), -math.inf)
        for part in range(_LEVELS):
            pick = affordable[part]
            if pick >= 0:
                table[part:, part] = best[: _LEVELS - part] + gains[pick]
        division = table.argmax(axis=1)
        best = table.max(axis=1)
        choices.append((name, levels[affordable], division))
    if not math.isfinite(best[-1]):
        return None
    left, chosen = _LEVELS - 1, {}
    for name, levels, division in reversed(choices):
        part = int(division[left])
        chosen[name] = float(levels[part])
        left -= part
    price = _provider_price(chosen, file)
    assert price is not None
    return BestLevel(dict(reversed(chosen.items())), float(best[-1]), price)


def _most(gains: Array, costs: Array, limit: float) -> int:
    """Index of the best level that costs at most `limit`; -1 if none does."""
    within = np.where(costs <= limit * (1 + 1e-12), gains, -math.inf)
    index = int(within.argmax())
    return index if math.isfinite(within[index]) else -1


def _curve(name: str, parameter: OfferParameter, file: OfferFile) -> UtilityCurve:
    stated = [offer.values[name].estimate("").value for offer in file.offers.values()]
    ends = [*stated, parameter.half, parameter.good]
    if parameter.scale == "nines":
        low, high = (-math.log10(1 - end) for end in (min(ends), max(ends)))
        nines = np.linspace(low, high, 61)
        values = 1 - 10.0**-nines
    else:
        spread = max(ends) - min(ends)
        values = np.linspace(max(min(ends) - 0.2 * spread, 0.0), max(ends) + 0.2 * spread, 61)
    utilities = utility_of(values, parameter)
    return UtilityCurve(name, tuple(values.tolist()), tuple(utilities.tolist()))


def _notes(file: OfferFile, offers: Sequence[OfferUtility]) -> list[str]:
    notes = []
    if offers[0].excluded:
        notes.append("Every offer is out, so none is recommended.")
    if all(offer.utility.low is None for offer in offers):
        notes.append("Metrics have no intervals and weights no uncertainty: ranks are exact.")
    elif file.weight_certainty is None:
        notes.append("The weights are taken as exact; `weight_certainty` makes them uncertain.")
    return notes
