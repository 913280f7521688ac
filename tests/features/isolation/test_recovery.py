"""Recovery is an equivalence, never a failure to see; drift is told from the quiet alone."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.core.model import Better
from nephoscope.features.isolation.recovery import drift, recovery
from nephoscope.stats.interference import Triple, around


def made(after: float, rounds: int = 12, noise: float = 0.005) -> list[Triple]:
    rng = np.random.default_rng(2)
    out = []
    for number in range(rounds):
        a, b, c = 100 * np.exp(rng.normal(0, noise, 3))
        out.append(around(number, 1.5 * b, a, after * c))
    return out


@pytest.mark.parametrize(
    ("after", "better", "word"),
    [
        (1.0, Better.LOWER, "recovered"),
        (1.2, Better.LOWER, "not recovered"),
        (1.2, Better.HIGHER, "better after"),
        (0.8, Better.HIGHER, "not recovered"),
    ],
)
def test_words(after: float, better: Better, word: str) -> None:
    found = recovery(made(after), better=better)
    assert found.word == word
    assert found.ratio is not None
    truth = after if better is Better.LOWER else 1 / after
    assert found.ratio.value == pytest.approx(truth, rel=0.01)
    assert found.ratio.n == 12


def test_little_evidence_is_no_recovery() -> None:
    assert recovery(made(1.0, noise=0.2), better=Better.LOWER).word == "undecided"
    assert recovery(made(1.0, rounds=4), better=Better.LOWER).word == "undecided"
    alone = [Triple(1, 2.0, 1.0, before=1.0)]
    found = recovery(alone, better=Better.LOWER)
    assert (found.word, found.ratio) == ("not measured", None)


def test_drift_of_the_quiet() -> None:
    rng = np.random.default_rng(4)
    at = np.arange(30.0)
    noise = np.exp(rng.normal(0, 0.01, 30))
    moving = drift(at, 100 * 1.2 ** (at / 29) * noise, better=Better.LOWER)
    assert moving.word == "drifts"
    assert moving.ratio is not None
    assert moving.ratio.value == pytest.approx(1.2, rel=0.02)
    falling = drift(at, 100 * 1.2 ** (-at / 29) * noise, better=Better.HIGHER)
    assert falling.ratio is not None
    assert falling.ratio.value == pytest.approx(1.2, rel=0.02)
    assert drift(at, 100 * noise, better=Better.LOWER).word == "steady"
    assert drift(at[:7], noise[:7], better=Better.LOWER).word == "too few"
    assert drift(np.zeros(10), noise[:10], better=Better.LOWER).word == "too few"


def test_false_drifts_are_as_rare_as_promised() -> None:
    # 1,000 series without drift: 0.05 with a standard error of 0.007; Kendall's is conservative.
    rng = np.random.default_rng(6)
    at = np.arange(20.0)
    words = [drift(at, np.exp(rng.normal(0, 0.05, 20)), better=Better.LOWER) for _ in range(1000)]
    assert sum(one.word == "drifts" for one in words) / 1000 <= 0.05 + 3 * 0.007
