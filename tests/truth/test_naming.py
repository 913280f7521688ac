"""A drawn sample of the namer's accuracy; the whole of it is benchmarks/naming.py."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.rates import holds_rate
from trials import needs_root

from nephoscope import catalog
from nephoscope.features.isolation.naming_references import REFERENCES

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import _naming_lab as naming_lab
import naming as benchmark

pytestmark = [
    needs_root,
    hardware.needs(Feature.CPUS, (os.cpu_count() or 1) >= 2),
]

RESOURCES = tuple(naming_lab.LOADS)
CASES = 44
LIMIT_S = 600.0


@pytest.mark.slow
def test_nine_of_ten_drawn_aggressors_are_named() -> None:
    """The namer on made signatures is in tests/features/isolation/test_naming.py."""
    seed = random.SystemRandom().randrange(2**31)
    cases = asyncio.run(benchmark.record(catalog.load(), CASES, seed, LIMIT_S, resources=RESOURCES))
    words = [word for _, word in benchmark.judge(cases, REFERENCES)]
    right = [benchmark.is_right(case, word) for case, word in zip(cases, words, strict=True)]
    print(f"seed {seed}: {words}")  # noqa: T201
    assert len(right) >= CASES / 2
    holds_rate("named", right, 0.9)
