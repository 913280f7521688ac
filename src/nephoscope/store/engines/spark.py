"""The engine of an Apache Spark cluster: reads in `mapInArrow`, answers in `applyInArrow`.

Spark moves rows and starts tasks again; all that is computed is the question's own functions.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from nephoscope.core import units
from nephoscope.core.errors import NephoscopeError, RunFailed
from nephoscope.store.engines import spark_session
from nephoscope.store.engines.question import Item, Question, Result
from nephoscope.store.engines.spark_url import SparkUrl

_TASKS_OF_ONE_CORE = 4
"""Tasks for each core, so that a slow one does not hold up the others."""
_BATCH_BYTES = 16 << 20
_TYPES = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.binary(): "binary",
}
_RESULT = pa.schema([("number", pa.int64()), ("result", pa.binary())])


class SparkEngine:
    """Answers on a cluster. folder: local path that the workers have to see; '' for none."""

    def __init__(self, url: SparkUrl, folder: str = "") -> None:
        self._url = url
        self._folder = folder
        self._session: Any = None

    @property
    def name(self) -> str:
        """The engine as it is named in sentences; without the token of its URL."""
        return str(self._url)

    def is_worth(self, tasks: int, size_bytes: int) -> bool:
        """States whether there is anything to ask: who names a cluster wants it used."""
        return tasks > 0

    def answers(self, question: Question) -> pa.Table:
        """Returns the answers on all series, sorted by series."""
        scan = question.scan
        if not scan.parts:
            return question.joined([])
        packed = pickle.dumps(question)
        answers = (
            self._tasks(len(scan.parts))
            .mapInArrow(partial(_rows, packed), _ddl(scan.columns))
            .groupBy(*scan.series)
            # Spark looks for annotations, which a partial has not, to find out what it gets.
            .applyInArrow(lambda rows: _answer(packed, rows), _ddl(question.columns))
        )
        return question.joined([self._collected(answers).cast(question.columns)])

    def each(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, size_bytes: int = 0
    ) -> Iterator[Result]:
        """Yields function(item) in the order of the items."""
        if not items:
            return
        packed = pickle.dumps((function, items))
        frame = self._tasks(len(items)).mapInArrow(partial(_results, packed), _ddl(_RESULT))
        table = self._collected(frame).sort_by("number")
        if table["number"].to_pylist() != list(range(len(items))):
            raise RunFailed(
                f"{self.name} gave {table.num_rows} results of {len(items)}.", "Ask it again."
            )
        for content in table["result"].to_pylist():
            is_error, value = pickle.loads(content)
            if is_error:
                raise value
            yield value

    def close(self) -> None:
        """Ends the application on the cluster."""
        session, self._session = self._session, None
        if session is not None:
            spark_session.end(session)

    def _tasks(self, parts: int) -> Any:
        """Returns numbers from 0 to `parts`, in as many partitions as there shall be tasks."""
        if self._session is None:
            self._session = spark_session.started(self._url, self._folder)
        cores = self._url.cores or spark_session.cores_of(self._session)
        return self._session.range(0, parts, 1, min(parts, _TASKS_OF_ONE_CORE * cores))

    def _collected(self, frame: Any) -> pa.Table:
        try:
            return spark_session.within(self._url.timeout_s, frame.toArrow)
        except TimeoutError:
            text = units.format_value(self._url.timeout_s, "s")
            self.close()
            raise RunFailed(
                f"{self.name} gave no answer within {text}.",
                "Allow more time (?timeout=1h behind the URL), or free cores of the cluster.",
            ) from None
        except NephoscopeError:
            raise
        except Exception as error:
            raise spark_session.translated(error, self._url) from error


def _ddl(columns: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_TYPES[field.type]}" for field in columns)


def _rows(packed: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    question: Question = pickle.loads(packed)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for table in question.rows(question.scan.parts[number]):
                row_bytes = max(1, table.nbytes // table.num_rows)
                yield from table.to_batches(max(1, _BATCH_BYTES // row_bytes))


def _answer(packed: bytes, rows: pa.Table) -> pa.Table:
    question: Question = pickle.loads(packed)
    columns = question.scan.columns
    return question.answer_of(rows.select(columns.names).cast(columns))


def _results(packed: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    function, items = pickle.loads(packed)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            try:
                content = pickle.dumps((False, function(items[number])))
            except NephoscopeError as error:
                content = pickle.dumps((True, error))
            yield pa.RecordBatch.from_pydict(
                {"number": [number], "result": [content]}, schema=_RESULT
            )
