"""Records of a history: the document of `nephoscope history --json`."""

from __future__ import annotations

import math
from typing import Literal

from nephoscope.core.model import Estimate, stated
from nephoscope.core.records import dataclass
from nephoscope.features.compaction.summarise import MACHINE
from nephoscope.features.history.series import Series
from nephoscope.results.run_settings import HiddenSetting, hidden_settings

Direction = Literal["worse", "better", "changed"]
Status = Literal["suspected", "confirmed", "refuted", "undecided"]


@dataclass(frozen=True, slots=True)
class SeriesGap:
    """A time without runs that is longer than usual. start_s, end_s: seconds since the epoch."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that differs from the run before. resets: a new baseline begins with this run."""

    at_s: float
    run: str
    fact: str
    before: str
    after: str
    resets: bool


@dataclass(frozen=True, slots=True)
class ConfirmingRun:
    """An interleaved repetition of a run behind a change. shift: repeated value relative to the
    level before the change. reference: benchmark and metric beside it; reference_shift: its
    repeated value relative to its level."""

    run: str
    status: Status
    sentence: str
    shift: Estimate | None
    reference: str
    reference_shift: Estimate | None


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change point.

    at_s: of the first run of the new level; first_s, last_s: the interval in which the change lies.
    detected_s: when it could be known first. run, previous_run: first run of the new level, last
    of the old. shift: new level relative to the old (ratio), or their difference where values are
    not all above zero. false_alarms: lowest tabulated false-alarm rate at which it is reported.
    autocorrelation: of the noise. simultaneous: what changed at the same time, sentences.
    """

    at_s: float
    first_s: float
    last_s: float
    detected_s: float
    run: str
    previous_run: str
    direction: Direction
    shift: Estimate
    is_ratio: bool
    false_alarms: float
    autocorrelation: float
    status: Status
    simultaneous: tuple[str, ...]
    repetitions: tuple[ConfirmingRun, ...]
    sentence: str
    merged_runs: int = 1
    went_away: str = ""
    cost_shift: str = ""

    @property
    def size(self) -> float:
        """Returns the signed size of the change: as a logarithm where it is a ratio."""
        return math.log(self.shift.value) if self.is_ratio else self.shift.value


@dataclass(frozen=True, slots=True)
class NoiseChange:
    """A change of the noise of a series: of the standard deviation of its runs about their level.

    at_s, first_s, last_s, detected_s, run, previous_run, false_alarms: see ChangePoint. before,
    behind: robust standard deviations, relative to the level where `is_ratio`, else in the unit of
    the series. ratio: the later one over the earlier one.
    """

    at_s: float
    first_s: float
    last_s: float
    detected_s: float
    run: str
    previous_run: str
    before: float
    behind: float
    ratio: Estimate
    is_ratio: bool
    false_alarms: float
    sentence: str


@dataclass(frozen=True, slots=True)
class WeekForecast:
    """A predicted range of single measurements. start_s, end_s: the time that it is for.

    of: what it is for. hours: local hours of the day in UTC, such as 00 to 06. estimate: median and
    prediction interval. observed: number of measurements in that time and how many lie inside.
    """

    of: str
    start_s: float
    end_s: float
    hours: str
    estimate: Estimate
    observed: int
    inside: int
    observed_median: float | None


@dataclass(frozen=True, slots=True)
class ForecastTest:
    """Predictions of past weeks from the runs before them. coverage: share of values inside."""

    confidence: float
    predictions: int
    coverage: Estimate | None


@dataclass(frozen=True, slots=True)
class SeriesHistory(Series):
    """A series, and what happened between its points.

    untested: why a part is not tested for changes; empty if all is. regression: sentence on a
    change for the worse that was not undone; empty without one. continues: sentence on an earlier
    series of the same target with other parameters, or empty. noise_changes: changes of the noise,
    which are no regression. negligible: number of changes smaller than the smallest one that is
    reported. newest_is_tested: whether the newest runs are tested.
    """

    gaps: tuple[SeriesGap, ...]
    annotations: tuple[FactChange, ...]
    changes: tuple[ChangePoint, ...]
    untested: str
    regression: str
    continues: str = ""
    forecasts: tuple[WeekForecast, ...] = ()
    noise_changes: tuple[NoiseChange, ...] = ()
    negligible: int = 0
    newest_is_tested: bool = True

    @stated
    def hidden_settings(self) -> tuple[HiddenSetting, ...]:
        """Returns the settings that differ between the runs of the series."""
        return hidden_settings([point.facts for point in self.points], compared=(MACHINE,))


@dataclass(frozen=True, slots=True)
class History:
    """Series of a metric over time. false_alarms: probability of a change point in 200 points of a
    stationary series. margin: relative change for the worse that is no regression. min_change:
    relative change from which on it is reported. notes: what is left out, and why. forecasts: of
    the class of all targets."""

    metric: str
    false_alarms: float
    margin: float
    confidence: float
    series: tuple[SeriesHistory, ...]
    notes: tuple[str, ...]
    forecasts: tuple[WeekForecast, ...] = ()
    back_test: ForecastTest | None = None
    min_change: float = 0.0

    @property
    def regressions(self) -> list[str]:
        """Returns the sentences on changes for the worse that were not undone."""
        return [series.regression for series in self.series if series.regression]

    @property
    def untested(self) -> list[SeriesHistory]:
        """Returns the series whose newest runs are not tested."""
        return [series for series in self.series if not series.newest_is_tested]
