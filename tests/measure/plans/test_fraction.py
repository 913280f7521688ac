"""Fractions against what is known of them: resolutions, balance, and exact aliases."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nephoscope.measure.plans.design.fraction import Fraction, UnbalancedFraction, cramers_v, part

LETTERS = "abcdefghijkl"

# Factors, p of 1/2^p, and the greatest resolution that exists (Box, Hunter & Hunter 2005,
# table 6.22; NIST/SEMATECH e-Handbook of Statistical Methods, 5.3.3.4.7).
RESOLUTIONS = [
    (3, 1, 3), (4, 1, 4), (5, 1, 5), (5, 2, 3), (6, 1, 6), (6, 2, 4), (6, 3, 3), (7, 1, 7),
    (7, 2, 4), (7, 3, 4), (7, 4, 3), (8, 2, 5), (8, 3, 4), (8, 4, 4), (9, 2, 6), (9, 3, 4),
    (9, 4, 4), (9, 5, 3), (10, 3, 5), (10, 4, 4), (10, 5, 4), (10, 6, 3), (11, 4, 5), (11, 5, 4),
    (11, 6, 4),
]  # fmt: skip


def regular(k: int, p: int) -> Fraction:
    return part(LETTERS[:k], [2] * k, 1 << p, 0)


@pytest.mark.parametrize(("k", "p", "resolution"), RESOLUTIONS)
def test_regular_fractions_have_the_greatest_resolution(k: int, p: int, resolution: int) -> None:
    found = regular(k, p)
    assert (found.kind, found.resolution) == ("regular", resolution)
    assert len(set(found.rows)) == 1 << (k - p)
    assert (0,) * k in found.rows


@pytest.mark.parametrize(("k", "p", "resolution"), RESOLUTIONS)
def test_fewer_factors_than_the_resolution_are_fully_crossed(
    k: int, p: int, resolution: int
) -> None:
    """The definition: any resolution - 1 columns hold every combination equally often."""
    rows = regular(k, p).rows
    for columns in itertools.islice(itertools.combinations(range(k), resolution - 1), 200):
        counts = Counter(tuple(row[c] for c in columns) for row in rows)
        assert len(counts) == 1 << (resolution - 1)
        assert len(set(counts.values())) == 1


@pytest.mark.parametrize(("k", "p"), [(4, 1), (5, 2), (7, 4), (6, 2)])
def test_the_aliases_are_those_of_the_rows(k: int, p: int) -> None:
    """Two effects are confounded exactly when their contrasts are the same column, up to sign."""
    found = regular(k, p)

    def contrast(names: str) -> tuple[int, ...]:
        places = [LETTERS.index(name) for name in names]
        return tuple(math.prod(1 if row[i] else -1 for i in places) for row in found.rows)

    told = {}
    for sentence in found.aliases:
        left, right = sentence.split(" is confounded with ")
        told[left] = right.split(" and ")
    for left, others in told.items():
        mine = contrast(left.replace(" x ", ""))
        for other in others:
            if other.endswith("more"):
                continue
            theirs = contrast(other.replace(" x ", ""))
            assert mine in (theirs, tuple(-one for one in theirs)), (left, other)
    pairs = list(itertools.combinations(LETTERS[:k], 2))
    for one, two in itertools.combinations(pairs, 2):
        mine, theirs = contrast("".join(one)), contrast("".join(two))
        if mine in (theirs, tuple(-x for x in theirs)):
            text = " ".join(f"{left} {right}" for left, right in told.items())
            assert " x ".join(one) in text
            assert " x ".join(two) in text


levels = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(levels, st.integers(2, 12), st.integers(0, 99))
def test_a_fraction_is_balanced_or_refused(sizes: list[int], divisor: int, seed: int) -> None:
    assume(math.prod(sizes) <= 400)
    names = LETTERS[: len(sizes)]
    try:
        found = part(names, sizes, divisor, seed)
    except UnbalancedFraction:
        return
    assert found == part(names, sizes, divisor, seed)
    assert len(set(found.rows)) == len(found.rows)
    if found.kind != "full":
        assert len(found.rows) * divisor == math.prod(sizes)
    for i, size in enumerate(sizes):
        counts = Counter(row[i] for row in found.rows)
        assert set(counts) == set(range(size))
        assert len(set(counts.values())) == 1
    assert (0,) * len(sizes) in found.rows


def test_a_third_of_three_by_three_by_three_is_a_latin_square() -> None:
    found = part("abc", [3, 3, 3], 3, 1)
    assert (found.kind, len(found.rows)) == ("balanced", 9)
    for i, j in itertools.combinations(range(3), 2):
        assert len({(row[i], row[j]) for row in found.rows}) == 9
    assert len(found.aliases) == 1


@pytest.mark.parametrize(
    ("sizes", "divisor", "words", "hint"),
    [
        ([2, 2], 2, "to the levels of another", "full crossing"),
        ([2, 2, 2], 4, "to the levels of another", "1/2 is possible"),
        ([3, 2], 2, "cannot be equally often", "full crossing"),
        ([3, 3, 2], 9, "cannot be equally often", "1/3"),
        ([5, 2, 2], 3, "no whole number", "1/2"),
        ([3, 3], 3, "fewer than it takes", "full crossing"),
        ([2] * 13, 2, "too many", "fewer factors"),
    ],
)
def test_what_cannot_be_balanced_is_refused_with_what_can(
    sizes: list[int], divisor: int, words: str, hint: str
) -> None:
    with pytest.raises(UnbalancedFraction, match=words) as caught:
        part((LETTERS + "m")[: len(sizes)], sizes, divisor, 0)
    assert hint in caught.value.hint


def test_cramers_v_is_none_and_all() -> None:
    assert cramers_v([0, 0, 1, 1], [0, 1, 0, 1], 2, 2) == 0
    assert cramers_v([0, 0, 1, 1], [0, 0, 1, 1], 2, 2) == 1
