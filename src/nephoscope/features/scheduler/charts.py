"""The scheduler's picture: who had the CPU when, and how long runs, waits and periods are.

Runs, waits and periods are taken from gaps of at least a millisecond, as Zhuang 2012 counts them:
interrupts, which are shorter, would cut every run to pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from nephoscope.core import units
from nephoscope.features.scheduler.inference.verdict import (
    Fit,
    ObservationWindow,
    Scheduler,
    of_kind,
)
from nephoscope.report import figures, timeline, wording
from nephoscope.report.blocks import Chart
from nephoscope.report.columns import number, spread, table, text
from nephoscope.report.timeline import LEAST_GAP_NS, Lane

KINDS = {
    "one": "one CPU busy",
    "all": "all CPUs busy",
    "several": "several processes",
    "sleeping": "with sleeps",
}
"""What each window is called."""

SHOWN_PERIODS = 8
"""Periods in the strip: enough to see that they repeat, few enough to see each."""

_LEAST_SHOWN_NS = 160e6


def name_of(scheduler: Scheduler) -> str:
    """The target, and the conditions under which it was looked at where a plan varies them."""
    return wording.target_text(scheduler.target, scheduler.conditions)


def lengths(windows: Iterable[ObservationWindow]) -> dict[str, list[float]]:
    """Returns the lengths of `_PARTS` that the loops of these windows saw, in ns, ascending.

    Cut runs at either end are left out.
    """
    by_part: dict[str, list[float]] = {"run": [], "wait": [], "period": []}
    for loop in (loop for window in windows for loop in window.loops):
        gaps = [gap for gap in loop.gaps if gap.length_ns >= LEAST_GAP_NS]
        by_part["wait"] += [gap.length_ns for gap in gaps]
        for before, after in pairwise(gaps):
            by_part["run"].append(after.start_ns - before.end_ns)
            by_part["period"].append(float(after.start_ns - before.start_ns))
    return {part: sorted(values) for part, values in by_part.items()}


# The strip: when each loop had its CPU ----------------------------------------------------------


def strip(scheduler: Scheduler, id: str) -> Chart | None:
    """Returns when each loop had the CPU: a trial of each window, the beginning of it; None without
    windows."""
    drawn = _lanes(scheduler)
    if not drawn:
        return None
    caption = (
        "Bars show when the loop was running, marks when it was not. One trial of each "
        "observation: the one with the median CPU share."
    )
    if not any(lane.gaps for lane in drawn):
        caption += " The CPU was never taken away."
    title = f"Timeline of CPU use: {name_of(scheduler)}"
    return timeline.strip(drawn, id, title, caption, ("observation", "loop"))


def _lanes(scheduler: Scheduler) -> list[Lane]:
    out = []
    for kind in KINDS:
        drawn = of_kind(scheduler.windows, kind)
        if not drawn:
            continue
        ordered = sorted(drawn, key=lambda window: window.obtained_cpus)
        window = ordered[len(ordered) // 2]
        period = scheduler.fit.period_ns.value if scheduler.fit.period_ns is not None else 0.0
        span = min(float(window.window_ns), max(_LEAST_SHOWN_NS, SHOWN_PERIODS * period))
        for position, loop in enumerate(window.loops):
            gaps = timeline.clipped(
                ((gap.start_ns, gap.end_ns, gap.cause) for gap in loop.gaps), span
            )
            out.append(Lane(KINDS[kind], _name(window, position), gaps, span))
    return out[: timeline.MAX_LANES]


def _name(window: ObservationWindow, number: int) -> str:
    """'CPU 1', 'CPU 1, process 0' where several share it, 'loop 1' where none is pinned."""
    loop = window.loops[number]
    if loop.cpu is None:
        return f"loop {number}" if len(window.loops) > 1 else loop.name
    return f"{loop.name}, process {loop.process}" if window.processes > 1 else loop.name


# The distributions ------------------------------------------------------------------------------

_PARTS = {"run": "running", "wait": "waiting", "period": "period"}


def distributions(schedulers: Sequence[Scheduler]) -> list[Chart]:
    """CDFs of run, wait and period; one chart with all three for one target, else one for each."""
    if len(schedulers) > 1:
        by_scheduler = [
            (name_of(scheduler), lengths(of_kind(scheduler.windows, "one", "all")))
            for scheduler in schedulers
        ]
        caption = (
            "One curve per target over all trials, with one busy CPU and with all CPUs busy. "
            "Gaps of 1 ms or more."
        )
        return [
            chart
            for part, word in _PARTS.items()
            for chart in _cdf(
                f"scheduler-{part}",
                f"Length: {word}",
                [(name, own[part]) for name, own in by_scheduler],
                caption,
            )
        ]
    (scheduler,) = schedulers
    by_kind = {kind: lengths(of_kind(scheduler.windows, kind)) for kind in ("one", "all")}
    return _cdf(
        "scheduler-lengths",
        "Lengths of runs, waits and periods",
        [
            (f"{word}, {KINDS[kind]}", own[part])
            for kind, own in by_kind.items()
            for part, word in _PARTS.items()
        ],
        "Cumulative distribution of run, wait and period lengths over all trials; gaps of "
        "1 ms or more. Vertical lines mark fitted values.",
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
    marks: Sequence[tuple[str, float]] = (),
) -> list[Chart]:
    """The CDFs of the curves with two values or more; nothing without any."""
    curves = [(name, values) for name, values in curves if len(values) >= 2]
    if not curves:
        return []
    drawn, rows = [], []
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
        rows.append((name, n, tenths))
    figure = figures.lines(
        drawn,
        figures.Axis("length", "ns", from_zero=True),
        figures.Axis("cumulative share", "ratio", from_zero=True),
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
    data = table(
        rows,
        text("curve", lambda row: row[0]),
        number("n", lambda row: row[1]),
        *spread(("p10", "p25", "p50", "p75", "p90"), lambda row: row[2], "ns"),
    )
    return [Chart(id, title, figure, data, caption, brief=data)]


def _hover(name: str, share: float, ns: float) -> str:
    return f"{name}: {100 * share:.0f} % at most {units.format_value(ns, 'ns')}"
