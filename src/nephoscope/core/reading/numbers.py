"""One reader of the numbers in files: finite, in the range of their quantity, or named.

Analyses square values, divide by them and take logarithms, which has to stay finite as well.
"""

from __future__ import annotations

import math
import re
from typing import Any

from nephoscope.core.records import dataclass

LARGEST, SMALLEST = 1e60, 1e-60
"""Magnitudes of a number, unless its quantity has a smaller range: fourth powers stay finite."""

_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Python's own reader also takes `1_000`, `nan` and the digits of other scripts."""


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers of a quantity: from `low` to `high`, or above `low`; whole or any."""

    low: float = -LARGEST
    high: float = LARGEST
    above: bool = False
    whole: bool = False

    def read(self, value: Any) -> float:
        """Returns a number of the range, of a text or of a JSON value.

        Raises ValueError with what the value is instead, as in '<value> is not a number'.
        """
        number = self._parsed(value)
        if number > self.high:
            raise ValueError(f"is too large (at most {self.high:g})")
        if number < self.low or (self.above and number == self.low):
            which = "not above" if self.above else "below"
            raise ValueError(f"is {which} {self.low:g}")
        if 0 < abs(number) < SMALLEST:
            raise ValueError(f"is too near to 0 (0, or at least {SMALLEST:g})")
        if self.whole and number != int(number):
            raise ValueError("is not a whole number")
        return number

    @staticmethod
    def _parsed(value: Any) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not (isinstance(value, str) and _TEXT.fullmatch(value.strip())):
            raise ValueError("is not a number")
        try:
            number = float(value)
        except OverflowError:
            return math.inf
        if math.isnan(number):
            raise ValueError("is not a number")
        return number


ANY = NumberRange()
POSITIVE = NumberRange(0, above=True)
FROM_ZERO = NumberRange(0)
COUNT = NumberRange(0, 2**53, whole=True)
DURATION_S = NumberRange(0, 30 * 86_400)
"""Seconds of a delay or an interval: at most 30 days."""
MOMENT_S = NumberRange(0, 253_402_300_800)
"""Seconds since any beginning; no calendar of the standard library goes past the year 9999."""
