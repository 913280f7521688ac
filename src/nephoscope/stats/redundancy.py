"""Spare units of which enough work for a wanted share of the time."""

from __future__ import annotations

import math

from nephoscope.stats.statistics.values import Refused

_MOST_FOR_EACH = 10
"""Spares of a unit; units that need more of them work hardly ever."""


def spares_needed(working: int, availability: float, wanted: float) -> int:
    """Returns the least k so that of n + k units n work with a probability of at least `wanted`.

    Units work with the probability `availability`, independently of each other: the failures
    before the n-th unit that works have a negative binomial law. Raises Refused where more than
    ten spares of each unit would be needed.
    """
    if not 0 < availability <= 1 or not 0 < wanted < 1 or working < 1:
        raise Refused("Availabilities are above 0 and at most 1, and a unit has to work.")
    failing = 1 - availability
    log_mass, cumulative, spares = working * math.log(availability), 0.0, 0
    while True:
        cumulative += math.exp(log_mass)
        if cumulative >= wanted:
            return spares
        spares += 1
        if spares > _MOST_FOR_EACH * working + 100:
            raise Refused(f"Units that work {100 * availability:.3g} % of the time are too few.")
        log_mass += math.log((working + spares - 1) / spares) + math.log(failing)
