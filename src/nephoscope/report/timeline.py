"""Strips of who had the CPU when: a lane each, bars for what it had, marks for what it had not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nephoscope import units
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Chart, Column, Table

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


@dataclass(frozen=True, slots=True)
class Words:
    """Names of groups and lanes in the tables."""

    group: str
    lane: str


def clipped(gaps: Iterable[Gap], span_ns: float) -> tuple[Gap, ...]:
    """The gaps as far as they lie in the span."""
    inside = ((max(start, 0.0), min(end, span_ns), cause) for start, end, cause in gaps)
    return tuple(gap for gap in inside if gap[1] > gap[0])


def strip(lanes: Sequence[Lane], id: str, title: str, caption: str, words: Words) -> Chart:
    """The strip, its gaps as a table, and each lane in one line of text for the terminal."""
    span = units.format_value(max(lane.span_ns for lane in lanes), "ns")
    text = Table(
        Column.texts(words.group, words.lane, f"the first {span}"),
        tuple(
            (
                lane.group if not index or lanes[index - 1].group != lane.group else "",
                lane.name,
                _as_text(lane),
            )
            for index, lane in enumerate(lanes)
        ),
    )
    figure = {"data": _running(lanes), "layout": _layout(lanes)}
    return Chart(id, title, figure, _gap_table(lanes, words), caption, brief=text)


def _running(lanes: Sequence[Lane]) -> list[dict[str, object]]:
    """Thick lines for what was had, thin ones by cause for what was not; None breaks a line."""
    x: list[float | None] = []
    y: list[float | None] = []
    causes: dict[str, tuple[list[float | None], list[float | None]]] = {}
    for place, lane in enumerate(lanes):
        at = 0.0
        for start, end, cause in [*lane.gaps, (lane.span_ns, lane.span_ns, "")]:
            x += [at, start, None]
            y += [place, place, None]
            at = end
            if end > start:
                own_x, own_y = causes.setdefault(cause, ([], []))
                own_x += [start, end, None]
                own_y += [place, place, None]
    out = [_line("running", x, y, {"color": palette.COLOURS[0], "width": 13})]
    for cause, (own_x, own_y) in causes.items():
        colour = palette.CAUSES.get(cause, (palette.NEUTRAL, ""))[0]
        if cause == "unexplained":
            colour = palette.NEUTRAL  # the blue of the bars would hide it
        out.append(_line(f"gap: {cause}", own_x, own_y, {"color": colour, "width": 3}))
    return out


def _line(
    name: str, x: list[float | None], y: list[float | None], line: dict[str, object]
) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": figures.text(name),
        "x": x,
        "y": y,
        "line": line,
        "hoverinfo": "name",
        "connectgaps": False,
    }


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


def _gap_table(lanes: Sequence[Lane], words: Words) -> Table:
    rows = [
        (
            lane.group,
            lane.name,
            units.format_value(start, "ns", 4),
            units.format_value(end - start, "ns"),
            wording.clean(cause),
        )
        for lane in lanes
        for start, end, cause in lane.gaps
        if end - start >= LEAST_GAP_NS
    ]
    head = Column.head((words.group, words.lane), ("start of gap", "for"), ("cause",))
    return Table(
        head, tuple(rows[:_ROWS]), f"Gaps of at least 1 ms, {min(_ROWS, len(rows))} of {len(rows)}"
    )
