"""Shape and energy of traffic as text, a section that the command prints."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.traffic.result import Traffic, TrafficAnalysis
from nephoscope.report import figures, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Column,
    Heading,
    Section,
    Table,
    facts,
    items,
    thin,
)

_ROWS = 40


def section(analysis: TrafficAnalysis) -> Section:
    """Returns the section of all sources."""
    blocks = [
        block
        for number, traffic in enumerate(analysis.traffic)
        for block in _blocks(traffic, number)
    ]
    return Section("traffic", "Traffic shape and radio energy", tuple(blocks))


def _blocks(analysis: Traffic, number: int) -> Iterator[Block]:
    shape = analysis.shape
    yield Heading(wording.clean(analysis.source))
    lines = [
        ("packets", f"{shape.packets:,}"),
        ("bytes", wording.bytes_text(shape.total_bytes)),
        ("duration", f"{shape.duration_s:.4g} s"),
        (f"bursts (gaps above {1000 * shape.gap_s:g} ms)", f"{shape.bursts_count:,}"),
        ("burst size, median", wording.estimate_text(shape.burst_bytes)),
        ("burst interval, median", _seconds(shape.interval_s)),
        ("pause between bursts, median", _seconds(shape.pause_s)),
        ("time within bursts", wording.percent(shape.busy_ratio, 3) or "0 %"),
    ]
    if shape.peak_to_mean is not None:
        lines.append(("rate of the fullest 10 ms over the mean", f"{shape.peak_to_mean:.3g}"))
    yield facts(lines)
    if shape.bursts_count > 1:
        yield _chart(analysis, number)
    rows = []
    for energy in analysis.energies:
        active_j = energy.active_j + energy.promotion_j
        parts = (active_j, energy.tail_j, energy.sleep_j, energy.total_j)
        per_mb = "" if energy.joules_per_mb is None else f"{energy.joules_per_mb:.3g} J"
        rows.append((energy.radio, *(f"{j:.4g} J" for j in parts), per_mb, _watts(energy.mean_w)))
    numbers = ("active", "tail", "sleep", "total", "per MB", "mean")
    yield Table(Column.head(("radio",), numbers), tuple(rows))
    if analysis.phases:
        yield Heading("Phases of playback")
        phases = []
        for phase in analysis.phases:
            times = (f"{s:.4g} s" for s in (phase.start_s, phase.duration_s))
            energies = (f"{j:.4g} J" for j in (phase.radio_j, phase.playback_j))
            phases.append((phase.phase, *times, *energies, _watts(phase.mean_w)))
        head = Column.head(("phase",), ("start", "duration", "radio", "playback", "mean"))
        yield Table(head, thin(phases, _ROWS))
    sources = dict.fromkeys(energy.source for energy in analysis.energies)
    yield from items(
        [*analysis.notes, *(f"Parameters of the radio: {source}." for source in sources)]
    )


def _watts(mean: float | None) -> str:
    return "" if mean is None else f"{mean:.3g} W"


def _seconds(estimate: Estimate | None) -> str:
    if estimate is None:
        return "one burst"
    value = units.format_value(1e9 * estimate.value, "ns")
    if estimate.low is None or estimate.high is None:
        return f"{value} (n = {estimate.n})"
    low, high = (units.format_value(1e9 * end, "ns") for end in (estimate.low, estimate.high))
    return f"{value} [{low}, {high}] (n = {estimate.n})"


def _chart(analysis: Traffic, number: int) -> Chart:
    bursts = analysis.shape.bursts
    starts = tuple(1e9 * burst.start_s for burst in bursts)
    sizes = tuple(burst.size_bytes for burst in bursts)
    figure = figures.lines(
        [figures.Curve("burst", starts, sizes)],
        figures.Axis("time", "ns"),
        figures.Axis("burst size", "bytes", from_zero=True),
    )
    rows = [
        (f"{burst.start_s:.4f} s", wording.bytes_text(burst.size_bytes), f"{burst.packets:,}")
        for burst in bursts
    ]
    return Chart(
        f"traffic-{number}-bursts",
        "Size of bursts over time",
        figure,
        Table(Column.numbers("start", "size", "packets"), thin(rows, _ROWS)),
    )
