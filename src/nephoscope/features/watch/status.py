"""The status of the watches of a store, from their definitions, events and locks."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from nephoscope.core.errors import StoreError
from nephoscope.features.watch.events import state_of
from nephoscope.features.watch.folder import WatchFolder
from nephoscope.features.watch.loop import schedule_of
from nephoscope.features.watch.records import Definition, FailingTarget, WatchList, WatchStatus
from nephoscope.store import Store


def watches_of(store: Store, problems: list[str]) -> WatchList:
    """Returns the watches of a store by name.

    problems: receives a sentence for each watch that is damaged or of a later version.
    """
    watches = []
    for folder in WatchFolder(store, "any").siblings():
        if (folder.path / "watch.json").exists():
            try:
                watches.append(status_of(folder))
            except StoreError as error:
                problems.append(str(error))
    return WatchList(tuple(watches))


def status_of(folder: WatchFolder) -> WatchStatus:
    """Returns the status of one watch."""
    definition, state = folder.read(), state_of(folder.events)
    running = folder.is_running
    next_start = None
    if running:
        at_s = schedule_of(definition).next(time.time()).at_s
        next_start = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
    return WatchStatus(
        name=definition.name,
        plan=definition.plan,
        schedule=words_of(definition),
        running=running,
        measuring=folder.is_measuring,
        series=state.series,
        next_start=next_start,
        last_end=state.last_end or None,
        last_run=state.last_run or None,
        verdict=state.verdict,
        events=state.counts,
        failing=tuple(
            FailingTarget(name, int(failures), int(skips), str(sentence))
            for name, (failures, skips, sentence) in sorted(state.failing.items())
        ),
    )


def words_of(definition: Definition) -> str:
    """Returns the schedule in words, as the options that give it."""
    if definition.every_s is not None:
        return f"every {definition.every_s:g} s"
    zone = "" if definition.time_zone == "UTC" else f" {definition.time_zone}"
    return f"cron {definition.cron}{zone}"
