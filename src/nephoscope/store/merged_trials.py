"""The trials of a run that ended, in two files: samples as Parquet, records as lines of JSON.

The samples have a row group for each 16th of the trials. The last line of JSON has the digest of
each row group's bytes and of the rest of the file, so that a damaged byte costs the trials of one
group. Every line has a checksum, as those of the journal.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.model import TrialRecord
from nephoscope.core.reading import regular
from nephoscope.store import constant_columns, parquet_bounds, parquet_footer, trialfile
from nephoscope.store.batch import Batch
from nephoscope.store.digests import digest_of, digest_of_file
from nephoscope.store.files import translating_os_errors, writing_atomically
from nephoscope.store.journal import parsed_line, with_checksum
from nephoscope.store.manifest import has_types

GROUPS, GROUP_TRIALS = 16, 4
"""Row groups of a run, and the fewest trials of one. Each group takes some kB in the file's footer
and half a millisecond to read; a damaged byte costs the trials of its group."""
_OTHER_COLUMNS = "its columns are not those of samples"
CHUNK_ROWS = 65_536
"""Rows at which a group ends earlier, and which are read at once."""


def paths(folder: Path) -> tuple[Path, Path]:
    """Returns the two files: samples and records."""
    return folder / "samples.parquet", folder / "records.jsonl"


def write(folder: Path, batches: Iterable[Batch], count: int) -> dict[str, Any]:
    """Writes so many trials (`count`), durably; returns their entry in the manifest.

    Holds the samples of one batch and one row group at a time.
    """
    samples, records = paths(folder)
    warmup = row = 0
    with writing_atomically(records) as lines:
        with (
            writing_atomically(samples) as sink,
            pq.ParquetWriter(
                sink, trialfile.SCHEMA, compression="zstd", write_page_checksum=True
            ) as writer,
        ):
            for group in _groups(batches, max(math.ceil(count / GROUPS), GROUP_TRIALS)):
                for record, rows in group.trials:
                    values = trialfile.record_values(record)
                    lines.write(with_checksum({"row": row, "rows": rows, "record": values}))
                    row += rows
                    warmup += record.key.round < 1
                if group.table.num_rows:
                    writer.write_table(group.table, row_group_size=group.table.num_rows)
        ends = _ends(samples)
        digests = list(_range_digests(samples, ends))
        lines.write(with_checksum({"ends": ends, "sha256": digests}))
    return {
        "trials": count,
        "warmup": warmup,
        "records_sha256": _file_digest(records),
        "samples_sha256": _file_digest(samples),
    }


def _groups(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """Yields the trials in groups of so many, or of fewer where they reach `CHUNK_ROWS`."""
    trials: list[tuple[TrialRecord, int]] = []
    tables: list[pa.Table] = []
    held = 0
    for batch in batches:
        begin = end = 0
        for record, rows in batch.trials:
            trials.append((record, rows))
            held += rows
            end += rows
            if len(trials) >= size or held >= CHUNK_ROWS:
                yield Batch(
                    trials, pa.concat_tables([*tables, batch.table.slice(begin, end - begin)])
                )
                trials, tables, held, begin = [], [], 0, end
        tables.append(batch.table.slice(begin))
    if trials:
        yield Batch(trials, pa.concat_tables(tables))


def _ends(samples: Path) -> list[int]:
    """Returns the ends of each row group and of the file, in bytes from its beginning."""
    metadata = pq.read_metadata(samples)
    with samples.open("rb") as stream:
        begins = [columns[0].begin for columns in parquet_footer.column_chunks(stream)]
    size = samples.stat().st_size
    footer = [size - metadata.serialized_size - 8] if begins else []
    return [*begins[1:], *footer, size]


def _range_digests(path: Path, ends: Sequence[int]) -> Iterator[str]:
    with translating_os_errors(path, "read"), regular.open_regular(path) as stream:
        for start, end in pairwise((0, *ends)):
            yield digest_of(stream.read(end - start))


def _file_digest(path: Path, largest: int = limits.SAMPLES_BYTES) -> str:
    with translating_os_errors(path, "read"):
        return digest_of_file(path, largest)


@dataclass(frozen=True, slots=True)
class MergedTrial:
    """A trial in these files. row: of its first sample. readable: its samples are intact."""

    file: MergedTrials
    record: TrialRecord
    row: int
    rows: int
    readable: bool


class MergedTrials:
    """The trials of a run that ended; both files are verified when they are opened.

    problems: sentences on damage that is not of one trial.
    """

    def __init__(self, folder: Path, entry: Mapping[str, Any]) -> None:
        self.samples, self.records = paths(folder)
        self.problems: list[str] = []
        self._known: tuple[int, Sequence[str] | None, pa.Table] | None = None
        try:
            lines = self._lines(str(entry["records_sha256"]))
            self._damaged = self._damaged_groups(lines, str(entry["samples_sha256"]))
            self.trials = [self._trial(line) for line in lines if "record" in line]
        except (LookupError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self.records} was not written by this program: a line cannot be read.",
                "Restore the run from a copy.",
            ) from error

    def _trial(self, line: Mapping[str, Any]) -> MergedTrial:
        if not has_types(line, {"row": int, "rows": int}) or min(line["row"], line["rows"]) < 0:
            raise ValueError("the rows of a trial are unknown")
        is_readable = not self._damaged or not line["rows"] or self._is_intact(line["row"])
        record = trialfile.record_from_json(line["record"])
        return MergedTrial(self, record, line["row"], line["rows"], is_readable)

    def _lines(self, digest: str) -> list[dict[str, Any]]:
        """Returns the lines that are as they were written."""
        try:
            if _file_digest(self.records, limits.RECORDS_BYTES) == digest:
                return self._verified_lines()
            self.problems.append(f"{self.records} is damaged: its content is not what was stored.")
            with (
                translating_os_errors(self.records, "read"),
                regular.open_regular(self.records) as stream,
            ):
                parsed = [parsed_line(line.rstrip(b"\n")) for line in regular.lines_of(stream)]
        except StoreError as error:
            self.problems.append(error.message)
            return []
        return [event for event, holds in parsed if holds and event is not None]

    def _verified_lines(self) -> list[dict[str, Any]]:
        with translating_os_errors(self.records, "read"):
            content = regular.read_regular(self.records, limits.RECORDS_BYTES)
        parsed: list[dict[str, Any]] = json.loads(b"[" + b",".join(content.splitlines()) + b"]")
        return parsed

    def _damaged_groups(self, lines: Sequence[Mapping[str, Any]], digest: str) -> frozenset[int]:
        """Returns the row groups that are not what was stored; -1 stands for all of them."""
        try:
            written = [line for line in lines if "ends" in line]
            size = self.samples.stat().st_size
            ends = written[0]["ends"] if written else [size]
            if ends[-1] != size or ends != sorted(ends):
                return frozenset({-1})  # unread: a sparse file may take days to read
            if _file_digest(self.samples) == digest:
                return frozenset()
            (stored,) = written
            digests = list(_range_digests(self.samples, ends))
        except (StoreError, OSError, ValueError):
            return frozenset({-1})
        pairs = zip(digests, stored["sha256"], strict=True)
        damaged = {number for number, (now, then) in enumerate(pairs) if now != then}
        footer = len(ends) - 1
        return frozenset({-1}) if footer in damaged else frozenset(damaged)

    def _is_intact(self, row: int) -> bool:
        return -1 not in self._damaged and self._group_of(row) not in self._damaged

    def _group_of(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
        try:
            return pq.read_metadata(self.samples)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from error

    @cached_property
    def _column_chunks(self) -> list[list[parquet_footer.ColumnChunk]]:
        with regular.open_regular(self.samples) as stream:
            return parquet_footer.column_chunks(stream)

    @cached_property
    def _is_one_chunk(self) -> bool:
        """States whether the file is read at once: it needs no look at its row groups before."""
        return not self._damaged and sum(trial.rows for trial in self.trials) <= CHUNK_ROWS

    @cached_property
    def _starts(self) -> list[int]:
        """The first row of each row group, and the number of rows."""
        metadata = self._metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        return [0, *accumulate(rows)]

    @cached_property
    def _chunks(self) -> list[tuple[int, int]]:
        """First and last row group of each chunk: groups that are read at once.

        Groups of a file with damage are read one by one.
        """
        chunks: list[tuple[int, int]] = []
        for number, end in enumerate(self._starts[1:]):
            joins = chunks and end - self._starts[chunks[-1][0]] <= CHUNK_ROWS
            if joins and not self._damaged:
                chunks[-1] = (chunks[-1][0], number)
            else:
                chunks.append((number, number))
        return chunks

    def chunk_of(self, row: int) -> int:
        """Returns the number of the piece of the file that is read for a row."""
        if self._is_one_chunk:
            return 0
        group = self._group_of(row)
        return bisect_right(self._chunks, group, key=lambda chunk: chunk[0]) - 1

    def table(self, row: int, rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns samples that lie in one chunk.

        columns: only these, texts as dictionaries; None for all of them as they are. Keeps the
        chunk, since trials are read in their order.
        """
        if not rows:
            return trialfile.SCHEMA.empty_table()
        chunk = self.chunk_of(row)
        if self._known is None or self._known[:2] != (chunk, columns):
            self._known = (chunk, columns, self._read(chunk, columns))
        table = self._known[2]
        begin = row if self._is_one_chunk else row - self._starts[self._chunks[chunk][0]]
        if begin + rows > table.num_rows:
            raise StoreError(f"{self.samples} has fewer samples than {self.records} states.")
        return table.slice(begin, rows)

    def _read(self, chunk: int, columns: Sequence[str] | None) -> pa.Table:
        try:
            with pq.ParquetFile(
                pa.BufferReader(regular.read_regular(self.samples, limits.SAMPLES_BYTES))
                if self._is_one_chunk
                else self.samples,
                metadata=None if self._is_one_chunk else self._metadata,
                page_checksum_verification=True,
                read_dictionary=trialfile.TEXTS,
            ) as file:
                if file.schema_arrow.names != trialfile.SCHEMA.names:
                    raise pa.ArrowInvalid(_OTHER_COLUMNS)
                groups = [*range(file.metadata.num_row_groups)]
                if not self._is_one_chunk:
                    first, last = self._chunks[chunk]
                    groups = [*range(first, last + 1)]
                parquet_bounds.check(file, groups)
                if columns is None:
                    table = file.read_row_groups(groups, use_threads=False)
                    plain = parquet_bounds.decoded(table)
                    same = plain.schema.equals(trialfile.SCHEMA)
                    return plain if same else plain.cast(trialfile.SCHEMA)
                return constant_columns.read(file, groups, columns, lambda: self._column_chunks)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from error
        except KeyError as error:  # of a column that is to be read as a dictionary
            raise self._unreadable(pa.ArrowInvalid(_OTHER_COLUMNS)) from error

    def _unreadable(self, error: Exception) -> StoreError:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        return StoreError(
            f"{self.samples} cannot be read: {reason}.",
            "`nephoscope verify` names what is damaged.",
        )
