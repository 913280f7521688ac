"""The scheduler's picture: who had the CPU when, and how long runs, waits and periods are.

Runs, waits and periods are taken from gaps of at least a millisecond, as Zhuang 2012 counts them:
interrupts, which are shorter, would cut every run to pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nephoscope import units
from nephoscope.analysis.scheduler import Fit, Gap, Look, Loop, Scheduler, of_kind
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Chart, Column, Table

LEAST_GAP_NS = 1e6
"""A shorter gap is an interrupt, not a decision of a scheduler."""

KINDS = {
    "one": "one CPU busy",
    "all": "all CPUs busy",
    "several": "several processes",
    "sleeping": "with sleeps",
}
"""What each look is called."""

SHOWN_PERIODS = 8
"""Periods in the strip: enough to see that they repeat, few enough to see each."""

_LEAST_SHOWN_NS = 160e6
_MAX_LANES = 16
_STEPS = 48
_BLOCKS = "·▁▂▃▄▅▆▇█"
_ROWS = 40


def name_of(scheduler: Scheduler) -> str:
    """The target, and the conditions under which it was looked at where a plan varies them."""
    told = wording.factors_text(scheduler.conditions)
    target = wording.clean(scheduler.target)
    return f"{target}, {told}" if told else target


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of runs, waits and periods, in nanoseconds, ascending."""

    run: tuple[float, ...]
    wait: tuple[float, ...]
    period: tuple[float, ...]


def lengths(looks: Iterable[Look]) -> Lengths:
    """What the loops of these looks saw, all together; cut runs at either end are left out."""
    run: list[float] = []
    wait: list[float] = []
    period: list[float] = []
    for look in looks:
        for loop in look.loops:
            gaps = _long(loop)
            wait += [gap.length_ns for gap in gaps]
            run += [after.start_ns - before.end_ns for before, after in pairwise(gaps)]
            period += [float(after.start_ns - before.start_ns) for before, after in pairwise(gaps)]
    return Lengths(tuple(sorted(run)), tuple(sorted(wait)), tuple(sorted(period)))


def _long(loop: Loop) -> list[Gap]:
    return [gap for gap in loop.gaps if gap.length_ns >= LEAST_GAP_NS]


# The strip: when each loop had its CPU ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lane:
    """One loop of one look, as far as it is shown."""

    name: str
    kind: str
    trial: str
    loop: Loop
    start_ns: float
    span_ns: float

    def gaps(self) -> list[tuple[float, float, str]]:
        """(start, end, cause) of what lies in the span, counted from its start."""
        end = self.start_ns + self.span_ns
        found = []
        for gap in self.loop.gaps:
            start, stop = max(gap.start_ns, self.start_ns), min(gap.end_ns, end)
            if stop > start:
                found.append((start - self.start_ns, stop - self.start_ns, gap.cause))
        return found


def strip(scheduler: Scheduler, id: str) -> Chart | None:
    """When each loop had the CPU: a trial of each look, the beginning of it; None without looks."""
    lanes = _lanes(scheduler)
    if not lanes:
        return None
    data = _running(lanes)
    layout = _strip_layout(lanes)
    name = name_of(scheduler)
    kept = [lane.loop for lane in lanes if lane.loop.gaps]
    caption = (
        "A bar where the loop had its CPU, a mark where it had not; one trial of each look, the "
        "one in the middle by what it obtained."
    )
    if not kept:
        caption += " Nobody took the CPU away."
    text = Table(
        (Column("look"), Column("loop"), Column(f"the first {_span_text(lanes)}")),
        tuple(
            (
                KINDS[lane.kind] if not index or lanes[index - 1].kind != lane.kind else "",
                lane.name,
                _as_text(lane),
            )
            for index, lane in enumerate(lanes)
        ),
    )
    title = f"Who had the CPU when: {name}"
    return Chart(
        id, title, {"data": data, "layout": layout}, _gap_table(lanes), caption, brief=text
    )


def _lanes(scheduler: Scheduler) -> list[_Lane]:
    out = []
    for kind in KINDS:
        found = of_kind(scheduler.looks, kind)
        if not found:
            continue
        ordered = sorted(found, key=lambda look: look.obtained_cpus)
        look = ordered[len(ordered) // 2]
        span = _span_ns(scheduler.fit, look)
        for number, loop in enumerate(look.loops):
            several = look.processes > 1 or loop.cpu is None
            name = (
                f"{loop.name}, process {loop.process}"
                if several and loop.cpu is not None
                else loop.name
            )
            if loop.cpu is None and len(look.loops) > 1:
                name = f"loop {number}"
            out.append(_Lane(name, kind, look.trial, loop, 0.0, span))
    return out[:_MAX_LANES]


def _name(look: Look, number: int) -> str:
    """'CPU 1', 'CPU 1, process 0' where several share it, 'loop 1' where none is pinned."""
    loop = look.loops[number]
    if loop.cpu is None:
        return f"loop {number}"
    return f"CPU {loop.cpu}, process {loop.process}" if look.processes > 1 else f"CPU {loop.cpu}"


def _span_ns(fit: Fit, look: Look) -> float:
    period = fit.period_ns.value if fit.period_ns is not None else 0.0
    return min(float(look.window_ns), max(_LEAST_SHOWN_NS, SHOWN_PERIODS * period))


def _span_text(lanes: Sequence[_Lane]) -> str:
    return units.format_value(max(lane.span_ns for lane in lanes), "ns")


def _running(lanes: Sequence[_Lane]) -> list[dict[str, object]]:
    """Thick lines for what was had, thin ones by cause for what was not; None breaks a line."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, lane in enumerate(lanes):
        at = 0.0
        for start, end, _ in [*lane.gaps(), (lane.span_ns, lane.span_ns, "")]:
            x += [at, start, None]
            y += [place, place, None]
            at = end
    out: list[dict[str, object]] = [
        _line("had the CPU", x, y, {"color": palette.COLOURS[0], "width": 13})
    ]
    causes: dict[str, tuple[list[float | None], list[float | None]]] = {}
    for place, lane in enumerate(lanes):
        for start, end, cause in lane.gaps():
            own_x, own_y = causes.setdefault(cause, ([], []))
            own_x += [start, end, None]
            own_y += [place, place, None]
    for cause, (own_x, own_y) in causes.items():
        colour = palette.CAUSES.get(cause, (palette.NEUTRAL, ""))[0]
        if cause == "unexplained":
            colour = palette.NEUTRAL  # the blue of the bars would hide it
        out.append(_line(f"without: {cause}", own_x, own_y, {"color": colour, "width": 3}))
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


def _strip_layout(lanes: Sequence[_Lane]) -> dict[str, object]:
    ends = [0.0, *(lane.span_ns for lane in lanes)]
    x_axis = figures.axis_of(figures.Axis("time in the trial", "ns", from_zero=True), ends)
    y_axis = {
        "tickmode": "array",
        "tickvals": list(range(len(lanes))),
        "ticktext": [figures.text(f"{KINDS[lane.kind]}: {lane.name}") for lane in lanes],
        "range": [len(lanes) - 0.4, -0.6],
        "automargin": True,
        "showgrid": False,
    }
    layout = figures.layout(x_axis, y_axis, height=120 + 30 * len(lanes))
    layout["shapes"] = [
        figures.horizontal(index - 0.5)
        for index in range(1, len(lanes))
        if lanes[index].kind != lanes[index - 1].kind
    ]
    layout["legend"] |= {"itemsizing": "constant"}
    return layout


def _as_text(lane: _Lane) -> str:
    """The lane in one line: how much of each step it had, from · for nothing to a full block."""
    step = lane.span_ns / _STEPS
    had = [step] * _STEPS
    for start, end, _ in lane.gaps():
        for index in range(int(start // step), min(_STEPS, int(end // step) + 1)):
            had[index] -= max(0.0, min(end, (index + 1) * step) - max(start, index * step))
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[min(top, max(0, round(top * part / step)))] for part in had)


def _gap_table(lanes: Sequence[_Lane]) -> Table:
    rows = [
        (
            KINDS[lane.kind],
            lane.name,
            units.format_value(start, "ns", 4),
            units.format_value(end - start, "ns"),
            wording.clean(cause),
        )
        for lane in lanes
        for start, end, cause in lane.gaps()
        if end - start >= LEAST_GAP_NS
    ]
    head = (
        Column("look"),
        Column("loop"),
        Column("without the CPU from", True),
        Column("for", True),
        Column("cause"),
    )
    return Table(
        head, tuple(rows[:_ROWS]), f"Gaps of at least 1 ms, {min(_ROWS, len(rows))} of {len(rows)}"
    )


# The distributions ------------------------------------------------------------------------------

_PARTS = {"run": "running", "wait": "waiting", "period": "period"}


def distributions(schedulers: Sequence[Scheduler]) -> list[Chart]:
    """CDFs of run, wait and period; one chart with all three for one target, else one for each."""
    if len(schedulers) == 1:
        chart = _of_one(schedulers[0])
        return [chart] if chart is not None else []
    out = []
    for part, word in _PARTS.items():
        curves = [
            (name_of(one), getattr(lengths(of_kind(one.looks, "one", "all")), part))
            for one in schedulers
        ]
        curves = [(name, values) for name, values in curves if len(values) >= 2]
        if curves:
            caption = (
                "One curve a target; one busy CPU and all busy together, all trials. Gaps from "
                "1 ms count."
            )
            out.append(_cdf(f"scheduler-{part}", f"How long: {word}", curves, caption, ()))
    return out


def _of_one(scheduler: Scheduler) -> Chart | None:
    curves = []
    for kind in ("one", "all"):
        found = lengths(of_kind(scheduler.looks, kind))
        for part, word in _PARTS.items():
            values = getattr(found, part)
            if len(values) >= 2:
                curves.append((f"{word}, {KINDS[kind]}", values))
    if not curves:
        return None
    caption = (
        "The share of runs, waits and periods that are at most this long, all trials together; "
        "gaps from 1 ms count. Upright lines: what was fitted."
    )
    return _cdf(
        "scheduler-lengths",
        "How long it runs, waits, and both",
        curves,
        caption,
        _marks(scheduler.fit),
    )


def _marks(fit: Fit) -> tuple[tuple[str, float], ...]:
    """(label, nanoseconds) of the fitted lengths; a slice longer than the period is of several CPUs
    together and has no place among the runs of one.
    """
    out = []
    if fit.period_ns is not None:
        period = fit.period_ns.value
        if fit.slice_ns is not None and fit.slice_ns.value < period:
            out += [("slice", fit.slice_ns.value), ("rest", period - fit.slice_ns.value)]
        out.append(("period", period))
    return tuple((f"{name} {units.format_value(ns, 'ns')}", ns) for name, ns in out if ns > 0)


def _cdf(
    id: str,
    title: str,
    curves: Sequence[tuple[str, Sequence[float]]],
    caption: str,
    marks: Sequence[tuple[str, float]],
) -> Chart:
    drawn, rows, brief = [], [], []
    for name, values in curves:
        n = len(values)
        step = max(1, n // figures.CDF_POINTS)
        places = sorted({*range(0, n, step), n - 1})
        drawn.append(
            figures.Curve(
                name,
                (0.0, *(values[i] for i in places)),
                (0.0, *((i + 1) / n for i in places)),
                hover=(name, *(_hover(name, (i + 1) / n, values[i]) for i in places)),
                step=True,
            )
        )
        tenths = [values[min(n - 1, int(q * n))] for q in (0.1, 0.25, 0.5, 0.75, 0.9)]
        cells = [units.format_value(value, "ns") for value in tenths]
        rows.append((name, str(n), *cells))
        brief.append((name, str(n), *cells))
    figure = figures.lines(
        drawn,
        figures.Axis("length", "ns", from_zero=True),
        figures.Axis("share that is at most this long", "ratio", from_zero=True),
        markers=False,
    )
    # One long wait must not press all others into the corner; it is in the table.
    ends = [values[min(len(values) - 1, int(0.98 * len(values)))] for _, values in curves]
    span = (0.0, 1.25 * max([*ends, *(ns for _, ns in marks)]))
    figure["layout"]["xaxis"] |= figures.axis_of(figures.Axis("length", "ns", from_zero=True), span)
    for index, (label, ns) in enumerate(sorted(marks, key=lambda mark: mark[1])):
        figures.vertical(figure["layout"], ns, label, log=False)
        # Labels of neighbours would lie on each other.
        figure["layout"]["annotations"][-1] |= {"y": 0.02 + 0.07 * index, "xanchor": "left"}
    quantiles = ("p10", "p25", "p50", "p75", "p90")
    head = (Column("curve"), Column("n", True), *(Column(name, True) for name in quantiles))
    return Chart(
        id, title, figure, Table(head, tuple(rows)), caption, brief=Table(head, tuple(brief))
    )


def _hover(name: str, share: float, ns: float) -> str:
    return f"{name}: {100 * share:.0f} % are at most {units.format_value(ns, 'ns')}"
