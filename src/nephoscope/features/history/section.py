"""A history as a section: change points, charts over time, what changed, forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from nephoscope.core import units
from nephoscope.features.compaction.summarise import MACHINE
from nephoscope.features.history.forecast import MINIMUM_POINTS
from nephoscope.features.history.records import ChangePoint, History, SeriesHistory, WeekForecast
from nephoscope.features.history.result import name_of
from nephoscope.features.history.series import HistoryPoint
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Heading,
    Item,
    Items,
    Section,
    Sentence,
    Spark,
    Table,
    items,
    thin,
)
from nephoscope.report.columns import number, table, text
from nephoscope.results.run_settings import warnings_of
from nephoscope.stats.change_points.step_test import MINIMUM_AFTER, MINIMUM_BEFORE

TABLE_ROWS = 400
"""Rows of the data table behind one chart."""
BRIEF_ROWS = 5
SPARK_POINTS = 60
_SHORT_POINTS = 3 * MINIMUM_BEFORE
_SHORT = (
    f"A change would not show in the first {MINIMUM_BEFORE} runs, which show what is "
    f"usual, and in the last {MINIMUM_AFTER - 1}."
)
"""Below a series without a change in which these runs are a large part."""
_TONES = {"worse": "warning", "better": "info", "changed": "notice"}


def section(history: History) -> Section:
    """Returns the section of a history."""
    blocks: list[Block] = [Sentence(lead(history), lead=True)]
    differences = (
        warning for series in history.series for warning in warnings_of(series.hidden_settings)
    )
    blocks += items(dict.fromkeys(differences), "warning")
    for position, series in enumerate(history.series, start=1):
        blocks += _series(series, position)
    if history.forecasts:
        blocks += [Heading("Forecast of the class"), _forecast_table(history.forecasts)]
    blocks += _back_test(history)
    blocks.append(
        Sentence(
            f"False alarms: at most {100 * history.false_alarms:g} % per 200 runs. Changes for the "
            f"worse up to {100 * history.margin:g} % are no regressions; changes below "
            f"{100 * history.min_change:g} % are not reported. A suspected change becomes certain "
            "by an interleaved repetition (--confirm RUN).",
            roomy=True,
        )
    )
    if history.notes:
        blocks += items(history.notes, folded="Excluded runs")
    return Section("history", f"History of {history.metric}", tuple(blocks))


def lead(history: History) -> str:
    """Returns the outcome in one sentence."""
    changes = sum(len(series.changes) for series in history.series)
    runs = len({point.run for series in history.series for point in series.points})
    outcome = (
        f"{wording.plural(changes, 'change point')} in {len(history.series)} series of "
        f"{wording.plural(runs, 'run')}"
    )
    count = len(history.regressions)
    regressions = wording.plural(count, "regression") if count else "no regression"
    parts = [outcome, regressions]
    noise = sum(len(series.noise_changes) for series in history.series)
    if noise:
        parts.append(f"{wording.plural(noise, 'change')} of noise")
    if history.untested:
        parts.append(f"{len(history.untested)} series not tested")
    return f"{'; '.join(parts)}."


def moment(at_s: float) -> str:
    """Returns a time in UTC to the minute."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")


def _series(series: SeriesHistory, position: int) -> Iterator[Block]:
    yield Heading(name_of(series))
    if series.continues:
        yield Sentence(series.continues)
    if not series.has_times:
        yield Sentence(
            f"{wording.plural(len(series.points), 'run')} have one and the same time "
            f"({moment(series.points[0].at_s)} UTC), so that they are in the order in which they "
            "were imported."
        )
    yield _chart(series, position)
    if series.changes:
        yield Items(tuple(_item(series, change) for change in series.changes))
    yield from items((change.sentence for change in series.noise_changes), "notice")
    if series.negligible:
        yield Sentence(
            f"{wording.plural(series.negligible, 'smaller change')} of the level (--min-change) "
            f"{'is' if series.negligible == 1 else 'are'} not listed."
        )
    facts = [change for change in series.annotations if change.fact != MACHINE]
    if facts:
        yield table(
            facts,
            text(_time_title(series), lambda row: _moment_of(series, row.run, row.at_s)),
            text("Changed", lambda row: row.fact),
            text("Before", lambda row: row.before),
            text("After", lambda row: f"{row.after}{' (new baseline)' if row.resets else ''}"),
        )
    if series.untested:
        yield Sentence(series.untested)
    elif not series.changes and len(series.points) < _SHORT_POINTS:
        yield Sentence(_SHORT)
    if series.forecasts:
        yield _forecast_table(series.forecasts)


def _time_title(series: SeriesHistory) -> str:
    return "Time (UTC)" if series.has_times else "Number"


def _moment_of(series: SeriesHistory, run: str, at_s: float) -> str:
    """The time of a run; its number where times do not order the runs."""
    return moment(at_s) if series.has_times else str(series.numbers[run])


def _item(series: SeriesHistory, change: ChangePoint) -> Item:
    first, last = moment(change.first_s), moment(change.last_s)
    between = f"At {first}" if first == last else f"Between {first} and {last}"
    later_s = change.detected_s - change.last_s
    if later_s > 0:
        between += f", noticed {units.format_duration(later_s)} later"
    if not series.has_times:
        between = f"After run {change.previous_run}, the last one before the change"
    if change.merged_runs > 1:
        between += f", in medians of {change.merged_runs} runs"
    when = f"{between}; false-alarm rate {100 * change.false_alarms:g} %."
    details = (
        when,
        *(f"At the same time: {text}" for text in change.simultaneous),
        *(
            f"Repetition {confirming.run}: {confirming.status}. {confirming.sentence}"
            for confirming in change.repetitions
        ),
    )
    step = ""
    if change.status == "suspected" and series.has_times:
        step = f"Add `--confirm {change.run}` to repeat the measurement beside a reference."
    is_none = change.status == "refuted" or change.went_away or change.cost_shift
    tone = "info" if is_none else _TONES[change.direction]
    return Item(change.sentence, tone, tuple(map(wording.clean, details)), step)


def _chart(series: SeriesHistory, position: int) -> Chart:
    points = series.points
    rows = list(enumerate(points, start=1))
    listed = thin(rows, TABLE_ROWS)
    of = "" if len(listed) == len(rows) else f"{len(listed)} of {len(rows)} runs, evenly spaced"

    def runs(some: Sequence[tuple[int, HistoryPoint]], caption: str) -> Table:
        return table(
            some,
            text(
                _time_title(series), lambda row: moment(row[1].at_s) if series.has_times else row[0]
            ),
            text("Run", lambda row: row[1].run),
            number("Value", lambda row: row[1].estimate),
            number("Interval", lambda row: wording.interval_text(row[1].estimate)),
            number("n", lambda row: row[1].estimate.n),
            caption=caption,
        )

    spark = Spark(
        wording.clean(series.target),
        thin([point.estimate.value for point in points], SPARK_POINTS),
        moment(points[0].at_s)[:10] if series.has_times else "run 1",
        moment(points[-1].at_s)[:10] if series.has_times else f"run {len(points)}",
    )
    caption = "Bars are intervals of runs; gaps in time interrupt the line."
    return Chart(
        f"history-{position}",
        "Medians of runs over time",
        _figure(series),
        runs(listed, of),
        caption,
        runs(rows[-BRIEF_ROWS:], f"Newest {wording.plural(min(BRIEF_ROWS, len(rows)), 'run')}:"),
        (spark,) if len(points) > 1 else (),
    )


def _figure(series: SeriesHistory) -> dict[str, Any]:
    colour, _, symbol = palette.style(0)
    data = []
    for part in _unbroken(series):
        estimates = [point.estimate for point in part]
        values = [estimate.value for estimate in estimates]
        hover = [
            f"{_moment_of(series, point.run, point.at_s)}, {point.run}: "
            f"{wording.estimate_text(point.estimate)}"
            for point in part
        ]
        drawn = figures.trace(
            series.target,
            [_x(series, point.run, point.at_s) for point in part],
            values,
            hover,
            mode="lines+markers",
            line={"color": colour, "width": 1},
            marker={"color": colour, "symbol": symbol, "size": 5},
        )
        lows, highs = (
            [estimate.low for estimate in estimates],
            [estimate.high for estimate in estimates],
        )
        if any(end is not None for end in (*lows, *highs)):
            drawn["error_y"] = figures.error_bars(values, lows, highs) | {"color": colour}
        data.append(drawn)
    every = [
        end
        for point in series.points
        for end in (point.estimate.value, point.estimate.low, point.estimate.high)
        if end is not None
    ]
    title = wording.full_name(series.benchmark, series.metric)
    layout = figures.layout(
        {"type": "date", "title": {"text": "time (UTC)"}, "automargin": True}
        if series.has_times
        else {"title": {"text": "run, in order of import"}, "automargin": True},
        figures.axis_of(figures.Axis(title, series.unit), every),
    )
    layout["showlegend"] = False
    marks: dict[str | float, list[str]] = {}
    for change in series.changes:
        x = _x(series, change.run, change.at_s)
        marks.setdefault(x, []).append(change.direction)
    for fact_change in series.annotations:
        if fact_change.fact != MACHINE:
            at = _x(series, fact_change.run, fact_change.at_s)
            marks.setdefault(at, []).append(fact_change.fact)
    for x, labels in marks.items():
        figures.vertical(layout, x, ", ".join(labels), log=False)
    return {"data": data, "layout": layout}


def _x(series: SeriesHistory, run: str, at_s: float) -> str | float:
    """The place of a run on the horizontal axis."""
    if not series.has_times:
        return float(series.numbers[run])
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _unbroken(series: SeriesHistory) -> list[list[HistoryPoint]]:
    """Returns the points between gaps."""
    ends = {gap.end_s for gap in series.gaps}
    parts: list[list[HistoryPoint]] = [[]]
    for point in series.points:
        if point.at_s in ends and parts[-1]:
            parts.append([])
        parts[-1].append(point)
    return parts


def _forecast_table(forecasts: Sequence[WeekForecast]) -> Table:
    level = 100 * forecasts[0].estimate.confidence
    return table(
        forecasts,
        text("Week", lambda row: f"{moment(row.start_s)[:10]} to {moment(row.end_s)[:10]}"),
        text("Hours (UTC)", lambda row: row.hours),
        number("Expected", lambda row: row.estimate),
        number(f"{level:g} % interval", lambda row: wording.interval_text(row.estimate)),
        number(
            "Observed",
            lambda row: (
                row.observed_median and units.format_value(row.observed_median, row.estimate.unit)
            ),
            missing="",
        ),
        number("Inside", lambda row: f"{row.inside} of {row.observed}" if row.observed else ""),
        caption=f"Single measurements expected and observed, {forecasts[0].of}:",
    )


def _back_test(history: History) -> Iterator[Block]:
    test = history.back_test
    if test is None:
        return
    if test.coverage is None:
        yield Sentence(
            f"No past week can be predicted: that takes {MINIMUM_POINTS} runs before it."
        )
        return
    yield Sentence(
        f"Back-test: {wording.estimate_text(test.coverage)} of {test.predictions} past "
        f"measurements lie in their {100 * test.confidence:g} % intervals."
    )
