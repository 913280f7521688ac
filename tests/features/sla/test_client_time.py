"""The client's response time from a server's counters: the vectors of the method."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.sla.made import refused, run

from nephoscope.stats.queueing import retry_wait_s

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("rto", "expected_s"), [("1s", 0.125), ("3s", 0.375)])
def test_retransmitted_syns(rto: str, expected_s: float, capsys: Capture) -> None:
    document = run(capsys, "client-time", "--drop", "10%", "--rto", rto)
    assert document["retry_ns"] == pytest.approx(expected_s * 1e9)
    assert document["total_ns"] is None


@pytest.mark.parametrize(("window", "trips"), [("4KB", 7), ("14.6KB", 5)])
def test_slow_start(window: str, trips: int, capsys: Capture) -> None:
    words = ["--drop", "0%", "--size", "320KB", "--initial-window", window, "--rtt", "50ms"]
    document = run(capsys, "client-time", *words, "--server-time", "20ms")
    assert document["slow_start_round_trips"] == trips
    assert document["total_ns"] == pytest.approx((20 + 50 + 50 * trips) * 1e6)


def test_linear_timeouts_wait_less() -> None:
    assert retry_wait_s(0.1, 1.0, 4) < retry_wait_s(0.1, 1.0)
    # With timeouts that never double the wait is geometric.
    assert retry_wait_s(0.1, 1.0, 100) == pytest.approx(0.1 / 0.9)


@pytest.mark.parametrize(("drop", "linear"), [(0.1, 0), (0.1, 1), (0.3, 4), (0.499, 4)])
def test_the_mean_wait_is_that_of_all_retransmissions(drop: float, linear: int) -> None:
    """The j-th timeout passes where j SYNs in a row are dropped, however many that are."""
    share, exact = drop, 0.0  # share: probability of j drops times the j-th timeout
    for number in range(1, 20_000):
        exact += share
        share *= drop if number <= linear else 2 * drop
    assert retry_wait_s(drop, 1.0, linear) == pytest.approx(exact)


def test_counters(tmp_path: Path, capsys: Capture) -> None:
    def counted(name: str, drops: int, opens: int) -> Path:
        # A SYN that a full queue drops counts in both.
        text = "TcpExt: SyncookiesSent TCPReqQFullDrop ListenDrops\n"
        text += f"TcpExt: ² {drops // 2} {drops}\n"
        text += f"Tcp: ActiveOpens PassiveOpens\nTcp: 7 {opens}\n"
        (tmp_path / name).write_text(text)
        return tmp_path / name

    before, after = counted("before", 10, 100), counted("after", 60, 1050)
    document = run(capsys, "client-time", "--counters", before, after)
    assert document["drop"]["value"] == pytest.approx(0.05)
    assert document["drop"]["n"] == 1000
    words = ["client-time", "--counters", after, before]
    assert "smaller than those of the first" in refused(capsys, *words)
    (tmp_path / "x").write_text("Tcp: A\nTcp: 1\n")
    words = ["client-time", "--counters", tmp_path / "x", after]
    assert "ListenDrops or Tcp PassiveOpens is missing" in refused(capsys, *words)


def test_what_has_no_mean(capsys: Capture) -> None:
    assert "out of range" in refused(capsys, "client-time", "--drop", "50%")
    assert "is needed once" in refused(capsys, "client-time")
