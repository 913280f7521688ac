"""Prints what repeated runs say together, as text."""

from __future__ import annotations

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.naming import line_name
from nephoscope.features.comparison.repeats import RepeatedRuns
from nephoscope.stats.statistics.values import percent


def print_repeats(repeats: RepeatedRuns) -> None:
    """Prints the headline metrics over all runs, with their variation from run to run."""
    several = len({line.target for line in repeats.metrics}) > 1
    rows = [
        (
            line_name(line.benchmark, line.metric, line.factors)
            + (f" on {line.target}" if several else ""),
            units.format_interval(
                line.estimate.value, line.estimate.low, line.estimate.high, line.estimate.unit
            ),
            percent(line.run_to_run, 2),
        )
        for line in repeats.metrics
        if line.headline
    ]
    output.say(f"{len(repeats.runs)} runs: {', '.join(repeats.runs)}\n")
    output.say(output.table(("METRIC", "MEAN OF RUNS", "RUN TO RUN"), rows, right=(2,)))
    for warning in repeats.warnings:
        output.say(output.wrapped(f"! {warning}"))
