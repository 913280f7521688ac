"""The 95 % intervals hold the truth as often as the page *How we measure* says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.rates import holds_rate

from .coverage import CASES, SEED, Case, constants

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
SAMPLE = [
    case
    for case in CASES
    if (case.statistic, case.n, case.rho)
    in {("median", "10", 0.6), ("paired ratio", "20", 0.0), ("unpaired ratio", "20", 0.6)}
    or case.statistic.startswith(("difference", "mean, exp"))
    or case.n == "6 trials"
]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_intervals_cover_in_a_sample(case: Case) -> None:
    holds_rate(case.name, case.counted(100, SEED), case.promised)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_intervals_cover(case: Case) -> None:
    holds_rate(case.name, case.counted(2000, SEED), case.promised)


def test_the_published_table_is_of_these_cases_and_constants() -> None:
    newest = json.loads(max(RESULTS.glob("*-interval-coverage.json")).read_text(encoding="utf-8"))
    names = [(row["statistic"], row["n"], row["autocorrelation"]) for row in newest["rows"]]
    assert names == [(case.statistic, case.n, case.rho) for case in CASES]
    assert newest["constants"] == constants()
    assert newest["seed"] != SEED
    for row, case in zip(newest["rows"], CASES, strict=True):
        holds_rate(case.name, [i < row["right"] for i in range(newest["samples"])], case.promised)
