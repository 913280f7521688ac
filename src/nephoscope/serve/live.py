"""A run in progress as a stream of events, read from its files as they grow.

All readers of a run share one look at its files a second. The events have numbers; a reader who
comes late, or returns, begins with the oldest event that is still there, so that a slow reader
costs nothing but its connection.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import instruments
from nephoscope.core.documents import to_json
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Shape, TrialRecord
from nephoscope.core.naming import line_name
from nephoscope.httpd.responses import Refusal
from nephoscope.results.counters import COUNTERS
from nephoscope.serve.live_progress import described, left_s
from nephoscope.store import RUNNING, StoredRun

if TYPE_CHECKING:
    import pyarrow as pa

POLL_INTERVAL_S = 1.0
KEEP_EVENTS = 2000
MAX_READERS = 100
MAX_TRIALS_READ = 200
"""Trials that were there before the first reader came; those before are counted only."""
MAX_GAPS = 200
"""Longest gaps of a trial that are sent."""
HEARTBEAT_S = 15.0

_GAPS = (instruments.CPU_GAPS, "gap_event_ns")


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event of the stream. kind: `status`, `journal`, `trial`, `problem` or `end`."""

    number: int
    kind: str
    content: Mapping[str, Any]


class RunFiles:
    """Reads what was added to the files of a run since the last look."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._events_read = 0
        self._trials: dict[str, str | None] = {}
        """The digest of each trial's file, empty for one that was stored merged with others; None
        once it was taken away."""
        self._omitted = 0
        self._status: Mapping[str, Any] = {}
        self._is_first = True
        self._spent_s = 0.0

    def new_events(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Returns kind and content of the new events; the last one is `end` once the run ended."""
        self._run.reread()
        state = self._run.status  # before the files: what is written later, the next look sees
        events = self._run.events()[self._events_read :]
        self._events_read += len(events)
        content: list[tuple[str, Mapping[str, Any]]] = [
            ("journal", described(event, self._run.manifest.settings))
            for event in events
            if event.get("event") not in ("trials_stored", "trials_merged")
        ]
        added = self._new_trials(events)
        if self._is_first and len(added) > MAX_TRIALS_READ:
            self._omitted = len(added) - MAX_TRIALS_READ
            added = added[self._omitted :]
        self._is_first = False
        content += map(self._trial, added)
        self._spent_s += sum(float(event.get("spent_s") or 0) for event in events)
        status = self._status_of(state)
        if status != self._status:
            self._status = status
            content.append(("status", status))
        if state != RUNNING:
            content.append(("end", {"state": state}))
        return content

    def _new_trials(self, events: Iterable[Mapping[str, Any]]) -> list[str]:
        names: list[str] = []
        for event in events:
            if event.get("event") == "trials_merged":
                new = {f"{name}.parquet": "" for name in event.get("trials") or ()}
                stored = {**new, **self._trials}
            elif event.get("event") == "trials_stored":
                stored = event.get("sha256") or {}
            else:
                continue
            names += [name for name, digest in stored.items() if name not in self._trials]
            self._trials |= stored
        return [name for name in names if self._trials[name] is not None]

    def _trial(self, name: str) -> tuple[str, Mapping[str, Any]]:
        try:
            record, table = self._run.trial(name.removesuffix(".parquet"), self._trials[name] or "")
        except StoreError as error:
            return "problem", {"trial": name, "error": str(error)}
        scalars = frozenset(self._run.metrics_of_shape(Shape.SCALAR))
        return "trial", _trial_content(record, table, scalars)

    def _status_of(self, state: str) -> Mapping[str, Any]:
        manifest = self._run.manifest
        alternatives = sum(len(setting.get("targets") or [0]) for setting in manifest.settings)
        ended = [event for event in self._run.events() if event.get("event") == "alternative_ended"]
        return {
            "run": self._run.id,
            "plan": manifest.plan_name,
            "question": manifest.question,
            "state": state,
            "started_at": manifest.started_at,
            "trials": sum(digest is not None for digest in self._trials.values()),
            "trials_omitted": self._omitted,
            "alternatives": alternatives,
            "alternatives_ended": len(ended),
            "spent_s": self._spent_s,
            "budget_s": manifest.budget_s,
            "left_s": None if state != RUNNING else self._left_s(alternatives),
            "targets": list(manifest.target_names),
        }

    def _left_s(self, alternatives: int) -> float | None:
        names = [
            name.removesuffix(".parquet")
            for name, digest in self._trials.items()
            if digest is not None
        ]
        return left_s(names, alternatives, self._spent_s, self._run.manifest.budget_s)


def _trial_content(
    record: TrialRecord, table: pa.Table, scalars: frozenset[tuple[str, str]]
) -> dict[str, Any]:
    """Returns a trial with the median of each scalar metric, and its longest gaps."""
    columns = ("benchmark", "metric", "target", "factors", "unit")
    groups: dict[tuple[str, ...], list[float]] = {}
    gaps: list[tuple[int, float]] = []
    rows = zip(*(table[name].to_pylist() for name in (*columns, "at_ns", "value")), strict=True)
    for *key, at_ns, value in rows:
        if tuple(key[:2]) in scalars:
            groups.setdefault(tuple(key), []).append(value)
        elif tuple(key[:2]) == _GAPS:
            gaps.append((at_ns, value))
    longest = sorted(gaps, key=lambda gap: -gap[1])[:MAX_GAPS]
    return {
        "trial": record.key.name,
        "round": record.key.round,
        "target": record.key.target,
        "benchmark": record.benchmark,
        "factors": to_json(record.factors),
        "status": record.status.value,
        "reasons": list(record.reasons),
        "started_at": record.started_at,
        "elapsed_ns": record.elapsed_ns,
        "counters": {key: record.counters.get(key) for key, _, _ in COUNTERS},
        "samples": table.num_rows,
        "values": [
            {
                **(names := dict(zip(columns, key, strict=True))),
                "label": line_name(record.benchmark, names["metric"], json.loads(names["factors"])),
                "value": median(values),
                "n": len(values),
            }
            for key, values in groups.items()
        ],
        "gaps": sorted(longest),
        "gaps_total": len(gaps),
    }


class _Followed:
    """A run that readers follow: its last events, and who waits for the next."""

    def __init__(self, run: StoredRun) -> None:
        self.files = RunFiles(run)
        self.mark = secrets.token_hex(4)
        self.events: deque[LiveEvent] = deque(maxlen=KEEP_EVENTS)
        self.changed = asyncio.Condition()
        self.readers = 0
        self.has_ended = False
        self.task: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        """Looks at the files until the run ends or nobody reads."""
        number = 0
        while not self.has_ended:
            try:
                added = await asyncio.to_thread(self.files.new_events)
            except Exception as error:  # whatever it is, the readers must not wait for ever
                added = [("problem", {"error": str(error)}), ("end", {"state": "unreadable"})]
            if added:
                for kind, content in added:
                    number += 1
                    self.events.append(LiveEvent(number, kind, content))
                self.has_ended = added[-1][0] == "end"
                async with self.changed:
                    self.changed.notify_all()
            if not self.has_ended:
                await asyncio.sleep(POLL_INTERVAL_S)


class Live:
    """Streams of runs, each read once however many readers it has."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}

    def check_capacity(self) -> None:
        """Raises Refusal where no further reader is served."""
        if sum(followed.readers for followed in self._followed.values()) >= MAX_READERS:
            raise Refusal(503, "Too many pages follow runs.", "Close some of them.")

    async def stream(self, run: StoredRun, last_id: str = "") -> AsyncIterator[str]:
        """Yields events as text of an event stream. last_id: of the event that was seen last."""
        followed = self._followed.get(run.id)
        if followed is None or (followed.has_ended and not followed.readers):
            followed = self._followed[run.id] = _Followed(run)
            followed.task = asyncio.create_task(followed.follow())
        mark, _, number = last_id.partition(".")
        is_number = number.isdecimal() and len(number) <= 18
        seen = int(number) if mark == followed.mark and is_number else 0
        followed.readers += 1
        try:
            async for text in _texts(followed, seen):
                yield text
        finally:
            followed.readers -= 1
            if not followed.readers:
                self._leave(run.id, followed)

    def _leave(self, run_id: str, followed: _Followed) -> None:
        if followed.task is not None:
            followed.task.cancel()
        if self._followed.get(run_id) is followed:
            del self._followed[run_id]


async def _texts(followed: _Followed, seen: int) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    while True:
        for event in [event for event in followed.events if event.number > seen]:
            seen = event.number
            text = json.dumps(to_json(event.content))
            yield f"id: {followed.mark}.{seen}\nevent: {event.kind}\ndata: {text}\n\n"
        async with followed.changed:
            # Events may have come while the reader took those before.
            if followed.events and followed.events[-1].number > seen:
                continue
            if followed.has_ended:
                return
            try:
                await asyncio.wait_for(followed.changed.wait(), HEARTBEAT_S)
            except TimeoutError:
                yield ": still here\n\n"
