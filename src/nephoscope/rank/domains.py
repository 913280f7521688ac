"""Alternatives that suit each application domain, and the certainty of the advice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np

from nephoscope.analysis.statistics.distributions import normal_quantile
from nephoscope.analysis.statistics.friedman import mid_ranks
from nephoscope.analysis.statistics.values import percent
from nephoscope.model import Estimate
from nephoscope.rank.overall import DRAWS
from nephoscope.rank.pairs import Pair, own_errors
from nephoscope.rank.records import Advice, AdviceWord, Settings
from nephoscope.rank.resources import DOMAINS, Domain
from nephoscope.rank.rows import Row, log_costs, weighted_pair, weights_over

METHOD = "weighted geometric mean of ratios; normal, of errors of measurement"


def advise(rows: Sequence[Row], names: Sequence[str], settings: Settings) -> tuple[Advice, ...]:
    """Returns the advice for every application domain."""
    usable = [row for row in rows if row.kind == "value" and row.resource]
    return tuple(_advice(domain, usable, names, settings) for domain in DOMAINS)


def _advice(
    domain: Domain, rows: Sequence[Row], names: Sequence[str], settings: Settings
) -> Advice:
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
    pairs = {(a, b): weighted_pair(of_domain, weights, a, b) for a, b in permutations(names, 2)}
    is_tested = all(pair.error is not None for pair in pairs.values())
    if not is_tested or not all(row.has_ratio for row in of_domain):
        return _by_value(domain.name, basis, of_domain, weights, names)
    n = min(line.estimate.n for row in of_domain for line in row.lines.values())
    return _decide(domain.name, basis, pairs, names, n, settings)


def _by_value(
    domain: str, basis: str, rows: Sequence[Row], weights: Sequence[float], names: Sequence[str]
) -> Advice:
    """The advice where values have no intervals: by the weighted mean of their ranks."""
    ranks = mid_ranks(np.round(log_costs(rows, names), 12))
    means = np.average(ranks, axis=0, weights=weights)
    first = tuple(
        name for name, mean in zip(names, means, strict=True) if mean < means.min() + 1e-9
    )
    sentence = f"{' or '.join(first)} by the order of values without intervals; not tested."
    return Advice(domain, "not tested", first, None, {}, basis, sentence)


def _basis(domain: Domain, shares: Mapping[str, float], rows: Sequence[Row]) -> str:
    benchmarks = ", ".join(dict.fromkeys(row.benchmark for row in rows))
    if len(shares) == 1:
        return benchmarks
    total = sum(shares.values())
    parts = ", ".join(f"{name} {percent(share / total, 2)}" for name, share in shares.items())
    inferred = "inferred from " if shares is domain.instead else ""
    return f"{inferred}{parts} ({benchmarks})"


def _not_measured(
    domain: Domain,
    shares: Mapping[str, float],
    rows: Sequence[Row],
    measured: Mapping[str, None],
    names: Sequence[str],
) -> Advice:
    wanted = domain.shares or shares
    lacking = [name for name in wanted if name not in measured]
    partly = [row for row in rows if row.resource in lacking]
    absent = [name for name in names if any(name in row.gaps for row in partly)]
    what = "No metric with a resource" if not lacking else f"No {' and no '.join(lacking)} metric"
    where = f"all alternatives have: {', '.join(absent)} has a gap" if absent else "was measured"
    sentence = f"{what} {where}."
    return Advice(domain.name, "not measured", (), None, {}, "", sentence)


def _decide(
    domain: str,
    basis: str,
    pairs: Mapping[tuple[str, str], Pair],
    names: Sequence[str],
    n: int,
    settings: Settings,
) -> Advice:
    """The advice that the pairs allow: against the leader, at 1 - alpha over all rivals."""
    first = names[0]
    costs = {name: pairs[first, name].log_ratio if name != first else 0.0 for name in names}
    leader = min(names, key=lambda name: costs[name])
    rivals = [name for name in names if name != leader]
    alpha = (1 - settings.confidence) / len(rivals)
    wide, narrow = normal_quantile(1 - alpha / 2), normal_quantile(1 - alpha)
    limit = math.log1p(settings.margin)
    ratios: dict[str, Estimate] = {}
    equivalent, open_rivals = [], []
    for name in rivals:
        pair = pairs[leader, name]
        error = pair.error or 0.0
        ratios[name] = Estimate(
            math.exp(pair.log_ratio),
            math.exp(pair.log_ratio - wide * error),
            math.exp(pair.log_ratio + wide * error),
            1 - alpha,
            n,
            "ratio",
            METHOD,
        )
        if abs(pair.log_ratio) + narrow * error <= limit:
            equivalent.append(name)
        elif pair.log_ratio - wide * error <= limit:
            open_rivals.append(name)
    errors = own_errors(names, lambda a, b: pairs[a, b])
    drawn = np.random.default_rng(settings.seed).normal(
        [costs[name] for name in names], errors, (DRAWS, len(names))
    )
    # Probability that the leader costs at most the margin more than the best alternative.
    certainty = float(np.mean(drawn[:, names.index(leader)] <= drawn.min(axis=1) + limit))
    word: AdviceWord = "best"
    if open_rivals:
        word = "undecided"
    elif equivalent:
        word = "no difference" if len(equivalent) == len(rivals) else "several"
    choice = (leader, *equivalent, *open_rivals)
    sentence = _sentence(word, choice, ratios, rivals, certainty, settings.margin)
    return Advice(domain, word, choice, certainty, ratios, basis, sentence)


def _sentence(
    word: AdviceWord,
    choice: Sequence[str],
    ratios: Mapping[str, Estimate],
    rivals: Sequence[str],
    certainty: float,
    margin: float,
) -> str:
    limit_text = percent(margin, 2)
    if word == "no difference":
        return f"No difference worth having: all are within {limit_text} of {choice[0]}."
    if word == "several":
        return f"{' or '.join(choice)}: within {limit_text} of each other; the others are worse."
    if word == "undecided":
        return (
            f"Undecided among {', '.join(choice)}: {choice[0]} is within {limit_text} of the best "
            f"with probability {percent(certainty)}; more rounds decide."
        )
    next_best = min(rivals, key=lambda name: ratios[name].value)
    ratio = ratios[next_best]
    return (
        f"{choice[0]}: {next_best}, the next one, costs {ratio.value:.3g} times as much "
        f"({ratio.low:.3g} to {ratio.high:.3g})."
    )
