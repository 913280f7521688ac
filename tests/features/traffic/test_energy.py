"""Bursts and radio energy against sums worked out beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.traffic import energy, shape
from nephoscope.features.traffic.energy import RADIOS, Radio
from nephoscope.features.traffic.shape import Burst
from nephoscope.stats.statistics.values import Refused

SIMPLE = Radio(
    "simple",
    "made up",
    active_w=2.0,
    active_w_per_mbit_s=0.5,
    promotion_s=0.5,
    promotion_w=1.0,
    tail_1_s=3.0,
    tail_1_w=1.0,
    tail_2_s=2.0,
    tail_2_w=0.5,
    sleep_w=0.1,
)


def packets(bursts: int, each: int, pause_s: float) -> tuple[np.ndarray, np.ndarray]:
    times = [burst * pause_s + at * 0.001 for burst in range(bursts) for at in range(each)]
    return np.array(times), np.full(len(times), 1000.0)


def test_bursts_are_what_pauses_separate() -> None:
    found = shape.shape_of(*packets(8, 20, 0.04))
    assert (found.bursts_count, found.packets) == (8, 160)
    assert found.burst_bytes.value == 20_000
    assert found.interval_s is not None
    assert found.pause_s is not None
    assert found.interval_s.value == pytest.approx(0.040)
    assert found.pause_s.value == pytest.approx(0.021)
    assert found.busy_ratio == pytest.approx(8 * 0.019 / found.duration_s)
    # A longer gap joins them, a shorter one parts each packet.
    assert shape.shape_of(*packets(8, 20, 0.04), gap_s=0.03).bursts_count == 1
    assert shape.shape_of(*packets(8, 20, 0.04), gap_s=0.0005).bursts_count == 160


def test_smooth_traffic_has_a_lower_peak() -> None:
    smooth = shape.shape_of(np.arange(1000) * 0.001, np.full(1000, 1000.0))
    bursty = shape.shape_of(*packets(10, 100, 1.0))
    assert smooth.peak_to_mean == pytest.approx(1, abs=0.2)
    assert bursty.peak_to_mean == pytest.approx(10, rel=0.1)


def test_one_packet_and_no_packet() -> None:
    one = shape.shape_of(np.array([0.0]), np.array([60.0]))
    assert (one.bursts_count, one.interval_s, one.busy_ratio) == (1, None, 1.0)
    with pytest.raises(Refused, match="no shape"):
        shape.shape_of(np.array([]), np.array([]))


def test_energy_of_one_burst_and_its_tails() -> None:
    found = energy.energy_of([Burst(0.0, 4.0, 10, 1e6)], SIMPLE)
    assert found.promotion_j == 0.5
    assert found.active_j == pytest.approx(4 * 2 + 0.5 * 8)
    assert found.tail_j == pytest.approx(3 * 1 + 2 * 0.5)
    assert found.sleep_j == 0
    assert found.total_j == pytest.approx(0.5 + 12 + 4)
    assert found.joules_per_mb == pytest.approx(16.5)
    assert found.duration_s == 9


def test_gaps_within_and_beyond_the_tails() -> None:
    bursts = [Burst(0.0, 1.0, 1, 0.0), Burst(3.0, 1.0, 1, 0.0), Burst(20.0, 1.0, 1, 0.0)]
    found = energy.energy_of(bursts, SIMPLE, until_s=21.0)
    # Two seconds of the first tail; then both tails, 10.5 s of sleep and a promotion.
    assert found.promotions == 2
    assert found.tail_j == pytest.approx(2 * 1 + 3 * 1 + 2 * 0.5)
    assert found.sleep_j == pytest.approx((16 - 5 - 0.5) * 0.1)
    assert found.promotion_j == pytest.approx(2 * 0.5)
    assert found.active_j == pytest.approx(6)


def test_wake_ups_are_part_of_sleep() -> None:
    radio = RADIOS["wifi-psm"]
    mean = 0.020 + (0.710 - 0.020) * 0.002 / 0.1024
    assert radio.asleep_w == pytest.approx(mean)
    found = energy.energy_of([Burst(0.0, 0.0, 1, 60.0)], radio, until_s=10.0)
    assert found.total_j == pytest.approx(10 * mean)
    assert found.added_delay_s == pytest.approx(0.0512)


@pytest.mark.parametrize("name", RADIOS)
def test_the_same_bytes_in_bursts_need_less_energy(name: str) -> None:
    step = 0.05
    smooth = [Burst(at * step, 0.002, 1, 1500.0) for at in range(1200)]
    bursty = [Burst(at * 20.0, 0.8, 400, 600_000.0) for at in range(3)]
    found = [energy.energy_of(bursts, RADIOS[name], until_s=60.0) for bursts in (smooth, bursty)]
    # A radio without tails needs the same; sums in another order differ by roundings.
    assert found[1].total_j <= found[0].total_j * (1 + 1e-12)


def test_three_phases_of_playback() -> None:
    bursts = [Burst(0.0, 5.0, 1, 5e6), Burst(20.0, 1.0, 1, 1e6), Burst(21.2, 1.0, 1, 1e6)]
    bursts.append(Burst(40.0, 2.0, 1, 2e6))
    found = energy.playback_phases(bursts, SIMPLE, playback_w=0.5)
    assert [one.phase for one in found] == [
        "initial buffering",
        "playing",
        "play and buffering",
        "playing",
        "play and buffering",
    ]
    assert [one.duration_s for one in found] == pytest.approx([5, 15, 2.2, 17.8, 2])
    assert found[0].mean_w > found[2].mean_w > found[1].mean_w
    # The phases are the whole, less the tail of the last one.
    whole = energy.energy_of(bursts, SIMPLE, until_s=42.0)
    assert sum(one.radio_j for one in found) == pytest.approx(whole.total_j, rel=0.05)


def test_parameters_of_a_radio_are_replaced_or_refused() -> None:
    radio = energy.radio_of("lte", {"tail_1_s": "2"})
    assert radio.tail_1_s == 2
    assert "changed: tail_1_s" in radio.source
    with pytest.raises(UsageError, match="no such parameter"):
        energy.radio_of("lte", {"tail": "2"})
    with pytest.raises(UsageError, match="is not a number"):
        energy.radio_of("lte", {"tail_1_s": "-2"})
