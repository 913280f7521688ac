"""Names in results: percentiles inside metric names, labels for sentences, seeds from names."""

from __future__ import annotations

import hashlib

from nephoscope.model import BESIDE as BESIDE
from nephoscope.model import Factors, level_name

NOT_CONVERGED = "Not converged"
"""How the warning of a line begins whose interval stayed wider than wanted."""

PARTS = frozenset({"hour", "user_base", "part"})
"""Factors of a simulation's finer parts, whose lines are no headlines."""


def percentile_metric(metric: str, unit: str, quantile: float) -> str:
    """`latency_ns` and 0.99 make `latency_p99_ns`; 0.999 is p999, as histograms name it."""
    digits = f"{quantile:.6f}".split(".")[1].rstrip("0")
    mark = f"p{digits:0<2}"
    suffix = f"_{unit}"
    if metric.endswith(suffix):
        return f"{metric[: -len(suffix)]}_{mark}{suffix}"
    return f"{metric}_{mark}"


def label(benchmark: str, metric: str, factors: Factors) -> str:
    """A line's name in a sentence: `disk.io latency_p99_ns (depth=32, op=read)`."""
    levels = ", ".join(f"{name}={level_name(factors[name])}" for name in sorted(factors))
    line = metric if benchmark == metric else f"{benchmark} {metric}"  # of files without benchmarks
    return f"{line} ({levels})" if levels else line


def seed_of(*parts: str) -> int:
    """A seed that depends on names only, so that the same store gives the same digits."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big")
