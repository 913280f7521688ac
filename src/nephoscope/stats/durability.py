"""The rate at which a store loses objects, from losses and the time that objects were observed.

Losses of an observation are a Poisson count of a constant rate (as of exponential lives). Sources:
Garwood, Biometrika 28 (1936): exact interval of a Poisson mean; Hanley, Lippman-Hand, JAMA 249
(1983): three over n, if nothing was lost.
"""

from __future__ import annotations

import math

from nephoscope.core.model import Estimate
from nephoscope.stats.survival import poisson_bounds

YEAR_S = 365.25 * 86_400


def annual_loss(
    losses: int, object_years: float, objects: int, confidence: float = 0.95
) -> Estimate | None:
    """Returns the share of objects that is lost within a year; None where no time was observed.

    losses: lost and damaged objects. object_years: sum of the times that objects were observed.
    objects: their number, the n of the estimate. Without a loss the interval is one-sided, so that
    its bound is 1 - e^(-3 / object-years) at 95 %.
    """
    if object_years <= 0:
        return None
    if losses:
        low, high = poisson_bounds(losses, confidence)
        method = "1 - e^-rate; exact Poisson interval of losses over object-years"
    else:
        low, high = 0.0, -math.log(1 - confidence)
        method = "no loss; one-sided exact bound of losses over object-years"
    share, low, high = (-math.expm1(-count / object_years) for count in (losses, low, high))
    return Estimate(share, low, high, confidence, objects, "ratio", method)


def object_years_needed(annual_share: float, confidence: float = 0.95) -> float:
    """Returns the object-years without a loss that show an annual loss of at most `annual_share`.

    annual_share: above 0 and below 1.
    """
    return -math.log(1 - confidence) / -math.log1p(-annual_share)
