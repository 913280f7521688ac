"""Each boundary takes mutated input by a result or a sentence; `make fuzz` does it for longer."""

from __future__ import annotations

import random

import pytest

from .boundaries import BOUNDARIES
from .boundary import Boundary

CASES = {"simulator": 4, "probe parameters": 10, "import": 10, "far side": 10, "credentials": 10}
CASES |= {"report of a tool to import": 20, "summary to import": 20}
"""Programs are started, and runs stored, for each case of these."""


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda boundary: boundary.name)
def test_mutated_input_is_read_or_refused_in_a_sentence(boundary: Boundary) -> None:
    draw = random.Random(f"1 {boundary.name}")
    for _ in range(CASES.get(boundary.name, 40)):
        case = boundary.case(draw)
        assert boundary.attack(case) is None, case


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda boundary: boundary.name)
def test_its_seeds_are_valid(boundary: Boundary) -> None:
    """Else only the first check of each reader would be attacked."""
    for seed in boundary.seeds()[:3]:
        boundary.read(seed)
