"""Smallest difference that an interleaved comparison decides, predicted from rounds without any.

Both sides of the rounds are alike (A/A). Comparisons of n rounds are drawn from them, each with the
interval that a measured one would have (`compare.ratio_interval`), so that prediction and
comparison cannot drift apart. A true difference moves the interval by as much, on the scale of
logarithms: it is decided if it exceeds the distance from no change to the interval's far end.

Blocks of consecutive rounds are drawn, since noise of one round may depend on that before; which
side is A is drawn for each block, since both are alike. Source: Kuensch, Annals of Statistics
17(3), 1989 (moving blocks).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats import compare
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array, Numbers, Refused, clean, percent

LEAST_ROUNDS = 8
"""Fewer cannot show how much the noise itself varies."""
BLOCKS = 4
LONGEST_BLOCK = 10
"""Longer blocks show more of the dependence, and fewer of them less of the spread."""
POWER = 0.8
RESAMPLES = 40
GROUPS = 8
TYPICAL_N = 20
"""Groups of rounds that are left out in turn, and the comparison of which that shows the error."""
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
    and sides that hardly ever differ.
    """
    values_a, values_b = clean(a), clean(b)
    if values_a.size < LEAST_ROUNDS:
        raise Refused(
            f"{values_a.size} rounds do not show the noise; measure at least {LEAST_ROUNDS}."
        )
    sides = np.stack([values_a, values_b])
    if not np.all((sides > 0) & np.isfinite(sides)):
        raise Refused("A value is zero, negative or missing, so that changes have no ratio.")
    block = min(LONGEST_BLOCK, values_a.size // BLOCKS)
    draws = [_Draw.of(rng, max(sizes)) for rng in np.random.default_rng(seed).spawn(resamples)]
    samples = [draw.rounds(sides, block) for draw in draws]
    error = _error(sides, draws, block, confidence)
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


@dataclass(frozen=True, slots=True)
class _Draw:
    """Random numbers of one comparison: where blocks begin, and which of them exchange the sides.

    The starts are parts of the measured time, so that the same draw of a part of the rounds differs
    by these alone.
    """

    starts: Array
    exchanged: npt.NDArray[np.bool_]
    n: int

    @classmethod
    def of(cls, rng: np.random.Generator, n: int) -> _Draw:
        """Returns the draw of up to n rounds."""
        return cls(rng.random(n), rng.random(n) < 0.5, n)

    def rounds(self, sides: Array, block: int) -> Array:
        """Returns both sides of the rounds that are drawn."""
        measured = sides.shape[1]
        starts = (self.starts * measured).astype(int)
        places = (starts[:, None] + np.arange(block)).ravel()[: self.n] % measured
        first = np.repeat(self.exchanged, block)[: self.n].astype(int)
        return np.stack([sides[first, places], sides[1 - first, places]])


def _interval(sides: Array, confidence: float) -> tuple[float, float]:
    """Returns the interval of a comparison on the scale of logarithms; infinite without one."""
    _, band = compare.ratio_interval(*sides, paired=True, confidence=confidence)
    return math.log(band.low) if band.low > 0 else -math.inf, math.log(band.high)


def _detectable(
    samples: Sequence[Array], n: int, confidence: float, power: float, error: float, rounds: int
) -> DetectableDifference:
    intervals = [_interval(sides[:, :n], confidence) for sides in samples]
    # Both ends count: which side is called A is of no account.
    far_ends = [end for low, high in intervals for end in (high, -low)]
    half_widths = [(high - low) / 2 for low, high in intervals]

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


def _error(sides: Array, draws: Sequence[_Draw], block: int, confidence: float) -> float:
    """Returns half the interval of the logarithm of a half width, by a jackknife of the rounds.

    Groups of consecutive rounds are left out in turn. Of few rounds the groups are single ones.
    """
    groups = np.array_split(np.arange(sides.shape[1]), GROUPS)
    logs = []
    for group in groups:
        rest = np.delete(sides, group, axis=1)
        intervals = [
            _interval(draw.rounds(rest, block)[:, :TYPICAL_N], confidence) for draw in draws
        ]
        half_width = float(np.median([(high - low) / 2 for low, high in intervals]))
        if half_width == 0:
            raise Refused("Most repetitions do not differ: the timer or counter may be too coarse.")
        logs.append(math.log(half_width))
    deviations = np.array(logs) - np.mean(logs)
    variance = (GROUPS - 1) / GROUPS * float(np.sum(deviations**2))
    return t_quantile(GROUPS - 1, confidence) * math.sqrt(variance)


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
