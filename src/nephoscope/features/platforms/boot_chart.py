"""The boot timeline: a bar for each platform, stacked of its segments, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.model import Estimate
from nephoscope.features.platforms.records import LAUNCH_MARKS, MARKS, BootFigures
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Item, Table, items
from nephoscope.report.columns import number, spread, table, text

SEGMENTS = {
    "output": "start of the program",
    "kernel": "until the kernel",
    "userland": "until init",
    "answer": "until the cloud's answer",
    "running": "until listed as running",
    "reachable": "until reachable",
}
"""Mark -> name of the segment that ends with it."""
_CAPTION = (
    "Mean time of each segment; bars are intervals of the mean time from the request to its end. A "
    "segment that a platform does not have is part of the next one."
)


def chart(boots: Sequence[BootFigures]) -> Chart:
    """Returns the timeline of platforms that booted; their figures as its table."""
    names = [wording.clean(boot.name) for boot in boots]
    data = []
    for mark in SEGMENTS:
        own = [(place, boot) for place, boot in enumerate(boots) if mark in boot.segments]
        if not own:
            continue
        ends = [boot.marks[mark] for _, boot in own]
        hover = [
            f"{names[place]}, {SEGMENTS[mark]}: {wording.estimate_text(boot.segments[mark])}"
            for place, boot in own
        ]
        style = {
            "type": "bar",
            "orientation": "h",
            "marker": {"color": palette.style(_place(mark))[0]},
            "error_x": figures.interval_bars(ends) | {"color": palette.NEUTRAL},
        }
        values = [boot.segments[mark].value for _, boot in own]
        data.append(figures.trace(SEGMENTS[mark], values, [at for at, _ in own], hover, **style))
    every = [
        end for boot in boots for mark in boot.marks.values() for end in (mark.value, mark.high)
    ]
    axis = figures.axis_of(
        figures.Axis("time since the request", "ns", from_zero=True),
        [0.0, *(value for value in every if value is not None)],
    )
    y_axis = figures.named_ticks(names, range=[len(names) - 0.5, -0.5])
    layout = figures.layout(axis, y_axis, height=110 + 40 * len(names))
    layout["barmode"] = "stack"
    layout["legend"] |= {"traceorder": "normal"}
    figure = {"data": data, "layout": layout}
    return Chart("boot-timeline", "Boot timeline", figure, boots_table(boots), _CAPTION)


def _place(mark: str) -> int:
    return (MARKS if mark in MARKS else LAUNCH_MARKS).index(mark)


def boots_table(boots: Sequence[BootFigures]) -> Table:
    """Returns segments, whole boots and memory, each with interval."""
    present = [mark for mark in SEGMENTS if any(mark in boot.segments for boot in boots)]
    return table(
        boots,
        text("platform", lambda row: row.name),
        *spread(
            (SEGMENTS[mark] for mark in present),
            lambda row: [estimate_cell(row.segments.get(mark)) for mark in present],
        ),
        number("whole boot", lambda row: estimate_cell(row.marks.get(MARKS[-1]))),
        number("n", lambda row: row.marks[MARKS[-1]].n if row.marks else 0),
    )


def estimate_cell(estimate: Estimate | None) -> str:
    """Returns a value with its interval; a dash where there is none."""
    return "–" if estimate is None else wording.estimate_text(estimate)


def remarks(boots: Sequence[BootFigures]) -> list[Block]:
    """Returns the reasons of missing segments, failed boots and late observations."""
    reasons = [
        f"{boot.name}, {SEGMENTS.get(mark, mark)}: {reason}."
        for boot in boots
        for mark, reason in boot.reasons.items()
    ]
    failures = [
        Item(wording.clean(f"{boot.name}: {failure}"), "warning")
        for boot in boots
        for failure in boot.failures
    ]
    return items([*reasons, *failures], folded="Missing segments and failed boots")
