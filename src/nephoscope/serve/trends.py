"""The headline results of each target over its newest runs, with the last change point."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nephoscope.core.errors import NephoscopeError
from nephoscope.core.model import factors_key
from nephoscope.core.naming import plural
from nephoscope.httpd.responses import RenderedResponse
from nephoscope.serve.answers import document
from nephoscope.serve.run_metrics import NamedEstimate
from nephoscope.serve.stored_headlines import stored_headlines
from nephoscope.store import Store, StoredRun
from nephoscope.store.listing import moment_text

if TYPE_CHECKING:
    from nephoscope.features.history.records import ChangePoint, SeriesHistory
    from nephoscope.features.history.result import Judging
    from nephoscope.store.summary import RunMeasurements

PARTIAL = 202
"""Status of an answer that lacks runs or targets which are still to be read."""
ANSWER_S = 10.0
"""Seconds after which an answer leaves the rest to the next one."""


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change point of a series. run: the first one of the new level.

    direction, status, sentence: as in a history.
    """

    at_s: float
    run: str
    direction: str
    status: str
    sentence: str


@dataclass(frozen=True, slots=True)
class HeadlineTrend:
    """A headline result of a target over its newest runs.

    at_s, values: of each run in order of time. change: the last change point, None without one.
    text: that change, or how many runs show none, in a few words.
    """

    target: str
    benchmark: str
    metric: str
    factors: str
    at_s: tuple[float, ...]
    values: tuple[float, ...]
    change: LastChange | None
    text: str


@dataclass(frozen=True, slots=True)
class Trends:
    """Headline results over time. complete: no run or target is left to the next answer."""

    trends: tuple[HeadlineTrend, ...]
    complete: bool


class _Headline(NamedTuple):
    """What tells a headline result from others."""

    target: str
    benchmark: str
    metric: str
    factors: str

    @classmethod
    def of(cls, line: NamedEstimate) -> _Headline:
        return cls(line.target, line.benchmark, line.metric, line.factors)


def trends(
    store: Store,
    runs: Mapping[str, Sequence[str]],
    reported: Mapping[str, Sequence[str]],
    labels: Sequence[str],
) -> RenderedResponse:
    """Returns the trends of targets.

    runs: target -> its newest finished runs, newest first. reported: target -> those whose headline
    results are headlines. labels: names of the labels of all runs,
    which tell whether any may confirm a change.
    """
    from nephoscope.features.compaction.reading import REPETITION, StoredSummaries
    from nephoscope.features.history.confirm import Judge
    from nephoscope.features.history.result import HistorySettings
    from nephoscope.store.selection import Selection

    judge: Judging | None = None
    if REPETITION in labels:
        settings = HistorySettings()
        summaries = StoredSummaries(store, Selection())
        judge = Judge(store, summaries, settings.margin, settings.confidence)
    until_s = time.monotonic() + ANSWER_S
    out: list[HeadlineTrend] = []
    complete = True
    for target, names in runs.items():
        if time.monotonic() > until_s:  # what is done is done at once next time
            complete = False
            break
        known, is_whole = _summaries(store, names, until_s)
        complete &= is_whole
        if not known:
            continue
        headlines = tuple(
            map(_Headline.of, stored_headlines(store, reported.get(target, ()), target))
        )
        if judge is None and is_whole:
            out += _settled(store.path, tuple(names), headlines)
        else:
            out += _of_target(headlines, known, judge)
    return document(Trends(tuple(out), complete), 200 if complete else PARTIAL)


@lru_cache(maxsize=400)
def _settled(
    store: Path, names: tuple[str, ...], headlines: tuple[_Headline, ...]
) -> tuple[HeadlineTrend, ...]:
    """Returns the trends of a target whose runs are over and summarised."""
    known, _ = _summaries(Store(store), names, time.monotonic() + ANSWER_S)
    return tuple(_of_target(headlines, known, None))


def _summaries(
    store: Store, names: Iterable[str], until_s: float
) -> tuple[list[RunMeasurements], bool]:
    """Returns the summaries of runs, and whether none is left for another time."""
    from nephoscope.features.compaction.summarise import stored_summary, summary_of

    known = []
    complete = True
    for name in names:
        run = StoredRun(store.runs_path / name)
        try:
            summary = stored_summary(run)
            if summary is None and time.monotonic() < until_s:
                summary = summary_of(run)
        except NephoscopeError:
            continue  # the list of runs states what cannot be read
        if summary is None:
            complete = False
        else:
            known.append(summary)
    return known, complete


def _of_target(
    headlines: Sequence[_Headline], runs: Sequence[RunMeasurements], judge: Judging | None
) -> Iterable[HeadlineTrend]:
    for headline in headlines:
        history = _history(headline, runs, judge)
        if history is not None:
            change = history.changes[-1] if history.changes else None
            yield HeadlineTrend(
                headline.target,
                headline.benchmark,
                headline.metric,
                headline.factors,
                tuple(point.at_s for point in history.points),
                tuple(point.estimate.value for point in history.points),
                None if change is None else _last_change(change),
                _text(history, change),
            )


def _last_change(change: ChangePoint) -> LastChange:
    return LastChange(change.at_s, change.run, change.direction, change.status, change.sentence)


def _history(
    headline: _Headline, runs: Sequence[RunMeasurements], judge: Judging | None
) -> SeriesHistory | None:
    """Returns the history of a headline result; None where no summary has it."""
    from nephoscope.features.history.result import HistorySettings, analyse, conclude
    from nephoscope.features.history.series import read

    try:
        every, _ = read(
            runs, headline.metric, targets=[headline.target], benchmarks=[headline.benchmark]
        )
    except NephoscopeError:
        return None
    own = [series for series in every if factors_key(series.factors) == headline.factors]
    if not own:
        return None
    newest = max(own, key=lambda series: series.points[-1].at_s)
    settings = HistorySettings()
    return conclude([analyse(newest, settings, judge)], settings.margin)[0]


def _text(history: SeriesHistory, change: ChangePoint | None) -> str:
    from nephoscope.features.history.result import shift_text

    runs = plural(len(history.points), "run")
    if change is None:
        return f"{runs}, too few to test" if history.untested else f"no change in {runs}"
    day = (moment_text(change.at_s) or "")[:10]
    return f"{shift_text(change.shift, change.is_ratio).split(' [')[0]} on {day}, {change.status}"
