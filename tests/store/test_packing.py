"""Values and histograms of trials as text: exact, small, and refused when they are damaged."""

from __future__ import annotations

import base64
import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core.errors import StoreError
from nephoscope.store import packing

FLOATS = st.floats(allow_nan=False)
COUNTS = st.integers(0, 2**53 - 1)
HISTOGRAMS = st.dictionaries(FLOATS, COUNTS, max_size=30).map(
    lambda one: (np.array(sorted(one)), np.array([one[v] for v in sorted(one)], dtype=np.int64))
)


@given(st.lists(FLOATS))
def test_values_come_back_to_the_bit(values: list[float]) -> None:
    back = packing.unpack_values(packing.pack_values(values))
    assert [one.hex() for one in back] == [one.hex() for one in values]


@given(st.lists(HISTOGRAMS, max_size=5))
def test_histograms_come_back(trials: list[packing.Histogram]) -> None:
    back = packing.unpack_histograms(packing.pack_histograms(trials))
    assert len(back) == len(trials)
    for (values, counts), (read, seen) in zip(trials, back, strict=True):
        assert values.tolist() == read.tolist()
        assert counts.tolist() == seen.tolist()


def test_a_bucket_takes_three_bytes_at_most() -> None:
    """Ten trials of 10,000 latencies in buckets of three digits, as the probe writes them."""
    rng = np.random.default_rng(1)
    trials = []
    for _ in range(10):
        latencies = packing._rounded(rng.lognormal(11, 0.5, 10_000), np.ones(10_000, np.int64))
        trials.append((np.unique(np.round(latencies[0])), latencies[1][: len(latencies[0])]))
    text = packing.pack_histograms(trials)
    assert len(text) < 3 * sum(values.size for values, _ in trials)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64!",
        base64.b64encode(b"no zlib").decode(),
        base64.b64encode(zlib.compress(b"\x09" + bytes(8))).decode(),
        base64.b64encode(zlib.compress(b"\x01" + b"\xff" * 8)).decode(),
        packing.pack_values([1.0])[:-4],
        packing.pack_histograms([(np.array([1.0]), np.array([1]))]),
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match="damaged"):
        packing.unpack_values(text)
    with pytest.raises(StoreError, match="damaged"):
        packing.unpack_histograms(packing.pack_values([1.0, 2.0]))


def test_long_histograms_keep_three_digits_and_every_count() -> None:
    rng = np.random.default_rng(2)
    values = np.unique(np.concatenate([rng.lognormal(0, 3, 20_000), [0.0, math.inf]]))
    counts = rng.integers(1, 9, values.size)
    ((rounded, summed),) = packing.rounded([(values, counts)])
    assert rounded.size < values.size
    assert summed.sum() == counts.sum()
    assert (rounded[0], rounded[-1]) == (0, math.inf)
    for rank in (1, counts.sum() // 2, counts.sum() - 1):
        before = values[np.searchsorted(np.cumsum(counts), rank)]
        after = rounded[np.searchsorted(np.cumsum(summed), rank)]
        assert after == pytest.approx(before, rel=0.0005)


def test_short_histograms_stay_as_they_are() -> None:
    trial = (np.array([1.23456789, 2.0]), np.array([1, 2]))
    assert packing.rounded([trial]) == [trial]
