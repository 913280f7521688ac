"""What the footer of a Parquet file states of its columns: places, and the values of which all are.

Arrow reads it too, but ends the process where a column states impossible sizes, instead of
refusing the file. The format is Thrift's compact protocol (https://github.com/apache/thrift,
doc/specs/thrift-compact-protocol.md) with the numbers of fields of parquet.thrift
(https://github.com/apache/parquet-format).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

MAGIC = b"PAR1"
_TAIL_BYTES = 8
_DEPTH = 16
"""Structures and lists in one another; those of Parquet are nested up to nine times."""
FOOTER_BYTES = 64 << 20
"""A column of a row group has 100 B: enough for some billions of samples."""
_ROW_GROUPS = 4
_DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error)
"""What a value of another type, or none, in place of the expected one leads to."""
_INT64, _BYTE_ARRAY = 2, 6
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """A column in a row group. begin: of its pages, in bytes. only_value: of all rows; None where
    they differ, are missing in part, or are neither texts nor whole numbers."""

    name: str
    begin: int
    only_value: str | int | None


def column_chunks(stream: BinaryIO) -> list[list[ColumnChunk]]:
    """Returns the columns of each row group. Raises ArrowInvalid for a footer that is damaged."""
    try:
        stream.seek(-_TAIL_BYTES, 2)
        size, magic = struct.unpack("<I4s", stream.read(_TAIL_BYTES))
        if magic != MAGIC:
            raise ValueError("no end of a Parquet file")
        if size > FOOTER_BYTES:
            raise ValueError(f"{size:,} bytes")
        stream.seek(-_TAIL_BYTES - size, 2)
        groups = _ThriftReader(stream.read(size)).items_of(_ROW_GROUPS)
        return [[_column(chunk) for chunk in group[1]] for group in groups]
    except _DAMAGED as error:
        raise pa.ArrowInvalid(f"its footer is damaged ({error})") from error


def _column(chunk: dict[int, Any]) -> ColumnChunk:
    about = chunk[3]
    begin = about.get(11) or about[9]
    return ColumnChunk(
        b".".join(about[3]).decode(), int(begin), _only_value(about[1], about.get(12, {}))
    )


def _only_value(kind: int, statistics: dict[int, Any]) -> str | int | None:
    """Returns the value that is both least and largest, where none is missing and both are exact.

    Not of floats, of which two zeros are one.
    """
    least, most = statistics.get(6), statistics.get(5)
    is_exact = statistics.get(7, True) and statistics.get(8, True)
    if not is_exact or statistics.get(3) != 0 or least is None or least != most:
        return None
    if kind == _BYTE_ARRAY:
        return str(least, "utf-8")
    return int.from_bytes(least, "little", signed=True) if kind == _INT64 else None


class _ThriftReader:
    """Reads values one after another; nothing of them is longer than the footer."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def items_of(self, wanted: int) -> Iterator[Any]:
        """Yields the items of a list in a structure, one by one. LookupError if it has none."""
        for number, kind in self._fields():
            if number == wanted and kind == _LIST:
                yield from self._items(0)
                return
            self._field(kind, 0)
        raise LookupError("no row groups")

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def _field(self, kind: int, depth: int) -> Any:
        return kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEPTH:
            raise ValueError("too deep")
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind == _STRUCT:
            return {number: self._field(of, depth + 1) for number, of in self._fields()}
        if kind in (_LIST, _SET):
            return list(self._items(depth))
        if kind in (_BYTE, _TRUE, _FALSE):  # as items of lists
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        raise ValueError(f"a value of type {kind}")

    def _items(self, depth: int) -> Iterator[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._unsigned()
        if count > len(self._content) - self._at:
            raise ValueError("a list beyond the end")
        for _ in range(count):
            yield self._value(head & 15, depth + 1)

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]  # IndexError at the end

    def _bytes(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._content):
            raise ValueError("a value beyond the end")
        return self._content[self._at - size : self._at]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number beyond 64 bits")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
