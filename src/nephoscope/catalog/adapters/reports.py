"""Readers of reports: figures by patterns, by paths in JSON, from lists of round trips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from nephoscope.catalog.adapters.frame import Output, ToolError, check_ending, last_words, numbers
from nephoscope.core.model import Sample
from nephoscope.core.reading import jsontext


def scalars(values: Mapping[str, float], **factors: Any) -> list[Sample]:
    """Returns a sample for each value, but none for a time of 0: that is below the resolution."""
    return [
        Sample(name, value, factors=factors)
        for name, value in values.items()
        if value or not name.endswith("_ns")
    ]


@dataclass(frozen=True, slots=True)
class Figures:
    """Place of figures in a report: a pattern with one group for each, and their names.

    metrics: name -> number by which the group is multiplied, in the order of the groups.
    """

    what: str
    pattern: str
    metrics: Mapping[str, float]


def values_at(output: Output, places: Iterable[Figures]) -> dict[str, float]:
    """Returns the figures of a report. ToolError where one is missing or there twice."""
    return {
        metric: value * scale
        for place in places
        for value, (metric, scale) in zip(
            numbers(output, place.pattern, place.what), place.metrics.items(), strict=True
        )
    }


_SILENCE_S = 0.2
"""Time without an answer that a scheduler or a retransmission may cause."""


def check_silence(silent_s: float, longest_s: float, *allowed_s: float) -> None:
    """Checks how long a closed loop waited for nothing at its end.

    silent_s: time without an answer that no answer accounts for. longest_s: the longest time of an
    answer. allowed_s: other times that may pass. Raises ToolError where the silence is longer than
    each of them: the tool's figures leave out its longest wait, and are of the time before it.
    """
    if silent_s > max(_SILENCE_S, longest_s, *allowed_s):
        raise ToolError(
            f"its last request had no answer for {silent_s:.2g} s, longer than any answer took "
            f"({longest_s:.2g} s): the link or the server failed, and its figures leave that out."
        )


def json_report(output: Output) -> Any:
    """Returns a report in JSON. ToolError for another one, and for an error that it states."""
    try:
        report = jsontext.parse(output.stdout)
    except ValueError as error:
        check_ending(output)
        raise ToolError(f"its report is no JSON.{last_words(output)}") from error
    if isinstance(report, dict) and report.get("error"):
        raise ToolError(f"it ended with an error. It printed: '{str(report['error'])[:200]}'.")
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
