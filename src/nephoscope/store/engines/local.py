"""The engine of this machine: a pool of processes, with rows in files between its two stages.

A question whose files are small is answered in this process, since processes take longer to start.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import threading
import types
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from nephoscope.core import leases
from nephoscope.core.errors import RunFailed
from nephoscope.store.engines.question import Item, Question, Result, split

POOL_FROM_BYTES = 64 << 20
"""Size of the files from which on they are read by several processes."""
BUCKETS = 64
"""Files into which the series are spread between the two stages: each is held in memory at once."""


class LocalEngine:
    """Answers on this machine. processes: None for one on each usable CPU."""

    def __init__(self, processes: int | None = None) -> None:
        self._is_explicit = processes is not None
        self._processes = processes or len(os.sched_getaffinity(0))
        self._workers: ProcessPoolExecutor | None = None

    @property
    def name(self) -> str:
        """The engine as it is named in sentences."""
        return f"local:{self._processes}" if self._is_explicit else "local"

    def is_worth(self, tasks: int, size_bytes: int) -> bool:
        """States whether a pool of processes pays; always where their number was named."""
        is_large = self._is_explicit or size_bytes >= POOL_FROM_BYTES
        return min(tasks, self._processes) > 1 and is_large

    def answers(self, question: Question) -> pa.Table:
        """Returns the answers on all series, sorted by series."""
        scan = question.scan
        if not self.is_worth(len(scan.parts), scan.size_bytes):
            rows = (table for part in scan.parts for table in question.rows(part))
            return question.joined(question.answers_of(rows))
        with leases.ScratchFolder() as folder:
            # Every task has the question: with all parts in it, cost would grow with their square.
            packed = pickle.dumps(replace(question, scan=replace(scan, parts=())))
            for _ in self._mapped(partial(_spread, packed, str(folder)), enumerate(scan.parts)):
                pass
            buckets = sorted({path.name.partition(".")[0] for path in folder.iterdir()})
            return question.joined(self._mapped(partial(_answered, packed, str(folder)), buckets))

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, size_bytes: int = 0
    ) -> Iterator[Result]:
        """Yields function(item) in the order of the items."""
        if not self.is_worth(len(items), size_bytes):
            yield from map(function, items)
            return
        yield from self._mapped(function, items)

    def close(self) -> None:
        """Ends the processes."""
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.shutdown(cancel_futures=True)

    def _mapped(self, function: Callable[[Any], Result], items: Iterable[Any]) -> Iterator[Result]:
        if self._workers is None:
            # Not forked: a process with threads, as Arrow has them, may deadlock in its child. A
            # server that forks would leave the folder of its socket when this process is killed.
            context = multiprocessing.get_context("spawn")
            self._workers = ProcessPoolExecutor(self._processes, context, _starts)
        try:
            with _without_main():
                results = self._workers.map(function, items)
            yield from results
        except BrokenProcessPool:
            self.close()
            raise RunFailed(
                "A process that reads the store was killed, perhaps for want of memory.",
                "Use fewer processes (--engine local:1), or a cluster (--engine spark://HOST:PORT).",
            ) from None


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Processes that start meanwhile do not run the program's script again, guarded or not."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _starts() -> None:
    """What a process of the pool does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the one that asks is gone, also in the middle of a task."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _spread(packed: bytes, folder: str, numbered: tuple[int, Any]) -> None:
    """Reads a part, and writes its rows into files by series. numbered: the part behind its
    number."""
    number, part = numbered
    question: Question = pickle.loads(packed)
    writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
    try:
        for table in question.rows(part):
            for key, rows in split(table, question.scan.series):
                bucket = zlib.crc32(repr([*key]).encode()) % BUCKETS
                if bucket not in writers:
                    path = f"{folder}/{bucket:04}.{number}"
                    writers[bucket] = pa.ipc.new_file(path, question.scan.columns)
                writers[bucket].write_table(rows)
    finally:
        for writer in writers.values():
            writer.close()


def _answered(packed: bytes, folder: str, bucket: str) -> pa.Table:
    """Returns the answers on the series of a bucket."""
    question: Question = pickle.loads(packed)
    tables = []
    for path in sorted(Path(folder).glob(f"{bucket}.*")):
        with pa.memory_map(str(path)) as source:
            tables.append(pa.ipc.open_file(source).read_all())
    return question.joined(question.answers_of(tables))
