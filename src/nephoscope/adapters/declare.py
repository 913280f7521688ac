"""What declarations of several tools have in common: parameters, metrics, readers of reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from nephoscope.adapters.frame import (
    TOOL,
    Adapter,
    Command,
    Output,
    Server,
    ToolError,
    check_ending,
    last_words,
    numbers,
    version_by,
)
from nephoscope.catalog import ADAPTER, BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.errors import UsageError
from nephoscope.model import Better, Sample, Shape
from nephoscope.reading import jsontext

SECOND_NS = 1_000_000_000


def whole(name: str, default: int, low: int, high: int, doc: str, unit: str = "count") -> ParamSpec:
    """Returns a parameter that is a whole number."""
    return ParamSpec(name, "int", unit, default, doc, min=low, max=high)


def choice(name: str, default: str, choices: Sequence[str], doc: str) -> ParamSpec:
    """Returns a parameter that is one of several words."""
    return ParamSpec(name, "choice", "none", default, doc, choices=tuple(choices))


def threads(doc: str) -> ParamSpec:
    """Returns the parameter of how many threads or processes a tool has."""
    return whole("threads", 1, 1, 1_024, doc)


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


def figure(name: str, unit: str, doc: str, *, better: Better = Better.NONE) -> MetricSpec:
    """Returns a metric that is not a headline, in any unit."""
    return MetricSpec(name, unit, better, Shape.SCALAR, False, doc)


def errors(doc: str) -> MetricSpec:
    """Returns the metric of how many operations failed."""
    return MetricSpec("errors_count", "count", Better.LOWER, Shape.SCALAR, False, doc)


def scalars(values: Mapping[str, float], **factors: Any) -> list[Sample]:
    """Returns a sample for each value, but none for a time of 0: that is below the resolution."""
    return [
        Sample(name, value, factors=factors)
        for name, value in values.items()
        if value or not name.endswith("_ns")
    ]


HOST = ParamSpec("host", "text", "none", "127.0.0.1", "Name or IP address of the far side.")

DIRECTORY = ParamSpec(
    "directory", "text", "none", "", "Directory of its files; empty takes $TMPDIR, else /var/tmp."
)


def checked_host(tool: str, host: str) -> str:
    """Returns a host's name or address; UsageError for what the tool would read as an option."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.:%_-]*|:[A-Za-z0-9.:%_-]+", host, re.ASCII):
        raise UsageError(
            f"{tool}: host '{host[:60]}' is no name or address of a host.",
            "Set host to a name or an IP address.",
        )
    return host


def size(name: str, doc: str) -> MetricSpec:
    """Returns a headline metric in bytes per second of which more is better."""
    return rate(name, doc, unit="bytes_per_s")


def share(name: str, doc: str) -> MetricSpec:
    """Returns a metric that is a share, of which less is better."""
    return MetricSpec(name, "ratio", Better.LOWER, Shape.SCALAR, False, doc)


def adapter(
    id: str,
    summary: str,
    *,
    params: tuple[ParamSpec, ...],
    metrics: tuple[MetricSpec, ...],
    command: Callable[[Mapping[str, Any]], Command],
    parse: Callable[[Output], list[Sample]],
    version: str,
    source: str,
    minimum: str,
    install: str,
    page: str,
    overhead: str,
    look: tuple[str, ...] = ("--version",),
    tool: str = "",
    server: Server | None = None,
) -> Adapter:
    """Returns an adapter from its declaration. version: pattern of the version in its answer to
    `look`. tool: the program, where its name is not that of the benchmark."""
    spec = BenchmarkSpec(
        id=id,
        summary=summary,
        params=params,
        metrics=(*metrics, TOOL),
        overhead=overhead,
        source=source,
        two_sided=server is not None,
        page=page,
        kind=ADAPTER,
        tool=tool or id,
        minimum=minimum,
        install=install,
    )
    return Adapter(spec, command, Command(look), version_by(version), parse, server)


@dataclass(frozen=True, slots=True)
class Figures:
    """Where a report has figures: a pattern with one group for each, and what they are called.

    metrics: name -> number by which the group is multiplied, in the order of the groups.
    """

    what: str
    pattern: str
    metrics: Mapping[str, float]


def parser(*places: Figures, **factors: Any) -> Callable[[Output], list[Sample]]:
    """Returns the parser of a report that has every one of these figures exactly once."""

    def parse(output: Output) -> list[Sample]:
        check_ending(output)
        return scalars(values_at(output, *places), **factors)

    return parse


def values_at(output: Output, *places: Figures) -> dict[str, float]:
    """Returns the figures of a report. ToolError where one is missing or there twice."""
    return {
        metric: value * scale
        for place in places
        for value, (metric, scale) in zip(
            numbers(output, place.pattern, place.what), place.metrics.items(), strict=True
        )
    }


def json_report(output: Output) -> Any:
    """Returns a report in JSON. ToolError for another one, and for an error that it states."""
    try:
        report = jsontext.parse(output.stdout)
    except ValueError as error:
        check_ending(output)
        raise ToolError(f"its report is no JSON.{last_words(output)}") from error
    if isinstance(report, dict) and report.get("error"):
        raise ToolError(f"it ended with an error. Its words: '{str(report['error'])[:200]}'.")
    check_ending(output)
    return report


def value_at(report: Any, *keys: str | int) -> Any:
    """Returns what a report in JSON has at a path. ToolError where it lacks it."""
    value = report
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError) as error:
            where = ".".join(map(str, keys))
            raise ToolError(f"its report lacks {where}.") from error
    return value


def number_at(report: Any, *keys: str | int) -> float:
    """Returns the number at a path. ToolError where there is none, or one below zero."""
    value = value_at(report, *keys)
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        where = ".".join(map(str, keys))
        raise ToolError(f"its report has '{str(value)[:40]}' for {where}.")
    return float(value)


RETRANSMITS = MetricSpec(
    "retransmits_count",
    "count",
    Better.LOWER,
    Shape.SCALAR,
    False,
    "Number of retransmitted TCP segments.",
)

ROUND_TRIPS = (
    MetricSpec(
        "rtt_sent_ns",
        "ns",
        Better.LOWER,
        Shape.HISTOGRAM,
        True,
        "Round-trip time of each answered probe, as the tool prints it.",
    ),
    time("rtt_sent_mean_ns", "Mean of these times."),
    time("rtt_sent_max_ns", "Maximum of these times; grows with the number of probes."),
    time("rtt_sent_stdev_ns", "Standard deviation of these times."),
    share("loss_ratio", "Share of probes without an answer."),
)


def round_trips(times_ms: Sequence[float], sent: int) -> list[Sample]:
    """Returns ROUND_TRIPS from the time of each answer. ToolError without any."""
    if not times_ms or len(times_ms) > sent:
        raise ToolError(f"it reports {len(times_ms)} answers to {sent} probes.")
    times = [1e6 * value for value in times_ms]
    values = {
        "rtt_sent_mean_ns": fmean(times),
        "rtt_sent_max_ns": max(times),
        "rtt_sent_stdev_ns": pstdev(times),
    }
    lost = Sample("loss_ratio", 1 - len(times) / sent, factors={"direction": "both"})
    return [*(Sample("rtt_sent_ns", value) for value in times if value), *scalars(values), lost]
