"""May the repetitions stop? On width or exhaustion, never on a p-value.

Every interim analysis costs a little coverage (a 95 % interval first computed after 3 repetitions
covers 0.908), so nothing is called converged below 10 repetitions, analyses are 5 apart, and the
interval that is computed misses less often than the one asked for (`level`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.estimates import median
from nephoscope.stats.statistics.values import Array, Numbers, Refused, clean, middles
from nephoscope.stats.statistics.variation import MAD_TO_SIGMA

LEAST_N = 10
DEFAULT_INTERVAL_N = 5
NOISE_LEAST_N = 30
NOISE_CHECKS = 3
NOISE_CHANGE = 0.10

TAILS = 0.45
"""Factor of the tails of interim analyses: with it, intervals at which a run stopped cover
at least 90 % up to an autocorrelation of 0.6."""

Word = Literal["continue", "converged", "noise_known", "max_reached"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Decision of an interim analysis. estimate: the median so far, None when refused (`reason`).

    noise_ratio: 1.4826 MAD / |median|, the noise of one repetition; None where it has no meaning.
    Only `converged` means that the interval is as narrow as asked for.
    """

    word: Word
    estimate: Estimate | None
    noise_ratio: float | None
    reason: str

    @property
    def stops(self) -> bool:
        """Returns whether repeating may end."""
        return self.word != "continue"


def due(
    n: int, *, n_min: int = LEAST_N, n_max: int = 100, look_every: int = DEFAULT_INTERVAL_N
) -> bool:
    """Returns whether an analysis is due after n valid repetitions: at n_min, every `look_every`,
    at n_max."""
    first = max(n_min, LEAST_N)
    return n >= n_max or (n >= first and (n - first) % look_every == 0)


def level(confidence: float, n: int) -> float:
    """Returns the confidence of an analysis at n that is to cover so often after all analyses.

    No analysis stops a run before `LEAST_N`, so that fewer repetitions need no allowance.
    """
    return 1 - TAILS * (1 - confidence) if n >= LEAST_N else confidence


def decide(
    values: Numbers,
    *,
    n_min: int = LEAST_N,
    n_max: int = 100,
    relative_half_width: float = 0.02,
    confidence: float = 0.95,
    look_every: int = DEFAULT_INTERVAL_N,
    prior: Array = ASSUMED,
) -> Stop:
    """Decide from the repetitions so far (one value each, in order).

    prior: of their autocorrelation, see `estimates.median`.

    converged: n >= max(n_min, 10) and the median's interval is no wider than
    ±relative_half_width of the median. noise_known: n >= 30, the noise of one repetition
    (1.4826 MAD / median) changed by less than 10 % over the last 3 analyses, and at that noise the
    asked width lies beyond n_max: repeating on would only spend time; the result is reported as
    not converged, with its noise. max_reached: n >= n_max without either. Else continue.
    """
    array = clean(values, least=0)
    n = int(array.size)
    full = n >= n_max
    try:
        estimate = median(array, unit="", confidence=level(confidence, n), prior=prior)
        estimate = replace(estimate, confidence=confidence)
    except Refused as refused:  # no values yet, or half of them timeouts
        return Stop("max_reached" if full else "continue", None, None, str(refused))
    noise = _noise(array)
    half = _half_width(estimate)
    reached = f"±{half:.2%} at n = {n}"
    if n >= max(n_min, LEAST_N) and half <= relative_half_width:
        return Stop("converged", estimate, noise, reached)
    if full:
        return Stop("max_reached", estimate, noise, f"±{half:.2%} at the limit of n = {n}")
    # What independent repetitions would need: an apparent dependence of 30 is often randomness.
    worth = estimate.effective_n or n
    needed = worth * (half / relative_half_width) ** 2 if relative_half_width > 0 else math.inf
    if n >= max(n_min, NOISE_LEAST_N) and needed > n_max and _noise_is_stable(array, look_every):
        noise_text = "" if noise is None else f"{noise:.1%} noise from repetition to repetition, "
        reason = f"{noise_text}{reached}: the width asked for is out of reach by n = {n_max}"
        return Stop("noise_known", estimate, noise, reason)
    return Stop("continue", estimate, noise, reached)


def relative_half_width(values: Numbers, confidence: float) -> float | None:
    """Returns half the interval of the median over the median; None where there is none."""
    try:
        array = clean(values, least=0)
        width = _half_width(median(array, unit="", confidence=level(confidence, array.size)))
    except Refused:
        return None
    return width if math.isfinite(width) else None


def _half_width(estimate: Estimate) -> float:
    """Half the interval relative to the median; infinite without interval or at a median of 0."""
    if estimate.low is None or estimate.high is None:
        return math.inf
    if estimate.high == estimate.low:
        return 0.0  # also at a median of 0, where the ratio has no meaning
    ratio = estimate.half_width_ratio
    return math.inf if ratio is None else ratio


def _spread(array: Array) -> float:
    with np.errstate(invalid="ignore"):
        return float(MAD_TO_SIGMA * middles(np.abs(array - middles(array))))


def _noise(array: Array) -> float | None:
    centre = abs(float(middles(array)))
    spread = _spread(array)
    return spread / centre if centre and math.isfinite(spread) else None


def _noise_is_stable(array: Array, look_every: int) -> bool:
    now = _spread(array)
    if not now or not math.isfinite(now):
        return False
    sizes = (array.size - back * look_every for back in range(1, NOISE_CHECKS + 1))
    return all(abs(_spread(array[:size]) / now - 1) < NOISE_CHANGE for size in sizes)
