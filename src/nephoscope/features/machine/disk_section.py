"""How the disk behaves: rates by setting, and the distribution of its latency."""

from __future__ import annotations

from nephoscope.catalog import instruments
from nephoscope.core.model import Better, RunResult
from nephoscope.report import charts, selection
from nephoscope.report.blocks import Block, Section, Sentence

BENCHMARKS = (instruments.DISK_IO, instruments.DISK_SYNC)


def build(result: RunResult) -> Section | None:
    """Rates as dots, latencies as distributions; cached figures apart from the disk's."""
    blocks: list[Block] = []
    for prefix, medium in (("disk_", "the disk"), ("cached_", "the page cache")):
        rates = [
            metric
            for metric in selection.of_benchmark(result, instruments.DISK_IO)
            if metric.metric.startswith(prefix) and metric.better is Better.HIGHER
        ]
        blocks += charts.by_unit(rates, f"disk.io {prefix.rstrip('_')}")
        blocks += charts.cdf(
            result,
            [
                key
                for key in selection.histogram_keys(result, instruments.DISK_IO)
                if key[1].startswith(prefix)
            ],
            id=f"{prefix}latency".replace("_", "-"),
            title=f"Latency of {medium}",
            axis="latency",
            unit="ns",
            caption="Closed-loop load: each completed operation starts the next.",
        )
    blocks += charts.cdf(
        result,
        selection.histogram_keys(result, instruments.DISK_SYNC),
        id="sync-latency",
        title="Latency of synced writes",
        axis="latency of write plus sync",
        unit="ns",
        caption="The time that a database waits for each commit.",
    )
    if not blocks:
        return None
    intro = "Operations and bytes per second by setting, and latency of single operations."
    return Section("disk", "Disk", (Sentence(intro), *blocks))
