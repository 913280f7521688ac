"""Shape and energy of traffic as text, a section that the command prints."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.traffic.power import PowerComparison
from nephoscope.features.traffic.result import Traffic, TrafficAnalysis
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, items, thin
from nephoscope.report.columns import count, fact_table, number, table, text

_ROWS = 40


def section(analysis: TrafficAnalysis) -> Section:
    """Returns the section of all sources."""
    blocks = [
        block for place, item in enumerate(analysis.traffic) for block in _blocks(item, place)
    ]
    return Section("traffic", "Traffic shape and radio energy", tuple(blocks))


def _blocks(analysis: Traffic, place: int) -> Iterator[Block]:
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
    yield fact_table(lines)
    if shape.bursts_count > 1:
        yield _chart(analysis, place)
    yield table(
        analysis.energies,
        text("radio", lambda row: row.radio),
        number("active", lambda row: f"{row.active_j + row.promotion_j:.4g} J"),
        number("tail", lambda row: f"{row.tail_j:.4g} J"),
        number("sleep", lambda row: f"{row.sleep_j:.4g} J"),
        number("total", lambda row: f"{row.total_j:.4g} J"),
        number(
            "per MB",
            lambda row: "" if row.joules_per_mb is None else f"{row.joules_per_mb:.3g} J",
        ),
        number("mean", lambda row: _watts(row.mean_w)),
    )
    if analysis.phases:
        yield Heading("Phases of playback")
        yield table(
            thin(analysis.phases, _ROWS),
            text("phase", lambda phase: phase.phase),
            number("start", lambda phase: f"{phase.start_s:.4g} s"),
            number("duration", lambda phase: f"{phase.duration_s:.4g} s"),
            number("radio", lambda phase: f"{phase.radio_j:.4g} J"),
            number("playback", lambda phase: f"{phase.playback_j:.4g} J"),
            number("mean", lambda phase: _watts(phase.mean_w)),
        )
    for comparison in analysis.power:
        yield from _power_blocks(comparison)
    sources = dict.fromkeys(energy.source for energy in analysis.energies)
    yield from items(
        [*analysis.notes, *(f"Parameters of the radio: {source}." for source in sources)]
    )


def _power_blocks(comparison: PowerComparison) -> Iterator[Block]:
    yield Heading(f"{wording.clean(comparison.source)} and {comparison.radio}")
    yield table(
        comparison.states,
        text("state", lambda row: row.state),
        number("time", lambda row: f"{row.duration_s:.4g} s"),
        number("measured", lambda row: f"{row.measured_j:.4g} J"),
        number("measured above sleep", lambda row: _joules(row.above_sleep_j)),
        number("model above sleep", lambda row: f"{row.modelled_j:.4g} J"),
    )
    lines = [("samples", f"{comparison.samples:,}, {1000 * comparison.step_s:.4g} ms apart")]
    if comparison.sleep_w is not None:
        lines.append(("power of the device while the radio sleeps", _watts(comparison.sleep_w)))
        lines.append(("transfers from sleep to sleep", f"{comparison.transfers:,}"))
    if comparison.transfer_j is not None:
        transfer = wording.estimate_text(comparison.transfer_j)
        lines.append(("energy of a transfer above sleep, mean", transfer))
    if comparison.ratio is not None:
        lines.append(("measured over model, mean", wording.estimate_text(comparison.ratio)))
    yield fact_table(lines)
    yield from items(comparison.notes)


def _joules(value: float | None) -> str:
    return "" if value is None else f"{value:.4g} J"


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


def _chart(analysis: Traffic, place: int) -> Chart:
    bursts = analysis.shape.bursts
    starts = tuple(1e9 * burst.start_s for burst in bursts)
    sizes = tuple(burst.size_bytes for burst in bursts)
    figure = figures.lines(
        [figures.Curve("burst", starts, sizes)],
        figures.Axis("time", "ns"),
        figures.Axis("burst size", "bytes", from_zero=True),
    )
    rows = table(
        thin(bursts, _ROWS),
        number("start", lambda burst: f"{burst.start_s:.4f} s"),
        number("size", lambda burst: wording.bytes_text(burst.size_bytes)),
        count("packets", lambda burst: burst.packets),
    )
    return Chart(f"traffic-{place}-bursts", "Size of bursts over time", figure, rows)
