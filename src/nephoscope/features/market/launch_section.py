"""Launch times as a section: the answer, times by segment, comparisons, a chart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nephoscope.core.model import Estimate
from nephoscope.features.market.launch_records import (
    LaunchComparison,
    LaunchTime,
    ProviderLaunchTimes,
)
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Column, Section, Sentence, items
from nephoscope.report.columns import count, interval, label, number, ratio, table, text


def _in_ns(estimate: Estimate) -> Estimate:
    """Returns seconds in the unit that tables print as times."""
    low, high = (None if end is None else 1e9 * end for end in (estimate.low, estimate.high))
    return replace(estimate, value=1e9 * estimate.value, low=low, high=high, unit="ns")


def _ends(estimate: Estimate) -> str:
    return "none" if estimate.low is None else wording.interval_text(_in_ns(estimate))


def launch_section(launches: ProviderLaunchTimes) -> Section:
    """Returns the section of launch times."""
    return Section("launch-times", "Launch times", tuple(_blocks(launches)))


def _blocks(launches: ProviderLaunchTimes) -> Iterator[Block]:
    yield Sentence(_answer(launches), lead=True)
    titles = {segment.name: segment.title for segment in launches.segments}
    first: dict[int, list[str]] = {}
    for place, row in enumerate(launches.times):
        if place == 0 or launches.times[place - 1].segment != row.segment:
            first[place] = [f"{row.segment}: {titles[row.segment]}"]
    yield table(
        launches.times,
        label("", lambda row: f"  {row.provider}"),
        number("median", lambda row: _in_ns(row.median)),
        number("interval", lambda row: _ends(row.median)),
        number("p90", lambda row: _in_ns(row.p90)),
        number("interval", lambda row: _ends(row.p90)),
        count("launches", lambda row: row.launches),
        count("types", lambda row: row.types),
        headings=first,
    )
    compared = [row for row in launches.times if row.segment == launches.compared]
    if len(compared) > 1:
        yield _chart(launches, compared)
    if launches.comparisons:
        columns: tuple[Column[LaunchComparison], ...] = ratio(
            "ratio of medians", lambda row: row.ratio
        )
        yield table(
            launches.comparisons,
            text("provider", lambda row: row.provider),
            text("against", lambda row: row.reference),
            *columns[:2],
            text("verdict", lambda row: row.verdict),
            caption=f"Comparison of '{launches.compared}', with intervals for all pairs together:",
        )
    yield from items((*launches.notes, f"{launches.launches:,} launches of {launches.source}."))


def _answer(launches: ProviderLaunchTimes) -> str:
    title = next(each.title for each in launches.segments if each.name == launches.compared)
    rows = [row for row in launches.times if row.segment == launches.compared]
    if not rows:
        return f"No launch has the moments of '{launches.compared}' ({title})."
    first = min(rows, key=lambda row: (row.median.low is None, row.median.value))
    if first.median.low is None:
        return (
            "No provider has launches of 6 server types, which an interval needs: the medians do "
            f"not order the providers ({title})."
        )
    text_ = wording.estimate_text(_in_ns(first.median))
    sentence = f"{first.provider} is ready first ({title}): median {text_}."
    if launches.compared != "ready":
        sentence = f"{first.provider} has the shortest {title}: median {text_}."
    undecided = [
        each.reference
        for each in launches.comparisons
        if each.provider == first.provider and each.verdict != "faster"
    ]
    if undecided:
        sentence += f" The intervals do not distinguish {wording.joined(undecided)} from it."
    return sentence


def _chart(launches: ProviderLaunchTimes, rows: list[LaunchTime]) -> Chart:
    drawn = figures.dots(
        [(row.provider, _in_ns(row.median)) for row in rows],
        figures.Axis("median with interval", "ns", from_zero=True),
    )
    behind = table(
        rows,
        text("provider", lambda row: row.provider),
        *interval("median", lambda row: _in_ns(row.median)),
    )
    return Chart(
        "launch-times",
        f"Launch time by provider: {launches.compared}",
        drawn,
        behind,
        "Dot: median over launches. Bar: interval over server types.",
        repeats=True,
    )
