"""Bounds of a long-run share of good slots, in which outages, not slots, are the repetitions.

Slots of one outage are bad together, so that a month with 40 bad slots may be 40 observations or
two. Outages begin at random (a Poisson process) and last independent times; the mean of their times
is as uncertain as that of exponential ones. Then the downtime over its expectation is a ratio of
two gamma variables: F distributed. Source: Barlow, Proschan, Statistical Theory of Reliability
(1975), chapter 3; the compound Poisson process in Cox, Renewal Theory (1962).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.values import runs_of

UNSEEN_OUTAGE_S = 3600.0
UNSEEN_OUTAGE_SLOTS = 20
"""Duration that outages are taken to have on average where none was observed: the longer one."""


def bounded_share_of_slots(
    down: NDArray[np.bool_], known: int, slot_s: float, confidence: float
) -> Estimate | None:
    """Returns the share of good slots with its one-sided bounds; None where nothing is known.

    down: slots that are known to be bad, in order of time. known: number of slots whose state is
    known. confidence: of each bound by itself.
    """
    from scipy.special import fdtri

    if not known:
        return None
    bad = int(down.sum())
    outages = runs_of(down)[0].size
    if outages:
        # Upper bound: one outage more may be about to be seen than its time was.
        most = fdtri(2 * outages + 2, 2 * outages, confidence) * (outages + 1) / outages
        least = fdtri(2 * outages, 2 * outages, 1 - confidence)
        highest, lowest = bad * float(most), bad * float(least)
        method = "lasting as long as those observed"
    else:
        length = max(UNSEEN_OUTAGE_SLOTS, UNSEEN_OUTAGE_S / slot_s)
        highest, lowest = -math.log(1 - confidence) * length, 0.0
        method = f"lasting {length * slot_s / 60:g} min on average, as none was observed"
    counted = "1 outage" if outages == 1 else f"{outages} outages"
    return Estimate(
        (known - bad) / known,
        max(0.0, 1 - highest / known),
        min(1.0, 1 - lowest / known),
        confidence,
        known,
        "ratio",
        f"share of slots; one-sided bounds of {counted}, independent of each other, {method}",
    )
