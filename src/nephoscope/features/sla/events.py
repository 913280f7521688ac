"""Events of services: rows of CSV or Parquet files, per service and observer, in order of time.

An event states that an observer saw a service work (`ok` 1), fail (0), or could not tell (empty).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import regular, textfile
from nephoscope.features.sla import leap_seconds, prometheus_events
from nephoscope.features.sla.periods import NS, text_of

COLUMNS = ("time", "service", "observer", "ok", "response_time_ms", "requests", "reason")
"""Columns of a file of events; `time` and `ok` are required."""

UNNAMED = "service"
"""Name of the service of events without one."""

OK, FAILED, UNKNOWN = 1, 0, -1
_LATEST_NS = 4_102_444_800 * NS  # 2100
_BATCH_ROWS = 1 << 20
_BLOCK_BYTES = 8 << 20

Times = NDArray[np.int64]
States = NDArray[np.int8]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stream:
    """Events of one observer of one service, ascending, each instant once.

    response_ms: NaN where it is not stated. requests: that an event stands for.
    """

    times_ns: Times
    states: States
    response_ms: Numbers | None = None
    requests: Numbers | None = None

    def between(self, start_ns: int, end_ns: int) -> Stream:
        """Returns the events from start (inclusive) to end (exclusive)."""
        low, high = np.searchsorted(self.times_ns, [start_ns, end_ns])
        return self.part(slice(int(low), int(high)))

    def part(self, chosen: Any) -> Stream:
        """Returns the events that a slice, a mask or an array of positions selects."""
        return Stream(
            self.times_ns[chosen],
            self.states[chosen],
            None if self.response_ms is None else self.response_ms[chosen],
            None if self.requests is None else self.requests[chosen],
        )


@dataclass(slots=True)
class EventCounts:
    """Numbers of events. backward: rows that are earlier than the row of the same observer before
    them. duplicates: rows that repeat another one of their observer."""

    rows: int = 0
    backward: int = 0
    duplicates: int = 0


@dataclass(slots=True)
class Events(EventCounts):
    """Events by service and observer, in parts as they were read."""

    parts: dict[str, dict[str, list[Stream]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, service: str, observer: str, part: Stream) -> None:
        """Adds the events of an observer that follow those before in the order of the rows."""
        place = self.parts[service][observer]
        self.rows += part.times_ns.size
        self.backward += int((np.diff(part.times_ns) < 0).sum())
        if place and part.times_ns.size and place[-1].times_ns.size:
            self.backward += int(part.times_ns[0] < place[-1].times_ns[-1])
        place.append(part)

    def services(self) -> list[str]:
        """Returns the names of the services in alphabetical order."""
        return sorted(self.parts)

    def observers(self, service: str) -> dict[str, Stream]:
        """Returns the events of a service by observer, sorted, duplicates removed.

        Raises UsageError where an observer reports two outcomes for one instant.
        """
        merged = {}
        for observer, parts in sorted(self.parts[service].items()):
            where = f"service '{service}'" + (f", observer '{observer}'" if observer else "")
            merged[observer], removed = _merged(parts, where)
            self.duplicates += removed
        return merged


def _merged(parts: Sequence[Stream], where: str) -> tuple[Stream, int]:
    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        if all(array is None for array in arrays):
            return None
        # Of several files some may lack a column.
        missing = (np.full(part.times_ns.size, np.nan) for part in parts)
        return np.concatenate(
            [none if array is None else array for array, none in zip(arrays, missing, strict=True)]
        )

    stream = Stream(*map(joined, ("times_ns", "states", "response_ms", "requests")))
    steps = np.diff(stream.times_ns)
    if steps.size and int(steps.min()) < 0:
        # Fully determined by the content, so that the order of rows does not matter.
        keys = [k for k in (stream.requests, stream.response_ms, stream.states) if k is not None]
        stream = stream.part(np.lexsort((*keys, stream.times_ns)))
        steps = np.diff(stream.times_ns)
    again = np.flatnonzero(steps == 0)
    if not again.size:
        return stream, 0
    for name in ("states", "response_ms", "requests"):
        values = getattr(stream, name)
        if values is None:
            continue
        differs = (values[again] != values[again + 1]) & ~(
            np.isnan(values[again]) & np.isnan(values[again + 1])
        )
        if differs.any():
            at_ns = int(stream.times_ns[again[differs][0]])
            raise UsageError(
                f"Two events of {where} at {text_of(at_ns)} contradict each other.",
                "Remove the wrong one, or name their observers.",
            )
    keep = np.ones(stream.times_ns.size, dtype=bool)
    keep[again + 1] = False
    return stream.part(keep), int(again.size)


def read(paths: Sequence[Path], *, numbers: bool = True) -> Events:
    """Returns the events of all files. numbers: whether response times and requests are needed.

    Raises UsageError with the file for whatever is wrong.
    """
    events = Events()

    def check(more: int = 0) -> None:
        if events.rows + more > limits.SLA_EVENTS:
            raise UsageError(
                f"{path}: more than {limits.SLA_EVENTS:,} events.", "Judge fewer services."
            )

    for path in paths:
        # A small Parquet file may have rows that take gigabytes.
        check(sum(row_groups_of(path)))
        for batch in batches_of(path, numbers=numbers):
            take(events, batch, path)
            check()
    if not events.rows:
        raise no_events(paths[0])
    return events


def no_events(path: Path) -> UsageError:
    """Returns the error of files without an event, of which one is named."""
    return UsageError(f"{path}: there are no events.", "Let `nephoscope sla watch` run.")


def batches_of(path: Path, *, numbers: bool, groups: Sequence[int] = ()) -> Iterator[Any]:
    """Yields the rows of a file in batches. groups: row groups of a Parquet file [default: all].

    Raises UsageError with the file for whatever is wrong.
    """
    wanted = COLUMNS[:6] if numbers else COLUMNS[:4]
    reader = _reader_of(path)
    return reader(path, wanted, groups) if reader is _parquet else reader(path, wanted)


def row_groups_of(path: Path) -> list[int]:
    """Returns the number of rows of each row group of a Parquet file; empty for another file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _reader_of(path) is not _parquet:
        return []
    try:
        with regular.open_regular(path) as stream:
            about = pq.ParquetFile(stream).metadata
            return [about.row_group(number).num_rows for number in range(about.num_row_groups)]
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _reader_of(path: Path) -> Callable[..., Iterator[Any]]:
    """Returns the reader of a file, by its first bytes. Raises UsageError."""
    try:
        with regular.open_regular(path) as stream:
            is_parquet = stream.read(4) == b"PAR1"
    except OSError as error:
        raise _unreadable(path, error) from error
    if is_parquet or path.suffix == ".parquet":
        return _parquet
    return prometheus_events.batches if textfile.begins_as_json(path) else _csv


def _parquet(path: Path, wanted: Sequence[str], groups: Sequence[int] = ()) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with regular.open_regular(path) as stream:
            file = pq.ParquetFile(stream)
            names = file.schema_arrow.names
            _check_columns(names, f"{path}:1")
            for field in file.schema_arrow:
                if pa.types.is_nested(field.type):
                    raise pa.ArrowInvalid(f"the column {field.name} is nested")
            # As dictionaries: one long name in each of a million rows is a small file.
            texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
            file = pq.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)
            columns = [name for name in names if name in wanted]
            for batch in file.iter_batches(
                batch_size=_BATCH_ROWS, row_groups=list(groups) or None, columns=columns
            ):
                yield _with_plain_texts(batch)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _with_plain_texts(batch: Any) -> Any:
    """Returns a batch whose times and states are no dictionaries; names stay as they are."""
    import pyarrow as pa

    from nephoscope.store import parquet_bounds

    names = batch.schema.names
    for column in batch.columns:
        parquet_bounds.check_indices(column)
    return pa.RecordBatch.from_arrays(
        [
            column if name in ("service", "observer") else parquet_bounds.plain_texts(column, name)
            for name, column in zip(names, batch.columns, strict=True)
        ],
        names,
    )


def _csv(path: Path, wanted: Sequence[str]) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv as csv

    try:
        with regular.open_regular(path, pipe=False) as stream:
            names = _header(stream.readline(limits.IMPORT_LINE_BYTES), path)
            _check_columns(names, f"{path}:1")
            lines = iter(lambda: stream.readline(limits.IMPORT_LINE_BYTES), b"")
            sample = next((line for line in lines if line.strip()), b"")
            if not sample:
                return
            stream.seek(0)
            types = {
                "service": pa.dictionary(pa.int32(), pa.string()),
                "observer": pa.dictionary(pa.int32(), pa.string()),
                "ok": pa.string(),
                "response_time_ms": pa.float64(),
                "requests": pa.float64(),
                "time": _time_type(sample, names, path),
            }
            reader = csv.open_csv(
                leap_seconds.LeapSeconds(stream),
                read_options=csv.ReadOptions(
                    block_size=_BLOCK_BYTES, column_names=names, skip_rows=1, use_threads=True
                ),
                convert_options=csv.ConvertOptions(
                    column_types={name: types[name] for name in names if name in types},
                    include_columns=[name for name in names if name in wanted],
                    strings_can_be_null=True,
                ),
            )
            yield from reader
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _check_columns(names: Sequence[str], where: str) -> None:
    """Raises UsageError with the columns that are needed, or with one that is not known."""
    if missing := [name for name in ("time", "ok") if name not in names]:
        what = " and ".join(f"'{name}'" for name in missing)
        have = ", ".join(name[:40] for name in names[:10])
        raise UsageError(
            f"{where}: the column {what} of events is missing; there are: {have}."
            if len(missing) == 1
            else f"{where}: the columns {what} of events are missing; there are: {have}.",
            "Rename columns: time is ISO 8601 with its offset or seconds since 1970, ok is 1 or 0 "
            f"(true or false, up or down). Optional: {', '.join(COLUMNS[1:3] + COLUMNS[4:])}.",
        )
    textfile.check_columns(names, where, COLUMNS)


def _header(line: bytes, path: Path) -> list[str]:
    try:
        text = line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{path}:1: this is no UTF-8 text.", "Save it as CSV.") from None
    if not text:
        raise UsageError(f"{path}:1: there is no header.", f"Columns: {', '.join(COLUMNS)}.")
    names = next(textfile.csv_rows(text, str(path)), (1, [""]))[1]
    return [name.strip() for name in names]


def _time_type(line: bytes, names: Sequence[str], path: Path) -> Any:
    """Seconds since 1970 where the first time is a number, else ISO 8601 with its offset."""
    import pyarrow as pa

    text = line.decode("utf-8", errors="replace").strip()
    cells = next(textfile.csv_rows(text, f"{path}:2"), (1, [""]))[1]
    cell = cells[names.index("time")] if len(cells) > names.index("time") else ""
    try:
        float(cell)
    except ValueError:
        return pa.timestamp("ns", tz="UTC")
    return pa.float64()


def _unreadable(path: Path, error: Exception) -> UsageError:
    if isinstance(error, FileNotFoundError):
        return UsageError(f"{path}: there is no such file.", "Check the path.")
    text = (getattr(error, "strerror", None) or str(error)).splitlines()[0].rstrip(".")
    hint = "Columns and their units are in docs/how-to/service-levels.md."
    if "zone offset" in text:
        hint = "State the offset from UTC in each time, for example 2026-06-01T00:00:00Z."
    return UsageError(f"{path}: the events cannot be read: {text[:200]}.", hint)


def take(events: Events, batch: Any, path: Path) -> None:
    """Adds the rows of a batch to the events of their services and observers."""
    columns: Mapping[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    times = _times(columns["time"], path)
    states = _states(columns["ok"], path)
    optional = [
        _numbers(columns[name], path, name) if name in columns else None
        for name in ("response_time_ms", "requests")
    ]
    whole = Stream(times, states, *optional)
    services, codes = _codes(columns.get("service"), UNNAMED, times.size)
    observers, second = _codes(columns.get("observer"), "", times.size)
    keys = codes * len(observers) + second
    for key, part in _split(whole, keys):
        events.add(services[key // len(observers)], observers[key % len(observers)], part)


def _split(whole: Stream, keys: NDArray[np.int64]) -> Iterator[tuple[int, Stream]]:
    """Yields the events of each key in the order of their rows."""
    if not keys.size:
        return
    if int(keys.min()) == int(keys.max()):
        yield int(keys[0]), whole
        return
    # Sorting 16 bits is several times faster.
    short = keys.astype(np.uint16) if int(keys.max()) < 1 << 16 else keys
    order = np.argsort(short, kind="stable")
    ordered = whole.part(order)
    keys = keys[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(keys)) + 1, [keys.size]])
    for start, end in pairwise(starts.tolist()):
        yield int(keys[start]), ordered.part(slice(start, end))


def _times(column: Any, path: Path) -> Times:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if column.null_count:
        raise UsageError(f"{path}: an event has no time.", "Remove the row, or state its time.")
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            raise UsageError(
                f"{path}: the times have no time zone.", "Store them as UTC, or as seconds."
            )
        nanoseconds = np.asarray(pc.cast(column, pa.timestamp("ns", tz="UTC")).cast(pa.int64()))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = np.asarray(column.to_numpy(zero_copy_only=False))
        if not np.isfinite(values).all() or (values.size and np.abs(values).max() > 4.2e9):
            raise UsageError(
                f"{path}: a time lies after the year 2100.", "Times are in seconds since 1970."
            )
        nanoseconds = np.round(values * NS) if values.dtype.kind == "f" else values * NS
    else:
        raise UsageError(f"{path}: 'time' is no time.", "Use ISO 8601 or seconds since 1970.")
    times = nanoseconds.astype(np.int64)
    if times.size and (times.min() < 0 or times.max() > _LATEST_NS):
        raise UsageError(f"{path}: a time lies outside the years 1970 to 2100.", "Correct the row.")
    return times


_WORDS = {
    **dict.fromkeys(("1", "true", "up", "yes"), OK),
    **dict.fromkeys(("0", "false", "down", "no"), FAILED),
    **dict.fromkeys(("", "unknown"), UNKNOWN),
}


def _states(column: Any, path: Path) -> States:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
        filled = pc.fill_null(pc.cast(column, pa.int64(), safe=False), UNKNOWN)
        values = np.asarray(filled.to_numpy(zero_copy_only=False))
        if values.size and (values.min() < UNKNOWN or values.max() > OK):
            raise UsageError(f"{path}: 'ok' is neither 0 nor 1.", "Use 1, 0 or an empty cell.")
        return values.astype(np.int8)
    encoded = pc.dictionary_encode(column)
    words = [str(word).strip().lower() for word in encoded.dictionary.to_pylist()]
    for word in words:
        if word not in _WORDS:
            raise UsageError(
                f"{path}: 'ok' is '{word[:40]}'.",
                "Use 1 or 0 (true or false, up or down), or an empty cell where unknown.",
            )
    table = np.array([*(_WORDS[word] for word in words), UNKNOWN], dtype=np.int8)
    indices = pc.fill_null(encoded.indices, len(words)).to_numpy(zero_copy_only=False)
    return np.asarray(table[indices], dtype=np.int8)


def _numbers(column: Any, path: Path, name: str) -> Numbers:
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = pc.fill_null(pc.cast(column, pa.float64()), float("nan"))
    values = np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64)
    if values.size and (np.isinf(values).any() or bool((values < 0).any())):
        raise UsageError(f"{path}: '{name}' is negative or infinite.", "Correct the row.")
    return values


def _codes(column: Any, default: str, size: int) -> tuple[list[str], NDArray[np.int64]]:
    """Names of a text column and the position of each row's name among them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column is None:
        return [default], np.zeros(size, dtype=np.int64)
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(pc.cast(column, pa.string()))
    names = [str(name)[:200] for name in column.dictionary.to_pylist()]
    indices = pc.fill_null(column.indices, len(names)).to_numpy(zero_copy_only=False)
    return [*names, default], np.asarray(indices, dtype=np.int64)
