"""How often the 95 % intervals hold the truth, counted: the table of the page *How we measure*."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.rates import holds_rate

from nephoscope.analysis import compare, stopping
from nephoscope.analysis.statistics import estimates
from nephoscope.model import Better, Estimate

from .series import Array, ar1

P90 = 1.2815515655
Interval = Callable[[Array], Estimate | None]


def paired(row: Array) -> Estimate | None:
    return compare.paired(np.ones(row.size), np.exp(0.05 * row), better=Better.LOWER).ratio


def independent(row: Array) -> Estimate | None:
    a, b = np.exp(0.05 * row.reshape(2, -1))
    return compare.independent(a, b, better=Better.LOWER).ratio


def sequential(row: Array) -> Estimate | None:
    values = 1 + 0.05 * row
    for n in range(10, row.size + 1, 5):
        stop = stopping.look(values[:n], n_max=row.size)
        if stop.stops:
            return stop.estimate
    raise AssertionError("a run ends at n_max")


INTERVALS: dict[str, tuple[Interval, float]] = {
    "median": (lambda row: estimates.median(row, unit=""), 0.0),
    "p90": (lambda row: estimates.quantile(row, 0.9, unit=""), P90),
    "paired": (paired, 1.0),
    "independent": (independent, 1.0),
    "sequential": (sequential, 1.0),
}
SIZES = {"median": (10, 20, 30), "p90": (40,), "paired": (10, 20, 30), "sequential": (100,)}
CASES = [
    (name, n, rho)
    for name in INTERVALS
    for n in SIZES.get(name, (10, 20, 30))
    for rho in (0.0, 0.3, 0.6)
]


def covered(name: str, n: int, rho: float, series: int) -> list[bool]:
    interval, truth = INTERVALS[name]
    sides = 2 if name == "independent" else 1
    rows = ar1(np.random.default_rng([n, round(10 * rho)]), sides * series, n, rho)
    found = [interval(row) for row in rows.reshape(series, -1)]
    return [
        one is not None
        and (one.low is None or one.low <= truth)
        and (one.high is None or truth <= one.high)
        for one in found
    ]


@pytest.mark.parametrize(("name", "n", "rho"), [("median", 10, 0.6), ("paired", 20, 0.0)])
def test_intervals_cover_in_a_sample(name: str, n: int, rho: float) -> None:
    holds_rate(f"{name}, n = {n}, AR(1) {rho}", covered(name, n, rho, 150), 0.9)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n", "rho"), CASES)
def test_intervals_cover_whatever_the_dependence(name: str, n: int, rho: float) -> None:
    holds_rate(f"{name}, n = {n}, AR(1) {rho}", covered(name, n, rho, 2000), 0.9 if rho else 0.93)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 30])
def test_strong_dependence_is_covered_or_said(n: int) -> None:
    rows = ar1(np.random.default_rng(n), 2000, n, 0.9)
    found = [estimates.median(row, unit="") for row in rows]
    good = [
        "lower bound" in one.note
        or (one.low is not None and one.high is not None and one.low <= 0 <= one.high)
        for one in found
    ]
    holds_rate(f"median, n = {n}, AR(1) 0.9, covered or said", good, 0.8)


@pytest.mark.slow
def test_differences_cover_with_unequal_spreads() -> None:
    rng = np.random.default_rng(1)
    good = []
    for _ in range(2000):
        a, b = rng.normal(100, 1, 30), rng.normal(100, 15, 6)
        got = compare.independent(a, b, better=Better.LOWER).difference
        good.append(got is not None and (got.low or -1) <= 0 <= (got.high or 1))
    holds_rate("difference, 30 of spread 1 against 6 of spread 15", good, 0.93)
