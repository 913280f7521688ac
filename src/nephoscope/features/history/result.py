"""Builds the history of a series: gaps, annotations, change points, regressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

import numpy as np

from nephoscope.core import units
from nephoscope.core.model import Better, Estimate
from nephoscope.core.naming import level_text
from nephoscope.features.compaction.summarise import MACHINE
from nephoscope.features.history import moved_costs
from nephoscope.features.history.records import (
    ChangePoint,
    ConfirmingRun,
    Direction,
    FactChange,
    NoiseChange,
    SeriesGap,
    SeriesHistory,
    Status,
)
from nephoscope.features.history.series import HistoryPoint, Series, have_times
from nephoscope.report import wording
from nephoscope.results.run_settings import CPU_MODEL
from nephoscope.stats.change_points import detection, noise_changes, step_test
from nephoscope.stats.change_points.detection import DetectedStep
from nephoscope.stats.change_points.noise_changes import DetectedNoise
from nephoscope.stats.change_points.seasons import DAY_S
from nephoscope.stats.statistics.values import Array

MARGIN = 0.03
MIN_CHANGE = 0.01
"""Relative change from which on it is reported: steady machines wander by a tenth of it."""
GAP_FACTOR = 3.0
"""Times the usual distance of two runs from which on a gap is shown as one."""
STEAL_MARGIN = 0.01
STEAL_POINTS = 20
"""Points on either side of a change whose stolen CPU time is compared."""


Judging = Callable[
    [Series, Sequence[HistoryPoint], Sequence[HistoryPoint], ChangePoint], Sequence[ConfirmingRun]
]
"""Series, points before a change, points behind it and the change -> judged repetitions."""


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """false_alarms: see History. margin: relative change that is no regression. confidence: of the
    intervals. min_change: relative change from which on it is reported."""

    false_alarms: float = detection.FALSE_ALARMS
    margin: float = MARGIN
    confidence: float = 0.95
    min_change: float = MIN_CHANGE


def analyse(
    series: Series,
    settings: HistorySettings,
    judge: Judging | None = None,
) -> SeriesHistory:
    """Returns the history of a series. judge: confirms or refutes changes."""
    points = series.points
    changes: list[ChangePoint] = []
    noise: list[NoiseChange] = []
    untested = []
    negligible = 0
    newest_is_tested = True
    for start, end in segments(points):
        part = points[start:end]
        at_s = times(part)
        newest_is_tested = step_test.is_testable(at_s)
        if not newest_is_tested:
            untested.append(_untested(part))
            continue
        values, is_ratio = scaled(part)
        every = detection.detect(
            at_s, values, false_alarms=settings.false_alarms, confidence=settings.confidence
        )
        steps = [entry for entry in every if _is_reported(entry, is_ratio, settings)]
        negligible += len(every) - len(steps)
        changes += _changes(series, part, steps, is_ratio, settings, judge)
        levels = [entry.index for entry in every]
        noise += [
            _noise_change(series, part, detected, is_ratio)
            for detected in noise_changes.detect(
                at_s, values, levels, false_alarms=settings.false_alarms
            )
        ]
    history = SeriesHistory(
        **{entry.name: getattr(series, entry.name) for entry in fields(series)},
        gaps=tuple(_gaps(points)),
        annotations=tuple(_annotations(points)),
        changes=tuple(moved_costs.with_returns(changes)),
        untested=" ".join(untested),
        regression="",
        noise_changes=tuple(noise),
        negligible=negligible,
        newest_is_tested=newest_is_tested,
    )
    return _concluded(history, settings.margin)


def conclude(histories: Sequence[SeriesHistory], margin: float) -> list[SeriesHistory]:
    """Returns the histories as they look beside each other: linked, with costs that moved."""
    moved = moved_costs.with_cost_shifts(link(histories))
    return [_concluded(entry, margin) for entry in moved]


def _concluded(history: SeriesHistory, margin: float) -> SeriesHistory:
    """Writes the sentences of a history."""
    changes = tuple(
        replace(change, sentence=_sentence(history, change)) for change in history.changes
    )
    regression = _regression(history, changes, margin)
    return replace(history, changes=changes, regression=regression)


def _is_reported(step: DetectedStep, is_ratio: bool, settings: HistorySettings) -> bool:
    return not is_ratio or abs(step.size) >= math.log1p(settings.min_change)


def link(histories: Sequence[SeriesHistory]) -> list[SeriesHistory]:
    """Links each series to the one of the same target and setting that ended before it began.

    Where the parameters of a plan were edited, a new series begins.
    """
    return [replace(entry, continues=_continued(entry, histories)) for entry in histories]


def _continued(series: SeriesHistory, histories: Sequence[SeriesHistory]) -> str:
    def setting(entry: SeriesHistory) -> tuple[object, ...]:
        return entry.benchmark, entry.target, entry.factors, entry.unit

    earlier = [
        entry
        for entry in histories
        if setting(entry) == setting(series) and entry.points[-1].at_s < series.points[0].at_s
    ]
    if not earlier:
        return ""
    before = max(earlier, key=lambda entry: entry.points[-1].at_s)
    changed = [
        f"from {level_text(name, before.params.get(name, 'not stated'))} to "
        f"{level_text(name, value)}"
        for name, value in series.params.items()
        if before.params.get(name) != value
    ]
    return (
        f"A new series begins with run {series.points[0].run}, after run {before.points[-1].run}: "
        f"parameters changed ({wording.clean('; '.join(changed)) or 'one was removed'})."
    )


def segments(points: Sequence[HistoryPoint]) -> list[tuple[int, int]]:
    """Returns beginnings and ends of the parts measured on one CPU model."""
    starts = [0]
    known = ""
    for index, point in enumerate(points):
        model = point.facts.get(CPU_MODEL, "")
        if model and known and model != known:
            starts.append(index)
        known = model or known
    return list(zip(starts, [*starts[1:], len(points)], strict=True))


def times(points: Sequence[HistoryPoint]) -> Array:
    """Returns the times of points in seconds since the epoch.

    Points that have one and the same time are taken as a day apart, in their order.
    """
    at_s = [point.at_s for point in points]
    return np.array(at_s) if have_times(at_s) else DAY_S * np.arange(len(points), dtype=np.float64)


def scaled(points: Sequence[HistoryPoint]) -> tuple[Array, bool]:
    """Returns the values, as logarithms where all are above zero, and whether they are."""
    values = np.array([point.estimate.value for point in points])
    positive = bool(np.all(values > 0))
    return (np.log(values) if positive else values), positive


def _untested(points: Sequence[HistoryPoint]) -> str:
    begin = wording.clean(points[0].run)
    verb = "is" if len(points) == 1 else "are"
    return (
        f"{wording.plural(len(points), 'run')} from {begin} on {verb} not tested: it takes "
        f"{step_test.MINIMUM_POINTS} runs."
    )


def _gaps(points: Sequence[HistoryPoint]) -> Iterator[SeriesGap]:
    at_s = times(points)
    if at_s.size < 3:
        return
    distances = np.diff(at_s)
    usual = float(np.median(distances))
    for index in np.flatnonzero(distances > GAP_FACTOR * usual):
        yield SeriesGap(float(at_s[index]), float(at_s[index + 1]))


def _annotations(points: Sequence[HistoryPoint]) -> Iterator[FactChange]:
    known: dict[str, str] = {}
    for point in points:
        for fact, value in point.facts.items():
            before = known.get(fact)
            if before is not None and before != value:
                yield FactChange(
                    point.at_s, point.run, fact, before, value, resets=fact == CPU_MODEL
                )
        known |= point.facts


def _changes(
    series: Series,
    points: Sequence[HistoryPoint],
    steps: Sequence[DetectedStep],
    is_ratio: bool,
    settings: HistorySettings,
    judge: Judging | None,
) -> Iterator[ChangePoint]:
    for place, step in enumerate(steps):
        end = steps[place + 1].index if place + 1 < len(steps) else len(points)
        change = _change(series, points, step, is_ratio, settings)
        before = points[steps[place - 1].index if place else 0 : step.index]
        own = judge(series, before, points[step.first : end], change) if judge else []
        status: Status = own[-1].status if own else "suspected"
        yield replace(change, repetitions=tuple(own), status=status)


def _change(
    series: Series,
    points: Sequence[HistoryPoint],
    step: DetectedStep,
    is_ratio: bool,
    settings: HistorySettings,
) -> ChangePoint:
    ends = (step.size, step.low, step.high)
    value, low, high = (math.exp(end) for end in ends) if is_ratio else ends
    unit = "ratio" if is_ratio else series.unit
    method = "step of a regression with seasons and dependent errors; Student's t"
    shift = Estimate(value, low, high, settings.confidence, len(points), unit, method)
    point = points[step.index]
    direction = _direction(series.better, step.size)
    return ChangePoint(
        at_s=point.at_s,
        first_s=points[step.first].at_s,
        last_s=points[step.last].at_s,
        detected_s=points[step.detected].at_s,
        run=point.run,
        previous_run=points[step.index - 1].run,
        direction=direction,
        shift=shift,
        is_ratio=is_ratio,
        false_alarms=step.false_alarms,
        autocorrelation=step.correlation,
        status="suspected",
        simultaneous=tuple(_simultaneous(points, step)),
        repetitions=(),
        sentence="",
        merged_runs=step.merged,
    )


def _noise_change(
    series: Series, points: Sequence[HistoryPoint], detected: DetectedNoise, is_ratio: bool
) -> NoiseChange:
    step = detected.step
    n = len(points)
    method = "ratio of standard deviations about the level; normal interval of its logarithm"
    value = detected.behind / detected.before
    ratio = Estimate(value, detected.low, detected.high, 0.95, n, "ratio", method)
    sides = [
        f"{100 * entry:.2g} %" if is_ratio else units.format_value(entry, series.unit)
        for entry in (detected.before, detected.behind)
    ]
    run = points[step.index].run
    verb = "grew" if value > 1 else "fell"
    sentence = (
        f"{name_of(series)}: the noise {verb} from {sides[0]} to {sides[1]} (standard deviation of "
        f"runs, {value:.2g} [{detected.low:.2g}, {detected.high:.2g}] times) from "
        f"{place_of(series, run)} on; the level is judged separately."
    )
    return NoiseChange(
        at_s=points[step.index].at_s,
        first_s=points[step.first].at_s,
        last_s=points[step.last].at_s,
        detected_s=points[step.detected].at_s,
        run=run,
        previous_run=points[step.index - 1].run,
        before=detected.before,
        behind=detected.behind,
        ratio=ratio,
        is_ratio=is_ratio,
        false_alarms=step.false_alarms,
        sentence=sentence,
    )


def _sentence(series: Series, change: ChangePoint) -> str:
    shift = shift_text(change.shift, change.is_ratio)
    kinds: list[str] = [change.direction, change.status]
    if change.cost_shift:
        kinds = ["cost shift", change.status]
    text = f"{name_of(series)}: {shift} from {place_of(series, change.run)} "
    text += f"until {place_of(series, change.went_away)}" if change.went_away else "on"
    if change.went_away:
        kinds.append("went away")
    extra = f": {change.cost_shift}" if change.cost_shift else ""
    return f"{text} ({', '.join(kinds)}){extra}."


def place_of(series: Series, run: str) -> str:
    """Returns a run as words; where times do not order the runs, with its number."""
    if series.has_times:
        return f"run {run}"
    return f"run {run} (number {series.numbers[run]} of {len(series.points)})"


def shift_text(shift: Estimate, is_ratio: bool) -> str:
    """Returns a shift in words: +5.1 % [4.2 %, 6.0 %], or a difference with its unit."""
    ends = (shift.value, shift.low, shift.high)
    if is_ratio:
        texts = ["?" if end is None else f"{100 * (end - 1):+.1f} %" for end in ends]
    else:
        texts = ["?" if end is None else units.format_value(end, shift.unit) for end in ends]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def name_of(series: Series) -> str:
    """Returns target, metric and setting of a series."""
    setting = wording.factors_text(series.factors)
    name = f"{wording.clean(series.target)}: {wording.full_name(series.benchmark, series.metric)}"
    return f"{name} ({setting})" if setting else name


def _direction(better: Better, size: float) -> Direction:
    if better is Better.NONE:
        return "changed"
    return "better" if (size > 0) == (better is Better.HIGHER) else "worse"


def _simultaneous(points: Sequence[HistoryPoint], step: DetectedStep) -> Iterator[str]:
    """Yields what else changed between the last run before the change and the first behind it."""
    before = points[max(0, min(step.first, step.index) - 1)].facts
    after = points[max(step.last, step.index)].facts
    for fact, value in after.items():
        if fact in before and before[fact] != value:
            if fact == MACHINE:
                yield "The target is another machine."
            else:
                yield f"{fact}: {wording.clean(before[fact])} → {wording.clean(value)}."
    sides = (
        points[max(0, step.index - STEAL_POINTS) : step.index],
        points[step.index : step.index + STEAL_POINTS],
    )
    steal = [[point.steal for point in side if point.steal is not None] for side in sides]
    if all(steal):
        old, new = (median(side) for side in steal)
        if abs(new - old) >= STEAL_MARGIN:
            verb = "rose" if new > old else "fell"
            yield (
                f"CPU time stolen by the hypervisor {verb} from {wording.percent(old) or '0 %'} "
                f"to {wording.percent(new) or '0 %'}."
            )


def _regression(series: Series, changes: Sequence[ChangePoint], margin: float) -> str:
    """A sentence on the change since which the metric is worse; empty where it is not.

    Changes since then are added up, so that one that was undone is none.
    """
    worst, since, worst_change = 0.0, 0.0, None
    for change in reversed(changes):
        is_none = change.status == "refuted" or change.direction == "changed"
        if is_none or change.cost_shift:
            continue
        sign = 1.0 if change.direction == "worse" else -1.0
        since += sign * _relative(series, change)
        if since > worst and change.direction == "worse" and not change.went_away:
            worst, worst_change = since, change
    if worst_change is None or worst <= margin:
        return ""
    return worst_change.sentence


def _relative(series: Series, change: ChangePoint) -> float:
    """Size of a change relative to the level; above the margin at once for values about zero."""
    if change.is_ratio:
        ratio = change.shift.value
        return max(ratio, 1 / ratio) - 1
    level = abs(float(np.median([point.estimate.value for point in series.points])))
    return abs(change.shift.value) / level if level else math.inf
