"""The E-model against the values of G.107's default parameters, worked out beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.features.network import voice
from nephoscope.features.network.voice import CODECS
from nephoscope.stats.statistics.values import Refused


@pytest.mark.parametrize(
    ("delay_ms", "lost", "r", "mos"),
    [
        (0, 0, 93.206, 4.409),
        (100, 0, 90.664, 4.355),
        (150, 0, 89.539, 4.328),
        (200, 0, 85.805, 4.223),
        (250, 0, 79.177, 3.993),
        (400, 0, 62.247, 3.216),
        (150, 0.02, 82.528, 4.116),
        (250, 0.02, 72.166, 3.697),
    ],
)
def test_rating_and_score(delay_ms: float, lost: float, r: float, mos: float) -> None:
    found = voice.rating(delay_ms, lost)
    assert found == pytest.approx(r, abs=6e-4)
    assert voice.mean_opinion_score(found) == pytest.approx(mos, abs=6e-4)


def test_score_of_ratings() -> None:
    scores = [voice.mean_opinion_score(r) for r in (-5, 50, 60, 70, 80, 90, 100)]
    assert scores == pytest.approx([1, 2.575, 3.1, 3.597, 4.024, 4.339, 4.5], abs=6e-4)


def test_impairment_by_loss_and_bursts_and_the_formula_of_ping_tools() -> None:
    assert voice.effective_impairment(0.02, 1, CODECS["g711"]) == pytest.approx(7.0111, abs=5e-5)
    assert voice.effective_impairment(0.02, 2, CODECS["g711"]) == pytest.approx(7.2797, abs=5e-5)
    assert voice.ping_tool_mos(50, 5, 0.01) == pytest.approx(4.3124, abs=5e-5)
    assert voice.approximate_rating(200, 0) == pytest.approx(93.2 - 4.8 - 0.11 * 22.7)


def test_limits_of_calls() -> None:
    found = voice.quality(200e6, 0.01, jitter_ns=80e6)
    assert [limit.verdict for limit in found.limits] == ["acceptable", "exceeded", "good"]
    assert found.verdict == "satisfied"


def test_a_packet_later_than_the_buffer_is_lost_to_the_receiver() -> None:
    delays = np.full(100, 30e6)
    delays[::10] += 35e6
    lost = np.zeros(100, dtype=bool)
    lost[5] = True
    short = voice.of_packets(delays, lost, buffer_ns=20e6)
    assert short.lost_ratio == pytest.approx(0.11)
    assert short.late_ratio == pytest.approx(0.10)
    assert short.mouth_to_ear_ns == 70e6
    # The best buffer of the ten-millisecond steps holds all that arrived.
    best = voice.of_packets(delays, lost)
    assert best.buffer_ns == 40e6
    assert best.lost_ratio == pytest.approx(0.01)
    with pytest.raises(Refused, match="All packets are lost"):
        voice.of_packets(delays, np.ones(100, dtype=bool))
