"""Burst credits of all series of rates, as a section of the report and of the command."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate, RunResult, part_of
from nephoscope.features.credits.findings import sentence
from nephoscope.features.credits.records import BurstCredits, CreditSeries
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Section, Sentence, items, thin
from nephoscope.report.columns import number, table, text

_ROWS = 12


def build(result: RunResult) -> Section | None:
    """Returns the section of a run; None for one without such series."""
    record = part_of(result.parts, BurstCredits)
    return None if record is None or not record.series else section(record)


def section(record: BurstCredits) -> Section:
    """Returns the section of all series."""
    blocks: list[Block] = []
    for place, series in enumerate(record.series):
        blocks += _blocks(series, place, several=len(record.series) > 1)
    blocks += items(list(record.notes))
    return Section("burst_credits", "Burst credits", tuple(blocks))


def _blocks(series: CreditSeries, place: int, *, several: bool) -> Iterator[Block]:
    recognised = series.analysis
    name = " ".join(filter(None, (series.source, series.metric)))
    if several:
        yield Heading(wording.clean(name or "series"))
    if recognised.is_on_credit:
        yield Sentence(wording.clean(sentence(series)), lead=True)
        yield table(
            _rows(series),
            text("quantity", lambda row: row[0]),
            number("value", lambda row: row[1]),
            number("interval", lambda row: row[2]),
            number("n", lambda row: row[3]),
        )
    else:
        subject = {
            "steady": "The rate is steady.",
            "varies": "The rate varies, and no credit shows.",
            "cannot be told": "Whether it is on credit cannot be told.",
        }[recognised.verdict]
        yield Sentence(f"{subject} {recognised.reason}", lead=True)
    if series.at_s and recognised.verdict != "steady":
        yield _chart(series, place)
    seen = f"{recognised.points:,} rates under load in {units.format_duration(recognised.span_s)}."
    left_out = [f"Not used: {count} {reason}." for reason, count in series.left_out.items()]
    yield from items([seen, *recognised.notes, *left_out])


def _rows(series: CreditSeries) -> Iterator[tuple[str, str, str, str]]:
    recognised = series.analysis
    for name, value in (
        ("burst", recognised.burst),
        ("baseline", recognised.baseline),
        ("credit used up at", recognised.knee),
        ("full load that it lasted", recognised.drain),
        ("credit", recognised.credit),
        ("refill while idle", recognised.refill),
    ):
        if value is None:
            yield name, "unknown", "none", "0"
        else:
            yield name, *_cells(value)


def _cells(value: Estimate) -> tuple[str, str, str]:
    """Returns value, interval and n as text; times as people write them."""
    if value.unit == "s":
        if value.low is None or value.high is None:
            return units.format_duration(value.value), "none", str(value.n)
        ends = ", ".join(units.format_duration(max(0.0, end)) for end in (value.low, value.high))
        return units.format_duration(value.value), f"[{ends}]", str(value.n)
    if value.low is None or value.high is None:
        return units.format_value(value.value, value.unit), "none", str(value.n)
    digits = units.interval_digits(value.value, value.low, value.high)
    low, high = (units.format_value(end, value.unit, digits) for end in (value.low, value.high))
    return units.format_value(value.value, value.unit, digits), f"[{low}, {high}]", str(value.n)


def _chart(series: CreditSeries, place: int) -> Chart:
    recognised = series.analysis
    curves = [figures.Curve("rate", tuple(1e9 * at for at in series.at_s), series.rates)]
    ends = (1e9 * series.at_s[0], 1e9 * series.at_s[-1])
    if recognised.baseline is not None and recognised.burst is not None:
        for name, value in (
            ("burst", recognised.burst.value),
            ("baseline", recognised.baseline.value),
        ):
            curves.append(figures.Curve(name, ends, (value, value)))
    figure = figures.lines(
        curves, figures.Axis("time", "ns"), figures.Axis("rate", series.unit, from_zero=True)
    )
    points = list(zip(series.at_s, series.rates, strict=True))
    rows = table(
        thin(points, _ROWS),
        number("time", lambda point: units.format_duration(point[0] - series.at_s[0])),
        number("rate", lambda point: units.format_value(point[1], series.unit)),
    )
    return Chart(f"burst-credits-{place}", "Rate over time", figure, rows)
