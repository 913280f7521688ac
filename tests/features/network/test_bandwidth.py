"""Link technology and token buckets whose truth is set."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.features.network import bandwidth, transport
from nephoscope.stats.statistics.values import Refused


@pytest.mark.parametrize(
    ("goodput", "technology"),
    [
        (9.4e6, "10 Mb/s Ethernet"),
        (94.1e6, "100 Mb/s Ethernet"),
        (941e6, "1 Gb/s Ethernet"),
        (9.41e9, "10 Gb/s Ethernet"),
        (23.5e9, "25 Gb/s Ethernet"),
        (94e9, "100 Gb/s Ethernet"),
    ],
)
def test_a_full_link_is_its_technology(goodput: float, technology: str) -> None:
    found = bandwidth.link(goodput)
    assert (found.verdict, found.technology) == ("link", technology)
    assert found.of_wire_limit == pytest.approx(1, abs=0.01)


def test_headers_of_the_wire() -> None:
    # 1448 of 1538 bytes with TCP, 1472 with UDP, 8948 of 9038 in large frames.
    for protocol, mtu, share in (
        ("tcp", 1500, 1448 / 1538),
        ("udp", 1500, 1472 / 1538),
        ("tcp", 9000, 8948 / 9038),
    ):
        found = bandwidth.link(900e6, protocol=protocol, mtu_bytes=mtu)
        assert found.wire_limit_bits_per_s == pytest.approx(1e9 * share)


@pytest.mark.parametrize("rate", [5e6, 47e6, 200e6, 600e6, 3e9])
def test_a_shaper_is_found_with_its_rate(rate: float) -> None:
    found = bandwidth.link(rate * 1448 / 1514, variation=0.01)
    assert found.verdict == "shaped"
    assert found.shaped_to_bits_per_s == pytest.approx(rate)
    assert "shaped to" in found.sentence


def test_a_varying_rate_is_no_shaper_and_nothing_is_refused() -> None:
    assert bandwidth.link(600e6, variation=0.3).verdict == "variable"
    assert bandwidth.link(1e13).verdict == "unknown"
    with pytest.raises(Refused, match="No payload"):
        bandwidth.link(0)
    with pytest.raises(Refused, match="larger MTU"):
        bandwidth.link(1e6, mtu_bytes=50)


def shaped(
    peak: float, sustained: float, bucket: float, interval_s: float, intervals: int, seed: int
) -> list[float]:
    """Rates behind a token bucket that starts full: 0.3 s of slow start and 5 % of noise."""
    rng, tokens, rates, steps = np.random.default_rng(seed), bucket, [], 50
    step_s = interval_s / steps
    for interval in range(intervals):
        passed = 0.0
        for step in range(steps):
            start = min(1.0, (interval * steps + step) * step_s / 0.3)
            offered = peak * start * step_s * (1 + 0.05 * rng.standard_normal())
            tokens = min(bucket, tokens + sustained * step_s)
            tokens -= (sent := min(offered, tokens))
            passed += sent
        rates.append(passed / interval_s)
    return rates


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("peak", "sustained", "bucket", "interval_s", "intervals"),
    [
        (12.5e6, 2.5e6, 10e6, 0.1, 40),
        (12.5e6, 2.5e6, 10e6, 0.25, 40),
        (1.25e9, 125e6, 5e9, 0.5, 60),
        (100e6, 50e6, 30e6, 0.1, 30),
        (12.5e6, 10e6, 3e6, 0.1, 60),
    ],
)
def test_a_token_bucket_is_found_within_five_percent(
    peak: float, sustained: float, bucket: float, interval_s: float, intervals: int, seed: int
) -> None:
    rates = shaped(peak, sustained, bucket, interval_s, intervals, seed)
    found = bandwidth.token_bucket(rates, interval_s)
    assert found is not None
    assert found.burst_bytes_per_s == pytest.approx(peak, rel=0.05)
    assert found.sustained_bytes_per_s == pytest.approx(sustained, rel=0.05)
    assert found.bucket_bytes == pytest.approx(bucket, rel=0.05)


def test_constant_noisy_falling_and_short_series_have_no_token_bucket() -> None:
    rng = np.random.default_rng(3)
    noisy = 1e7 * (1 + 0.1 * rng.standard_normal((200, 50)))
    assert not [one for one in noisy if bandwidth.token_bucket(one, 0.1)]
    assert bandwidth.token_bucket(np.full(50, 1e7), 0.1) is None
    assert bandwidth.token_bucket(np.linspace(2e7, 1e7, 50), 0.1) is None
    assert bandwidth.token_bucket(np.zeros(20), 0.1) is None
    with pytest.raises(Refused):
        bandwidth.token_bucket([1e7] * 3, 0.1)


def test_figures_of_rfc_6349() -> None:
    found = transport.tcp_figures(
        sent_bytes=100e6,
        retransmitted_bytes=2e6,
        base_rtt_ns=25e6,
        loaded_rtt_ns=32e6,
        actual_s=13,
        ideal_s=8,
    )
    assert found.efficiency_ratio == pytest.approx(0.98)
    assert found.buffer_delay_ratio == pytest.approx(0.28)
    assert found.transfer_time_ratio == pytest.approx(1.625)
    path = transport.tcp_figures(bottleneck_bits_per_s=500e6, base_rtt_ns=5e6, window_bytes=65536)
    assert path.bandwidth_delay_bytes == 312_500
    assert path.window_limit_bits_per_s == pytest.approx(65536 * 8 / 0.005)
    assert transport.tcp_figures(base_rtt_ns=5e6) == transport.TcpFigures()
    with pytest.raises(Refused, match="More bytes"):
        transport.tcp_figures(sent_bytes=1, retransmitted_bytes=2)


@pytest.mark.parametrize(
    ("increase_ms", "grade"),
    [(0, "A+"), (4.9, "A+"), (5, "A"), (30, "B"), (60, "C"), (200, "D"), (400, "F")],
)
def test_grades_of_latency_under_load(increase_ms: float, grade: str) -> None:
    found = transport.latency_under_load([20e6] * 20, [(20 + increase_ms) * 1e6] * 20)
    assert found.grade == grade
    assert found.round_trips_per_minute == pytest.approx(60_000 / (20 + increase_ms))
