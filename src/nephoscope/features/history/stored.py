"""The history of the series of a store, with what repetitions of their runs show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nephoscope.features.compaction.reading import StoredSummaries
from nephoscope.features.history import forecast as predicting
from nephoscope.features.history.records import History
from nephoscope.features.history.result import HistorySettings, analyse, conclude
from nephoscope.features.history.series import Series
from nephoscope.store import Store


def of_series(
    store: Store,
    runs: StoredSummaries,
    every_series: Sequence[Series],
    notes: Sequence[str],
    metric: str,
    settings: HistorySettings,
    forecast: bool = False,
    back_test: bool = False,
) -> History:
    """Returns the series with their changes, and with forecasts and their test where wanted.

    runs: those that the series were read of; their repetitions confirm or refute changes.
    """
    judge = None
    if runs.repetitions():
        # It can start repetitions, too: plans and benchmarks take a fifth of a command's start.
        from nephoscope.features.history.confirm import Judge

        judge = Judge(store, runs, settings.margin, settings.confidence)
    histories = [analyse(entry, settings, judge) for entry in every_series]
    results = conclude(histories, settings.margin)
    timed = [entry for entry in every_series if entry.has_times]
    if (forecast or back_test) and len(timed) < len(every_series):
        notes = [*notes, f"{len(every_series) - len(timed)} series have no times to predict for."]
    classes = predicting.classes_of(timed, settings.false_alarms) if forecast or back_test else []
    if forecast:
        own = {id(entry.series): [entry] for levels in classes for entry in levels}
        results = [
            replace(result, forecasts=tuple(predicting.forecasts(own.get(id(series), []))))
            for result, series in zip(results, every_series, strict=True)
        ]
    return History(
        metric,
        settings.false_alarms,
        settings.margin,
        settings.confidence,
        tuple(results),
        tuple(notes),
        tuple(
            entry
            for levels in classes
            if forecast and len(levels) > 1
            for entry in predicting.forecasts(levels)
        ),
        predicting.back_test(classes) if back_test else None,
        settings.min_change,
    )
