"""Predicts single measurements of the next week, and tests past predictions.

A target's distribution is its level since the last change, its daily season, a trend where there
certainly is one, and the residuals around them. Autocorrelated points count as fewer, which widens
the tails; with too few for order statistics the tails are those of Student's t. The distribution of
a class is the mixture of those of its targets with equal weights, in their current mix of CPU
models. Nothing is assumed of a change that has not been detected yet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from nephoscope.core.model import Estimate, factors_key
from nephoscope.core.records import dataclass
from nephoscope.features.history.records import ForecastTest, WeekForecast
from nephoscope.features.history.result import scaled, segments, times
from nephoscope.features.history.series import HistoryPoint, Series
from nephoscope.report import wording
from nephoscope.results.run_settings import CPU_MODEL
from nephoscope.stats.change_points import detection, seasons, step_test
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Array

CONFIDENCE = 0.9
WEEK_S = 7 * seasons.DAY_S
MINIMUM_POINTS = 20
"""Points since the last change without which nothing is predicted."""
PART_HOURS = 6
TREND_SCORE = 4.0
"""Absolute t statistic from which on a trend is extrapolated."""
QUANTILES = 199
_GRID = (np.arange(QUANTILES) + 0.5) / QUANTILES


@dataclass(frozen=True, slots=True)
class Model:
    """What a target's points say of its next ones.

    coefficients: of `_columns`, covariance: theirs relative to the noise. residuals: sorted; noise:
    their standard deviation. effective: independent points whose variance is as uncertain.
    start_s, span_s: of the fitted points. logarithmic: values are exponentials.
    """

    coefficients: Array
    seasonal: bool
    residuals: Array
    effective: float
    covariance: Array
    noise: float
    start_s: float
    span_s: float
    logarithmic: bool

    def quantiles(self, at_s: float) -> Array:
        """Returns QUANTILES quantiles of a measurement at a time, in the unit of the metric."""
        row = _columns(np.array([at_s]), self.start_s, self.span_s, self.seasonal)
        row = row[:, : self.coefficients.size][0]
        centre = float(row @ self.coefficients)
        widening = math.sqrt(1 + float(row @ self.covariance @ row))
        out = centre + widening * self._noise_quantiles()
        return np.exp(out) if self.logarithmic else out

    def _noise_quantiles(self) -> Array:
        n = self.effective
        if (1 - CONFIDENCE) / 2 * (n + 1) >= 1:
            # The next of n + 1 exchangeable values is below the k-th with probability k / (n + 1).
            shares = np.clip((_GRID * (n + 1) - 1) / (n - 1), 0.0, 1.0)
            return np.quantile(self.residuals, shares)
        degrees = max(1.0, n - 1)
        half = np.array([t_quantile(degrees, abs(2 * share - 1)) for share in _GRID])
        return np.where(_GRID < 0.5, -half, half) * self.noise


def fit(points: Sequence[HistoryPoint]) -> Model | None:
    """Returns the model of points of one level; None for fewer than MINIMUM_POINTS."""
    if len(points) < MINIMUM_POINTS:
        return None
    at_s = times(points)
    values, logarithmic = scaled(points)
    start_s, span_s = float(at_s[0]), float(at_s[-1] - at_s[0]) or 1.0
    seasonal = seasons.has_season(at_s) and span_s >= seasons.SEASON_DAYS * seasons.DAY_S
    columns = _columns(at_s, start_s, span_s, seasonal)
    # The trend is the last column, so that leaving it out keeps the others.
    for count in (columns.shape[1], columns.shape[1] - 1):
        used = columns[:, :count]
        coefficients = np.asarray(np.linalg.lstsq(used, values, rcond=None)[0], dtype=np.float64)
        rest = values - used @ coefficients
        correlation = max(0.0, step_test.correlation_of(rest, count))
        factors = _inflation(correlation, at_s, count, seasonal)
        freedom = max(1.0, len(points) - float(np.sum(factors)))
        variance = float(rest @ rest) / freedom
        root = np.sqrt(factors)
        covariance = root[:, None] * np.linalg.pinv(used.T @ used) * root[None, :]
        error = math.sqrt(variance * float(covariance[-1, -1]))
        if abs(float(coefficients[-1])) > TREND_SCORE * error:
            break
    return Model(
        coefficients,
        seasonal,
        np.sort(rest) * math.sqrt(len(points) / freedom),
        max(2.0, freedom * (1 - correlation**2) / (1 + correlation**2)),
        covariance,
        math.sqrt(variance),
        start_s,
        span_s,
        logarithmic,
    )


def _inflation(correlation: float, at_s: Array, count: int, seasonal: bool) -> Array:
    """By how much AR(1) noise raises the variance of each coefficient.

    It is the spectral density of the noise at the frequency of the column: 0 for level and trend.
    """
    distance_s = float(np.median(np.diff(at_s)))
    angles = [0.0]
    if seasonal:
        for harmonic in range(1, seasons.HARMONICS + 1):
            angles += 2 * [2 * np.pi * harmonic * distance_s / seasons.DAY_S]
    cosines = np.cos([*angles, 0.0])[:count]
    return np.asarray((1 - correlation**2) / (1 - 2 * correlation * cosines + correlation**2))


def _columns(at_s: Array, start_s: float, span_s: float, seasonal: bool) -> Array:
    columns = [np.ones(at_s.size)]
    if seasonal:
        columns += list(seasons.season(at_s).T)
    return np.stack([*columns, (at_s - start_s) / span_s - 0.5], axis=1)


@dataclass(frozen=True, slots=True)
class Levels:
    """A series, and by (index, index of its detection) the changes between its levels."""

    series: Series
    changes: Sequence[tuple[int, int]]

    def before(self, moment_s: float) -> list[HistoryPoint]:
        """Returns the points of the level that was known at a moment."""
        points = [point for point in self.series.points if point.at_s < moment_s]
        if not points:
            return []
        start = segments(points)[-1][0]
        known = [index for index, detected in self.changes if detected < len(points)]
        return points[max([start, *known]) :]

    def during(self, start_s: float, end_s: float) -> list[HistoryPoint]:
        """Returns the points of a time."""
        return [point for point in self.series.points if start_s <= point.at_s < end_s]


def classes_of(series: Sequence[Series], false_alarms: float) -> list[list[Levels]]:
    """Returns the targets of each benchmark and setting, which are a class."""
    classes: dict[tuple[str, str, str], list[Levels]] = {}
    for one_series in series:
        key = (
            one_series.benchmark,
            factors_key(one_series.factors),
            factors_key(one_series.params),
        )
        classes.setdefault(key, []).append(
            Levels(one_series, _changes_of(one_series, false_alarms))
        )
    return list(classes.values())


def _changes_of(series: Series, false_alarms: float) -> list[tuple[int, int]]:
    """Index of each change, and of the point with which it was detected."""
    out = []
    for start, end in segments(series.points):
        part = series.points[start:end]
        for step in detection.detect(times(part), scaled(part)[0], false_alarms=false_alarms):
            out.append((start + step.index, start + step.detected))
    return out


def forecasts(levels: Sequence[Levels]) -> list[WeekForecast]:
    """Returns what was expected of the last week, beside what was observed, and the next week.

    levels: the targets of a class, or one target.
    """
    if not levels:
        return []
    last_s = max(levels.series.points[-1].at_s for levels in levels)
    out: list[WeekForecast] = []
    for start_s in (last_s - WEEK_S + 1, last_s + 1):
        models = [model for levels in levels if (model := fit(levels.before(start_s))) is not None]
        if not models:
            continue
        seasonal = any(model.seasonal for model in models)
        parts = range(0, 24, PART_HOURS) if seasonal else (0,)
        length = PART_HOURS if seasonal else 24
        for hour in parts:
            out.append(_forecast(levels, models, start_s, (hour, hour + length)))
    return out


def _forecast(
    levels: Sequence[Levels],
    models: Sequence[Model],
    start_s: float,
    hours: tuple[int, int],
) -> WeekForecast:
    """Predicts the measurements in some hours of each day of a week."""
    first_day = math.floor(start_s / seasons.DAY_S) * seasons.DAY_S
    moments = [
        first_day + day * seasons.DAY_S + (hour + 0.5) * 3600.0
        for day in range(8)
        for hour in range(*hours)
    ]
    inside_week = [at for at in moments if start_s <= at < start_s + WEEK_S]
    mixture = np.concatenate([model.quantiles(at) for model in models for at in inside_week])
    low, middle, high = np.quantile(mixture, ((1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2))
    observed = [
        point.estimate.value
        for levels in levels
        for point in levels.during(start_s, start_s + WEEK_S)
        if hours[0] <= point.at_s % seasons.DAY_S / 3600.0 < hours[1]
    ]
    estimate = Estimate(
        float(middle),
        float(low),
        float(high),
        CONFIDENCE,
        sum(model.residuals.size for model in models),
        levels[0].series.unit,
        "quantiles of level, daily season and residuals since the last change",
    )
    text = "all" if hours == (0, 24) else f"{hours[0]:02d} to {hours[1]:02d}"
    return WeekForecast(
        _class_text(levels),
        start_s,
        start_s + WEEK_S,
        text,
        estimate,
        len(observed),
        sum(bool(low <= value <= high) for value in observed),
        float(np.median(observed)) if observed else None,
    )


def _class_text(levels: Sequence[Levels]) -> str:
    """The mix of CPU models of a class, such as `3 targets: 2 Xeon, 1 EPYC`."""
    models = Counter(
        wording.clean(levels.series.points[-1].facts.get(CPU_MODEL, "unknown CPU"))
        for levels in levels
    )
    mix = ", ".join(f"{count} {name}" for name, count in models.most_common())
    return f"{wording.plural(len(levels), 'target')}: {mix}"


def back_test(classes: Sequence[Sequence[Levels]]) -> ForecastTest:
    """Predicts each measurement of every past week from the points before that week."""
    hits = [hit for levels in classes for hit in _hits(levels)]
    if not hits:
        return ForecastTest(CONFIDENCE, 0, None)
    return ForecastTest(CONFIDENCE, len(hits), wilson(sum(hits), len(hits)))


def _hits(levels: Sequence[Levels]) -> Iterator[bool]:
    first_s = min(levels.series.points[0].at_s for levels in levels)
    last_s = max(levels.series.points[-1].at_s for levels in levels)
    start_s = first_s
    while start_s + WEEK_S <= last_s + 1:
        start_s += WEEK_S
        models = [model for levels in levels if (model := fit(levels.before(start_s))) is not None]
        if not models:
            continue
        by_hour: dict[float, tuple[float, float]] = {}
        for series_levels in levels:
            for point in series_levels.during(start_s, start_s + WEEK_S):
                # Predictions of one hour of the week are the same for all targets of a class.
                at_s = math.floor(point.at_s / 3600.0) * 3600.0 + 1800.0
                if at_s not in by_hour:
                    mixture = np.concatenate([model.quantiles(at_s) for model in models])
                    tail = (1 - CONFIDENCE) / 2
                    low, high = np.quantile(mixture, (tail, 1 - tail))
                    by_hour[at_s] = float(low), float(high)
                low, high = by_hour[at_s]
                yield low <= point.estimate.value <= high
