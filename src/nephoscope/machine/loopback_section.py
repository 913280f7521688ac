"""What the host's own network stack costs: throughput and round trip without any wire."""

from __future__ import annotations

from nephoscope.model import Better, RunResult
from nephoscope.report import charts, selection
from nephoscope.report.blocks import Block, Section, Sentence

BENCHMARKS = ("net.loopback",)


def build(result: RunResult) -> Section | None:
    """Rates as dots, round trips as a distribution."""
    metrics = selection.of_benchmark(result, *BENCHMARKS)
    rates = [metric for metric in metrics if metric.better is Better.HIGHER]
    blocks: list[Block] = list(charts.by_unit(rates, BENCHMARKS[0]))
    chart = charts.cdf(
        result,
        selection.histogram_keys(result, BENCHMARKS[0]),
        id="loopback-round-trip",
        title="Round trip of a small message",
        axis="round trip",
        unit="ns",
    )
    blocks += [chart] if chart is not None else []
    if not blocks:
        return None
    intro = (
        "TCP from this host to itself. No wire is involved: it is the least that the stack costs, "
        "and no network of this host can be faster."
    )
    return Section("loopback", "What its network stack costs", (Sentence(intro), *blocks))
