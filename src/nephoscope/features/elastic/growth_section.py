"""The report of a service's growth: the knee over time, its levels and the ramps."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, RunResult
from nephoscope.core.naming import plural
from nephoscope.features.elastic.growth_records import GrowthLevel, Ramp, ServiceGrowth
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, Table, Tile, items
from nephoscope.report.columns import count, number, table, text


def build(result: RunResult) -> Section | None:
    """Returns chart and tables; None where the run has no ramps of a service."""
    growth = result.part(ServiceGrowth)
    if growth is None:
        return None
    blocks: list[Block] = [Sentence(sentence, lead=True) for sentence in sentences_of(growth)]
    blocks += [_chart(growth)]
    if growth.levels:
        blocks += [Heading("Levels"), levels_table(growth)]
    blocks += items(warnings(growth))
    return Section("growth", "Growth of the service", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns the verdict on the growth, and on the generator."""
    growth = result.part(ServiceGrowth)
    return [] if growth is None else sentences_of(growth)


def headline(result: RunResult) -> list[Tile]:
    """Returns the greatest rate at the start and at the end."""
    growth = result.part(ServiceGrowth)
    levels = () if growth is None else growth.levels
    named = [("at the start", levels[0]), ("at the end", levels[-1])] if levels else []
    return [
        Tile(
            "Greatest rate within the objective",
            f"{word}{f', {_bounds(level)}' if _bounds(level) else ''}",
            f"{level.knee.value:,.0f} /s",
            f"[{level.knee.low:,.0f}, {level.knee.high:,.0f}]",
            str(level.knee.n),
            "",
        )
        for word, level in (named if len(levels) > 1 else named[:1])
    ]


def sentences_of(growth: ServiceGrowth) -> list[str]:
    """Returns the verdict, and what several generators say of one."""
    if growth.problems:
        return [f"The growth of the service is not judged: {wording.clean(growth.problems[0])}"]
    compared = _generators_sentence(growth)
    return [_verdict(growth), *([compared] if compared else [])]


def warnings(growth: ServiceGrowth) -> list[str]:
    """Returns what the figures have to be read with."""
    return [wording.clean(note) for note in growth.notes]


def _verdict(growth: ServiceGrowth) -> str:
    first, last = growth.levels[0], growth.levels[-1]
    begin = f"The service kept {growth.objective} {_up_to(first)}"
    share = wording.percent(growth.failed / max(1, growth.due))
    if not growth.has_moved:
        ramps = growth.ramps
        spent = units.format_duration(ramps[-1].began_s + _length_s(ramps[-1]))
        still = "its limit did not move"
        if first.is_above:
            still = "its limit lies beyond the ramp; use a higher --high"
        elif first.is_below:
            still = "its limit lies below the ramp; use a lower --low"
        return (
            f"{begin} throughout {spent} ({plural(first.ramps, 'ramp')}): {still}. {share} of the "
            "requests at rates up to there failed."
        )
    verb = "grew" if last.knee.value > first.knee.value else "shrank"
    assert last.since_s is not None
    return (
        f"{begin} at the start, and {_up_to(last)} from {_moment(last.since_s)} on; {share} of the "
        f"requests at rates up to there failed while it {verb}."
    )


def _up_to(level: GrowthLevel) -> str:
    knee = level.knee
    if level.is_above:
        return f"up to {knee.low:,.0f} requests/s at least"
    if level.is_below:
        return f"at less than {knee.high:,.0f} requests/s, if at any rate,"
    return f"up to {_rates(knee)} requests/s"


def _rates(knee: Estimate) -> str:
    return f"{knee.value:,.0f} [{knee.low:,.0f}, {knee.high:,.0f}]"


def _moment(at_s: Estimate) -> str:
    assert at_s.low is not None
    assert at_s.high is not None
    low, value, high = (
        units.format_duration(max(0.0, each)) for each in (at_s.low, at_s.value, at_s.high)
    )
    return f"{value} [{low}, {high}]"


def _generators_sentence(growth: ServiceGrowth) -> str:
    """Returns whether one generator limits what is seen; empty without several of them."""
    if growth.generators == 1:
        return ""
    every = plural(growth.generators, "generator")
    compared = growth.generators_compared
    ratio = None if compared is None else compared.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"Too few rounds tell whether one generator reaches as far as {every}."
    step = 1 + growth.step_ratio
    reach = (
        f"With {every} the limit is {ratio.value:.3g} [{ratio.low:.3g}, {ratio.high:.3g}] times "
        "that with one"
    )
    if ratio.low > 1:
        return f"{reach}: one generator limits what is seen of the service."
    if ratio.high < step:
        return f"{reach}: one generator does not limit it."
    return f"{reach}: the rounds do not tell whether one generator limits it."


def _length_s(ramp: Ramp) -> float:
    return ramp.steps[-1].at_s + ramp.steps[-1].length_s


def levels_table(growth: ServiceGrowth) -> Table:
    """Returns the times in which the knee is the same."""
    return table(
        growth.levels,
        text("from", lambda row: "start" if row.since_s is None else _moment(row.since_s)),
        number("requests/s", lambda row: f"{row.knee.value:,.0f}"),
        number("interval", lambda row: f"[{row.knee.low:,.0f}, {row.knee.high:,.0f}]"),
        number("ramps", lambda row: row.ramps),
        text("", _bounds),
        caption=f"Greatest rate that keeps {wording.clean(growth.objective)}, with "
        f"{plural(growth.generators, 'generator')}. Interval of a moment: from the last ramp of "
        "the level before to the first one of this level.",
    )


def _bounds(level: GrowthLevel) -> str:
    return "at least" if level.is_above else "at most" if level.is_below else ""


def ramps_table(growth: ServiceGrowth) -> Table:
    """Returns the knee and the failures of each ramp."""
    return table(
        growth.ramps,
        text("begin", lambda row: units.format_duration(row.began_s)),
        number("generators", lambda row: row.generators),
        number("requests/s", lambda row: f"{row.knee_per_s:,.0f}"),
        number("interval", lambda row: f"[{row.low_per_s:,.0f}, {row.high_per_s:,.0f}]"),
        count("due", lambda row: row.due),
        number("failed", lambda row: wording.percent(row.failed / max(1, row.due))),
        text("", lambda row: "generator at its limit" if row.limit else ""),
        caption="Greatest rate of each ramp that keeps the objective. Failed: share of all "
        "requests of the ramp, those beyond that rate included.",
        collapsed=True,
    )


def _chart(growth: ServiceGrowth) -> Chart:
    """The knee of each ramp over time, a curve for each number of generators."""
    curves = [
        _curve(plural(number_of, "generator"), own)
        for number_of, own in sorted(
            group_by(growth.ramps, lambda ramp: ramp.generators).items(), key=lambda item: item[0]
        )
    ]
    figure = figures.lines(
        curves,
        figures.Axis("time", "ns"),
        figures.Axis("greatest rate", "per_s", from_zero=True),
    )
    return Chart(
        "growth",
        f"Greatest rate that keeps {wording.clean(growth.objective)}, ramp by ramp",
        figure,
        ramps_table(growth),
        "A triangle is a lower bound: the generator was at its limit, or the ramp ended before.",
    )


def _curve(name: str, ramps: Sequence[Ramp]) -> figures.Curve:
    hover = [
        f"{units.format_duration(ramp.began_s)}: {ramp.knee_per_s:,.0f}/s "
        f"[{ramp.low_per_s:,.0f}, {ramp.high_per_s:,.0f}]"
        for ramp in ramps
    ]
    return figures.Curve(
        name,
        tuple(ramp.began_s * 1e9 for ramp in ramps),
        tuple(ramp.knee_per_s for ramp in ramps),
        tuple(ramp.low_per_s for ramp in ramps),
        tuple(ramp.high_per_s for ramp in ramps),
        tuple(hover),
        censored=tuple(bool(ramp.limit) or ramp.is_above for ramp in ramps),
    )
