"""How the disk behaves: rates by setting, and the distribution of its latency."""

from __future__ import annotations

from nephoscope.model import Better, RunResult
from nephoscope.report import charts, selection
from nephoscope.report.blocks import Block, Section, Sentence

BENCHMARKS = ("disk.io", "disk.sync")


def build(result: RunResult) -> Section | None:
    """Rates as dots, latencies as distributions; cached figures apart from the disk's."""
    blocks: list[Block] = []
    for prefix, whose in (("disk_", "the disk"), ("cached_", "the page cache")):
        rates = [
            metric
            for metric in selection.of_benchmark(result, "disk.io")
            if metric.metric.startswith(prefix) and metric.better is Better.HIGHER
        ]
        blocks += charts.by_unit(rates, f"disk.io {prefix.rstrip('_')}")
        chart = charts.cdf(
            result,
            [
                key
                for key in selection.histogram_keys(result, "disk.io")
                if key[1].startswith(prefix)
            ],
            id=f"{prefix}latency".replace("_", "-"),
            title=f"Latency of {whose}",
            axis="latency",
            unit="ns",
            caption="Under a closed loop: each operation that ends starts the next one.",
        )
        blocks += [chart] if chart is not None else []
    syncs = charts.cdf(
        result,
        selection.histogram_keys(result, "disk.sync"),
        id="sync-latency",
        title="Time until a small write is safe",
        axis="time of a write and its sync",
        unit="ns",
        caption="What a database waits for on each commit.",
    )
    blocks += [syncs] if syncs is not None else []
    if not blocks:
        return None
    intro = "Operations and bytes a second by setting, and how long single operations take."
    return Section("disk", "How its disk behaves", (Sentence(intro), *blocks))
