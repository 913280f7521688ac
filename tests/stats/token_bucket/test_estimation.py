"""Token buckets are recognised and measured; what is none is not taken for one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.stats.token_bucket import simulated
from tests.stats.token_bucket.simulated import BURST

from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.token_bucket.estimation import burst_credit

QUANTITIES = ("burst", "baseline", "knee", "drain", "credit")


def _truth(drawn: simulated.Drawn) -> dict[str, float]:
    assert drawn.bucket is not None
    assert drawn.knee_s is not None
    return {
        "burst": BURST,
        "baseline": drawn.bucket.baseline,
        "knee": drawn.knee_s,
        "drain": drawn.knee_s,
        "credit": drawn.bucket.credit,
        "refill": drawn.bucket.refill,
    }


def _measured(count: int, depths: tuple[float, ...], cycles: int) -> tuple[int, Counter[str]]:
    """Buckets that were recognised, and of each quantity how often its interval held the truth and
    how often the value was more than 5 % off; also the counts of intervals."""
    found, counts = 0, Counter[str]()
    for seed in range(count):
        draws = np.random.default_rng((seed, cycles))
        drawn = simulated.bucket_series(draws, depth=depths[seed % len(depths)], cycles=cycles)
        result = burst_credit(drawn.at_s, drawn.rates)
        if not result.is_on_credit:
            continue
        found += 1
        for name, true in _truth(drawn).items():
            value = getattr(result, name)
            if value is None or value.low is None or (name == "refill" and not cycles):
                continue
            counts[f"{name} intervals"] += 1
            counts[f"{name} covers"] += value.low <= true <= value.high
            counts[f"{name} off"] += abs(value.value - true) > 0.05 * true
    return found, counts


def test_buckets_are_recognised_within_five_percent() -> None:
    found, counts = _measured(16, (0.2, 0.35, 0.5, 0.9), cycles=0)
    assert found == 16
    for name in QUANTITIES:
        assert counts[f"{name} off"] <= 1, (name, counts)
        assert counts[f"{name} covers"] >= 13, (name, counts)


def test_a_refill_is_measured_over_pauses() -> None:
    found, counts = _measured(6, (0.4, 0.6), cycles=3)
    assert found >= 5
    assert counts["refill intervals"] >= 4
    assert counts["refill covers"] >= 0.75 * counts["refill intervals"]


@pytest.mark.parametrize("kind", simulated.NO_BUCKETS, ids=lambda kind: kind.__name__)
def test_what_is_no_bucket_gives_no_alarm(kind: object) -> None:
    assert callable(kind)
    for seed in range(6):
        drawn = kind(np.random.default_rng((seed, 1)))
        assert burst_credit(drawn.at_s, drawn.rates).verdict in ("steady", "varies"), seed


@pytest.mark.slow
def test_study_of_buckets_and_of_series_that_are_none() -> None:
    alarms = Counter[str]()
    for kind in simulated.NO_BUCKETS:
        for seed in range(150):
            drawn = kind(np.random.default_rng((seed, 7)))
            alarms[kind.__name__] += burst_credit(drawn.at_s, drawn.rates).is_on_credit
    assert sum(alarms.values()) <= 0.01 * 150 * len(simulated.NO_BUCKETS), alarms
    for depth, least in ((0.18, 0.85), (0.25, 0.97), (0.5, 0.97), (0.9, 0.97)):
        found, counts = _measured(150, (depth,), cycles=0)
        assert found >= least * 150, depth
        for name in QUANTITIES:
            assert counts[f"{name} covers"] >= 0.88 * found, (depth, name, counts)
            assert counts[f"{name} off"] <= 0.03 * found, (depth, name, counts)


def test_the_busy_time_separates_baseline_and_refill() -> None:
    draws = np.random.default_rng(3)
    busy = np.repeat([0.3, 0.7, 0.8, 0.9], 200)
    at_s = 60.0 * np.arange(busy.size)
    baseline, refill = 40.0, 60.0
    after = (baseline * busy + refill * (1 - busy)) / busy
    rates = np.where(np.arange(busy.size) < 250, BURST, np.minimum(BURST, after))
    result = burst_credit(at_s, rates * simulated.noise(draws, busy.size, 0.01), busy)
    assert result.is_on_credit
    assert result.baseline is not None
    assert result.refill is not None
    assert result.baseline.value == pytest.approx(baseline, rel=0.05)
    assert result.refill.value == pytest.approx(refill, rel=0.05)
    assert result.knee is not None
    assert result.knee.value == pytest.approx(250 * 60, abs=120)


def test_a_series_that_rises_again_under_load_is_no_credit() -> None:
    rates = [100.0] * 30 + [50.0] * 30 + [100.0] * 30 + [50.0] * 30
    result = burst_credit(range(120), rates)
    assert result.verdict == "varies"
    assert "rises again under load" in result.reason


def test_a_gap_in_the_points_is_stated_and_widens_the_credit() -> None:
    at_s = np.concatenate([np.arange(0, 50.0), np.arange(80.0, 200.0)])
    rates = np.where(at_s < 120, 100.0, 40.0)
    result = burst_credit(at_s, rates)
    assert result.credit is not None
    assert result.credit.low is not None
    assert result.credit.low < 60 * 90 < 60 * 120 <= 1.01 * (result.credit.high or 0)
    assert any("no points" in note for note in result.notes)


@pytest.mark.parametrize(
    ("at_s", "rates", "busy", "words"),
    [
        ([0, 1, 1, 2], [1.0] * 4, None, "times do not increase"),
        ([0, 1, 2], [1.0] * 4, None, "not one series"),
        ([0, 1, 2], [1.0, float("nan"), 1.0], None, "not a number"),
        ([0, 1, 2], [1.0, -1.0, 1.0], None, "negative"),
        ([0, 1, 2], [1.0] * 3, [0.5, 2.0, 0.5], "busy time"),
    ],
)
def test_what_is_no_series_is_refused(
    at_s: list[float], rates: list[float], busy: list[float] | None, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        burst_credit(at_s, rates, busy)


@pytest.mark.parametrize("rates", [[1.0], [100.0] * 4 + [50.0] * 3])
def test_too_few_points_cannot_be_told(rates: list[float]) -> None:
    result = burst_credit(range(len(rates)), rates)
    assert result.verdict == "cannot be told"
    assert "too few" in result.reason
