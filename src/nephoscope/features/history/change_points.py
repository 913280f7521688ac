"""Finds the change points of a series, point by point and then over the whole series.

After each point the last WINDOW points are tested for a step (`step_test`). A step that is
accepted becomes a part of the mean, so that later points are compared with the new level while
trend, season and autocorrelation are still estimated from all points; at the end the position of
each is estimated again from the points on both sides. `thresholds.json` holds the scores that
stationary series of WINDOW points exceed with a given probability, whatever their autocorrelation;
it was simulated by tools/change_point_thresholds.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from nephoscope.features.history import step_test
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array

WINDOW = 200
"""Points that are tested together; the false-alarm rate is that of as many points."""
FALSE_ALARMS = 0.05
SAME_STEP = 10
"""Points within which two alarms are of one step, whose position the second one corrects."""


@dataclass(frozen=True, slots=True)
class DetectedStep:
    """A step of a series.

    index: of the first point of the new level; first, last: the interval in which it lies.
    detected: index of the point with which it was detected. size: of the step in the unit of the
    values, low and high: its interval. false_alarms: the lowest tabulated false-alarm rate at which
    it is reported. correlation: autocorrelation of the noise. noise_sd: standard deviation of the
    noise.
    """

    index: int
    first: int
    last: int
    detected: int
    size: float
    low: float
    high: float
    false_alarms: float
    correlation: float
    noise_sd: float


def detect(
    at_s: Array,
    values: Array,
    *,
    false_alarms: float = FALSE_ALARMS,
    confidence: float = 0.95,
) -> list[DetectedStep]:
    """Returns the change points in order of time.

    at_s: times in seconds, ascending. values: finite. false_alarms: probability that WINDOW points
    of a stationary series have a change point (0.01 to 0.2). confidence: of the intervals.
    """
    alarms = _alarms(at_s, values, false_alarms)
    return [_refined(at_s, values, alarms, place, confidence) for place in range(len(alarms))]


@dataclass(slots=True)
class _Alarm:
    """index: current estimate; detected: point of the alarm; score, effective: see StepTest."""

    index: int
    detected: int
    score: float
    effective: float


def _alarms(at_s: Array, values: Array, false_alarms: float) -> list[_Alarm]:
    """Tests after each point, as if the points arrived now."""
    alarms: list[_Alarm] = []
    for end in range(step_test.MINIMUM_POINTS, at_s.size + 1):
        start, known = _window(end, alarms)
        if not step_test.is_testable(at_s[start:end]):
            continue
        test = step_test.step_test(at_s[start:end], values[start:end], known)
        if test.score <= threshold(test.effective, false_alarms):
            continue
        index = start + test.index
        near = next((alarm for alarm in alarms if abs(alarm.index - index) <= SAME_STEP), None)
        if near is None:
            alarms.append(_Alarm(index, end - 1, test.score, test.effective))
            alarms.sort(key=lambda alarm: alarm.index)
            continue
        further_steps = [step for step in known if start + step != near.index]
        again = step_test.step_test(at_s[start:end], values[start:end], further_steps)
        if abs(start + again.index - near.index) <= SAME_STEP:
            near.index = start + again.index
    return alarms


def _window(end: int, alarms: Sequence[_Alarm]) -> tuple[int, list[int]]:
    """Returns the first point that is tested with the one before `end`, and the steps since."""
    start = max(0, end - WINDOW)
    for alarm in alarms:
        # Too few points are left of the level before this step to estimate it.
        if start < alarm.index < start + step_test.MINIMUM_BEFORE:
            start = alarm.index
    return start, [alarm.index - start for alarm in alarms if start < alarm.index < end]


def _refined(
    at_s: Array, values: Array, alarms: Sequence[_Alarm], place: int, confidence: float
) -> DetectedStep:
    """Estimates a step again from the points up to WINDOW before and behind it."""
    alarm = alarms[place]
    alarm_indices = [raised.index for raised in alarms if raised is not alarm]
    first, last = max(0, alarm.index - WINDOW), min(at_s.size, alarm.index + WINDOW)
    known = [
        index - first
        for index in alarm_indices
        if first + step_test.MINIMUM_AFTER <= index <= last - step_test.MINIMUM_AFTER
    ]
    # The candidates end where the neighbouring steps stand.
    bounds = (
        max((index for index in alarm_indices if index < alarm.index), default=0),
        min((index for index in alarm_indices if index > alarm.index), default=at_s.size),
    )
    test = step_test.step_test(
        at_s[first:last],
        values[first:last],
        known,
        (
            max(bounds[0], alarm.index - 2 * SAME_STEP) - first,
            min(bounds[1], alarm.index + 2 * SAME_STEP) - first,
        ),
    )
    half = 0.0
    if test.se > 0:
        half = t_quantile(max(1.0, test.effective), confidence) * test.se
    return DetectedStep(
        index=first + test.index,
        first=first + test.first,
        last=first + test.last,
        detected=alarm.detected,
        size=test.size,
        low=test.size - half,
        high=test.size + half,
        false_alarms=min(
            false_alarm_rate(alarm.effective, alarm.score),
            false_alarm_rate(test.effective, test.score),
        ),
        correlation=test.correlation,
        noise_sd=test.noise_sd,
    )


def threshold(effective: float, false_alarms: float) -> float:
    """Returns the score above which a step is reported; see `step_test.effective_points`.

    Between the tabulated rates it is interpolated over their logarithms.
    """
    knots, rates, scores = _table()
    at = math.log(max(effective, 1e-9))
    by_rate = [float(np.interp(at, knots, row)) for row in scores]
    return float(np.interp(math.log(false_alarms), rates, by_rate))


def false_alarm_rate(effective: float, score: float) -> float:
    """Returns the lowest tabulated false-alarm rate at which a score is reported."""
    knots, rates, scores = _table()
    at = math.log(max(effective, 1e-9))
    exceeded = [
        math.exp(rate)
        for rate, row in zip(rates, scores, strict=True)
        if score > float(np.interp(at, knots, row))
    ]
    return round(min(exceeded, default=math.exp(rates[-1])), 6)


@cache
def _table() -> tuple[list[float], list[float], list[list[float]]]:
    """Logarithms of the effective numbers of points and of the rates, and the scores."""
    text = (
        resources.files("nephoscope.features.history")
        .joinpath("thresholds.json")
        .read_text("utf-8")
    )
    table: dict[str, Any] = json.loads(text)
    return (
        [math.log(points) for points in table["effective_points"]],
        [math.log(rate) for rate in table["false_alarms"]],
        table["scores"],
    )
