"""What the request generators of a run counted, and latency and rate by offered load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from nephoscope import units
from nephoscope.load.result import GENERATORS, Load, LoadCounts
from nephoscope.model import RunResult, level_name
from nephoscope.report import charts, figures, selection, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Column,
    Heading,
    Item,
    Items,
    Section,
    Sentence,
    Table,
)
from nephoscope.report.selection import Sweep

_LATENCIES = ("latency_p50_ns", "latency_p90_ns", "latency_p99_ns")
_CHARTS = (
    ("rate_per_s", _LATENCIES, True),
    ("connections", _LATENCIES, True),
    ("connections", ("requests_per_s",), False),
)
"""Factor, metrics, and whether their axis is logarithmic."""


def build(result: RunResult) -> Section | None:
    """Requests sent and answered, failed ones by kind, and what the trials state."""
    load = result.part(Load)
    if load is None:
        return None
    head = (
        Column("load"),
        *Column.numbers("trials", "requests sent", "valid responses"),
        Column("errors"),
    )
    rows = tuple(
        (
            wording.clean(_name(line)),
            str(line.trials),
            f"{line.sent_count:,}",
            f"{line.completed_count:,}",
            wording.clean(errors_text(line.errors_count)),
        )
        for line in load.lines
    )
    blocks: list[Block] = [*_curves(result)]
    blocks += [Sentence("Counts over all valid trials, warm-up included."), Table(head, rows)]
    notes = notes_of(load)
    if notes:
        blocks += [Heading("Notes"), Items(tuple(Item(wording.clean(note)) for note in notes))]
    return Section("load", "Load", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns how many requests had a valid response, and which errors the others had."""
    load = result.part(Load)
    if load is None:
        return []
    errors: Counter[str] = Counter()
    for line in load.lines:
        errors.update(line.errors_count)
    sent = sum(line.sent_count for line in load.lines)
    completed = sum(line.completed_count for line in load.lines)
    return [
        wording.clean(
            f"{completed:,} valid responses of {sent:,} requests; errors: {errors_text(errors)}."
        )
    ]


def _curves(result: RunResult) -> list[Chart]:
    """Latency by offered rate, and rate by number of connections, where a run varies them."""
    drawn = []
    for factor, metrics, log in _CHARTS:
        lines = [line for line in result.metrics if line.metric in metrics]
        by_benchmark: dict[str, list[Sweep]] = {}
        for sweep in selection.sweeps(
            [line for line in lines if line.benchmark in GENERATORS], factor
        ):
            by_benchmark.setdefault(sweep.benchmark, []).append(sweep)
        drawn += [
            _curve(benchmark, factor, swept[: selection.MAX_CURVES], log=log)
            for benchmark, swept in by_benchmark.items()
        ]
    return drawn


def _curve(benchmark: str, factor: str, swept: Sequence[Sweep], *, log: bool) -> Chart:
    names = charts.sweep_names(swept)
    unit = swept[0].points[0].estimate.unit
    x_unit = "per_s" if factor.endswith("_per_s") else "count"
    curves = [
        charts.sweep_curve(name, sweep, [units.format_value(x, x_unit) for x in sweep.x])
        for name, sweep in zip(names, swept, strict=True)
    ]
    title = "latency" if unit == "ns" else "valid responses"
    figure = figures.lines(
        curves,
        figures.Axis(factor.removesuffix("_per_s").replace("_", " "), x_unit),
        figures.Axis(title, unit, log=log, from_zero=not log),
    )
    rows = [
        row
        for name, sweep in zip(names, swept, strict=True)
        for row in charts.sweep_rows(name, sweep, [units.format_value(x, x_unit) for x in sweep.x])
    ]
    table = Table(charts.estimate_columns("curve", factor.replace("_", " ")), tuple(rows))
    slug = wording.slug(f"{benchmark}-{title}")
    return Chart(f"load-{slug}", f"{benchmark}: {title} by {factor}", figure, table, brief=table)


def errors_text(errors: Mapping[str, int]) -> str:
    """Returns 'none', or '12 timeout, 3 refused'."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(errors.items())) or "none"


def notes_of(load: Load) -> list[str]:
    """What trials state about themselves, each sentence with the number of trials."""
    return [
        f"{sentence} ({wording.plural(count, 'trial')} of {line.trials})"
        for line in load.lines
        for sentence, count in line.notes.items()
    ]


def _name(line: LoadCounts) -> str:
    levels = ", ".join(f"{name}={level_name(level)}" for name, level in line.factors.items())
    return f"{line.benchmark} on {line.target}{f' ({levels})' if levels else ''}"
