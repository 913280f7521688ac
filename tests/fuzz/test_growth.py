"""The work for an input grows with its length: no reader is quadratic in what it reads.

Every valid input of every boundary is lengthened in two ways. Calls of functions are counted, which
no other program on the machine changes; CPU time also sees what one call of a library does.
`NEPHOSCOPE_GROWTH_RECORD=FILE` appends a line of JSON with the exponents of each input.
"""

from __future__ import annotations

import cProfile
import json
import math
import os
import pstats
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from nephoscope.core.errors import NephoscopeError

from .boundaries import BOUNDARIES
from .boundary import Boundary

SIZE_BYTES = 32 << 10
"""Of the shorter input whose calls are counted; the longer one has twice as many."""
CALLS_GROWTH = 2.6
"""Of the calls when the input is doubled: 2, a logarithm, and the whole repetitions that fit."""
FEW_CALLS = 20_000
"""Calls below which a fixed part, such as a program that is started, decides."""
TIMED_BYTES = (128 << 10, 512 << 10)
CPU_GROWTH = 8.0
"""Of the CPU time when the input is four times as long: n log n has 4.5, a quadratic reader 16."""
SHORT_S = 0.05
"""CPU seconds below which a fixed part decides."""
ATTEMPTS = 3
"""Of which the quickest counts: other work on the machine only adds to CPU time."""


def lengthened(seed: bytes, size: int) -> bytes:
    """An input that is repeated to about a size: lines, mappings and lists have more of the same.

    Whole repetitions: one that is cut may be refused at its end, before most of the work.
    """
    return seed * (size // max(len(seed), 1) + 1)


def renamed(seed: bytes, size: int) -> bytes:
    """The same, after a line of which each has another name: unknown keys, columns, records."""
    lines = (b"key%d: 1\n" % number for number in range(size // 10))
    return seed.rstrip() + b"\n" + b"".join(lines)


def read(boundary: Boundary, case: bytes) -> None:
    with suppress(NephoscopeError):
        boundary.read(case)


def calls(boundary: Boundary, case: bytes) -> int:
    profile = cProfile.Profile()
    profile.enable()
    try:
        read(boundary, case)
    finally:
        profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def cpu_s(boundary: Boundary, case: bytes) -> float:
    start_s = time.process_time()
    read(boundary, case)
    return time.process_time() - start_s


def exponent(growth: float, ratio: float) -> float:
    return math.log(max(growth, 1e-9)) / math.log(ratio)


def record(line: Mapping[str, object]) -> None:
    if path := os.environ.get("NEPHOSCOPE_GROWTH_RECORD"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("lengthen", [lengthened, renamed])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda boundary: boundary.name)
def test_work_grows_with_the_input(
    boundary: Boundary, lengthen: Callable[[bytes, int], bytes]
) -> None:
    quadratic = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, seed in enumerate(boundary.seeds()):
            calls(boundary, seed)  # imports
            one, two = (calls(boundary, lengthen(seed, k * SIZE_BYTES)) for k in (1, 2))
            cases = [lengthen(seed, size) for size in TIMED_BYTES]
            times = [[cpu_s(boundary, case) for case in cases] for _ in range(ATTEMPTS)]
            short_s, long_s = (min(column) for column in zip(*times, strict=True))
            record(
                {
                    "boundary": boundary.name,
                    "input": number,
                    "lengthening": lengthen.__name__,
                    "calls": [one, two],
                    "calls_exponent": exponent(two / one, 2),
                    "cpu_s": [short_s, long_s],
                    "cpu_exponent": exponent(long_s / max(short_s, 1e-9), 4),
                }
            )
            if two > CALLS_GROWTH * one + FEW_CALLS or long_s > CPU_GROWTH * short_s + SHORT_S:
                quadratic.append(f"input {number}: {one}, {two} calls, {short_s}, {long_s} s")
    assert not quadratic, "\n".join(quadratic)
