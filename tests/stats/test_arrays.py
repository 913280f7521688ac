import math
import subprocess
import sys

import numpy as np
import pytest

import nephoscope.stats
from nephoscope.stats import Refused, compare, history, median, nested, paired, ratio
from nephoscope.stats.statistics import estimates

from .vectors import A, B


def test_own_numbers_have_the_intervals_of_results():
    assert median(A, unit="ms") == estimates.median(A, unit="ms")
    told = median(A, independent=True)
    assert (told.value, told.low, told.high, told.n) == (100, 98, 103, 15)
    assert (
        ratio(A, B, better="lower").ratio
        == compare.independent(A, B, better=compare.Better.LOWER).ratio
    )
    assert paired(A, B, better="higher").verdict.word in {"better", "inconclusive"}
    assert ratio(A, [1.3 * value for value in A], better="lower").verdict.word == "worse"


def test_the_mean_over_instances_counts_instances():
    groups = [(100, 102, 98, 100), (110, 112, 108, 110), (95, 97, 93, 95)]
    found = nested(groups, unit="ms")
    assert (found.value, found.n, found.unit) == (pytest.approx(305 / 3), 3, "ms")
    assert (found.low, found.high) == (
        pytest.approx(82.69, abs=0.01),
        pytest.approx(120.64, abs=0.01),
    )


def test_what_has_no_answer_is_refused_in_a_sentence():
    with pytest.raises(Refused, match="2 groups are too few"):
        nested([[1, 2], [3, 4]])
    with pytest.raises(Refused, match="not a number"):
        median([1.0, math.nan])
    with pytest.raises(Refused, match="no pairs"):
        paired([1, 2], [1], better="lower")
    with pytest.raises(AttributeError):
        _ = nephoscope.stats.nothing


def test_the_public_names_are_those_documented_and_cost_nothing_until_asked_for():
    names = {"Refused", "history", "median", "nested", "paired", "ratio"}
    assert set(nephoscope.stats.__all__) == names
    code = "import sys, nephoscope.stats; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert np.isfinite(median(A).value)


def test_history_finds_a_change_and_refuses_what_it_cannot_test() -> None:
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(10, 0.1, 60), rng.normal(11, 0.1, 60)])
    (change,) = history(values)
    assert change.index == 60
    assert change.low < 1 < change.high
    assert [step.index for step in history(values, 300.0 * np.arange(120))] == [60]
    assert history(values, smallest=2.0) == []
    for arguments, message in (
        ((values[:39],), "39 values cannot be tested for changes; measure at least 40"),
        ((values, [1.0, 2.0]), "120 values have 2 times"),
        ((values, -np.arange(120.0)), "do not ascend"),
        (([*values[:-1], math.inf],), "timeouts"),
    ):
        with pytest.raises(Refused, match=message):
            history(*arguments)
