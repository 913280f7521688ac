"""TCP state, loss episodes, probes that any host answers, hops, path MTU and queries: each is held
against what was set in network namespaces."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import veth
from channel import TOKEN, controlled, peer_line
from cpu_truth import group
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from tests.tools import needs
from trials import command, needs_root, refused, run
from two_sided import measure

from nephoscope.stats.statistics.proportions import wilson


@pytest.mark.together
@pytest.mark.parametrize("zero_copy", [False, True])
def test_a_transfer_of_set_bytes_carries_exactly_those(zero_copy: bool) -> None:
    wanted = 50_000_001
    params = {
        "transfer_bytes": wanted,
        "streams": 3,
        "direction": "both",
        "zero_copy": zero_copy,
    }
    trial = measure("net.throughput", params)
    for way in ("up", "down"):
        # Three streams of a third each, rounded up.
        assert trial.of("sent_bytes", direction=way) == 3 * -(-wanted // 3)
        assert trial.of("transfer_ns", direction=way) > 0
        shares = (
            "congestion_window_limited_ratio",
            "receiver_limited_ratio",
            "sender_limited_ratio",
        )
        told = [
            trial.of(sample["metric"], direction=way)
            for sample in trial.samples
            if sample["metric"] in shares and sample["factors"]["direction"] == way
        ]
        # The kernel counts busy time in ticks of up to 10 ms: a short transfer may have none.
        assert len(told) in (0, len(shares))
        assert not told or sum(told) == pytest.approx(1)
        efficiency = trial.of("tcp_efficiency_ratio", direction=way)
        assert efficiency == 1 - trial.of("retransmitted_ratio", direction=way)


def refused_with_a_peer(params: dict[str, Any]) -> tuple[int, dict[str, str]]:
    """Exit code and error of a trial that reaches its peer and then cannot begin."""
    with (
        controlled("serve", "net.throughput") as server,
        controlled("run", "net.throughput", params) as client,
    ):
        server.say(f"token {TOKEN}")
        client.say(peer_line(server.ready()))
        client.ready()
        client.say("go")
        return client.error()


@pytest.mark.together
def test_a_congestion_control_is_set_or_the_available_ones_are_named() -> None:
    assert measure("net.throughput", {"congestion_control": "reno", "transfer_bytes": 1 << 22})
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    too_long = {"congestion_control": "a-name-that-is-too-long"}
    assert refused("net.throughput", too_long) == (4, "no_such_congestion_control")
    code, error = refused_with_a_peer({"congestion_control": "nonesuch"})
    assert (code, error["name"]) == (4, "no_such_congestion_control")
    assert "nonesuch" in error["message"]
    assert ", ".join(available) in error["message"]


@pytest.mark.together
def test_a_receive_buffer_beyond_the_limit_of_the_machine_is_refused() -> None:
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    assert measure("net.throughput", {"receive_buffer_bytes": limit, "transfer_bytes": 1 << 20})
    code, error = refused_with_a_peer({"receive_buffer_bytes": limit + 1, "direction": "down"})
    assert (code, error["name"]) == (4, "receive_buffer_too_large")
    assert str(limit) in error["message"]


@veth.needs_it
@needs_root
@pytest.mark.truth("net.throughput", "sent_count", "received_count", "sent_per_s", "received_per_s")
@pytest.mark.truth("net.throughput", "loss_ratio", "loss_low_ratio", "loss_high_ratio")
@pytest.mark.truth("net.throughput", "lost_run_count", "loss_episode_ratio", "loss_episode_ns")
def test_loss_episodes_are_found_with_their_frequency_and_duration() -> None:
    """Of every 500 datagrams that arrive the last 25 are dropped, by count: no chance in it."""
    params = {
        "protocol": "udp",
        "rate_bits_per_s": 4_000_000,
        "packet_bytes": 125,
        "duration_ns": 1_000_000_000,
        "wait_ns": 200_000_000,
    }

    def once() -> tuple[str, bool]:
        with veth.pair() as path, group() as favoured:
            path.drop_runs("far", 25, 500)
            trial = measure("net.throughput", params, path=path, favoured=favoured)
        slot_ns = 1e9 / trial.one("sent_per_s")
        sent, received = trial.one("sent_count"), trial.one("received_count")
        assert sent == 4000
        lost = sent - received
        runs = [s["value"] for s in trial.samples if s["metric"] == "lost_run_count"]
        assert sum(runs) == lost
        # Those that try the path before the trial are counted, too, so that the last run may be
        # cut.
        assert runs[:-1] == [25] * (len(runs) - 1)
        assert trial.one("loss_episode_ratio") == pytest.approx(0.05, rel=0.15)
        assert trial.one("loss_episode_ns") == pytest.approx(25 * slot_ns, rel=0.15)
        interval = wilson(int(lost), int(sent))
        assert trial.one("loss_ratio") == pytest.approx(lost / sent)
        assert trial.one("loss_low_ratio") == pytest.approx(interval.low)
        assert trial.one("loss_high_ratio") == pytest.approx(interval.high)
        assert trial.histogram("ipdv_ns")[0] > 3000
        assert trial.histogram("pdv_ns")[0] == received
        # 500 kB in blocks of 128 KiB: three are whole, less what was dropped.
        assert trial.histogram("block_goodput_bytes_per_s")[0] == 3
        sent_per_s, received_per_s = trial.one("sent_per_s"), trial.one("received_per_s")
        near = abs(sent_per_s / 4000 - 1) <= 0.02 and abs(received_per_s / received - 1) <= 0.03
        return f"{sent_per_s:.0f} sent, {received_per_s:.0f} received a second", near

    attempt("runs of 25 of 500", once)


@veth.needs_it
@needs_root
def test_pairs_at_random_slots_find_episodes_of_time() -> None:
    """A datagram is dropped where bits 20 to 22 of the time at which it is due are set, so that the
    truth does not depend on when it leaves: 1.0 ms of every 8.4 ms."""
    episode_ns, period_ns = 1 << 20, 1 << 23
    with veth.pair() as path, group() as favoured:
        # Lower half of the header's third word; datagrams that try the path have zero there.
        path.filter("far", "@th,224,32 & 0x700000 == 0x700000")
        params = {
            "protocol": "udp",
            # 8,000 slots a second: 8.4 in an episode.
            "rate_bits_per_s": 6_400_000,
            "packet_bytes": 100,
            "pair_ratio": 0.5,
            "seed": 1,
            "duration_ns": 3_000_000_000,
            "wait_ns": 200_000_000,
        }
        trial = measure("net.throughput", params, path=path, favoured=favoured)
        dropped = path.dropped("far")
    assert trial.one("sent_count") - trial.one("received_count") == dropped
    # A slot is used if a pair begins in it or in the one before.
    assert trial.one("sent_count") == pytest.approx(24_000 * 0.75, rel=0.02)
    assert trial.one("loss_episode_ratio") == pytest.approx(episode_ns / period_ns, rel=0.15)
    assert trial.one("loss_episode_ns") == pytest.approx(episode_ns, rel=0.15)
    assert "coincidence" not in trial.notes


@pytest.mark.parametrize("offload", [False, True])
def test_as_fast_as_possible_is_counted_at_the_receiver(offload: bool) -> None:
    params = {
        "protocol": "udp",
        "rate_bits_per_s": 0,
        "packet_bytes": 64,
        "duration_ns": 100_000_000,
        "wait_ns": 100_000_000,
        "segmentation_offload": offload,
    }
    trial = measure("net.throughput", params)
    assert 0 < trial.one("received_count") <= trial.one("sent_count")
    assert trial.one("received_per_s") > 1000


@veth.needs_it
@needs_root
def test_icmp_and_connections_are_answered_by_the_kernel() -> None:
    with veth.pair() as path:
        for protocol in ("icmp", "tcp"):
            params = {"protocol": protocol, "duration_ns": 200_000_000, "stored_probes": 50}
            trial = measure("net.rtt", params, path=path, stops_server=True)
            assert trial.one("sent_count") == trial.one("returned_count") == 200
            assert trial.of("loss_ratio", direction="both") == 0
            assert trial.histogram("rtt_sent_ns")[0] == 200
            probes = [s for s in trial.samples if s["metric"] == "probe_rtt_ns"]
            assert len(probes) == 50
            # Milliseconds apart by the schedule, whatever the answers did.
            first, second = (probe["at_ns"] for probe in probes[:2])
            assert second - first == 1_000_000
            if protocol == "icmp":
                kernel, program = trial.histogram("rtt_kernel_ns"), trial.histogram("rtt_sent_ns")
                assert kernel[0] == 200
                assert kernel[1] <= program[1]


@needs_root
@hardware.needs(Feature.IPV6, Path("/proc/net/if_inet6").exists())
def test_icmp_over_ipv6_is_answered_by_the_kernel() -> None:
    params = {"host": "::1", "protocol": "icmp", "duration_ns": 100_000_000, "rate_per_s": 200}
    trial = run("net.rtt", params)
    assert trial.one("sent_count") == trial.one("returned_count") == 20
    assert trial.histogram("rtt_kernel_ns")[0] == 20


def test_one_at_a_time_leaves_when_the_one_before_has_come_back() -> None:
    trial = measure("net.rtt", {"rate_per_s": 0, "duration_ns": 100_000_000})
    sent = trial.one("sent_count")
    assert sent == trial.one("returned_count") == trial.served["received"]
    # What takes a round trip at a time has a rate of one over its mean, at most.
    assert sent * trial.one("rtt_sent_mean_ns") <= 100_000_000 * 1.5


@pytest.mark.together
def test_what_cannot_be_measured_is_a_sentence() -> None:
    host = {"host": "127.0.0.1"}
    # Port 1 of this machine: nothing listens there.
    closed = {**host, "protocol": "tcp", "port": 1, "rate_per_s": 10}
    assert refused("net.rtt", closed) == (3, "closed_port")
    assert refused("net.rtt", {**host, "protocol": "tcp"})[0] == 2
    assert refused("net.rtt", host)[0] == 2
    stranger = {"host": "192.0.2.1", "protocol": "icmp"}
    assert refused("net.rtt", stranger) == (2, "not_authorised")
    assert refused("net.query", {**host, "port": 1}) == (3, "no_game_server")
    assert refused("net.path", {"host": "no.such.host.invalid"}) == (3, "no_such_host")
    assert refused("net.throughput", {"protocol": "udp", "rate_bits_per_s": 5})[0] == 2
    assert (
        refused("net.throughput", {"protocol": "udp", "rate_bits_per_s": 0, "search_steps": 2})[0]
        == 2
    )
    assert refused("net.throughput", {"pair_ratio": 0.5})[0] == 2


@pytest.mark.together
@needs_root
@needs("setpriv")
def test_without_permission_icmp_says_what_to_do() -> None:
    if Path("/proc/sys/net/ipv4/ping_group_range").read_text().split() != ["1", "0"]:
        hardware.lacking(Feature.CLOSED_PING_SOCKETS)
    words = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    params = {"host": "127.0.0.1", "protocol": "icmp", "rate_per_s": 10}
    done = subprocess.run(
        [*words, *command("net.rtt", params)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "ping_group_range" in done.stderr


@pytest.mark.parametrize(("protocol", "before"), [("a2s", 2), ("quake3", 1)])
def test_queries_are_answered_by_the_far_side(protocol: str, before: int) -> None:
    """Before the trial: the challenge of a2s, and what the server says of itself."""
    params = {"protocol": protocol, "rate_per_s": 100, "duration_ns": 200_000_000}
    trial = measure("net.query", params)
    assert trial.one("sent_count") == trial.one("returned_count") == 20
    assert trial.served["queries"] == 20 + before
    (server,) = [s["document"] for s in trial.samples if s["metric"] == "game_server"]
    assert server["name"] == "Nephoscope"


@contextmanager
def chain(mtu: int) -> Iterator[list[str]]:
    """Three namespaces in a row, the second link of a smaller MTU; their names."""
    names = [f"neph-path-test-{os.getpid()}-{number}" for number in range(3)]
    try:
        for name in names:
            veth.call(["ip", "netns", "add", name])
            veth.call(["ip", "-n", name, "link", "set", "lo", "up"])
        for number, (left, right) in enumerate(pairwise(names)):
            peer = ["type", "veth", "peer", "name", "left", "netns", right]
            veth.call(["ip", "-n", left, "link", "add", "right", *peer])
            for name, device, host in ((left, "right", 1), (right, "left", 2)):
                address = f"10.99.{80 + number}.{host}/24"
                veth.call(["ip", "-n", name, "address", "add", address, "dev", device])
                size = ["mtu", str(mtu)] if number == 1 else []
                veth.call(["ip", "-n", name, "link", "set", device, *size, "up"])
        forward = ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"]
        veth.call(["ip", "netns", "exec", names[1], *forward])
        veth.call(["ip", "-n", names[0], "route", "add", "default", "via", "10.99.80.2"])
        veth.call(["ip", "-n", names[2], "route", "add", "default", "via", "10.99.81.1"])
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def drop_reports(router: str, which: str) -> None:
    """Has a router drop what it sends itself and what meets a condition of nftables."""
    inside = ["ip", "netns", "exec", router]
    veth.call([*inside, "nft", "add", "table", "ip", "silent"])
    hook = "{ type filter hook output priority 0 ; }"
    veth.call([*inside, "nft", f"add chain ip silent output {hook}"])
    veth.call([*inside, "nft", f"add rule ip silent output {which} counter drop"])


@needs_root
@needs("ip", "nft")
@pytest.mark.truth("net.path", "hops_count", "path_mtu_bytes", "hop_loss_ratio")
def test_hops_and_path_mtu_are_exact() -> None:
    with chain(mtu=1343) as names:
        drop_reports(names[1], "icmp type time-exceeded numgen inc mod 4 == 3")
        router = ["ip", "netns", "exec", names[1]]
        # The kernel of a router bounds the rate of its reports, unless told otherwise.
        veth.call([*router, "sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0"])
        inside = ["ip", "netns", "exec", names[0]]
        params = {"host": "10.99.81.2", "probes_per_hop": 8, "wait_ns": 200_000_000}
        trial = run("net.path", params, before=inside)
        words = veth.call([*router, "nft", "list", "table", "ip", "silent"]).split()
    dropped = int(words[words.index("packets") + 1])
    # The host answers each time.
    assert dropped >= 2
    assert trial.by("hop_loss_ratio", "hop") == {1: dropped / 8, 2: 0}
    assert trial.one("hops_count") == 2
    assert trial.one("path_mtu_bytes") == 1343
    hops = {
        (s["factors"]["hop"], s["factors"]["address"])
        for s in trial.samples
        if s["metric"] == "hop_rtt_ns"
    }
    assert hops == {(1, "10.99.80.2"), (2, "10.99.81.2")}
    assert "vanish" not in trial.notes


@needs_root
@needs("ip", "nft")
@pytest.mark.slow
def test_the_path_mtu_is_exact_where_routers_report_nothing() -> None:
    with chain(mtu=1343) as names:
        drop_reports(names[1], "icmp type destination-unreachable")
        inside = ["ip", "netns", "exec", names[0]]
        params = {"host": "10.99.81.2", "wait_ns": 50_000_000}
        trial = run("net.path", params, before=inside)
    assert trial.one("path_mtu_bytes") == 1343
    assert "vanish" in trial.notes


@veth.needs_it
@needs_root
@pytest.mark.slow
@pytest.mark.truth("net.throughput", "no_loss_per_s", "no_loss_bytes_per_s")
@pytest.mark.truth("net.throughput", "search_offered_per_s", "search_loss_ratio")
def test_the_rate_without_loss_is_that_of_a_limiter() -> None:
    with veth.pair() as path, group() as favoured:
        path.filter("far", "limit rate over 5000/second burst 20 packets")
        params = {
            "protocol": "udp",
            "rate_bits_per_s": 16_000_000,
            "packet_bytes": 100,
            "search_steps": 10,
            "duration_ns": 500_000_000,
            "wait_ns": 100_000_000,
        }

        def once() -> tuple[str, bool]:
            trial = measure("net.throughput", params, path=path, favoured=favoured)
            found = trial.one("no_loss_per_s")
            assert trial.one("no_loss_bytes_per_s") == pytest.approx(found * 100)
            steps = zip(
                trial.series("search_offered_per_s"),
                trial.series("search_loss_ratio"),
                strict=True,
            )
            # What is offered above the limit is lost, but for the burst.
            lost = [abs(loss - max(0.0, 1 - 5000 / per_s)) for per_s, loss in steps]
            assert max(lost) <= 0.03
            assert trial.series("search_offered_per_s")[:2] == pytest.approx(
                [20_000, 10_000], rel=0.02
            )
            # The burst of 20 passes above the rate; the last step is 20,000 / 2**10 wide.
            return f"{found:.0f} a second", abs(found / 5000 - 1) <= 0.05

        attempt("rate without loss", once)
