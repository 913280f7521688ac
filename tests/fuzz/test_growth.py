"""The work for an input grows with its length: no reader is quadratic in what it reads."""

from __future__ import annotations

import cProfile
import pstats
import warnings
from collections.abc import Callable

import pytest

from nephoscope.core.errors import NephoscopeError

from .boundaries import BOUNDARIES
from .boundary import Boundary

SIZE_BYTES = 32 << 10
GROWTH = 2.6
"""Of the calls when the input is doubled: 2, a logarithm, and what depends on where it is cut."""
FEW = 20_000
"""Calls below which a fixed part, such as a program that is started, decides."""


def lengthened(seed: bytes, size: int) -> bytes:
    """An input that is repeated to a size: lines, mappings and lists have more of the same."""
    return (seed * (size // max(len(seed), 1) + 1))[:size]


def renamed(seed: bytes, size: int) -> bytes:
    """The same, after a line of which each has another name: unknown keys, columns, records."""
    lines = (b"key%d: 1\n" % number for number in range(size // 10))
    return seed.rstrip() + b"\n" + b"".join(lines)


def calls(boundary: Boundary, case: bytes) -> int:
    profile = cProfile.Profile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile.enable()
        try:
            boundary.read(case)
        except NephoscopeError:
            pass
        finally:
            profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("lengthen", [lengthened, renamed])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda boundary: boundary.name)
def test_work_doubles_with_the_input(
    boundary: Boundary, lengthen: Callable[[bytes, int], bytes]
) -> None:
    seed = min(boundary.seeds(), key=len)
    calls(boundary, seed)  # imports
    one, two = (calls(boundary, lengthen(seed, size)) for size in (SIZE_BYTES, 2 * SIZE_BYTES))
    assert two < GROWTH * one + FEW, f"{one} calls, then {two}"
