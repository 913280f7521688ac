"""Strips of who had the CPU when: a lane each, bars for what it had, marks for what it had not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nephoscope.core import units
from nephoscope.report import figures, palette
from nephoscope.report.blocks import Chart, Table
from nephoscope.report.columns import number, table, text

LEAST_GAP_NS = 1e6
"""A shorter gap is an interrupt, not a decision of a scheduler."""

MAX_LANES = 16

_STEPS = 48
_BLOCKS = "·▁▂▃▄▅▆▇█"
_ROWS = 40

Gap = tuple[float, float, str]
"""Start and end in nanoseconds from the beginning of what is shown, and the cause."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of the strip. group: lanes of one group stand together; gaps ascend."""

    group: str
    name: str
    gaps: tuple[Gap, ...]
    span_ns: float


def clipped(gaps: Iterable[Gap], span_ns: float) -> tuple[Gap, ...]:
    """The gaps as far as they lie in the span."""
    inside = ((max(start, 0.0), min(end, span_ns), cause) for start, end, cause in gaps)
    return tuple(gap for gap in inside if gap[1] > gap[0])


def strip(
    lanes: Sequence[Lane], id: str, title: str, caption: str, names: tuple[str, str]
) -> Chart:
    """The strip, its gaps as a table, and each lane in one line of text for the terminal.

    names: of a group and a lane in the tables.
    """
    span = units.format_value(max(lane.span_ns for lane in lanes), "ns")
    brief = table(
        lanes,
        text(names[0], lambda lane: lane.group),
        text(names[1], lambda lane: lane.name),
        text(f"the first {span}", _as_text),
        grouped=1,
    )
    figure = {"data": _running(lanes), "layout": _layout(lanes)}
    return Chart(id, title, figure, _gap_table(lanes, names), caption, brief=brief)


def _running(lanes: Sequence[Lane]) -> list[dict[str, object]]:
    """Thick lines for what was had, thin ones by cause for what was not; None breaks a line."""
    # The cause of what was had is None.
    spans: dict[str | None, list[tuple[float, float, int]]] = {None: []}
    for place, lane in enumerate(lanes):
        at = 0.0
        for start, end, cause in [*lane.gaps, (lane.span_ns, lane.span_ns, "")]:
            spans[None].append((at, start, place))
            at = end
            if end > start:
                spans.setdefault(cause, []).append((start, end, place))
    out: list[dict[str, object]] = []
    for name, own in spans.items():
        colour = palette.CAUSES.get(name or "", (palette.NEUTRAL, ""))[0]
        if name == "unexplained":
            colour = palette.NEUTRAL  # the blue of the bars would hide it
        bar, gap = {"color": palette.COLOURS[0], "width": 13}, {"color": colour, "width": 3}
        out.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "running" if name is None else figures.text(f"gap: {name}"),
                "x": [x for start, end, _ in own for x in (start, end, None)],
                "y": [y for *_, place in own for y in (place, place, None)],
                "line": bar if name is None else gap,
                "hoverinfo": "name",
            }
        )
    return out


def _layout(lanes: Sequence[Lane]) -> dict[str, object]:
    ends = [0.0, *(lane.span_ns for lane in lanes)]
    x_axis = figures.axis_of(figures.Axis("time since start of trial", "ns", from_zero=True), ends)
    labels = [f"{lane.group}: {lane.name}" for lane in lanes]
    y_axis = figures.named_ticks(labels, range=[len(lanes) - 0.4, -0.6], showgrid=False)
    layout = figures.layout(x_axis, y_axis, height=120 + 30 * len(lanes))
    layout["shapes"] = [
        figures.horizontal(index - 0.5)
        for index in range(1, len(lanes))
        if lanes[index].group != lanes[index - 1].group
    ]
    layout["legend"] |= {"itemsizing": "constant"}
    return layout


def _as_text(lane: Lane) -> str:
    """The lane in one line: how much of each step it had, from · for nothing to a full block."""
    step = lane.span_ns / _STEPS
    had = [step] * _STEPS
    for start, end, _ in lane.gaps:
        for index in range(int(start // step), min(_STEPS, int(end // step) + 1)):
            had[index] -= max(0.0, min(end, (index + 1) * step) - max(start, index * step))
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[min(top, max(0, round(top * part / step)))] for part in had)


def _gap_table(lanes: Sequence[Lane], names: tuple[str, str]) -> Table:
    gaps = [(lane, gap) for lane in lanes for gap in lane.gaps if gap[1] - gap[0] >= LEAST_GAP_NS]
    return table(
        gaps[:_ROWS],
        text(names[0], lambda row: row[0].group),
        text(names[1], lambda row: row[0].name),
        number("start of gap", lambda row: row[1][0], "ns", 4),
        number("for", lambda row: row[1][1] - row[1][0], "ns"),
        text("cause", lambda row: row[1][2]),
        caption=f"Gaps of at least 1 ms, {min(_ROWS, len(gaps))} of {len(gaps)}",
    )
