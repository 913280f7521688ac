"""The only place that turns numbers with units into text, and text into numbers with units."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from nephoscope.core.errors import UsageError

_TIMES: Sequence[tuple[float, str]] = (
    (1, "ns"),
    (1e3, "us µs μs usec"),
    (1e6, "ms msec"),
    (1e9, "s sec secs second seconds"),
    (60e9, "min m mins minute minutes"),
    (3600e9, "h hr hrs hour hours"),
    (86_400e9, "d day days"),
    (7 * 86_400e9, "w week weeks"),
    (365 * 86_400e9, "y year years"),
)
_TIME_NS: Mapping[str, float] = {name: ns for ns, names in _TIMES for name in names.split()}
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
_PREFIXES: Mapping[str, float] = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_QUANTITY = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([^\s0-9]*)\s*")
_QUANTITIES_IN_ROW = re.compile(rf"(?:{_QUANTITY.pattern})+")
_BIT_RATE = re.compile(r"([kmgt]?)(?:bits?(?:/s|/sec|ps)?|b(?:/s|/sec|ps)?)", re.IGNORECASE)
"""Also without `per second`, as `tc` writes it."""
_BYTE_RATE = re.compile(r"((?:[kKmMgGtT]i?)?)(?:B|[bB]ytes?)(?:/s|/sec|ps)")
"""With a capital B: Mb/s are megabits, MB/s megabytes."""

NEEDS_UNIT = "needs a unit"
"""Words of the refusal of a number without one."""

_LARGEST = 1e30
"""Larger numbers are mistakes; times every factor above, this one is still finite."""


def _split(text: str | int | float) -> tuple[float, str] | None:
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        return None
    number = float(match[1].replace("_", ""))
    return (number, match[2]) if number <= _LARGEST else None


def _with_unit(
    text: str | int | float, bare: str, likely: Sequence[str]
) -> tuple[float, str] | None:
    """Number and unit of a text; None for what is neither.

    bare: unit of a number without one; empty refuses such a number, but for 0, with a UsageError
    that proposes `likely`.
    """
    parts = _split(text)
    if parts is None or parts[1]:
        return parts
    if parts[0] and not bare:
        raw = str(text).strip()
        *most, last = (f"{raw}{unit}" for unit in likely)
        raise UsageError(f"'{raw}' {NEEDS_UNIT}: {', '.join(most)} or {last}.")
    return parts[0], bare or likely[0]


def parse_duration_ns(
    text: str | int | float, *, bare: str = "", likely: Sequence[str] = ("ms", "s", "min")
) -> int:
    """Nanoseconds of '60s', '1.5 ms', '2 min', '1h30m', '5 minutes'.

    bare: unit of a number without one; empty refuses it and proposes the `likely` units. Raises
    UsageError on anything else, on negative and on infinite values.
    """
    whole = _with_unit(text, bare, likely)
    pieces = [whole] if whole else _in_row(str(text))
    factors = [_TIME_NS.get(unit) or _TIME_NS.get(unit.lower()) or 0 for _, unit in pieces]
    descending = all(a > b for a, b in itertools.pairwise(factors))
    if not factors or not all(factors) or not descending:
        raise UsageError(
            f"'{text}' is no duration.", "Write a number and a unit: 500ms, 60s, 5min, 1h30m."
        )
    pairs = zip(pieces, factors, strict=True)
    return round(sum(number * factor for (number, _), factor in pairs))


def _in_row(text: str) -> list[tuple[float, str]]:
    """Numbers and units that follow one another, such as 1h30m; empty where the text is no row."""
    if not _QUANTITIES_IN_ROW.fullmatch(text):
        return []
    parts = [_split(match[0]) for match in _QUANTITY.finditer(text)]
    return [part for part in parts if part] if all(parts) else []


def parse_bytes(text: str | int | float, *, bare: str = "") -> int:
    """Bytes of '64KiB', '64k' (1024), '64KB' (1000), '1.5 GiB'. bare: as of a duration."""
    parts = _with_unit(text, bare, ("MiB", "KiB", "B"))
    factor = _BYTES.get(parts[1].lower()) if parts else None
    if parts is None or factor is None:
        raise UsageError(
            f"'{text}' is no size.",
            "Write a number and a unit: 4KiB, 64MiB (1024s) or 1MB (1000s).",
        )
    return round(parts[0] * factor)


def parse_bits_per_s(text: str | int | float) -> float:
    """Bits a second of '47Mbit/s', '941Mbps', '1gbit', '1Gb/s' (prefixes are 1000s), '100MB/s'.

    A small b is a bit and a capital B a byte. Raises UsageError for a number without a unit.
    """
    parts = _with_unit(text, "", ("Mbit/s", "Gbit/s", "kbit/s"))
    rate = _rate_bits_per_s(*parts) if parts else None
    if rate is None:
        raise UsageError(
            f"'{text}' is no line rate.",
            "Write a number and a unit: 47Mbit/s, 1Gbit/s, or 100MB/s in bytes.",
        )
    return rate


def _rate_bits_per_s(number: float, unit: str) -> float | None:
    if match := _BYTE_RATE.fullmatch(unit):
        return 8 * number * _BYTES[f"{match[1]}b".lower()]
    match = _BIT_RATE.fullmatch(unit)
    # 1GB is a size, not a rate.
    if match is None or unit[-1] == "B":
        return None
    return number * _PREFIXES[match[1].lower()]


def parse_bytes_per_s(text: str | int | float) -> float:
    """Bytes a second of '20MiB/s', '10MB/s', '80Mbit/s'; UsageError without a unit."""
    parts = _with_unit(text, "", ("MB/s", "kB/s", "GB/s"))
    factor = _BYTES.get(parts[1].lower().removesuffix("/s")) if parts else None
    if parts and factor is not None:
        return parts[0] * factor
    rate = _rate_bits_per_s(*parts) if parts else None
    if rate is None:
        raise UsageError(
            f"'{text}' is no disk rate.", "Write a number and a unit: 20MiB/s, 10MB/s."
        )
    return rate / 8


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
    "tokens_per_s": ((1, "tokens/s"),),
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
