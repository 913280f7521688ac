"""A small drawn sample of the namer's accuracy; the whole of it is benchmarks/naming.py."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest
from tests.attempts import attempt
from trials import needs_root

from nephoscope import catalog
from nephoscope.isolation.naming_references import REFERENCES

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import _naming_lab as naming_lab
import naming as benchmark

pytestmark = [
    needs_root,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two CPUs"),
]

RESOURCES = tuple(naming_lab.LOADS)
CASES = 6
LIMIT_S = 90.0


def test_drawn_aggressors_are_named() -> None:
    """Five of six: with nine in ten right, fewer come in one of nine draws."""

    def measure() -> tuple[str, bool]:
        seed = random.SystemRandom().randrange(2**31)
        drawn = random.Random(seed).sample(RESOURCES, CASES)
        cases = asyncio.run(benchmark.record(catalog.load(), CASES, seed, LIMIT_S, resources=drawn))
        told = benchmark.judge(cases, REFERENCES)
        right = sum(
            benchmark.is_right(one, word) for one, (_, word) in zip(cases, told, strict=True)
        )
        return f"seed {seed}: {told}", len(told) >= CASES - 1 and right >= len(told) - 1

    attempt("naming", measure)
