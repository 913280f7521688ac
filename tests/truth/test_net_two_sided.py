"""net.rtt and net.throughput against filters, limits and counters, and against each other."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
import veth
from channel import TOKEN, controlled, peer_line
from cpu_truth import group
from tests.attempts import attempt
from trials import needs_root
from two_sided import Measured, measure

from nephoscope.stats.statistics.proportions import wilson

HEADERS_OF_TCP = 14 + 20 + 32
"""Ethernet's, as a queueing discipline counts it, IP's and TCP's with timestamps."""

MSS = 1500 - 20 - 32


@pytest.fixture(scope="module")
@veth.fixture_needs_it
def path() -> Iterator[veth.Pair]:
    with veth.pair() as made:
        yield made


def test_loopback_loses_nothing_and_both_sides_count_alike() -> None:
    def once() -> tuple[str, bool]:
        trial = measure("net.rtt", {"same_clock": True, "rate_per_s": 500})
        assert trial.one("sent_count") == 500
        assert trial.one("received_count") == trial.served["received"] == 500
        assert trial.one("returned_count") == trial.histogram("rtt_ns")[0] == 500
        for direction in ("up", "down", "both"):
            assert trial.of("loss_ratio", direction=direction) == 0
        for direction in ("up", "down"):
            for metric in ("duplicates_count", "reordered_count", "strangers_count"):
                assert trial.of(metric, direction=direction) == 0
        # One clock: the two ways and the time between them make the round trip, datagram by
        # datagram, so at the least of each too.
        ways = sum(trial.quantile("delay_ns", 0, direction=way) for way in ("up", "down"))
        assert ways <= trial.quantile("rtt_sent_ns", 0) * 1.01
        rate = trial.one("sent_per_s")
        return f"{rate:.1f} a second", abs(rate / 500 - 1) <= 0.02

    attempt("500 round trips on loopback", once)


@pytest.mark.together
def test_without_one_clock_no_way_has_a_time_of_its_own() -> None:
    assert "delay_ns" not in measure("net.rtt", {"duration_ns": 50_000_000}).metrics


@veth.needs_it
@needs_root
@pytest.mark.parametrize(("up", "down"), [(200, 0), (0, 1000), (500, 500)])
def test_the_loss_of_a_filter_is_found_on_its_way(up: int, down: int) -> None:
    """Chances are per ten thousand; the filter's own count is the truth of each trial."""
    with veth.pair() as path, group() as favoured:
        path.drop("far", up)
        path.drop("near", down)
        params = {"rate_per_s": 5000, "duration_ns": 2_000_000_000, "wait_ns": 300_000_000}
        before = path.dropped("far"), path.dropped("near")
        trial = measure("net.rtt", params, path=path, favoured=favoured)
        dropped_up = path.dropped("far") - before[0]
        dropped_down = path.dropped("near") - before[1]
    sent, received = trial.one("sent_count"), trial.one("received_count")
    returned = trial.one("returned_count")
    assert sent == 10_000
    # Datagrams that try the way before the trial may be dropped too; a few at most.
    assert 0 <= dropped_up - (sent - received) <= 5
    assert 0 <= dropped_down - (received - returned) <= 5
    for chance, tried, arrived in ((up, sent, received), (down, received, returned)):
        # 1 - 1e-6: six such tests would otherwise fail once in three runs by design.
        interval = wilson(int(tried - arrived), int(tried), confidence=1 - 1e-6)
        assert interval.low <= chance / 10_000 <= interval.high
    assert trial.of("loss_ratio", direction="both") == pytest.approx(1 - returned / sent)
    assert trial.histogram("rtt_ns")[0] == returned


@pytest.mark.parametrize("benchmark", ["net.rtt", "net.throughput"])
@pytest.mark.truth("net.rtt", "strangers_count")
@pytest.mark.truth("net.throughput", "strangers_count")
def test_strangers_are_ignored_and_counted(benchmark: str) -> None:
    params = {"duration_ns": 500_000_000}
    if benchmark == "net.throughput":
        params |= {"protocol": "udp"}
    with (
        controlled("serve", benchmark) as server,
        controlled("run", benchmark, params) as client,
    ):
        server.say(f"token {TOKEN}")
        where = server.ready()
        client.say(peer_line(where))
        client.ready()
        client.say("go")
        time.sleep(0.2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for length in (0, 10, 64, 64, 1400):
                stranger.sendto(b"\xee" * length, (where["address"], where["port"]))
            stranger.settimeout(0.3)
            with pytest.raises(TimeoutError):
                stranger.recv(100)
        trial = Measured(client.rest())
        server.trial()
    assert trial.of("strangers_count", direction="up") == 5
    assert trial.one("received_count") == trial.one("sent_count")


@needs_root
def test_a_hundred_thousand_datagrams_a_second_leave_one_core() -> None:
    params = {"rate_per_s": 120_000, "duration_ns": 500_000_000}

    def once() -> tuple[str, bool]:
        trial = measure("net.rtt", params, favoured=favoured)
        rate, late = trial.one("sent_per_s"), trial.one("late_sends_ratio")
        return f"{rate:.0f} a second, {late:.4f} late", rate >= 100_000

    with group() as favoured:
        attempt("datagrams a second", once, contends=True)


@veth.needs_it
@needs_root
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_rate_limit_is_reported_less_its_headers(direction: str) -> None:
    bits = 200_000_000
    with veth.pair() as path, group() as favoured:
        path.limit("near" if direction == "up" else "far", bits)
        # Segments must be counted one by one: large ones carry fewer headers than the wire would.
        for inside in (path.near, path.far):
            veth.call([*inside, "ip", "link", "set", "veth0", "gso_max_size", "1514"])
        wanted = bits / 8 * MSS / (MSS + HEADERS_OF_TCP)

        def once() -> tuple[str, bool]:
            trial = measure(
                "net.throughput", {"direction": direction}, path=path, favoured=favoured
            )
            seen = trial.of("goodput_bytes_per_s", direction=direction)
            # The limit's own burst of 16 kB, and what the other members of a busy machine take.
            return f"{seen:.0f} of {wanted:.0f}", abs(seen / wanted - 1) <= 0.03

        attempt(f"200 Mbit/s {direction}", once)


@pytest.mark.together
@veth.needs_it
@needs_root
def test_both_ways_at_once_and_several_streams_carry_the_same_bytes() -> None:
    with veth.pair() as path:
        trial = measure(
            "net.throughput",
            {"direction": "both", "streams": 3, "duration_ns": 300_000_000},
            path=path,
        )
    for way in ("up", "down"):
        streams = [
            float(s["value"])
            for s in trial.samples
            if s["metric"] == "stream_goodput_bytes_per_s" and s["factors"]["direction"] == way
        ]
        assert len(streams) == 3
        assert sum(streams) == pytest.approx(trial.of("goodput_bytes_per_s", direction=way))
    assert trial.of("sent_bytes", direction="up") == trial.served["received_bytes"]
    assert trial.of("sent_bytes", direction="down") == trial.served["sent_bytes"]


@pytest.mark.together
@veth.needs_it
@needs_root
def test_what_tcp_sends_again_is_told() -> None:
    with veth.pair() as path:
        veth.call([*path.far, "nft", "add", "table", "ip", "lossy"])
        chain = "{ type filter hook input priority 0 ; }"
        veth.call([*path.far, "nft", f"add chain ip lossy input {chain}"])
        rule = "tcp dport != 0 ip length > 1000 numgen random mod 100 < 2 counter drop"
        veth.call([*path.far, "nft", f"add rule ip lossy input {rule}"])
        trial = measure("net.throughput", {"duration_ns": 500_000_000}, path=path)
    assert trial.of("retransmits_count", direction="up") > 0
    assert 0 < trial.of("retransmitted_ratio", direction="up") < 0.5


@veth.needs_it
@needs_root
@pytest.mark.parametrize("direction", ["up", "down"])
def test_udp_at_a_set_rate_arrives_but_for_what_a_filter_drops(direction: str) -> None:
    params = {
        "protocol": "udp",
        "direction": direction,
        "rate_bits_per_s": 20_000_000,
        "packet_bytes": 1250,
        "duration_ns": 2_000_000_000,
        "wait_ns": 300_000_000,
    }

    def once() -> tuple[str, bool]:
        with veth.pair() as path, group() as favoured:
            side = "far" if direction == "up" else "near"
            path.drop(side, 1000)
            trial = measure("net.throughput", params, path=path, favoured=favoured)
            dropped = path.dropped(side)
        sent = trial.of("sent_count", direction=direction)
        received = trial.of("received_count", direction=direction)
        assert 0 <= dropped - (sent - received) <= 5
        interval = wilson(int(sent - received), int(sent), confidence=1 - 1e-6)
        assert interval.low <= 0.1 <= interval.high
        # Payload of what arrived over the time in which it did.
        goodput = trial.of("goodput_bytes_per_s", direction=direction) / (received * 1250 / 2)
        # The last is due half a millisecond before the end; a sender woken later than that leaves
        # out what was still due, and a pause of two milliseconds is none to speak of.
        held = 3996 <= sent <= 4000 and abs(goodput - 1) <= 0.05
        return f"{sent:.0f} sent, {goodput:.3f} of what arrived", held

    attempt(f"datagrams {direction}", once)


@pytest.mark.together
@pytest.mark.parametrize(
    ("benchmark", "params"),
    [
        ("net.rtt", {}),
        ("net.throughput", {"direction": "both"}),
        ("net.throughput", {"direction": "both", "protocol": "udp"}),
        ("load.net", {}),
        ("load.net", {"protocol": "udp", "direction": "receive"}),
        ("load.packets", {}),
    ],
)
def test_as_a_load_it_runs_until_it_is_told_to_stop(benchmark: str, params: dict[str, Any]) -> None:
    trial = measure(benchmark, {**params, "duration_ns": 0}, stop_after_s=0.7)
    assert 0.6e9 < trial.done["elapsed_ns"] < 5e9
    series = [s for s in trial.samples if s["metric"].startswith("interval_")]
    assert len(series) >= 4


@pytest.mark.together
@pytest.mark.parametrize("benchmark", ["net.rtt", "net.throughput"])
def test_a_server_that_dies_ends_the_trial_with_a_name(benchmark: str) -> None:
    with (
        controlled("serve", benchmark) as server,
        controlled(
            "run", benchmark, {"duration_ns": 1_000_000_000, "wait_ns": 100_000_000}
        ) as client,
    ):
        server.say(f"token {TOKEN}")
        client.say(peer_line(server.ready()))
        client.ready()
        client.say("go")
        time.sleep(0.3)
        server.process.kill()
        code, error = client.error()
    assert code == 3
    assert error["name"] in {"far_side_gone", "connection_broken"}


@pytest.mark.together
@pytest.mark.parametrize("benchmark", ["net.rtt", "net.throughput", "load.net", "load.packets"])
def test_a_client_that_dies_ends_the_server(benchmark: str) -> None:
    with (
        controlled("serve", benchmark) as server,
        controlled("run", benchmark, {"duration_ns": 20_000_000_000}) as client,
    ):
        server.say(f"token {TOKEN}")
        client.say(peer_line(server.ready()))
        client.ready()
        client.say("go")
        time.sleep(0.3)
        client.process.kill()
        code, error = server.error()
    assert code == 3
    assert error["message"].endswith(".")


@pytest.mark.together
@pytest.mark.parametrize("benchmark", ["net.rtt", "net.throughput", "load.net", "load.packets"])
def test_without_a_far_side_it_says_how_to_name_one(benchmark: str) -> None:
    import json
    import subprocess

    from trials import command

    done = subprocess.run(command(benchmark, {}), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "peer" in json.loads(done.stdout)["error"]["hint"]


@pytest.mark.together
def test_a_far_side_that_is_not_there_is_named() -> None:
    with controlled("run", "net.rtt") as client:
        # Port 1 of this machine: nothing listens there.
        client.say(peer_line({"address": "127.0.0.1", "port": 1}))
        code, error = client.error()
    assert (code, error["name"]) == (3, "no_far_side")
