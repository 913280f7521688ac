"""Survival of machines on the spot market, as a page."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core.model import Estimate
from nephoscope.core.naming import plural
from nephoscope.features.cloud.survival import (
    GroupSurvival,
    SpotSurvival,
    SurvivalComparison,
    job_sentence,
)
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Section, Sentence, items, thin
from nephoscope.report.columns import count, number, table, text
from nephoscope.stats.survival import SurvivalStep

_ROWS = 8
_SIGNIFICANT = 0.05


def section(result: SpotSurvival, price: float | None = None, currency: str = "USD") -> Section:
    """Returns the whole page. price: of a machine-hour, for the jobs."""
    return Section("survival", "Survival of spot machines", (*_blocks(result, price, currency),))


def _blocks(result: SpotSurvival, price: float | None, currency: str) -> Iterator[Block]:
    whole = result.whole
    yield Sentence(
        f"{plural(whole.machines, 'machine')} of the spot market in {whole.machine_hours:.4g} "
        f"machine-hours: {plural(whole.interruptions, 'interruption')}. The others are cut off "
        "where they ended here.",
        lead=True,
    )
    for job in result.jobs:
        yield Sentence(job_sentence(job, price, currency))
    yield table(
        (whole, *result.groups),
        text("machines", lambda group: wording.clean(group.name)),
        count("n", lambda group: group.machines),
        count("interrupted", lambda group: group.interruptions),
        number("hours", lambda group: f"{group.machine_hours:.4g}"),
        number("per machine-hour", lambda group: f"{group.rate.value:.3g}"),
        number("interval", lambda group: _ends(group.rate)),
        number("median life", _median),
        number("interval", lambda group: _ends(group.median)),
    )
    if whole.steps:
        yield _curve(result)
    left_out = [f"Not used: {lives} lives {why}." for why, lives in result.left_out.items()]
    compared = [_comparison(each) for each in result.comparisons]
    yield from items([*compared, *result.notes, *left_out])


def _median(group: GroupSurvival) -> str:
    return "not reached" if group.median is None else f"{group.median.value:.3g} h"


def _ends(estimate: Estimate | None) -> str:
    if estimate is None:
        return "none"
    low = "0" if estimate.low is None else f"{estimate.low:.3g}"
    high = "no bound" if estimate.high is None else f"{estimate.high:.3g}"
    return f"[{low}, {high}]"


def _comparison(each: SurvivalComparison) -> str:
    values = plural(len(each.groups), each.level)
    if each.p is None:
        return f"{values}: too few interruptions to compare."
    verdict = "they differ" if each.p < _SIGNIFICANT else "no difference shows"
    return f"{values}: {verdict} (log-rank test, p = {each.p:.2g} after Holm)."


def _curve(result: SpotSurvival) -> Chart:
    """Returns the curve of all machines, with its interval, and those of the zones or types."""
    curves = [_line("all", result.whole.steps, band=True)]
    curves += [_line(group.name, group.steps, band=False) for group in result.groups if group.steps]
    figure = figures.lines(
        curves,
        figures.Axis("life", "ns"),
        figures.Axis("share that lives longer", "ratio", from_zero=True),
        bands=True,
        markers=False,
    )
    rows = table(
        thin(result.whole.steps, _ROWS),
        number("life", lambda step: f"{step.at:.3g} h"),
        count("at risk", lambda step: step.at_risk),
        number("survive it", lambda step: f"{100 * step.share:.0f} %"),
        number("interval", lambda step: f"[{100 * step.low:.0f}, {100 * step.high:.0f}] %"),
    )
    return Chart("survival", "Share of machines that live longer", figure, rows)


def _line(name: str, steps: tuple[SurvivalStep, ...], *, band: bool) -> figures.Curve:
    points = [(0.0, 1.0, 1.0, 1.0), *((each.at, each.share, each.low, each.high) for each in steps)]
    at, share, low, high = zip(*points, strict=True)
    return figures.Curve(
        wording.clean(name),
        tuple(3600e9 * each for each in at),
        share,
        low if band else (),
        high if band else (),
        step=True,
    )
