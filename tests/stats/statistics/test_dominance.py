"""Domination needs one better side and no worse one."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from nephoscope.stats.statistics.dominance import dominates


def test_equal_costs_do_not_dominate_and_one_lower_cost_does() -> None:
    assert dominates([1, 2], [1, 3])
    assert not dominates([1, 2], [1, 2])
    assert not dominates([1, 3], [2, 2])


def test_no_two_dominate_each_other() -> None:
    costs = np.random.default_rng(1).integers(0, 3, (12, 3))
    assert not any(dominates(a, b) and dominates(b, a) for a, b in permutations(costs, 2))
