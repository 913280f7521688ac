"""Throughput against round trip over several paths: a power law, its interval and residuals."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Refused

FEWEST = 4
"""Paths below which a line through them has no useful interval."""


@dataclass(frozen=True, slots=True)
class DistancePoint:
    """One path. residual_ratio: measured goodput over that of the fit, minus 1."""

    target: str
    rtt_ns: float
    goodput_bytes_per_s: float
    residual_ratio: float


@dataclass(frozen=True, slots=True)
class DistanceFit:
    """Goodput as a power of the round trip: goodput = factor * rtt ** exponent.

    exponent: -1 is inverse to distance, 0 is no dependence. explained: share of the variation of
    the logarithms. residual_cv: standard deviation of the residuals of the logarithms.
    """

    peer: str
    exponent: Estimate
    explained: float
    residual_cv: float
    points: tuple[DistancePoint, ...]
    sentence: str


def fit(
    peer: str, paths: Mapping[str, tuple[float, float]], *, confidence: float = 0.95
) -> DistanceFit:
    """Returns the fit of the paths to a peer.

    paths: target -> median round trip in ns, median goodput in bytes/s. Raises Refused below four
    paths and for paths that are all equally far.
    """
    if len(paths) < FEWEST:
        raise Refused(f"{len(paths)} paths are too few for a fit; it needs {FEWEST}.")
    rtts, rates = np.log(np.array(list(paths.values()), dtype=float)).T
    if not np.ptp(rtts):
        raise Refused("All paths have the same round trip, so that nothing depends on it.")
    from scipy.stats import linregress

    line = linregress(rtts, rates)
    half = t_quantile(len(paths) - 2, confidence) * float(line.stderr)
    slope = float(line.slope)
    method = "slope of the logarithms, least squares; t"
    exponent = Estimate(slope, slope - half, slope + half, confidence, len(paths), "none", method)
    residuals = rates - (line.intercept + slope * rtts)
    points = tuple(
        DistancePoint(target, rtt, rate, math.expm1(residual))
        for (target, (rtt, rate)), residual in zip(
            paths.items(), map(float, residuals), strict=True
        )
    )
    return DistanceFit(
        peer,
        exponent,
        float(line.rvalue) ** 2,
        float(np.sqrt((residuals**2).sum() / (len(paths) - 2))),
        points,
        _sentence(exponent),
    )


def _sentence(exponent: Estimate) -> str:
    assert exponent.low is not None
    assert exponent.high is not None
    value = f"exponent {exponent.value:.2f} [{exponent.low:.2f}, {exponent.high:.2f}]"
    if exponent.high >= 0:
        return f"Throughput does not show to fall with the round trip: {value}."
    if exponent.low <= -1 <= exponent.high:
        return f"Throughput falls with the round trip, and may be inverse to it: {value}."
    faster = "faster" if exponent.value < -1 else "more slowly"
    return f"Throughput falls with the round trip, {faster} than in inverse proportion: {value}."
