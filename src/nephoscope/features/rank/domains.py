"""Alternatives that suit each application domain, and the certainty of the advice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.reading.sentences import listed
from nephoscope.features.rank.overall import METHOD
from nephoscope.features.rank.records import AdviceWord, DomainAdvice, RankSettings
from nephoscope.features.rank.resources import DOMAINS, WorkDomain
from nephoscope.features.rank.rows import RankRow, log_costs, weighted, weights_over
from nephoscope.features.rank.standing import Standing
from nephoscope.stats.statistics.friedman import mid_ranks
from nephoscope.stats.statistics.values import Array, percent

MOST_NAMED = 5
"""Alternatives that a sentence names."""


def advise(
    rows: Sequence[RankRow], names: Sequence[str], settings: RankSettings
) -> tuple[DomainAdvice, ...]:
    """Returns the advice for every application domain."""
    usable = [row for row in rows if row.kind == "value" and row.resource]
    return tuple(_advice(domain, usable, names, settings) for domain in DOMAINS)


def _advice(
    domain: WorkDomain, rows: Sequence[RankRow], names: Sequence[str], settings: RankSettings
) -> DomainAdvice:
    complete = [row for row in rows if row.covers(names)]
    measured = dict.fromkeys(row.resource for row in complete)
    shares = domain.shares or dict.fromkeys(measured, 1.0)
    if domain.instead and not shares.keys() <= measured.keys():
        shares = domain.instead
    if not shares or not shares.keys() <= measured.keys():
        return _not_measured(domain, shares, rows, measured, names)
    total = sum(shares.values())
    of_domain = [row for row in complete if row.resource in shares]
    weights = [0.0] * len(of_domain)
    for resource, share in shares.items():
        own = [index for index, row in enumerate(of_domain) if row.resource == resource]
        resource_rows = [of_domain[index] for index in own]
        benchmarks = {row.benchmark for row in resource_rows}
        equal = dict.fromkeys(benchmarks, share / total / len(benchmarks))
        for index, weight in zip(own, weights_over(resource_rows, equal), strict=True):
            weights[index] = weight
    basis = _basis(domain, shares, of_domain)
    if not all(row.has_ratio for row in of_domain):
        return _by_rank(domain.name, basis, of_domain, weights, names)
    standing = weighted(of_domain, weights, names, settings.confidence)
    if standing.errors is None:
        return _untested(domain.name, basis, standing.costs, names)
    return _decide(domain.name, basis, standing, settings)


def _by_rank(
    domain: str, basis: str, rows: Sequence[RankRow], weights: Sequence[float], names: Sequence[str]
) -> DomainAdvice:
    """The advice of published ranks: by the weighted mean of the ranks."""
    ranks = mid_ranks(np.round(log_costs(rows, names), 12))
    return _untested(domain, basis, np.average(ranks, axis=0, weights=weights), names)


def _untested(domain: str, basis: str, costs: Array, names: Sequence[str]) -> DomainAdvice:
    """The advice where values have no intervals: the lowest cost."""
    first = tuple(
        name for name, cost in zip(names, costs, strict=True) if cost < costs.min() + 1e-9
    )
    text = " or ".join(first) if len(first) <= MOST_NAMED else listed(first, MOST_NAMED)
    sentence = f"{text} by the order of values without intervals; not tested."
    return DomainAdvice(domain, "not tested", first, None, {}, basis, sentence)


def _basis(domain: WorkDomain, shares: Mapping[str, float], rows: Sequence[RankRow]) -> str:
    benchmarks = ", ".join(dict.fromkeys(row.benchmark for row in rows))
    if len(shares) == 1:
        return benchmarks
    total = sum(shares.values())
    parts = ", ".join(f"{name} {percent(share / total, 2)}" for name, share in shares.items())
    inferred = "inferred from " if shares is domain.instead else ""
    return f"{inferred}{parts} ({benchmarks})"


def _not_measured(
    domain: WorkDomain,
    shares: Mapping[str, float],
    rows: Sequence[RankRow],
    measured: Mapping[str, None],
    names: Sequence[str],
) -> DomainAdvice:
    wanted = domain.shares or shares
    lacking = [name for name in wanted if name not in measured]
    partly = [row for row in rows if row.resource in lacking]
    absent = [name for name in names if any(name in row.gaps for row in partly)]
    what = "No metric with a resource" if not lacking else f"No {' and no '.join(lacking)} metric"
    where = (
        f"all alternatives have: {listed(absent, MOST_NAMED)} has a gap"
        if absent
        else "was measured"
    )
    sentence = f"{what} {where}."
    return DomainAdvice(domain.name, "not measured", (), None, {}, "", sentence)


def _decide(domain: str, basis: str, standing: Standing, settings: RankSettings) -> DomainAdvice:
    """The advice that the pairs allow, by the intervals that the ranks have."""
    names, order = standing.names, standing.order.tolist()
    leader, rivals = order[0], order[1:]
    half = standing.half(leader)
    shift = standing.costs - standing.costs[leader]
    limit = math.log1p(settings.margin)
    # One bound matters for equivalence, so that its interval has twice the tails.
    inside = standing.half_one_sided(leader)
    equivalent = [index for index in rivals if shift[index] + inside[index] <= limit]
    undecided = [
        index for index in rivals if shift[index] <= half[index] and index not in set(equivalent)
    ]
    drawn = standing.draws(settings.seed)
    certainty = None
    if drawn is not None:
        # Probability that the leader costs at most the margin more than the best alternative.
        certainty = float(np.mean(drawn[:, leader] <= drawn.min(axis=1) + limit))
    word: AdviceWord = "best"
    if undecided:
        word = "undecided"
    elif equivalent:
        word = "no difference" if len(equivalent) == len(rivals) else "several"
    chosen = [leader, *equivalent, *undecided]
    choice = tuple(names[index] for index in chosen)
    after = [index for index in rivals if index not in set(chosen)][:1]
    estimates = standing.ratios(leader, METHOD)
    ratios = {names[index]: estimates[index] for index in [*chosen[1:], *after]}
    sentence = _sentence(word, choice, ratios, certainty, settings.margin)
    return DomainAdvice(domain, word, choice, certainty, ratios, basis, sentence)


def _sentence(
    word: AdviceWord,
    choice: Sequence[str],
    ratios: Mapping[str, Estimate],
    certainty: float | None,
    margin: float,
) -> str:
    limit_text = percent(margin, 2)
    if word == "no difference":
        return f"No difference worth having: all are within {limit_text} of {choice[0]}."
    if word == "several":
        text = " or ".join(choice) if len(choice) <= MOST_NAMED else listed(choice, MOST_NAMED)
        return f"{text}: within {limit_text} of {choice[0]}; the others are worse."
    if word == "undecided":
        likely = "" if certainty is None else f" with probability {percent(certainty)}"
        return (
            f"Undecided among {listed(choice, MOST_NAMED)}: {choice[0]} is within {limit_text} of "
            f"the best{likely}; more rounds decide."
        )
    (next_best, ratio), *_ = ratios.items()
    return (
        f"{choice[0]}: {next_best}, the next one, costs {ratio.value:.3g} times as much "
        f"({ratio.low:.3g} to {ratio.high:.3g})."
    )
