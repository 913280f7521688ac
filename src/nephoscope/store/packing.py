"""Packs values and histograms of trials into text: columns of numbers, compressed, as base64.

Whole numbers are stored as differences from one to the next, in as few bytes as the largest one
takes, with the bytes of equal weight side by side, which compresses them to about two bytes for a
bucket of an HDR histogram. Others are stored as they are: nothing is rounded here.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.errors import StoreError

Values = NDArray[np.float64]
Counts = NDArray[np.int64]
Histogram = tuple[Values, Counts]
"""Distinct values, ascending, and how often each was seen."""
AnyHistogram = tuple[Sequence[float] | Values, Sequence[int] | Counts]
"""The same, as arrays or not."""

MAX_BUCKETS = 4096
"""Buckets of one trial's histogram from which on its values are rounded in day files."""
_MANTISSA = 2.0**11
_LIMIT = 1 << 30
"""Bytes that the columns of one metric may take."""
_LEVEL = 4
"""Of compression: two thirds of the time of the default, and 1 % more bytes."""
_FLOATS = 0
_HEADER = struct.Struct("<BQ")
_WIDTHS = (1, 2, 4, 8)


def pack_values(values: Sequence[float]) -> str:
    """Returns the text of one value for each trial."""
    return _text([_column(np.asarray(values, dtype=np.float64))])


def unpack_values(text: str) -> list[float]:
    """Returns what `pack_values` was called with. StoreError for any other text."""
    (values,) = _columns(text, 1)
    return values.astype(np.float64).tolist()  # type: ignore[no-any-return]


def pack_histograms(trials: Sequence[AnyHistogram]) -> str:
    """Returns the text of the histograms of trials."""
    arrays = [
        (np.asarray(values, np.float64), np.asarray(counts, np.int64)) for values, counts in trials
    ]
    columns = (
        np.array([values.size for values, _ in arrays], dtype=np.float64),
        np.concatenate([np.empty(0), *(values for values, _ in arrays)]),
        np.concatenate([np.empty(0, np.int64), *(counts for _, counts in arrays)]),
    )
    return _text([_column(column) for column in columns])


def unpack_histograms(text: str) -> list[Histogram]:
    """Returns what `pack_histograms` was called with. StoreError for any other text."""
    sizes, values, counts = _columns(text, 3)
    ends = np.cumsum(sizes.astype(np.int64))
    total = int(ends[-1]) if ends.size else 0
    if np.any(sizes < 0) or total != values.size or total != counts.size:
        raise _damaged()
    values, whole = values.astype(np.float64), counts.astype(np.int64, copy=False)
    return [
        (values[start:end], whole[start:end])
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)
    ]


def rounded(trials: Sequence[Histogram], like: Sequence[Histogram] = ()) -> list[Histogram]:
    """Returns histograms of at most three digits: values lie within 0.05 % of the original ones.

    A trial of at most MAX_BUCKETS values stays as it is, such as those that the probe counts.
    like: histograms whose sizes decide instead, of which `trials` are parts.
    """
    return [
        trial if whole[0].size <= MAX_BUCKETS else _rounded(*trial)
        for trial, whole in zip(trials, like or trials, strict=True)
    ]


def _rounded(values: Values, counts: Counts) -> Histogram:
    mantissa, exponent = np.frexp(values)
    middle = np.where(values == 0, 0.0, np.floor(mantissa * _MANTISSA) + 0.5)
    buckets = np.where(np.isfinite(values), np.ldexp(middle / _MANTISSA, exponent), values)
    distinct, place = np.unique(buckets, return_inverse=True)
    sums = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(sums, place, counts)
    return distinct, sums


def _column(values: NDArray[np.float64] | Counts) -> bytes:
    """One column: how it is stored (0 or bytes per difference), its length, its bytes."""
    is_whole = bool(np.all(np.abs(values) < 2**53)) and bool(np.all(np.trunc(values) == values))
    if not is_whole or np.any(np.signbit(values) & (values == 0)):
        raw = values.astype("<f8").view(np.uint8).reshape(-1, 8)
        return _HEADER.pack(_FLOATS, values.size) + raw.T.tobytes()
    steps = values.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    folded = ((steps << 1) ^ (steps >> 63)).astype(np.uint64)
    largest = int(folded.max(initial=0))
    width = next(width for width in _WIDTHS if largest < 1 << (8 * width))
    narrow: NDArray[np.uint8] = folded.astype(f"<u{width}").view(np.uint8).reshape(-1, width)
    return _HEADER.pack(width, values.size) + narrow.T.tobytes()


def _text(columns: Sequence[bytes]) -> str:
    return base64.b64encode(zlib.compress(b"".join(columns), _LEVEL)).decode()


def _columns(text: str, number: int) -> list[Values | Counts]:
    """Returns columns; those of whole numbers are integers."""
    columns = []
    try:
        reader = zlib.decompressobj()
        content = memoryview(reader.decompress(base64.b64decode(text, validate=True), _LIMIT))
        for _ in range(number):
            kind, size = _HEADER.unpack_from(content)
            end = _HEADER.size + size * (kind or 8)
            column, content = content[_HEADER.size : end], content[end:]
            columns.append(_values(kind, size, column))
    except (ValueError, struct.error, zlib.error) as error:
        raise _damaged() from error
    if content or not reader.eof:
        raise _damaged()
    return columns


def _values(kind: int, size: int, column: memoryview) -> Values | Counts:
    if kind not in (_FLOATS, *_WIDTHS):
        raise ValueError("no kind of a column")
    width = kind or 8
    planes = np.frombuffer(column, dtype=np.uint8).reshape(width, size)
    raw = np.empty((size, width), dtype=np.uint8)
    for byte, plane in enumerate(planes):
        raw[:, byte] = plane
    if kind == _FLOATS:
        return raw.view("<f8").reshape(size).astype(np.float64)
    folded = raw.view(f"<u{width}").reshape(size)
    # In as few bytes as they have: a step of n bits has its sign in one of them.
    steps = (folded >> 1).view(f"<i{width}") ^ -(folded & 1).view(f"<i{width}")
    return np.cumsum(steps, dtype=np.int64)


def _damaged() -> StoreError:
    return StoreError(
        "The summary of the run is damaged: its values cannot be read.",
        "Remove summary.json in the run's folder; it is computed again.",
    )
