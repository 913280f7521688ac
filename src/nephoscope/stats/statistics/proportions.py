"""How sure is a share that was counted: k out of n?"""

from __future__ import annotations

import math

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.distributions import normal_quantile
from nephoscope.stats.statistics.values import Refused


def wilson(hits: int, tries: int, *, confidence: float = 0.95) -> Estimate:
    """Share of `hits` in `tries` with Wilson's score interval, a ratio.

    It holds for shares near 0 and 1 and for few tries, where the interval around the share itself
    fails. Raises Refused without tries and for more hits than tries.
    Source: Wilson, Probable inference, JASA 22 (1927), 209-212.
    """
    if tries < 1:
        raise Refused("A share needs at least one try.")
    if not 0 <= hits <= tries:
        raise Refused(f"{hits} of {tries} is no share.")
    z = normal_quantile((1 + confidence) / 2)
    share = hits / tries
    middle = (share + z * z / (2 * tries)) / (1 + z * z / tries)
    spread = share * (1 - share) / tries + z * z / (4 * tries * tries)
    half = z / (1 + z * z / tries) * math.sqrt(spread)
    # At the ends the interval ends exactly there; rounding could leave a last digit.
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == tries else middle + half
    method = f"share; Wilson score interval of {hits} in {tries}"
    return Estimate(share, low, high, confidence, tries, "ratio", method)


def exact_bounds(hits: int, tries: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the lower and the upper one-sided bound of a share (Clopper and Pearson).

    Each holds with this confidence by itself. Raises Refused as `wilson` does.
    Source: Clopper, Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).
    """
    from scipy.special import betaincinv

    if tries < 1 or not 0 <= hits <= tries:
        raise Refused(f"{hits} of {tries} is no share.")
    low = 0.0 if hits == 0 else float(betaincinv(hits, tries - hits + 1, 1 - confidence))
    high = 1.0 if hits == tries else float(betaincinv(hits + 1, tries - hits, confidence))
    return low, high
