"""Finds the change points of a series at every time scale, point by point.

After every few points the last WINDOW points are tested for a step (`step_test`). A step that is
accepted becomes a part of the mean, so that later points are compared with the new level; at the
end the position of each is estimated again from the points on both sides. The same is done with
medians of 4, 16, 64, … points, so that a window covers minutes as well as months. `thresholds.json`
holds the scores that series of WINDOW points without a step exceed with a given probability;
tools/change_point_thresholds.py simulates them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from typing import Any

import numpy as np

from nephoscope.stats.change_points import seasons, step_test
from nephoscope.stats.change_points.noise import WHITE, NoiseModel
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.values import Array

WINDOW = 200
"""Points that are tested together; the false-alarm rate is that of as many points."""
FALSE_ALARMS = 0.05
DEPENDENT_SHARE = 1 / 4
"""Part of the rate of false alarms at which a step counts beside noise that depends on itself: the
drifts and repeated shocks of real series are more than the simulated kinds of noise."""
SAME_STEP = 10
"""Points within which two alarms are of one step, whose position the second one corrects."""
STRIDE = 3
"""Points between two tests."""
FACTOR = 4
"""Points, or medians of them, that a point of the next coarser scale merges."""
RECENT = 2000
"""Points of each scale that are tested; what lies before them is tested at coarser scales."""
_PROFILE_POINTS = 10_000
USUAL_TESTS = 8
"""Tests after which a noise model is chosen again."""


@dataclass(frozen=True, slots=True)
class DetectedStep:
    """A step of a series.

    index: of the first point of the new level; first, last: the interval in which it lies.
    detected: index of the point with which it was detected. size: of the step in the unit of the
    values, low and high: its interval. false_alarms: the lowest tabulated false-alarm rate at which
    it is reported. correlation: autocorrelation of the noise. noise_sd: standard deviation of the
    noise. merged: points of which the medians were tested.
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
    merged: int = 1


def detect(
    at_s: Array,
    values: Array,
    *,
    false_alarms: float = FALSE_ALARMS,
    confidence: float = 0.95,
    smallest: float = 0.0,
) -> list[DetectedStep]:
    """Returns the change points in order of time.

    at_s: times in seconds, ascending. values: finite. false_alarms: probability that WINDOW points
    of a stationary series have a change point (0.01 to 0.2). confidence: of the intervals.
    smallest: size from which on a step is reported, in the unit of the values.
    """
    detector = Detector(false_alarms)
    detector.add(at_s, values)
    return [entry for entry in detector.steps(confidence) if abs(entry.size) >= smallest]


@dataclass(slots=True)
class _Alarm:
    """index: current estimate, detected: point of the alarm, in points of the series. merged: of
    the scale. score, noise: see StepTest."""

    index: int
    detected: int
    merged: int
    score: float
    noise: NoiseModel


class _Growing:
    """Values at whose end others are added. The room doubles, so that one value costs no copy."""

    def __init__(self) -> None:
        self._room = np.zeros(WINDOW)
        self._size = 0

    def extend(self, values: Array) -> None:
        """Adds values."""
        end = self._size + values.size
        if end > self._room.size:
            room = np.zeros(max(end, 2 * self._room.size))
            room[: self._size] = self.array
            self._room = room
        self._room[self._size : end] = values
        self._size = end

    @property
    def array(self) -> Array:
        """The values so far."""
        return self._room[: self._size]


@dataclass(slots=True)
class _Scale:
    """Medians of `merged` points. tested: how many of them were there at the last test. usual: the
    noise model that was chosen last, and age: tests since then."""

    merged: int
    times: _Growing = field(default_factory=_Growing)
    medians: _Growing = field(default_factory=_Growing)
    tested: int = 0
    usual: NoiseModel = WHITE
    age: int = 0

    @property
    def at_s(self) -> Array:
        """Times of the medians, in seconds."""
        return self.times.array

    @property
    def values(self) -> Array:
        """The medians."""
        return self.medians.array

    def fill(self, finest: _Scale) -> None:
        """Adds the medians of the points of the series that are complete now."""
        start, end = self.at_s.size, finest.at_s.size // self.merged
        if end > start:
            rows = slice(start * self.merged, end * self.merged)
            shape = (end - start, self.merged)
            self.times.extend(np.median(finest.at_s[rows].reshape(shape), axis=1))
            self.medians.extend(np.median(finest.values[rows].reshape(shape), axis=1))


class Detector:
    """Finds change points in a series that grows. A point that is added costs a few tests at most,
    however long the series is."""

    def __init__(self, false_alarms: float = FALSE_ALARMS) -> None:
        self._limit = partial(threshold, false_alarms=false_alarms)
        self._finest = _Scale(1)
        self._scales = [self._finest]
        self._alarms: list[_Alarm] = []
        self._profile: seasons.Profile | None = None
        self._profiled_s = -math.inf
        self._step_test = partial(step_test.step_test, weekends=True)

    def add(self, at_s: Array, values: Array) -> None:
        """Adds points and tests them. at_s: seconds, ascending, behind all points so far."""
        finest = self._finest
        finest.times.extend(at_s)
        finest.medians.extend(values)
        while finest.at_s.size > self._scales[-1].merged * WINDOW:
            self._scales.append(_Scale(FACTOR * self._scales[-1].merged))
        for scale in self._scales[1:]:
            scale.fill(finest)
        if finest.at_s.size and finest.at_s[-1] >= self._profiled_s + seasons.DAY_S:
            self._profiled_s = float(finest.at_s[-1])
            self._learn_profile()
        for scale in self._scales:
            self._test(scale)

    def _learn_profile(self) -> None:
        """Learns the usual course of a day from the finest scale whose points cover weekends."""
        at_s, values = self._finest.at_s, self._finest.values
        for scale in self._scales:
            at_s, values = scale.at_s[-_PROFILE_POINTS:], scale.values[-_PROFILE_POINTS:]
            if scale.at_s.size <= _PROFILE_POINTS or seasons.knows_weekends(at_s):
                break
        self._profile = seasons.profile(at_s, values)
        weekends = not seasons.knows_weekends(at_s)
        self._step_test = partial(step_test.step_test, weekends=weekends)

    def _test(self, scale: _Scale) -> None:
        """Tests the points of a scale that were not tested, as if they arrived now."""
        earliest = max(step_test.MINIMUM_POINTS, scale.at_s.size - RECENT)
        first = max(scale.tested + STRIDE, earliest)
        for end in range(first, scale.at_s.size + 1, STRIDE):
            scale.tested = end
            self._test_end(scale, end)

    def _test_end(self, scale: _Scale, end: int) -> None:
        merged = scale.merged
        start, known = self._window(scale, end)
        at_s, values = self._without_season(scale, start, end)
        if at_s.size < step_test.MINIMUM_POINTS:
            return
        usual = scale.usual if scale.age < USUAL_TESTS else WHITE
        scale.age += 1
        test = self._step_test(at_s, values, known, limit=self._limit, usual=usual)
        if not test.noise.is_white and test.noise != usual:
            scale.usual, scale.age = test.noise, 0
        if test.score <= self._limit(test.noise):
            return
        index = start + test.index
        near = [entry for entry in self._alarms if _is_near(entry, index, merged)]
        if not near:
            detected = min(end * merged, self._finest.at_s.size) - 1
            self._alarms.append(_Alarm(index * merged, detected, merged, test.score, test.noise))
            self._alarms.sort(key=lambda entry: entry.index)
            # A second step that hid behind this one is seen beside it.
            self._test_end(scale, end)
        elif near[0].merged == merged:
            further_steps = [step for step in known if (start + step) * merged != near[0].index]
            again = self._step_test(at_s, values, further_steps, limit=self._limit)
            if _is_near(near[0], start + again.index, merged):
                near[0].index = (start + again.index) * merged

    def _window(self, scale: _Scale, end: int) -> tuple[int, list[int]]:
        """Returns the first point that is tested with the one before `end`, and the steps since."""
        start = max(0, end - WINDOW)
        places = [_place(entry.index, scale.merged) for entry in self._alarms]
        for place in places:
            # Too few points are left of the level before this step to estimate it.
            if start < place < start + step_test.MINIMUM_BEFORE:
                start = place
        return start, [place - start for place in places if start < place < end]

    def _without_season(self, scale: _Scale, start: int, end: int) -> tuple[Array, Array]:
        """Returns points; the season is subtracted where they are too few to estimate it."""
        at_s, values = scale.at_s[start:end], scale.values[start:end]
        profile = self._profile
        if profile is None or (seasons.covers_season(at_s) and not profile.weekly):
            return at_s, values
        return at_s, values - profile.at(at_s)

    def steps(self, confidence: float = 0.95) -> list[DetectedStep]:
        """Returns the change points so far in order of time."""
        steps: list[DetectedStep] = []
        for alarm in self._alarms:
            step = self._refined(alarm, confidence)
            # Two steps so near each other are one, in which a point lies between both levels.
            if steps and step.index - steps[-1].index < step_test.MINIMUM_AFTER:
                step = max(steps.pop(), step, key=lambda entry: abs(entry.size))
            steps.append(step)
        return steps

    def _refined(self, alarm: _Alarm, confidence: float) -> DetectedStep:
        """Estimates a step again from the points up to WINDOW before and behind it."""
        scale = next(entry for entry in self._scales if entry.merged == alarm.merged)
        place = _place(alarm.index, scale.merged)
        further_steps = [
            _place(entry.index, scale.merged) for entry in self._alarms if entry is not alarm
        ]
        first, last = max(0, place - WINDOW), min(scale.at_s.size, place + WINDOW)
        known = [
            index - first
            for index in further_steps
            if first + step_test.MINIMUM_AFTER <= index <= last - step_test.MINIMUM_AFTER
        ]
        # The candidates end where the neighbouring steps stand.
        bounds = (
            max((index for index in further_steps if index < place), default=0),
            min((index for index in further_steps if index > place), default=scale.at_s.size),
        )
        at_s, values = self._without_season(scale, first, last)
        test = self._step_test(
            at_s,
            values,
            known,
            (
                max(bounds[0], place - 2 * SAME_STEP) - first,
                min(bounds[1], place + 2 * SAME_STEP) - first,
            ),
        )
        half = t_quantile(max(1.0, test.freedom), confidence) * test.se if test.se > 0 else 0.0
        bounds = ((first + test.first) * alarm.merged, (first + test.last) * alarm.merged)
        index = (first + test.index) * alarm.merged
        if alarm.merged > 1:
            bounds = (
                max(0, bounds[0] - alarm.merged + 1),
                min(self._finest.at_s.size - 1, bounds[1] + alarm.merged - 1),
            )
            index = _located(self._finest.values, index, alarm.merged)
        return DetectedStep(
            index=index,
            first=min(index, bounds[0]),
            last=max(index, bounds[1]),
            detected=max(alarm.detected, index),
            size=test.size,
            low=test.size - half,
            high=test.size + half,
            false_alarms=min(
                false_alarm_rate(alarm.noise, alarm.score),
                false_alarm_rate(test.noise, test.score),
            ),
            correlation=test.noise.correlation,
            noise_sd=test.noise_sd,
            merged=alarm.merged,
        )


def _place(index: int, merged: int) -> int:
    """Index of the first point of a scale that lies wholly behind a step."""
    return -(-index // merged)


def _is_near(alarm: _Alarm, place: int, merged: int) -> bool:
    """States whether a step at a point of a scale is that of an alarm."""
    distance = abs(alarm.index - place * merged)
    return distance <= (SAME_STEP * merged if alarm.merged == merged else 2 * merged)


def _located(values: Array, index: int, merged: int) -> int:
    """Returns the point about an index at which values leave the level before for the one behind.

    The sum of the distances of the points from the level on their side is the least.
    """
    start, end = max(1, index - merged), min(values.size - 1, index + merged)
    before = float(np.median(values[max(0, start - 4 * merged) : start]))
    behind = float(np.median(values[end : end + 4 * merged]))
    part = values[start:end]
    gain = np.cumsum(np.abs(part - behind) - np.abs(part - before))
    return start + int(np.argmax(np.append(0.0, gain)))


def threshold(noise: NoiseModel, false_alarms: float) -> float:
    """Returns the score above which a step beside this noise is reported.

    Between the tabulated rates it is interpolated over their logarithms.
    """
    rates, independent, dependent = _table()
    if noise.is_white:
        return float(np.interp(math.log(false_alarms), rates, independent))
    return float(np.interp(math.log(DEPENDENT_SHARE * false_alarms), rates, dependent))


def false_alarm_rate(noise: NoiseModel, score: float) -> float:
    """Returns the lowest tabulated false-alarm rate at which a score is reported."""
    rates = [round(math.exp(rate), 6) for rate in _table()[0]]
    return min((rate for rate in rates if score > threshold(noise, rate)), default=rates[-1])


@cache
def _table() -> tuple[list[float], Sequence[float], Sequence[float]]:
    """Logarithms of the rates, and the scores for independent and for dependent noise."""
    text = (
        resources.files("nephoscope.stats.change_points")
        .joinpath("thresholds.json")
        .read_text("utf-8")
    )
    table: dict[str, Any] = json.loads(text)
    return (
        [math.log(rate) for rate in table["false_alarms"]],
        table["independent"],
        table["dependent"],
    )
