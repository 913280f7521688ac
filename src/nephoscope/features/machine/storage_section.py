"""Stores: throughput by object size with its saturation, fairness, serial requests and capacity."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.model import Estimate, MetricResult, RunResult, factors_key
from nephoscope.core.naming import common_factors
from nephoscope.report import charts, figures, selection, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence
from nephoscope.report.columns import estimate, estimates_table, number, table, text
from nephoscope.report.selection import Sweep

BENCHMARKS = (instruments.STORAGE_TRANSFER,)
_SIZE = "object_bytes"
SIZES_MIN = 3
"""The benchmark looks for saturation among so many sizes only."""


def build(result: RunResult) -> Section | None:
    """Returns the section; None where no store was measured."""
    metrics = selection.of_benchmark(result, BENCHMARKS[0])
    if not metrics:
        return None
    blocks: list[Block] = []
    rates = _of(metrics, "transfer_bytes_per_s")
    swept = selection.sweeps(rates, _SIZE)
    if swept:
        blocks.append(_chart(swept[: selection.MAX_CURVES]))
        if max(len(sweep.x) for sweep in swept) >= SIZES_MIN:
            blocks += _saturation(_of(metrics, "saturation_bytes"))
    else:
        blocks += charts.by_unit(rates, BENCHMARKS[0])
    blocks += _fairness(_of(metrics, "fairness_ratio"))
    blocks += _transactions(metrics)
    return Section("storage", "Storage", tuple(blocks))


def _of(metrics: Sequence[MetricResult], name: str) -> list[MetricResult]:
    return [line for line in metrics if line.metric == name]


def _chart(swept: Sequence[Sweep]) -> Chart:
    _, curves, data = charts.sweep_curves(
        swept, "object size", lambda x: units.format_value(x, "bytes"), "operation"
    )
    figure = figures.lines(
        curves,
        figures.Axis("object size", "bytes", log=True),
        figures.Axis("throughput", "bytes_per_s", log=True),
    )
    return Chart("storage-throughput", "Throughput by object size", figure, data, brief=data)


def _saturation(lines: Sequence[MetricResult]) -> list[Block]:
    if not lines:
        return [Sentence("Throughput rises up to the largest size: no size saturates the store.")]
    return [
        Sentence(
            "Saturation: the smallest size with 90 % of the highest throughput. An operation that "
            "is missing has it at the largest size only."
        ),
        estimates_table(_named(lines), "operation"),
    ]


def _fairness(lines: Sequence[MetricResult]) -> list[Block]:
    if not lines:
        return []
    return [
        Heading("Fairness among clients"),
        Sentence("Jain's index of the clients' throughput: 1 if all clients get the same."),
        estimates_table(_named(lines), "operation"),
    ]


def _named(lines: Sequence[MetricResult]) -> list[tuple[str, Estimate]]:
    """Returns the setting of each line with its estimate."""
    targets = len({line.target for line in lines})
    common = common_factors([line.factors for line in lines])
    return [
        (wording.setting_text(line, targets, common) or line.target, line.estimate)
        for line in lines
    ]


def _transactions(metrics: Sequence[MetricResult]) -> list[Block]:
    """Rates beside the time of a serial request, whose inverse is often taken for the rate."""
    rates = _of(metrics, "transactions_per_s")
    if not rates:
        return []
    medians = {
        (line.target, factors_key(line.factors)): line
        for line in _of(metrics, "transaction_latency_p50_ns")
    }
    rows = [
        (*named, medians.get((line.target, factors_key(line.factors))))
        for line, named in zip(rates, _named(rates), strict=True)
    ]

    def inverse(median: MetricResult | None) -> float | None:
        return 1e9 / median.estimate.value if median and median.estimate.value else None

    return [
        Heading("Transactions"),
        Sentence(
            "Transactions per second are counted with all clients at once. One over the time of a "
            "request is the rate of one client, and not what the store can do."
        ),
        table(
            rows,
            text("objects of one byte", lambda row: row[0]),
            *estimate("value", lambda row: row[1]),
            number("median time", lambda row: row[2] and row[2].estimate),
            number("1 / time", lambda row: inverse(row[2]), "per_s"),
        ),
    ]
