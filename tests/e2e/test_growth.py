"""The cost of every command that has a size grows no faster than n log n."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import growth

ROUNDS = 3


@pytest.mark.slow
@pytest.mark.parametrize("name", growth.CASES)
def test_twice_the_size_costs_about_twice_as_much(name: str, tmp_path: Path) -> None:
    """Of each size the least cost counts: other programs only add to it."""
    case = growth.CASES[name]
    for quantity, grown in growth.measure(name, tmp_path, 1.0, ROUNDS).items():
        least = {size: [min(costs)] for size, costs in grown.costs.items()}
        exponent = growth.growth_of(list(least), least).exponent
        assert exponent is None or exponent <= growth.N_LOG_N, (case.unit, quantity, least)


def test_growth_is_told_from_what_every_size_costs() -> None:
    sizes = [100, 200, 400]
    for power in (1.0, 2.0):
        costs = {size: [5 + (size / 100) ** power] for size in sizes}
        grown = growth.growth_of(sizes, costs)
        assert grown.exponents == pytest.approx([power])
        assert grown.per_unit == pytest.approx((4**power - 1) / 300)
    assert growth.growth_of(sizes, {size: [5.0 + size / 1e4] for size in sizes}).exponent is None


def test_a_table_is_made_of_a_measurement() -> None:
    sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
    import growth_table

    grown = growth.growth_of([1, 2, 4], {1: [2.0, 2.0], 2: [3.0, 3.1], 4: [5.0, 5.0]})
    flat = growth.growth_of([1, 2, 4], {1: [50.0], 2: [50.0], 4: [50.0]})
    values = {"cpu_s": growth.asdict(grown), "peak_mib": growth.asdict(flat)}
    measured = {
        "date": "2026-01-01",
        "machine": {"cpus": 2, "cpu": "a CPU"},
        "rounds": 2,
        "cases": [{"case": "show, trials", "unit": "trial", **values}],
    }
    row = list(growth_table.table_of(measured))[-1]
    assert row.startswith(
        "| `show`, trials | 1, 2, 4 | 2, 3.05, 5 | 0.89 [0.79, 1.00] | 1e+06 µs |"
    )
    assert row.endswith("| 50, 50, 50 | – | – |")
