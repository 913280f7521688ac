"""Units of other tools into ours, and the good direction by unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nephoscope.core.model import Better


class Unit(NamedTuple):
    """One of our units, the factor into it, and which direction is good; share: see MetricSpec."""

    unit: str
    factor: float
    better: Better
    share: bool = False


def _rates() -> dict[str, Unit]:
    rates = {}
    for prefix, factor in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12)):
        binary = 1024.0 ** " kmgt".index(prefix or " ")
        for second in ("/s", "/sec", "ps", "/second"):
            # Case tells bits from bytes (Mb/s, MB/s), so these keys keep theirs.
            for big in {prefix, prefix.upper()}:
                rates[f"{big}B{second}"] = Unit("bytes_per_s", factor, Better.HIGHER)
                rates[f"{big}b{second}"] = Unit("bits_per_s", factor, Better.HIGHER)
                rates[f"{big}bit{second}"] = Unit("bits_per_s", factor, Better.HIGHER)
                rates[f"{big}bits{second}"] = Unit("bits_per_s", factor, Better.HIGHER)
                rates[f"{big}bytes{second}"] = Unit("bytes_per_s", factor, Better.HIGHER)
                if prefix:
                    rates[f"{big}iB{second}"] = Unit("bytes_per_s", binary, Better.HIGHER)
    return rates


def _plain() -> dict[str, Unit]:
    times = {
        1.0: "ns nanosecond nanoseconds",
        1e3: "us µs usec microsecond microseconds",
        1e6: "ms msec millisecond milliseconds",
        1e9: "s sec second seconds",
        60e9: "min minute minutes",
        3600e9: "h hour hours",
    }
    sizes = {
        1.0: "b byte bytes",
        1e3: "kb kilobytes",
        1e6: "mb megabytes",
        1e9: "gb gigabytes",
        1024.0: "kib",
        1024.0**2: "mib",
        1024.0**3: "gib",
    }
    per_s = "/s /sec per_s hz iops ops/s ops/sec ops_per_sec requests/s requests/sec rps qps tps"
    per_s += " transactions/sec queries/sec operations/sec reqs/sec packets/sec"
    plain = {
        name: Unit("ns", k, Better.LOWER) for k, names in times.items() for name in names.split()
    }
    for factor, names in sizes.items():
        plain |= {name: Unit("bytes", factor, Better.NONE) for name in names.split()}
    plain |= {name: Unit("per_s", 1.0, Better.HIGHER) for name in per_s.split()}
    plain |= {name: Unit("ratio", 0.01, Better.NONE) for name in ("%", "percent", "pct")}
    plain |= {name: Unit("ratio", 1.0, Better.NONE) for name in ("ratio", "fraction")}
    plain |= {name: Unit("count", 1.0, Better.NONE) for name in ("count", "counts")}
    return plain


_RATES: Mapping[str, Unit] = _rates()
_PLAIN: Mapping[str, Unit] = _plain()


def unit_of(text: str) -> Unit:
    """Our unit for a foreign one; a unit that is not known is kept as it stands.

    The direction follows from the unit alone: times are better lower; rates (anything a second)
    are better higher; nothing is claimed of others.
    """
    name = text.strip()
    known = _RATES.get(name) or _PLAIN.get(name.lower())
    if known is not None:
        return known
    lower = name.lower()
    # Such as 'Mops' or 'Kpps': millions or thousands of something a second, kept as they stand.
    rate = lower.endswith(("/s", "/sec", "/second", "ps", "per_second", "_per_s"))
    return Unit(name or "none", 1.0, Better.HIGHER if rate else Better.NONE)
