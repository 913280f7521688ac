"""Smallest difference that an interleaved comparison decides, predicted from rounds without any.

Both sides of the rounds are alike (A/A). Comparisons of n rounds are drawn from them, and each is
judged by the code that judges measured ones (`compare.paired`), so that prediction and comparison
cannot drift apart. A true difference moves the interval by as much, on the scale of logarithms: it
is decided if it exceeds the distance from no change to the interval's far end.

Blocks of consecutive rounds are drawn, since noise of one round may depend on that before; which
side is A is drawn for each block, since both are alike. Source: Kuensch, Annals of Statistics
17(3), 1989 (moving blocks).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.core.model import Better, Estimate
from nephoscope.stats import compare
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array, Numbers, Refused, clean, percent

LEAST_ROUNDS = 8
"""Four blocks of two: fewer cannot show how much blocks differ."""
BLOCKS = 4
LONGEST_BLOCK = 10
"""Longer blocks show more of the dependence, and fewer of them less of the spread."""
POWER = 0.8
RESAMPLES = 40
SCALE_RESAMPLES = 400
MOST_REPETITIONS = 1000
SIZES = (6, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class DetectableDifference:
    """What a comparison of n repetitions a side shows.

    difference: the smallest ratio less 1 that is decided with the power of the prediction.
    half_width: median half width of the interval of the ratio where nothing differs. Both None
    where too many comparisons of that size have no interval.
    """

    n: int
    difference: Estimate | None
    half_width: Estimate | None


@dataclass(frozen=True, slots=True)
class NeededRepetitions:
    """Repetitions a side that decide a difference; None for more than `MOST_REPETITIONS`."""

    n: int | None
    low: int | None
    high: int | None


def detectable(
    a: Numbers,
    b: Numbers,
    sizes: Sequence[int] = SIZES,
    *,
    confidence: float = 0.95,
    power: float = POWER,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[DetectableDifference, ...]:
    """Returns the smallest decidable difference by number of repetitions, smallest number first.

    a, b: values of two sides that are alike, by round, in order of execution. confidence: of the
    comparison, and of the intervals of the prediction. power: share of comparisons that decide such
    a difference. Raises Refused for fewer than `LEAST_ROUNDS` rounds, values that allow no ratio
    and sides that never differ.
    """
    values_a, values_b = clean(a), clean(b)
    if values_a.size < LEAST_ROUNDS:
        raise Refused(
            f"{values_a.size} rounds do not show the noise; measure at least {LEAST_ROUNDS}."
        )
    shifts = compare.round_shifts(values_a, values_b)
    if not np.all(np.isfinite(shifts)) or min(values_a.min(), values_b.min()) <= 0:
        raise Refused("a value is zero, negative or missing, so that changes have no ratio.")
    if not np.any(shifts):
        raise Refused("the repetitions never differ: the timer or counter may be too coarse.")
    rng = np.random.default_rng(seed)
    block = min(LONGEST_BLOCK, values_a.size // BLOCKS)
    sides = np.stack([values_a, values_b])
    samples = [_drawn(sides, max(sizes), block, rng) for _ in range(resamples)]
    error = _error_of_scale(shifts, block, confidence, rng)
    rows: list[DetectableDifference] = []
    for n in sorted(set(sizes)):
        row = _detectable(samples, n, confidence, power, error, int(values_a.size))
        rows.append(_not_above(rows[-1], row) if rows else row)
    return tuple(rows)


def repetitions_for(
    rows: Sequence[DetectableDifference], difference: float
) -> NeededRepetitions | None:
    """Returns how many repetitions a side decide a difference (a ratio); None without any figure.

    Interpolated between the sizes, and beyond them by the square root of n. No number is below the
    smallest size with a figure.
    """
    known = [
        (row.n, row.difference.value, row.difference.low, row.difference.high)
        for row in rows
        if row.difference is not None
    ]
    if not known:
        return None
    sizes, *curves = (np.array(column, dtype=float) for column in zip(*known, strict=True))
    value, low, high = (_crossing(sizes, curve, difference) for curve in curves)
    return NeededRepetitions(value, low, high)


def _drawn(sides: Array, n: int, block: int, rng: np.random.Generator) -> Array:
    """Returns the sides of n rounds, of blocks that are drawn, in each of which A may be B."""
    blocks = -(-n // block)
    starts, swapped = rng.integers(0, sides.shape[1], blocks), rng.integers(0, 2, blocks)
    rounds = (starts[:, None] + np.arange(block)).ravel()[:n] % sides.shape[1]
    first = np.repeat(swapped, block)[:n]
    return np.stack([sides[first, rounds], sides[1 - first, rounds]])


def _detectable(
    samples: Sequence[Array], n: int, confidence: float, power: float, error: float, rounds: int
) -> DetectableDifference:
    far_ends: list[float] = []
    half_widths: list[float] = []
    for a, b in samples:
        ratio = compare.paired(a[:n], b[:n], better=Better.LOWER, confidence=confidence).ratio
        low, high = -math.inf, math.inf
        if ratio is not None and ratio.low and ratio.high is not None:
            low, high = math.log(ratio.low), math.log(ratio.high)
        # Both ends count: which side is called A is of no account.
        far_ends += [high, -low]
        half_widths.append((high - low) / 2)

    def estimate(
        ends: Sequence[float], share: float, to_ratio: Callable[[float], float], method: str
    ) -> Estimate | None:
        """The quantile is one of the values: infinite ones cannot be interpolated."""
        value = float(np.quantile(ends, share, method="higher"))
        if not math.isfinite(value):
            return None
        low, middle, high = (to_ratio(value * math.exp(side * error)) for side in (-1, 0, 1))
        words = f"{method}, {len(samples)} resamples of blocks of rounds"
        return Estimate(middle, low, high, confidence, rounds, "ratio", words)

    return DetectableDifference(
        n,
        estimate(
            far_ends, power, math.expm1, f"difference decided in {percent(power)} of comparisons"
        ),
        estimate(
            half_widths, 0.5, math.sinh, "median half width of the interval without a difference"
        ),
    )


def _not_above(smaller: DetectableDifference, row: DetectableDifference) -> DetectableDifference:
    """Returns a row of more repetitions, which never decide less: its draws alone may say so."""

    def least(before: Estimate | None, now: Estimate | None) -> Estimate | None:
        return before if before and now and before.value < now.value else now

    return DetectableDifference(
        row.n,
        least(smaller.difference, row.difference),
        least(smaller.half_width, row.half_width),
    )


def _error_of_scale(
    shifts: Array, block: int, confidence: float, rng: np.random.Generator
) -> float:
    """Returns half the interval of the logarithm of the noise's scale, the mean absolute shift.

    By blocks that are drawn; Student's t, since there are few of them.
    """
    blocks = shifts.size // block
    starts = rng.integers(0, shifts.size, (SCALE_RESAMPLES, blocks, 1))
    drawn = np.abs(shifts)[(starts + np.arange(block)) % shifts.size]
    scales = np.log(np.maximum(drawn.mean(axis=(1, 2)), np.finfo(float).tiny))
    inside = blocks / (blocks - 1)  # drawn blocks vary less than those of the machine
    return float(t_quantile(blocks - 1, confidence) * np.std(scales) * math.sqrt(inside))


def _crossing(sizes: Array, differences: Array, wanted: float) -> int | None:
    """Returns the smallest n at which a falling curve is no higher than the wanted difference."""
    if differences[0] <= wanted:
        return int(sizes[0])
    if differences[-1] > wanted:
        n = sizes[-1] * (differences[-1] / wanted) ** 2
    else:
        # Interpolation takes rising abscissae; the curve falls.
        logs = np.log(differences)[::-1]
        n = math.exp(np.interp(math.log(wanted), logs, np.log(sizes)[::-1]))
    needed = math.ceil(n - 1e-9)
    return needed if needed <= MOST_REPETITIONS else None
