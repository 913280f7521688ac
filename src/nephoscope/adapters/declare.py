"""Parameters and metrics that declarations of several tools have in common."""

from __future__ import annotations

from nephoscope.catalog import MetricSpec, ParamSpec
from nephoscope.errors import UsageError
from nephoscope.model import Better, Sample, Shape

SECOND_NS = 1_000_000_000


def whole(name: str, default: int, low: int, high: int, doc: str, unit: str = "count") -> ParamSpec:
    """Returns a parameter that is a whole number."""
    return ParamSpec(name, "int", unit, default, doc, min=low, max=high)


def duration(default_s: int) -> ParamSpec:
    """Returns the parameter of how long a tool runs."""
    return _seconds("duration_ns", default_s, "Time that it runs, in whole seconds.")


def timeout(default_s: int) -> ParamSpec:
    """Returns the parameter of how long a tool waits for a response."""
    doc = "Time after which a response counts as an error, in whole seconds."
    return _seconds("timeout_ns", default_s, doc)


def _seconds(name: str, default_s: int, doc: str) -> ParamSpec:
    return whole(name, default_s * SECOND_NS, SECOND_NS, 86_400 * SECOND_NS, doc, unit="ns")


def seconds(tool: str, name: str, value_ns: int) -> int:
    """Returns a time in seconds; UsageError unless it is a whole number of them."""
    if value_ns % SECOND_NS:
        raise UsageError(
            f"{tool}: {name} must be a whole number of seconds, because {tool} counts them.",
            f"Set {name}={max(1, value_ns // SECOND_NS)}s.",
        )
    return value_ns // SECOND_NS


def rate(name: str, doc: str, *, headline: bool = True, unit: str = "per_s") -> MetricSpec:
    """Returns a metric of which more is better."""
    return MetricSpec(name, unit, Better.HIGHER, Shape.SCALAR, headline, doc)


def time(name: str, doc: str, *, headline: bool = False) -> MetricSpec:
    """Returns a metric in nanoseconds of which less is better."""
    return MetricSpec(name, "ns", Better.LOWER, Shape.SCALAR, headline, doc)


def errors(doc: str) -> MetricSpec:
    """Returns the metric of how many operations failed."""
    return MetricSpec("errors_count", "count", Better.LOWER, Shape.SCALAR, False, doc)


def scalars(values: dict[str, float]) -> list[Sample]:
    """Returns a sample for each value, but none for a time of 0: that is below the resolution."""
    return [
        Sample(name, value) for name, value in values.items() if value or not name.endswith("_ns")
    ]
