"""Jitter, delay variation, loss and loss episodes against values worked out beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.features.network import delay, loss
from nephoscope.stats.statistics.values import Refused


def test_jitter_and_delay_variation() -> None:
    found = delay.variation([50.0, 52.0, 49.0, 60.0, 50.0])
    assert found.jitters_ns == pytest.approx((0.125, 0.3046875, 0.97314453, 1.53732300))
    assert found.jitter_ns == found.jitter_max_ns == pytest.approx(1.53732300)
    assert found.ipdv_mean_ns == 6.5
    assert found.pdvs_ns == (1, 3, 0, 11, 1)
    assert found.pdv_p95_ns is None  # five packets have no 95th percentile


def test_a_step_of_the_delay_fills_the_filter() -> None:
    alternating = np.where(np.arange(17) % 2, 116.0, 100.0)
    assert delay.variation(alternating).jitter_ns == pytest.approx(10.30281, abs=5e-6)


def test_one_packet_has_no_variation() -> None:
    with pytest.raises(Refused):
        delay.variation([1.0])


def test_long_series_are_thinned_in_documents() -> None:
    found = delay.variation(np.arange(5000.0))
    assert (found.packets, len(found.pdvs_ns), found.pdvs_ns[-1]) == (5000, 1000, 4999)
    assert found.pdv_p99_9_ns == 4994


def test_loss_episodes_from_counts() -> None:
    found = loss.loss_episodes({"00": 980, "01": 5, "10": 5, "11": 10}, slot_s=0.005)
    assert found.frequency.value == 0.015
    assert found.duration_slots is not None
    assert found.duration_slots.value == 3.0
    assert found.duration_s == pytest.approx(0.015)
    assert found.valid


def episodes(slots: int, mean_gap: float, mean_length: float, seed: int) -> np.ndarray:
    """Slots with loss: gaps and episodes of geometric length."""
    rng = np.random.default_rng(seed)
    pieces: list[np.ndarray] = []
    while sum(map(len, pieces)) < slots:
        pieces.append(np.zeros(rng.geometric(1 / mean_gap), dtype=bool))
        pieces.append(np.ones(rng.geometric(1 / mean_length), dtype=bool))
    return np.concatenate(pieces)[:slots]


def test_loss_episodes_of_a_simulated_path_are_within_15_percent() -> None:
    flags = episodes(400_000, 500, 19.6, seed=5)
    found = loss.of_series(flags, slot_s=0.005)
    assert found.episodes is not None
    assert found.episodes.duration_slots is not None
    true_length = loss.run_lengths(flags).mean()
    assert found.episodes.frequency.value == pytest.approx(flags.mean(), rel=0.15)
    assert found.episodes.duration_slots.value == pytest.approx(true_length, rel=0.15)
    assert found.burst_ratio == pytest.approx(true_length * (1 - flags.mean()))


def test_checks_of_the_estimator() -> None:
    uneven = loss.loss_episodes({"00": 900, "01": 40, "10": 5, "11": 10})
    assert not uneven.valid
    assert "differ by more" in uneven.problems[0]
    few = loss.loss_episodes({"00": 900, "01": 1, "10": 1})
    assert not few.valid
    none = loss.loss_episodes({"00": 900})
    assert (none.duration_slots, none.valid) == (None, False)
    with pytest.raises(Refused, match="at least one pair"):
        loss.loss_episodes({})


def test_random_loss_has_a_burst_ratio_of_one() -> None:
    flags = np.random.default_rng(2).random(200_000) < 0.05
    assert loss.of_series(flags).burst_ratio == pytest.approx(1.0, abs=0.03)


def test_no_loss_has_an_upper_bound_and_no_episodes() -> None:
    found = loss.of_series(np.zeros(100, dtype=bool))
    assert found.ratio.value == 0
    assert found.ratio.high == pytest.approx(0.037, abs=1e-3)
    assert found.episodes is None
