"""The rule by which a target of a fleet is odd, with a bounded false-alarm rate.

A value is odd when its distance from the median is more than c(n, alpha) times the median absolute
deviation: Hampel's identifier, standardised so that a fleet of n equal targets has no odd value
with probability 1 - alpha (Davies & Gather, The identification of multiple outliers, JASA 88,
1993). The equal targets that define c vary as Student's t with 5 degrees of freedom, whose tails
are heavier than those of the normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.statistics.variation import MAD_TO_SIGMA

FALSE_ALARMS = 0.05
"""Probability that anything at all is reported of a fleet of equal targets."""
MARGIN = 0.10
"""Relative difference from the median up to which a target is not odd, however clear it is."""
LOSS_MARGIN = 0.005
"""Loss above that of the other paths up to which a path is not odd."""
FEWEST = 6
"""Targets below which a median absolute deviation does not show what is usual."""
FEWEST_OF_FACTS = 3
MAJORITY = 0.75
"""Share of the targets that agree on a fact, from which the others are odd."""

_FREEDOM = 5
_REPLICATIONS = 20_000
_REPLICATED_VALUES = 2_000_000
_SEED = 1993


@dataclass(frozen=True, slots=True)
class OddValue:
    """A value that is odd. score: distance from the median in scaled median absolute deviations.

    critical: c(n, alpha). typical: the fleet's median.
    """

    value: float
    typical: float
    score: float
    critical: float


@lru_cache(maxsize=256)
def critical_score(n: int, alpha: float) -> float:
    """Returns the score that the largest of n equal targets exceeds with probability alpha."""
    replications = min(_REPLICATIONS, max(math.ceil(20 / alpha), _REPLICATED_VALUES // n))
    values = np.random.default_rng(_SEED).standard_t(_FREEDOM, (replications, n))
    distances = np.abs(values - np.median(values, axis=1, keepdims=True))
    scores = distances.max(axis=1) / (MAD_TO_SIGMA * np.median(distances, axis=1))
    return float(np.quantile(scores, 1 - alpha))


def odd_values(
    values: Mapping[str, float], *, alpha: float, margin: float = MARGIN
) -> dict[str, OddValue]:
    """Returns the targets whose value of one metric is odd.

    values: target -> median of its trials. Of values that are all above 0 the logarithms are
    compared, so that half and twice are equally far. Raises Refused below 6 targets.
    """
    if len(values) < FEWEST:
        raise Refused(
            f"{len(values)} targets do not show what is usual; a fleet has {FEWEST} or more."
        )
    numbers = np.array(list(values.values()), dtype=float)
    ratio_scale = bool((numbers > 0).all())
    scaled = np.log(numbers) if ratio_scale else numbers
    typical = float(np.median(numbers))
    least = math.log1p(margin) if ratio_scale else margin * abs(typical)
    distances = np.abs(scaled - np.median(scaled))
    spread = MAD_TO_SIGMA * float(np.median(distances))
    critical = critical_score(len(values), alpha)
    return {
        target: OddValue(value, typical, distance / spread if spread else math.inf, critical)
        for (target, value), distance in zip(values.items(), map(float, distances), strict=True)
        if distance > max(least, critical * spread)
    }


def odd_losses(losses: Mapping[str, tuple[int, int]], *, alpha: float) -> dict[str, OddValue]:
    """Returns the paths that lose more packets than the others together.

    losses: target -> lost and sent packets. Fisher's exact test of each against all others, at
    alpha over the number of targets, and at least half a per cent more than their median.
    """
    from scipy.stats import fisher_exact

    counted = {target: (lost, sent) for target, (lost, sent) in losses.items() if sent}
    if len(counted) < FEWEST_OF_FACTS:
        return {}
    total_lost, total = map(sum, zip(*counted.values(), strict=True))
    typical = float(np.median([lost / sent for lost, sent in counted.values()]))
    odd = {}
    for target, (lost, sent) in counted.items():
        if lost / sent <= typical + LOSS_MARGIN:
            continue
        others_lost, others_sent = total_lost - lost, total - sent
        table = [[lost, sent - lost], [others_lost, others_sent - others_lost]]
        p = float(fisher_exact(table, alternative="greater").pvalue)
        if p <= alpha / len(counted):
            odd[target] = OddValue(lost / sent, typical, p, alpha / len(counted))
    return odd


def odd_facts(facts: Mapping[str, object]) -> tuple[object, dict[str, object]]:
    """Returns the value that most targets have, and the targets that have another one.

    Without a majority of three quarters no target is odd.
    """
    known = {target: fact for target, fact in facts.items() if fact is not None}
    if len(known) < FEWEST_OF_FACTS:
        return None, {}
    usual = max(known.values(), key=lambda fact: sum(value == fact for value in known.values()))
    odd = {target: fact for target, fact in known.items() if fact != usual}
    if len(odd) > (1 - MAJORITY) * len(known):
        return None, {}
    return usual, odd
