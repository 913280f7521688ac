import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.features.machine import knees
from nephoscope.stats.statistics.values import Refused

K, M = 1024, 1024**2
GEOMETRIES = {
    "32K/1M/36M": (32 * K, M, 36 * M),
    "48K/2M/32M": (48 * K, 2 * M, 32 * M),
    "64K/512K/16M": (64 * K, 512 * K, 16 * M),
}
NAMES = ("L1d", "L2", "L3")
BANDWIDTH = (100.0, 50.0, 25.0, 10.0)
LATENCY = (1.2, 4.0, 15.0, 90.0)


def ladder(sizes, plateaus, seed, per_octave=1, noise=0.03):
    """Lengths from 1 KiB to four times the largest cache; a slope just beyond each cache."""
    rng = np.random.default_rng(seed)
    count = int(math.log2(4 * sizes[-1] / K) * per_octave) + 1
    lengths = K * 2.0 ** (np.arange(count) / per_octave)
    values = []
    for length in lengths:
        level = sum(length > size for size in sizes)
        value = plateaus[level]
        if level and length < 1.6 * sizes[level - 1]:
            value = math.sqrt(value * plateaus[level - 1])
        values.append(value * math.exp(rng.normal(0, noise)))
    return lengths, values


@pytest.mark.parametrize("sizes", GEOMETRIES.values(), ids=GEOMETRIES.keys())
@pytest.mark.parametrize("plateaus", [BANDWIDTH, LATENCY], ids=["bandwidth", "latency"])
@pytest.mark.parametrize("per_octave", [1, 2])
def test_knees_are_found_and_named(sizes, plateaus, per_octave):
    for seed in range(30):
        lengths, values = ladder(sizes, plateaus, seed, per_octave)
        found = knees.knees(
            lengths,
            values,
            higher_is_better=plateaus is BANDWIDTH,
            cache_sizes=dict(zip(NAMES, sizes, strict=True)),
        )
        assert [knee.level for knee in found] == ["L1", "L2", "L3", "RAM"]
        # Half a length's step each way, and the slope's one length.
        for knee, size in zip(found, sizes, strict=False):
            assert size / 2 <= knee.last_length_bytes <= size
        for knee, plateau in zip(found, plateaus, strict=True):
            assert knee.plateau_value == pytest.approx(plateau, rel=0.09)  # 3 sigma of 3 %


def test_a_hidden_cache_is_seen_but_not_named():
    lengths, values = ladder(GEOMETRIES["32K/1M/36M"], BANDWIDTH, 1)
    found = knees.knees(
        lengths, values, higher_is_better=True, cache_sizes={"L1d": 32 * K, "L2": M}
    )
    assert [knee.level for knee in found] == ["L1", "L2", "level 3", "level 4"]
    assert 16 * M <= found[2].last_length_bytes <= 36 * M


@pytest.mark.parametrize(
    ("known", "levels"),
    [
        ({}, ["level 1", "level 2", "level 3", "level 4"]),
        ({"L1d": 32 * K, "L2": M, "L3": 260 * M}, ["L1", "L2", "level 3", "level 4"]),
        ({"L1i": 32 * K, "L2": 0}, ["level 1", "level 2", "level 3", "level 4"]),
        ({"L1": 32 * K, "L3": 36 * M}, ["L1", "level 2", "L3", "RAM"]),
    ],
)
def test_names_only_where_the_sizes_agree(known, levels):
    lengths, values = ladder(GEOMETRIES["32K/1M/36M"], BANDWIDTH, 1)
    found = knees.knees(lengths, values, higher_is_better=True, cache_sizes=known)
    assert [knee.level for knee in found] == levels


def test_two_levels_only():
    lengths, values = ladder((64 * K, 16 * M), (100.0, 40.0, 9.0), 3)
    found = knees.knees(
        lengths, values, higher_is_better=True, cache_sizes={"L1d": 64 * K, "L2": 512 * K}
    )
    assert len(found) == 3
    assert found[0].level == "L1"


@pytest.mark.parametrize("seed", range(20))
def test_flat_and_sloping_ladders_have_no_knees(seed):
    lengths, values = ladder((64 * K, 16 * M), (100.0, 100.0, 100.0), seed)
    found = knees.knees(lengths, values, higher_is_better=True, cache_sizes={})
    assert len(found) == 1
    assert found[0].first_length_bytes == K


def test_a_step_the_wrong_way_is_no_knee():
    # Short vectors pay for the loop around them: 1 and 2 KiB are slower than 4 KiB.
    lengths, values = ladder(GEOMETRIES["32K/1M/36M"], BANDWIDTH, 2)
    values[:2] = [50.0, 51.0]
    found = knees.knees(lengths, values, higher_is_better=True, cache_sizes={"L1d": 32 * K})
    assert len(found) == 4
    assert found[0].level == "L1"
    assert found[0].plateau_value == pytest.approx(100, rel=0.09)


@pytest.mark.parametrize(
    ("lengths", "values"),
    [([1, 2], [1.0]), ([0, 1], [1.0, 1.0]), ([1, 2], [1.0, -1.0]), ([1, 2], [1.0, math.nan])],
)
def test_nonsense_is_refused(lengths, values):
    with pytest.raises(Refused):
        knees.knees(lengths, values, higher_is_better=True, cache_sizes={})


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=25), st.booleans(), st.randoms())
def test_every_ladder_gives_ordered_plateaus(values, higher, random):
    lengths = [K * 2**i for i in range(len(values))]
    found = knees.knees(lengths, values, higher_is_better=higher, cache_sizes={"L1": 32 * K})
    assert found
    for one, other in itertools.pairwise(found):
        assert one.first_length_bytes <= one.last_length_bytes < other.first_length_bytes
        assert (one.plateau_value > other.plateau_value) == higher
    pairs = list(zip(lengths, values, strict=True))
    random.shuffle(pairs)
    again = knees.knees(
        [p[0] for p in pairs],
        [p[1] for p in pairs],
        higher_is_better=higher,
        cache_sizes={"L1": 32 * K},
    )
    assert again == found


def test_a_cache_that_ends_early_is_still_named_after_what_holds_it() -> None:
    # A share of a 36 MiB cache in a virtual machine: two steps inside it, and L2 seen to 256 KiB.
    lengths = [2**power for power in range(10, 28)]
    plateaus = [(32 * K, 1.3), (256 * K, 4.5), (4 * M, 60.0), (32 * M, 100.0), (2**30, 160.0)]
    values = [next(value for end, value in plateaus if length <= end) for length in lengths]
    found = knees.knees(
        lengths,
        values,
        higher_is_better=False,
        cache_sizes={"L1d": 32 * K, "L2": M, "L3": 36 * M},
    )
    assert [knee.level for knee in found] == ["L1", "L2", "L3", "RAM"]
    assert [knee.last_length_bytes for knee in found[:3]] == [32 * K, 256 * K, 32 * M]
