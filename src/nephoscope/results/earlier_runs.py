"""How long trials took in earlier runs: read from the journals, which need no samples."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from nephoscope.core.errors import StoreError, UnknownName
from nephoscope.core.model import RECORDED
from nephoscope.measure.plans.estimate import earlier_runs_key
from nephoscope.store import Store, StoredRun, is_number

MAX_RUNS = 30
"""Newest runs that are read; times of long ago are those of another machine or version."""


def times_of_earlier_runs(store: Store) -> dict[tuple[str, str], list[float]]:
    """Seconds of earlier trials as plans.estimate wants them; empty without a readable store."""
    seconds_of: dict[tuple[str, str], list[float]] = {}
    with contextlib.suppress(StoreError):
        for run in store.runs()[-MAX_RUNS:]:
            with contextlib.suppress(StoreError):
                for key, seconds in _trials(run):
                    seconds_of.setdefault(key, []).append(seconds)
    return seconds_of


def _trials(run: StoredRun) -> Iterator[tuple[tuple[str, str], float]]:
    """Yields key and seconds of each trial that ended."""
    if RECORDED in run.labels:
        return  # a replay may be faster
    settings, is_concurrent = run.manifest.settings, run.manifest.plan.get("concurrent")
    for event in run.events():
        # Of trials side by side, each took but its share of what the run spent.
        seconds: Any = _elapsed_s(event) if is_concurrent else event.get("spent_s")
        number = str(event.get("trial", "")).partition("-s")[2].partition("-")[0]
        if event.get("event") != "trial_ended" or not is_number(seconds):
            continue
        if not number.isdecimal() or int(number) >= len(settings):
            continue
        setting = settings[int(number)]
        # A trial beside loads or with hooks took their time too.
        if any(setting.get(key) for key in ("backgrounds", "before", "after")):
            continue
        with contextlib.suppress(UnknownName):
            key = earlier_runs_key(run.spec(setting["benchmark"]), setting["params"])
            yield key, float(seconds)


def _elapsed_s(event: Mapping[str, Any]) -> float | None:
    """Returns the seconds from the beginning of a trial to the end of its last phase."""
    timeline = event.get("timeline")
    if not isinstance(timeline, Mapping):
        return None
    ends = [span[1] for span in timeline.values() if isinstance(span, list) and len(span) == 2]
    return max(ends) / 1e9 if ends and all(map(is_number, ends)) else None
