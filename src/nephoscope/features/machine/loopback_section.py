"""What the host's own network stack costs: throughput and round trip without any wire."""

from __future__ import annotations

from nephoscope.catalog import instruments
from nephoscope.core.model import Better, RunResult
from nephoscope.report import charts, selection
from nephoscope.report.blocks import Block, Section, Sentence

BENCHMARKS = (instruments.NET_LOOPBACK,)


def build(result: RunResult) -> Section | None:
    """Rates as dots, round trips as a distribution."""
    metrics = selection.of_benchmark(result, *BENCHMARKS)
    rates = [metric for metric in metrics if metric.better is Better.HIGHER]
    blocks: list[Block] = list(charts.by_unit(rates, BENCHMARKS[0]))
    blocks += charts.cdf(
        result,
        selection.histogram_keys(result, BENCHMARKS[0]),
        id="loopback-round-trip",
        title="Round-trip time of small messages",
        axis="round-trip time",
        unit="ns",
    )
    if not blocks:
        return None
    intro = (
        "TCP from this host to itself, without a physical link. This is the cost of the "
        "network stack and an upper bound for every network of this host."
    )
    return Section("loopback", "Network stack (loopback)", (Sentence(intro), *blocks))
