"""The table of generators that share a load, one row each and one for all of them."""

from __future__ import annotations

from nephoscope.features.load.generators import GeneratorCounts, SharedLoadCounts
from nephoscope.report.blocks import Table
from nephoscope.report.columns import count, number, table, text


def listing(shared: SharedLoadCounts) -> Table:
    """Returns the counts of each generator and of all, whose percentiles are of the added
    histograms and no means."""
    return table(
        (*shared.generators, _sums(shared)),
        text("generator", lambda row: row.name),
        count("due", lambda row: row.due_count),
        count("answered", lambda row: row.completed_count),
        count("failed", lambda row: row.failed_count),
        number("lost", lambda row: "?" if row.lost_count is None else f"{row.lost_count:,}"),
        number("requests/s", lambda row: row.requests_per_s, "per_s"),
        number("p50", lambda row: row.latency_p50_ns, "ns"),
        number("p99", lambda row: row.latency_p99_ns, "ns"),
        number("start", lambda row: row.late_start_ns, "ns"),
        number("busy", lambda row: row.busy_ratio, "ratio"),
    )


def _sums(shared: SharedLoadCounts) -> GeneratorCounts:
    """Returns the counts of all generators as a row."""
    return GeneratorCounts(
        name="all",
        trials=shared.trials,
        failed_trials=shared.excluded_trials,
        due_count=shared.due_count,
        sent_count=sum(generator.sent_count for generator in shared.generators),
        completed_count=shared.completed_count,
        errors_count={"all": shared.failed_count},
        lost_count=shared.lost_count,
        requests_per_s=None,
        latency_p50_ns=shared.latency_p50_ns,
        latency_p99_ns=shared.latency_p99_ns,
        busy_ratio=None,
        late_sends_ratio=None,
        late_start_ns=None,
        clock_offset_ns=None,
    )
