"""What an engine is asked: rows of parts of a store, and one answer for each series of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from nephoscope.core.records import dataclass

if TYPE_CHECKING:
    from nephoscope.store.run import StoredRun

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of a store, read part by part.

    parts: what one task reads, such as a run; picklable, without open files. read: returns the rows
    of a part; a function of a module, or a `partial` of one, that reads nothing but the part.
    columns: of the rows; texts, integers, floats and bytes. series: columns that name the series of
    a row. order: columns by which the rows of a series are sorted, which leave no two rows equal.
    size_bytes: of the files, as far as it is known.
    """

    parts: Sequence[Any]
    read: Callable[[Any], Iterable[pa.Table]]
    columns: pa.Schema
    series: tuple[str, ...]
    order: tuple[str, ...]
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """A scan, and a pure function of the sorted rows of one series to its answer.

    columns: of the answer, those that name the series among them.
    """

    scan: Scan
    answer: Callable[[pa.Table], pa.Table]
    columns: pa.Schema

    def rows(self, part: Any) -> Iterator[pa.Table]:
        """Yields the rows of a part that has any."""
        for table in self.scan.read(part):
            if table.num_rows:
                yield table.select(self.scan.columns.names).cast(self.scan.columns)

    def answer_of(self, rows: pa.Table) -> pa.Table:
        """Returns the answer on a series, whose rows come in any order."""
        # Sorted here, and not by the engine: floats are added in one order on every engine.
        ordered = rows.combine_chunks().sort_by([(name, "ascending") for name in self.scan.order])
        return self.answer(ordered).select(self.columns.names).cast(self.columns)

    def answers_of(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yields the answer on each series of which there are rows."""
        for own in split(rows, self.scan.series):
            yield self.answer_of(own)

    def joined(self, answers: Iterable[pa.Table]) -> pa.Table:
        """Returns answers as one table, sorted by series: engines answer in any order."""
        table = pa.concat_tables([self.columns.empty_table(), *answers])
        return table.sort_by([(name, "ascending") for name in self.scan.series])


class Engine(Protocol):
    """Runs questions. The same question has the same answers on every engine, bit for bit."""

    @property
    def name(self) -> str:
        """The engine as it is named in sentences; without secrets of its URL."""

    def is_worth(self, tasks: int, size_bytes: int) -> bool:
        """States whether asking it pays against reading files of so many bytes in this process."""

    def answers(self, question: Question) -> pa.Table:
        """Returns the answers on all series, sorted by series."""

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, size_bytes: int = 0
    ) -> Iterator[Result]:
        """Yields function(item) in the order of the items.

        function: of a module, or a `partial` of one; items and results are picklable. size_bytes:
        of what is read for them, as far as it is known.
        """

    def close(self) -> None:
        """Ends what the engine started; a further question starts it again."""


def size_of(run: StoredRun) -> int:
    """Returns the size of a run's trials in bytes; 0 where they cannot be read."""
    with contextlib.suppress(OSError):
        return sum(path.stat().st_size for path in run.trials_path.iterdir())
    return 0


def split(rows: pa.Table, series: Sequence[str]) -> Iterator[pa.Table]:
    """Yields the rows of each series, which keep their order."""
    if not rows.num_rows:
        return
    number = np.zeros(rows.num_rows, dtype=np.int64)
    for name in series:
        codes = _codes(rows[name])
        number = np.unique(number * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    order = np.argsort(number, kind="stable")
    begins = np.append(np.flatnonzero(np.diff(number[order], prepend=-1)), number.size)
    for begin, end in zip(begins.tolist(), begins[1:].tolist(), strict=False):
        yield rows.take(pa.array(order[begin:end]))


def _codes(column: pa.ChunkedArray) -> Any:
    encoded = column.dictionary_encode()
    return np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
