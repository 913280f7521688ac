"""The only place that turns numbers with units into text, and text into numbers with units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from nephoscope.errors import UsageError

_TIME_NS: Mapping[str, float] = {
    "ns": 1,
    "us": 1e3,
    "µs": 1e3,
    "μs": 1e3,
    "ms": 1e6,
    "s": 1e9,
    "min": 60e9,
    "m": 60e9,
    "h": 3600e9,
    "d": 86_400e9,
    "w": 7 * 86_400e9,
    "y": 365 * 86_400e9,
}
_BYTES: Mapping[str, float] = {
    "b": 1,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "k": 1024,
    "m": 1024**2,
    "g": 1024**3,
    "t": 1024**4,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "tib": 1024**4,
}
_BITS_PER_S: Mapping[str, float] = {"bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9}
_QUANTITY = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9]*)\s*")

_LARGEST = 1e30
"""Larger numbers are mistakes; times every factor above, this one is still finite."""


def _split(text: str | int | float) -> tuple[float, str] | None:
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        return None
    number = float(match[1].replace("_", ""))
    return (number, match[2]) if number <= _LARGEST else None


def parse_duration_ns(text: str | int | float, *, bare: str = "s") -> int:
    """Nanoseconds of '60s', '1.5 ms', '2 min', '100us'; a bare number is in `bare` units.

    Raises UsageError on anything else, on negative and on infinite values.
    """
    parts = _split(text)
    unit = (parts[1] or bare) if parts else ""
    factor = _TIME_NS.get(unit) or _TIME_NS.get(unit.lower())
    if parts is None or factor is None:
        raise UsageError(
            f"'{text}' is no duration.", "Write a number and a unit: 500ms, 60s, 5min, 1h."
        )
    return round(parts[0] * factor)


def parse_bytes(text: str | int | float) -> int:
    """Bytes of '64KiB', '64k' (1024), '64KB' (1000), '1.5 GiB'; a bare number is bytes."""
    parts = _split(text)
    factor = _BYTES.get((parts[1] or "b").lower()) if parts else None
    if parts is None or factor is None:
        raise UsageError(
            f"'{text}' is no size.",
            "Write a number and a unit: 4KiB, 64MiB (1024s) or 1MB (1000s).",
        )
    return round(parts[0] * factor)


def parse_bits_per_s(text: str | int | float) -> float:
    """Bits a second of '47Mbit/s', '1.5 Gbit/s' (prefixes are 1000s); a bare number is bit/s."""
    parts = _split(text)
    factor = _BITS_PER_S.get((parts[1] or "bit/s").lower()) if parts else None
    if parts is None or factor is None:
        raise UsageError(
            f"'{text}' is no line rate.", "Write a number and a unit: 47Mbit/s, 1Gbit/s."
        )
    return parts[0] * factor


def parse_bytes_per_s(text: str | int | float) -> float:
    """Bytes a second of '20MiB/s', '10MB/s'; a bare number is bytes a second."""
    raw = str(text).strip()
    try:
        return float(parse_bytes(raw.removesuffix("/s")))
    except UsageError:
        raise UsageError(
            f"'{text}' is no disk rate.", "Write a number and a unit: 20MiB/s, 10MB/s."
        ) from None


def parse_ratio(text: str | int | float) -> float:
    """A ratio of '3%' or '0.03'. Raises UsageError outside 0 … 1."""
    raw = str(text).strip()
    percent = raw.endswith("%")
    try:
        value = float(raw.rstrip("% ")) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        meant = not percent and 1 < value <= 100
        hint = f"Write {raw}% or {value / 100:g}." if meant else "Write 3% or 0.03."
        raise UsageError(f"'{text}' is no ratio.", hint)
    return value


_WRITTEN: Mapping[str, Sequence[tuple[float, str]]] = {
    "ns": [(_TIME_NS[name], name) for name in ("h", "min", "s", "ms", "us", "ns")],
    "bytes": [(1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B")],
}


def written(value: float, unit: str) -> str:
    """Returns a value as a user would write it, without loss: 10000000 ns is '10ms'."""
    for scale, name in _WRITTEN.get(unit, ()):
        if value >= scale and float(f"{value / scale:.4g}") * scale == value:
            return f"{value / scale:.4g}{name}"
    return f"{value:.12g}"


SCALES: Mapping[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "bytes": ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"), (1, "B")),
    "bytes_per_s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")),
    "bits_per_s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
    "per_s": ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1, "/s")),
    "ratio": ((0.01, "%"),),
    "cpus": ((1, "CPUs"),),
    "count": ((1, ""),),
    "none": ((1, ""),),
}
"""Unit -> divisors and labels in which people read it, the largest first."""


def scale_of(unit: str, value: float) -> tuple[float, str]:
    """Divisor and label in which a person reads a value of this size: (1e6, 'ms') for 2.5e6 ns."""
    scales = SCALES.get(unit, ((1, unit),))
    for divisor, label in scales:
        if abs(value) >= divisor:
            return divisor, label
    return scales[-1]


_QUANTITIES: Mapping[str, str] = {
    "ns": "times",
    "bytes": "sizes",
    "bytes_per_s": "bytes a second",
    "bits_per_s": "line rates",
    "per_s": "rates",
    "ratio": "ratios",
    "cpus": "CPUs",
    "count": "counts",
}


def quantity_of(unit: str) -> str:
    """Returns what a unit counts, as a title says it: 'times', 'rates'; the unit itself if
    unknown."""
    return _QUANTITIES.get(unit, "values" if unit == "none" else unit)


def format_number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, one at the least.

    Without an exponent between 1e-4 and 1e7.
    """
    digits = max(1, digits)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def format_value(value: float, unit: str, digits: int = 3) -> str:
    """A value with its unit, as a person reads it: '2.50 ms', '11.2 GB/s', '75.1 %'."""
    divisor, label = scale_of(unit, value)
    return f"{format_number(value / divisor, digits)} {label}".strip()


def format_interval(
    value: float, low: float | None, high: float | None, unit: str, digits: int = 3
) -> str:
    """Value and interval in one unit: '2.50 ms [2.41, 2.62]'; a side that does not exist is '?'."""
    divisor, label = scale_of(unit, value)
    low_text = "?" if low is None else format_number(low / divisor, digits)
    high_text = "?" if high is None else format_number(high / divisor, digits)
    head = f"{format_number(value / divisor, digits)} {label}".strip()
    return f"{head} [{low_text}, {high_text}]"


def interval_digits(value: float, low: float | None, high: float | None) -> int:
    """Significant digits, 3 to 6, in which an interval's width can be seen beside its value."""
    if low is None or high is None or value == 0 or high <= low:
        return 3
    half_width_ratio = (high - low) / 2 / abs(value)
    return min(6, max(3, math.ceil(-math.log10(half_width_ratio) - 1e-9) + 1))


def format_duration(seconds: float) -> str:
    """A waiting time for people: '45 s', '3 min 20 s', '2 h 5 min'."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
