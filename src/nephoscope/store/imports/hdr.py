"""Histograms of HdrHistogram: their buckets, and the encoding of them in log files (V2).

A histogram counts in buckets whose width grows by powers of two, so that those of a lower precision
consist of whole buckets of a higher one: histograms of several precisions are added exactly, at
the lowest. Source: HdrHistogram (Tene), AbstractHistogram and ZigZagEncoding; formats of V2.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from nephoscope.core.records import dataclass

_COMPRESSED_V2, _V2 = 0x1C849304, 0x1C849303
_DOUBLE = (0x0C72124E, 0x0C72124F)
_BASE_MASK = ~0xF0
"""A cookie names the size of its words in the second digit."""
_HEAD = struct.Struct(">iiiiqqd")
_PLAIN_BYTES = 64 << 20
"""Of one histogram: more than one of five digits and 64 bits has."""
_MAX_INDEX = 1 << 26


@dataclass(frozen=True, slots=True)
class HdrPrecision:
    """Widths of buckets. digits: significant decimal digits, 0 to 5. magnitude: binary logarithm of
    the width of the smallest bucket."""

    digits: int
    magnitude: int

    @property
    def _half_bits(self) -> int:
        return max(math.ceil(math.log2(2 * 10**self.digits)), 1) - 1

    def top_of_index(self, index: int) -> int:
        """Returns the highest value that counts in the bucket of an index."""
        half = 1 << self._half_bits
        bucket, sub = (index >> self._half_bits) - 1, (index & (half - 1)) + half
        if bucket < 0:
            bucket, sub = 0, sub - half
        shift = bucket + self.magnitude
        return (sub << shift) + (1 << shift) - 1

    def top_of(self, value: int) -> int:
        """Returns the highest value that counts in the same bucket as `value`."""
        shift = max(value.bit_length() - 1 - self._half_bits, 0)
        return value | ((1 << max(shift, self.magnitude)) - 1)

    def coarser(self, precision: HdrPrecision) -> HdrPrecision:
        """Returns the precision at which histograms of both can be added."""
        return HdrPrecision(
            min(self.digits, precision.digits), max(self.magnitude, precision.magnitude)
        )

    @property
    def relative(self) -> float:
        """Returns the largest width of a bucket relative to its values."""
        return 1.0 / (1 << self._half_bits)


@dataclass(frozen=True, slots=True)
class HdrHistogram:
    """Counts by the highest value of each bucket."""

    precision: HdrPrecision
    counts: Mapping[int, int]


def added(histograms: Iterable[HdrHistogram]) -> HdrHistogram:
    """Returns the sum of histograms, at the lowest of their precisions."""
    every = list(histograms)
    precision = every[0].precision
    for histogram in every[1:]:
        precision = precision.coarser(histogram.precision)
    counts: Counter[int] = Counter()
    for histogram in every:
        for value, count in histogram.counts.items():
            counts[precision.top_of(value)] += count
    return HdrHistogram(precision, counts)


def decode(text: str) -> HdrHistogram:
    """Returns the histogram that a line of a log has in base64. ValueError in a few words."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the histogram is no base64") from None
    if len(content) < 8:
        raise ValueError("the histogram is cut off")
    cookie, length = struct.unpack(">Ii", content[:8])
    if cookie & _BASE_MASK in _DOUBLE:
        raise ValueError("it is a DoubleHistogram, which is not read")
    if cookie & _BASE_MASK != _COMPRESSED_V2:
        raise ValueError("the histogram is not in the compressed encoding V2")
    if length != len(content) - 8:
        raise ValueError("the histogram is cut off")
    try:
        decompressor = zlib.decompressobj()
        plain = decompressor.decompress(content[8:], _PLAIN_BYTES)
    except zlib.error:
        raise ValueError("the compressed histogram is damaged") from None
    if not decompressor.eof:
        raise ValueError("the compressed histogram is damaged or too large")
    return _decode_plain(plain)


def _decode_plain(plain: bytes) -> HdrHistogram:
    if len(plain) < _HEAD.size:
        raise ValueError("the histogram is cut off")
    cookie, length, offset, digits, lowest, _, ratio = _HEAD.unpack_from(plain)
    if cookie & _BASE_MASK != _V2:
        raise ValueError("the histogram is not in the encoding V2")
    if not 0 <= digits <= 5 or not 1 <= lowest < 1 << 62 or length != len(plain) - _HEAD.size:
        raise ValueError("the head of the histogram is damaged")
    if offset or ratio != 1.0:
        raise ValueError("the histogram is shifted or scaled, which is not read")
    precision = HdrPrecision(digits, lowest.bit_length() - 1)
    counts: dict[int, int] = {}
    index = 0
    for number in _numbers(plain[_HEAD.size :]):
        if number > 0:
            counts[precision.top_of_index(index)] = number
        index += 1 if number >= 0 else -number
        if index > _MAX_INDEX:
            raise ValueError("the counts of the histogram are damaged")
    return HdrHistogram(precision, counts)


def _numbers(content: bytes) -> Iterator[int]:
    """Yields the numbers of a text of bytes in ZigZag LEB128; a ninth byte has eight bits."""
    value = shift = size = 0
    for byte in content:
        size += 1
        if size == 9:
            value |= byte << shift
        else:
            value |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        yield (value >> 1) ^ -(value & 1)
        value = shift = size = 0
    if size:
        raise ValueError("the counts of the histogram are cut off")
