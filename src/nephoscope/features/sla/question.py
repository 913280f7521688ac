"""Verdicts as a question for an engine: events of files to the verdicts on each service.

A row is a block of events of one observer, whose columns are cells of bytes. What cannot be read is
a row of a kind of its own.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nephoscope.core import limits
from nephoscope.core.errors import NephoscopeError, UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.sla import events as reading
from nephoscope.features.sla import result
from nephoscope.features.sla.events import EventCounts, Events, Stream
from nephoscope.features.sla.result import ServiceVerdicts, SlaVerdict, VerdictSettings
from nephoscope.features.sla.terms import Agreement
from nephoscope.store.engines.question import Engine, Question, Scan

_EVENTS, _PROBLEM = 0, 1
_PART_ROWS = 1 << 20
"""Rows of a Parquet file that are read by one task."""
SERIES = ("kind", "service")
ORDER = ("file", "part", "block", "observer")
_ARRAYS = ("times", "states", "response_ms", "requests")
ROWS = pa.schema(
    [
        *((name, pa.int64()) for name in ("kind", "file", "part", "block")),
        *((name, pa.string()) for name in ("service", "observer")),
        *((name, pa.binary()) for name in _ARRAYS),
    ]
)
"""file, part, block: place of the events in the order of the rows. A column that a file lacks is
empty. Of a problem, `times` is the error."""
ANSWERS = pa.schema(
    [
        ("kind", pa.int64()),
        ("service", pa.string()),
        *((name, pa.int64()) for name in ("rows", "backward")),
        ("answer", pa.binary()),
    ]
)
"""rows, backward: see `EventCounts`. answer: pickled verdicts, or the error instead."""


@dataclass(frozen=True, slots=True)
class EventPart:
    """Row groups of a file of events; without any the whole file."""

    path: str
    file: int
    part: int = 0
    groups: tuple[int, ...] = ()


def question_of(agreement: Agreement, paths: Sequence[Path], settings: VerdictSettings) -> Question:
    """Returns the question for the verdicts on all services. Raises UsageError for a bad file."""
    parts = [part for file, path in enumerate(paths) for part in _parts_of(path, file)]
    read = partial(rows_of, agreement.is_timed)
    size = sum(path.stat().st_size for path in paths)
    scan = Scan(parts, read, ROWS, SERIES, ORDER, size)
    return Question(scan, partial(verdicts, agreement, settings), ANSWERS)


def judge(
    agreement: Agreement, paths: Sequence[Path], settings: VerdictSettings, engine: Engine
) -> SlaVerdict:
    """Returns the verdict on the events of files as an engine computes it. Raises UsageError."""
    rows = engine.answers(question_of(agreement, paths, settings)).to_pylist()
    answers: dict[str, Any] = {}
    for row in rows:
        if row["kind"] == _PROBLEM:
            raise pickle.loads(row["answer"])
        answers[row["service"]] = row["answer"]
    if not answers:
        raise reading.no_events(paths[0])
    counts = EventCounts(*(sum(row[name] for row in rows) for name in ("rows", "backward")))

    def judged(service: str) -> ServiceVerdicts:
        answer = pickle.loads(answers[service])
        if isinstance(answer, NephoscopeError):
            raise answer
        assert isinstance(answer, ServiceVerdicts)
        return answer

    return result.verdict_of(agreement, counts, sorted(answers), judged, settings)


def folder_of(paths: Sequence[Path]) -> str:
    """Returns the folder below which all files lie, which workers have to see."""
    return os.path.commonpath([path.resolve().parent for path in paths])


def _parts_of(path: Path, file: int) -> Iterator[EventPart]:
    """Yields parts of a file that may be read at once, each of about `_PART_ROWS` rows."""
    own = str(path.resolve())
    groups: list[int] = []
    rows = number = 0
    for group, size in enumerate(reading.row_groups_of(path)):
        if groups and rows + size > _PART_ROWS:
            yield EventPart(own, file, number, tuple(groups))
            groups, rows, number = [], 0, number + 1
        groups.append(group)
        rows += size
    yield EventPart(own, file, number, tuple(groups))


def rows_of(numbers: bool, part: EventPart) -> Iterator[pa.Table]:
    """Yields the events of a part in blocks; an error as a row.

    numbers: whether response times and requests are needed.
    """
    path = Path(part.path)
    row: dict[str, Any] = {"kind": _EVENTS, "file": part.file, "part": part.part}
    try:
        batches = reading.batches_of(path, numbers=numbers, groups=part.groups)
        for block, batch in enumerate(batches):
            events = Events()
            reading.take(events, batch, path)
            own = {**row, "block": block}
            yield pa.Table.from_pylist(list(_blocks(events, own)), schema=ROWS)
    except NephoscopeError as error:
        texts = {"service": "", "observer": "", **dict.fromkeys(_ARRAYS, b"")}
        problem = {**row, "kind": _PROBLEM, "block": 0, **texts, "times": pickle.dumps(error)}
        yield pa.Table.from_pylist([problem], schema=ROWS)


def _blocks(events: Events, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for service, observers in events.parts.items():
        for observer, streams in observers.items():
            for stream in streams:
                arrays = (stream.times_ns, stream.states, stream.response_ms, stream.requests)
                cells = (b"" if array is None else array.tobytes() for array in arrays)
                names = {"service": service, "observer": observer}
                yield {**row, **names, **dict(zip(_ARRAYS, cells, strict=True))}


def verdicts(agreement: Agreement, settings: VerdictSettings, rows: pa.Table) -> pa.Table:
    """Returns the verdicts on one service; of problems the first one."""
    kind, service = (rows[name][0].as_py() for name in SERIES)
    if kind == _PROBLEM:
        return _answer(kind, service, EventCounts(), rows["times"][0].as_py())
    events = Events()
    columns = (rows[name].to_pylist() for name in ("observer", *_ARRAYS))
    for observer, times, states, response_ms, requests in zip(*columns, strict=True):
        events.add(
            service,
            observer,
            Stream(
                np.frombuffer(times, dtype=np.int64),
                np.frombuffer(states, dtype=np.int8),
                np.frombuffer(response_ms) if response_ms else None,
                np.frombuffer(requests) if requests else None,
            ),
        )
    answer: ServiceVerdicts | NephoscopeError
    try:
        if events.rows > limits.SLA_EVENTS:
            raise UsageError(
                f"The service '{service}' has more than {limits.SLA_EVENTS:,} events.",
                "Judge a shorter time.",
            )
        answer = result.judge_service(agreement, events, settings, service)
    except NephoscopeError as error:
        answer = error
    return _answer(kind, service, events, pickle.dumps(answer))


def _answer(kind: int, service: str, counts: EventCounts, answer: bytes) -> pa.Table:
    row = {"kind": kind, "service": service, "answer": answer}
    row |= {"rows": counts.rows, "backward": counts.backward}
    return pa.Table.from_pylist([row], schema=ANSWERS)
