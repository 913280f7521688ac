"""Names in results: percentiles inside metric names, and seeds from names."""

from __future__ import annotations

import hashlib
import re

from nephoscope.core.model import AUXILIARY_FACTORS as AUXILIARY_FACTORS
from nephoscope.core.model import MetricResult
from nephoscope.stats.statistics import dependence

NOT_CONVERGED = "Not converged"
"""How the warning of a line begins whose interval stayed wider than wanted."""

_ROUTINE = (NOT_CONVERGED, dependence.DEPENDENT, "n = ")
"""How sentences begin that the interval beside the value says already, by its width or absence."""

UNANSWERED = {"latency_ns": "unanswered_ns"}
"""Histogram of all requests -> histogram of those among them that had no answer, whose values are
lower bounds. The latter has no statistics of its own."""

PARTS = frozenset({"hour", "user_base", "part"})
"""Factors of a simulation's finer parts, whose lines are no headlines."""


def doubts(metric: MetricResult) -> list[str]:
    """Returns the sentences on why a reader must doubt a line's value or its interval.

    A wide interval or none is no such reason, because it says so itself.
    """
    texts = (*metric.warnings, metric.estimate.note)
    sentences = (sentence for text in texts for sentence in re.split(r"(?<=\.) (?=[A-Z])", text))
    return [
        sentence
        for sentence in dict.fromkeys(sentences)
        if sentence and not sentence.startswith(_ROUTINE)
    ]


def percentile_metric(metric: str, unit: str, quantile: float) -> str:
    """`latency_ns` and 0.99 make `latency_p99_ns`; 0.999 is p999, as histograms name it."""
    digits = f"{quantile:.6f}".split(".")[1].rstrip("0")
    mark = f"p{digits:0<2}"
    suffix = f"_{unit}"
    if metric.endswith(suffix):
        return f"{metric[: -len(suffix)]}_{mark}{suffix}"
    return f"{metric}_{mark}"


def seed_of(*parts: str) -> int:
    """A seed that depends on names only, so that the same store gives the same digits."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return int.from_bytes(digest[:4], "big")
