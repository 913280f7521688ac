"""The overhead waterfall: from the reference's time of each system call to a platform's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nephoscope.core import units
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.platforms.boot_chart import estimate_cell
from nephoscope.features.platforms.records import CallOverhead, PlatformOverhead, SystemCallOverhead
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Section, Sentence, Table, items
from nephoscope.report.columns import number, table, text

MOST_OF_IT = 0.8
"""Share of the overhead that the named classes make together."""
_TOTAL, _MORE, _LESS = palette.COLOURS[0], palette.COLOURS[1], palette.COLOURS[2]


def build(result: RunResult) -> Section | None:
    """Returns a waterfall for each platform, and the classes that make the difference."""
    overhead = result.part(SystemCallOverhead)
    if overhead is None:
        return None
    blocks: list[Block] = [
        Sentence(sentence(platform, overhead.reference), lead=True)
        for platform in overhead.platforms
    ]
    for position, platform in enumerate(overhead.platforms):
        blocks.append(_waterfall(platform, overhead.reference, position))
    blocks += _ratios(overhead)
    blocks += items(overhead.notes)
    return Section("overhead", "Overhead of system calls", tuple(blocks))


def sentence(platform: PlatformOverhead, reference: str) -> str:
    """Returns which classes make the difference between a platform and the reference."""
    name, base = wording.clean(platform.platform), wording.clean(reference)
    if platform.total is None:
        return f"{name} has no round in common with {base}, so that it has no overhead."
    total, text = platform.total, estimate_cell(platform.total)
    slower = [call.call for call in _largest(platform)]
    if total.low is not None and total.low > 0:
        head = f"{name}: one operation of each class takes {text} longer than on {base}"
        shares = [f"{c.call} {wording.percent(c.share, 2)}" for c in _largest(platform)]
        cause = f"; {wording.joined(shares)} of the difference" if shares else ""
    elif total.high is not None and total.high < 0:
        head = f"{name}: one operation of each class takes less time than on {base}: {text}"
        cause = ""
    else:
        head = f"{name}: one operation of each class is not proven slower than on {base}: {text}"
        cause = f"; slower by themselves: {wording.joined(slower)}" if slower else ""
    proven = [(c.ratio.low, c.call, c.ratio) for c in platform.calls if c.ratio and c.ratio.low]
    low, call, ratio = max(proven, key=lambda row: row[0], default=(0.0, "", None))
    if ratio is None or low <= 1:
        return f"{head}{cause}."
    times = estimate_cell(wording.plain(ratio))
    return f"{head}{cause}. The largest ratio that is proven is that of {call}: {times} times."


def _largest(platform: PlatformOverhead) -> Iterator[CallOverhead]:
    """The fewest classes, proven to be slower, that make most of the overhead."""
    covered = 0.0
    for call in platform.calls:
        if call.share is None or call.overhead is None or (call.overhead.low or 0.0) <= 0:
            continue
        if covered >= MOST_OF_IT:
            return
        covered += call.share
        yield call


def _waterfall(platform: PlatformOverhead, reference: str, number: int) -> Chart:
    """Bars that begin where the one before ends; the first and last are the whole times."""
    calls = [(call, call.overhead) for call in platform.calls if call.overhead is not None]
    at = base = sum(call.reference.value for call, _ in calls)
    steps: list[tuple[str, float, float, Estimate | None]] = []
    steps.append((f"{wording.clean(reference)}, all classes", 0.0, base, None))
    for call, overhead in calls:
        steps.append((call.call, at, overhead.value, overhead))
        at += overhead.value
    steps.append((f"{wording.clean(platform.platform)}, all classes", 0.0, at, None))
    names = [name for name, *_ in steps]
    bars = [_bar(place, *step) for place, step in enumerate(steps)]
    ends = [0.0, base, at]
    for bar in bars:
        end = bar["base"][0] + bar["x"][0]
        error = bar.get("error_x", {"array": [0.0], "arrayminus": [0.0]})
        ends += [bar["base"][0], end + error["array"][0], end - error["arrayminus"][0]]
    axis = figures.axis_of(
        figures.Axis("time of one operation of each class", "ns", from_zero=True), ends
    )
    y_axis = figures.named_ticks(names, range=[len(names) - 0.5, -0.5])
    layout = figures.layout(axis, y_axis, height=90 + 30 * len(names))
    layout["showlegend"] = False
    layout["barmode"] = "overlay"
    setting = wording.factors_text(platform.factors)
    where = f" ({setting})" if setting else ""
    title = f"Overhead of {wording.clean(platform.platform)} over {wording.clean(reference)}{where}"
    caption = (
        "Mean overhead of each class, largest first, with its interval; exec includes a fork, and "
        "pipe two context switches."
    )
    chart = {"data": bars, "layout": layout}
    return Chart(f"overhead-{number}", title, chart, _table(platform, reference), caption)


def _ratios(overhead: SystemCallOverhead) -> Iterator[Chart]:
    """One dot a platform and class: which requests to the kernel a platform makes dearer."""
    rows = [
        (f"{wording.clean(platform.platform)}, {call.call}", wording.plain(call.ratio))
        for platform in overhead.platforms
        for call in platform.calls
        if call.ratio is not None and call.ratio.low
    ]
    if rows:
        axis = figures.Axis(
            f"time relative to {wording.clean(overhead.reference)}", "none", log=True
        )
        figure = figures.dots(rows, axis)
        figures.vertical(figure["layout"], 1.0, "no overhead", log=True)
        data = table(
            rows,
            text("class", lambda row: row[0]),
            number("ratio", lambda row: estimate_cell(row[1])),
        )
        yield Chart("overhead-ratios", "Ratio by class", figure, data, repeats=True)


def _bar(
    place: int, name: str, base: float, length: float, overhead: Estimate | None
) -> dict[str, Any]:
    """Returns the bar of one class, or without an overhead that of all classes together."""
    style: dict[str, Any] = {"type": "bar", "orientation": "h", "base": [base]}
    colour, label = _TOTAL, units.format_value(length, "ns")
    if overhead is not None:
        colour, label = _MORE if length >= 0 else _LESS, wording.estimate_text(overhead)
        style["error_x"] = figures.interval_bars([overhead]) | {"color": palette.NEUTRAL}
    style["marker"] = {"color": colour}
    return figures.trace(name, [length], [place], [f"{name}: {label}"], **style)


def _table(platform: PlatformOverhead, reference: str) -> Table:
    return table(
        platform.calls,
        text("class", lambda call: call.call),
        number(wording.clean(reference), lambda call: call.reference),
        number(wording.clean(platform.platform), lambda call: call.measured),
        number(
            "overhead",
            lambda row: estimate_cell(row.overhead) if row.overhead else f"– ({row.reason})",
        ),
        number("ratio", lambda call: estimate_cell(call.ratio and wording.plain(call.ratio))),
        number("share", lambda call: call.share, "ratio", 2),
    )
