"""What every analysis asks of its numbers before it looks at them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.errors import NephoscopeError

Array = NDArray[np.float64]
Numbers = Sequence[float] | Array
"""One value a repetition, in order of execution, shape (repetitions,)."""

EQUAL_NOTE = (
    "All {n} values are equal: the interval has no width, and the timer or counter may be too "
    "coarse to show the variation."
)

_COUNTED = frozenset({"count", "cpus", "bytes"})
"""Units of whole things, which no timer and no counter rounds."""

EVERY_REPLICATION = "every replication gives this value"
"""What equal values of a simulation mean."""


def equal_note(n: int, value: float, unit: str) -> str:
    """Returns the note on n equal values: of a whole number of things, no timer is too coarse."""
    note = EQUAL_NOTE.format(n=n)
    is_exact = unit in _COUNTED and value == round(value)
    return f"{note.partition(',')[0]}." if is_exact else note


class Refused(NephoscopeError):
    """A statistic that may not be given; the text says why, and what it would take."""


def known_confidence(confidence: float) -> float:
    """Returns a confidence between 0 and 1. Raises Refused for anything else."""
    if isinstance(confidence, int | float) and 0 < confidence < 1:
        return float(confidence)
    raise Refused(f"A confidence of {confidence!r} has no meaning; give a share such as 0.95.")


def clean(values: Numbers, *, least: int = 1) -> Array:
    """The numbers as a float array of shape (n,); +inf stands for a timeout (censored).

    Raises Refused for fewer than `least` values, not-a-number, minus infinity, or another shape.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise Refused(
            "The values are not one series of numbers; give one number a trial."
        ) from error
    if array.ndim != 1:
        raise Refused(f"Values of shape {array.shape} are not one series; give one value a trial.")
    if array.size < least:
        raise Refused(f"{array.size} values are too few; this statistic needs {least}.")
    wrong = int(np.isnan(array).sum() + np.isneginf(array).sum())
    if wrong:
        raise Refused(
            f"{wrong} of {array.size} values are not a number; missing is not zero, so leave such "
            "trials out and say why they are missing."
        )
    return array


def finite(values: Numbers, *, least: int = 1, statistic: str = "mean") -> Array:
    """As `clean`, and refuses timeouts (+inf): no moment of a censored sample is known."""
    array = clean(values, least=least)
    censored = int(np.isinf(array).sum())
    if censored:
        raise Refused(
            f"{censored} of {array.size} values are timeouts (infinite), of which a {statistic} "
            "has no meaning; use the median or a percentile."
        )
    return array


def runs_of(flags: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and ends (exclusive) of the runs of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return edges[::2], edges[1::2]


def all_equal(array: Array) -> bool:
    """Returns whether there is no variation at all (one value alone says nothing of that)."""
    return array.size > 1 and bool(np.all(array == array[0]))


def percent(ratio: float, digits: int = 3) -> str:
    """A ratio as a person reads it: 0.95 is '95 %', 0.0236 is '2.36 %'."""
    return f"{100 * ratio:.{digits}g} %"


def middles(rows: Array) -> Array:
    """Returns the medians along the last axis of floats, NaN where there is one.

    As `np.median` to the last bit; that function imports `numpy.ma` at its first call, which takes
    longer than the medians of a short run.
    """
    n = rows.shape[-1]
    low, high = (n - 1) // 2, n // 2
    ordered = np.partition(rows, sorted({low, high, n - 1}), axis=-1)
    middle = ordered[..., low]
    if high != low:
        middle = (middle + ordered[..., high]) / 2
    return np.asarray(np.where(np.isnan(ordered[..., -1]), np.nan, middle))
