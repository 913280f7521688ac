"""The cache ladder: bandwidth and latency over the vector length, with the knees named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core.model import RunResult
from nephoscope.report import charts, figures, palette, selection, wording
from nephoscope.report.blocks import Block, Chart, Section, Sentence, Table
from nephoscope.report.columns import number, table, text
from nephoscope.report.selection import Sweep
from nephoscope.results.machine_figures import Knee, MachineFigures
from nephoscope.stats import facts

BENCHMARKS = (instruments.MEM_CACHE, instruments.MEM_LATENCY)


def build(result: RunResult) -> Section | None:
    """Bandwidth by operation, latency by page size, both with knees and announced caches."""
    blocks: list[Block] = []
    bandwidth = _ladder(
        result, instruments.MEM_CACHE, "cache-bandwidth", "Memory bandwidth by working-set size"
    )
    latency = _ladder(
        result, instruments.MEM_LATENCY, "memory-latency", "Memory latency by working-set size"
    )
    blocks += [chart for chart in (bandwidth, latency) if chart is not None]
    for benchmark in BENCHMARKS:
        metrics = selection.of_benchmark(result, benchmark)
        factor = selection.ladder_factor(metrics)
        swept = selection.sweeps(metrics, factor) if factor else []
        in_ladder = {id(point) for sweep in swept for point in sweep.points}
        blocks += charts.by_unit(
            [metric for metric in metrics if id(metric) not in in_ladder], benchmark
        )
    if not blocks:
        return None
    intro = (
        "Memory access slows down in steps as the working set outgrows each cache. Rings "
        "mark the measured end of each step, dotted lines the cache sizes that the machine "
        "reports."
    )
    return Section("cache-ladder", "Memory hierarchy", (Sentence(intro), *blocks))


def _ladder(result: RunResult, benchmark: str, id: str, title: str) -> Chart | None:
    metrics = selection.of_benchmark(result, benchmark)
    factor = selection.ladder_factor(metrics)
    swept = selection.sweeps(metrics, factor, at_least=3) if factor else []
    unit = _main_unit(swept)
    swept = [sweep for sweep in swept if sweep.points[0].estimate.unit == unit]
    swept = swept[: selection.MAX_CURVES]
    if not swept:
        return None
    names, curves, data = charts.sweep_curves(swept, "length", wording.bytes_text)
    y_title = wording.metric_name(swept[0].metric)
    figure = figures.lines(
        curves,
        figures.Axis("working-set size", "bytes", log=True),
        figures.Axis(y_title, unit, log=True),
        bands=True,
        height=440,
    )
    knees = _knees(result, swept)
    _mark_knees(figure, swept, knees)
    _mark_announced(figure, result, swept)
    return Chart(
        id,
        title,
        figure,
        data,
        caption=_caption(curves),
        brief=_knees_table(names, swept, knees, unit),
        sparks=tuple(
            charts.sweep_spark(name, sweep, unit) for name, sweep in zip(names, swept, strict=True)
        ),
    )


def _caption(curves: Sequence[figures.Curve]) -> str:
    first = min(curve.x[0] for curve in curves)
    last = max(curve.x[-1] for curve in curves)
    return (
        f"From {wording.bytes_text(first)} to {wording.bytes_text(last)}; both axes are "
        "logarithmic. Bands show confidence intervals."
    )


def _main_unit(swept: Iterable[Sweep]) -> str:
    """The unit that most curves have."""
    sweep_units = [sweep.points[0].estimate.unit for sweep in swept]
    return max(sweep_units, key=sweep_units.count, default="")


def _knees(result: RunResult, swept: Sequence[Sweep]) -> list[tuple[int, Knee]]:
    """Knees of these curves: (index of the curve, knee)."""
    known = result.part(MachineFigures) or MachineFigures()
    return [(index, knee) for index, sweep in enumerate(swept) for knee in known.knees(sweep.key)]


def _height_at(sweep: Sweep, length: float) -> float:
    """The value measured at the length nearest to the given one."""
    nearest = min(range(len(sweep.x)), key=lambda index: abs(sweep.x[index] - length))
    return sweep.points[nearest].estimate.value


def _mark_knees(
    figure: dict[str, Any], swept: Sequence[Sweep], knees: Sequence[tuple[int, Knee]]
) -> None:
    """Rings at the last length of each level; beyond the last level there is no knee."""
    rising = swept[0].points[0].estimate.value < swept[0].points[-1].estimate.value
    placed = [
        (knee.last_length_bytes, _height_at(swept[index], knee.last_length_bytes), knee.level)
        for index, knee in knees
        if knee.last_length_bytes and knee.last_length_bytes < swept[index].x[-1]
    ]
    if not placed:
        return
    # One name a level, on the outermost curve, where the steps leave room beside them.
    named: dict[str, float] = {}
    for _, y, level in placed:
        named[level] = (max if rising else min)(y, named.get(level, y))
    figure["data"].append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": "measured end of a level",
            "x": [x for x, _, _ in placed],
            "y": [y for _, y, _ in placed],
            "text": [figures.text(level) if y == named[level] else "" for _, y, level in placed],
            "textposition": "top left" if rising else "bottom left",
            "marker": {
                "symbol": "circle-open",
                "size": 14,
                "color": palette.NEUTRAL,
                "line": {"width": 2},
            },
            "hoverinfo": "skip",
            "cliponaxis": False,
        }
    )


def _mark_announced(figure: dict[str, Any], result: RunResult, swept: Sequence[Sweep]) -> None:
    """Dotted lines at the cache sizes that the fingerprint tells, where they are in the picture."""
    low = min(sweep.x[0] for sweep in swept)
    high = max(sweep.x[-1] for sweep in swept)
    sizes: dict[int, str] = {}
    for target in {sweep.target for sweep in swept}:
        for level, size in facts.cache_sizes(result.fingerprints.get(target)).items():
            sizes[size] = level
    layout = figure["layout"]
    for size, level in sorted(sizes.items()):
        if low <= size <= high:
            label = f"{level} {wording.bytes_text(size)}"
            figures.vertical(layout, size, label, log=True)
    layout["legend"] |= {"y": 1.07}  # above the names of the lines


def _knees_table(
    names: Sequence[str], swept: Sequence[Sweep], knees: Sequence[tuple[int, Knee]], unit: str
) -> Table | None:
    """Each level of each curve: up to which length, and the value in the middle of its step."""

    def up_to(row: tuple[int, Knee]) -> str:
        length = row[1].last_length_bytes
        is_last = length is None or length >= swept[row[0]].x[-1]
        return "end of range" if is_last or length is None else wording.bytes_text(length)

    listing = table(
        knees,
        text("curve", lambda row: names[row[0]]),
        text("level", lambda row: row[1].level),
        number("up to", up_to),
        number("median", lambda row: row[1].plateau_value, unit),
    )
    return listing if knees else None
