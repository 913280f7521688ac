"""Labs on this machine: what is made, what holds on the wire, and that nothing is left."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
import statistics
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import hardware, tools
from tests.hardware import Feature
from tests.measure.lab import wire

from nephoscope.cli.commands import lab as lab_command
from nephoscope.core.errors import PlanError, RunFailed, UsageError
from nephoscope.measure.lab import check, conditions, files, names, needs, state
from nephoscope.measure.lab.handle import Host, Lab
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.limits.cpu import machine_cpus
from nephoscope.measure.lab.network import delay_line
from nephoscope.measure.lab.network.namespaces import within
from nephoscope.measure.lab.platforms import PLATFORMS
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.provisioning import BROKEN

pytestmark = pytest.mark.usefixtures("root_only")

PAIR: dict[str, Any] = {"hosts": {"a": {}, "b": {}}}


def with_link(**link: object) -> dict[str, Any]:
    return {**PAIR, "links": {"wan": {"between": ["a", "lan"], **link}}}


def over(sender: Host, receiver: Host, seconds: float) -> Callable[[], float]:
    """Measures the goodput between two hosts, bits a second."""
    return lambda: check.carried_bits_per_s(sender.netns, receiver.netns, receiver.address, seconds)


def median_s(lab: Lab, source: str, destination: str) -> Callable[[], float]:
    """Measures the median round trip between two hosts."""
    return lambda: statistics.median(wire.round_trips_s(lab, source, destination, 20))


def machine_devices() -> list[str]:
    return sorted(os.listdir("/sys/class/net"))


@pytest.fixture(autouse=True)
def _nothing_in_the_machine_s_own_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """The machine's devices are what they were, where no other test adds or takes any meanwhile."""
    if request.node.get_closest_marker("alone") is None:
        yield
        return
    before = machine_devices()
    yield
    assert machine_devices() == before


@tools.needs("ip", "tc")
@pytest.mark.alone
def test_a_lab_is_up_and_then_gone() -> None:
    def work(lab: Lab) -> str:
        assert LABS.existing() != []
        assert LABS.open(lab.name).hosts == lab.hosts
        assert names.directory(lab.name).stat().st_mode & 0o777 == 0o700
        found = subprocess.run(
            [*lab.hosts["a"].enter(), "cat", "/proc/self/cgroup"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert f"/nephoscope/{lab.name}/a" in found
        return lab.name

    name = wire.in_lab(PAIR, work)
    assert LABS.remains(name) == []
    assert name not in {one.name for one in LABS.existing()}


@tools.needs("ip", "tc")
def test_a_lab_whose_delay_line_has_ended_is_broken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(lab: Lab) -> None:
        asyncio.run(delay_line.stop(lab.name, "wan"))
        with pytest.raises(UsageError, match=r"is broken: the delay line of 'wan' has ended") as no:
            LABS.open(lab.name)
        assert no.value.hint.startswith(f"Remove it with `nephoscope lab down {lab.name}`")
        (found,) = [one for one in LABS.existing() if one.name == lab.name]
        assert found.state == BROKEN
        lab_command.list_.main([], standalone_mode=False)
        assert f"{lab.name}: broken" in (shown := capsys.readouterr().out)
        assert "the delay line of 'wan' has ended" in shown

    wire.in_lab(with_link(delay="1ms", mechanism="line"), work)


@tools.needs("ip", "tc")
def test_labs_of_another_user_are_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(lab: Lab) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(needs, "can_see_labs", lambda: False)
            (found,) = [one for one in LABS.existing() if one.name == lab.name]
            assert found.state == "owned by root"
            with pytest.raises(UsageError, match="is owned by root") as refused:
                LABS.open(lab.name)
        assert "sudo /" in refused.value.hint

    wire.in_lab(PAIR, work)


@tools.needs("ip", "tc")
def test_a_host_has_loopback_pings_and_no_ipv6_unless_asked() -> None:
    def work(lab: Lab) -> None:
        for host, off in (("a", "1"), ("b", "0")):
            shown = subprocess.run(
                [
                    *lab.hosts[host].enter(),
                    "sh",
                    "-c",
                    "ip -br addr show lo; sysctl -n "
                    "net.ipv6.conf.all.disable_ipv6 net.ipv4.ping_group_range",
                ],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            assert "127.0.0.1/8" in shown
            assert shown[-3:] == [off, "0", "2147483647"]

    wire.in_lab({"hosts": {"a": {}, "b": {"ipv6": True}}}, work)


@tools.needs("ip", "tc")
def test_hidden_limits_are_in_force_and_out_of_sight() -> None:
    def shown(host: Host) -> list[str]:
        script = "cat /proc/self/cgroup; find /sys/fs/cgroup -type f; ls /sys/class/net"
        words = [*host.enter(), "sh", "-c", script]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()

    def work(lab: Lab) -> None:
        seen = shown(lab.hosts["a"])
        assert not any("/sys/fs/cgroup" in word or lab.name in word for word in seen), seen
        assert "eth0" in seen
        group = cgroups.host(lab.name, "a")
        quota, period = (
            ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            if group.version("cpu") == 1
            else ("cpu.max", "cpu.max")
        )
        assert group.file("cpu", quota, quota).read_text().split()[0] == "15000"
        assert group.file("cpu", period, period).read_text().split()[-1] == "30000"
        assert any(lab.name in word for word in shown(lab.hosts["b"]))
        asyncio.run(conditions.apply(lab, {"hosts.a.cpu.hidden": False}))
        assert any(lab.name in word for word in shown(lab.hosts["a"]))

    limits = {"cap": 0.5, "cap_period": "30ms", "hidden": True}
    wire.in_lab({"hosts": {"a": {"cpu": limits}, "b": {}}}, work)


@tools.needs("ip", "tc")
@pytest.mark.alone
@pytest.mark.parametrize(
    ("path", "mbit"),
    [
        ("auto", 47),
        ("line", 200),
        pytest.param("auto", 200, marks=pytest.mark.slow),
        pytest.param("line", 47, marks=pytest.mark.slow),
    ],
)
def test_a_rate_holds_both_ways(mbit: int, path: str) -> None:
    # Each full segment of 1448 bytes has 66 bytes of headers that HTB counts; 3 % as in the check.
    truth = mbit * 1e6 * 1448 / 1514

    def work(lab: Lab) -> None:
        a, b = lab.hosts["a"], lab.hosts["b"]
        for sender, receiver in ((a, b), (b, a)):
            wire.holds(
                f"{sender.name} to {receiver.name}",
                over(sender, receiver, 1.0),
                truth,
                0.03 * truth,
            )

    wire.in_lab(with_link(rate=f"{mbit}Mbit/s", mechanism=path), work)


@tools.needs("ip", "tc")
@pytest.mark.alone
def test_what_arrives_is_shaped_too() -> None:
    truth = 50e6 * 1448 / 1514

    def work(lab: Lab) -> None:
        a, b = lab.hosts["a"], lab.hosts["b"]
        wire.holds("ingress", over(b, a, 1.0), truth, 0.03 * truth)
        assert max(over(a, b, 0.3)() for _ in range(3)) > 2 * truth

    wire.in_lab(with_link(ingress="50Mbit/s"), work)


@tools.needs("ip", "tc")
@pytest.mark.parametrize("path", ["auto", "line"])
def test_large_packets_pass_whole(path: str) -> None:
    values = {
        **PAIR,
        "links": {
            "one": {"between": ["a", "lan"], "mtu": 9000, "mechanism": path},
            "two": {"between": ["b", "lan"], "mtu": 9000},
        },
    }

    def work(lab: Lab) -> None:
        with wire.udp(lab.hosts["a"]) as client, wire.udp(lab.hosts["b"]) as server:
            server.bind((lab.hosts["b"].address, 0))
            # IP_MTU_DISCOVER = IP_PMTUDISC_DO: a packet that does not fit is an error, not two.
            client.setsockopt(socket.IPPROTO_IP, 10, 2)
            client.sendto(bytes(9000 - 28), server.getsockname())
            assert len(server.recv(10_000)) == 8972

    wire.in_lab(values, work)


@tools.needs("ip", "tc")
@pytest.mark.alone
def test_loss_without_delay_is_the_filter_s_and_asymmetric() -> None:
    sent = 4000

    def work(lab: Lab) -> None:
        by = "netem" if needs.abilities().netem else "packet filter"
        assert [link.loss for link in lab.links] == [by]
        up = sent - wire.arrived(lab, "a", "b", sent)
        down = sent - wire.arrived(lab, "b", "a", sent)
        # Binomial, p = 0.1: 400 with a standard deviation of 19; five of them.
        assert 305 < up < 495
        assert down == 0

    wire.in_lab(with_link(up={"loss": "10%"}), work)


@tools.needs("ip", "tc")
@pytest.mark.alone
@tools.needs("iptables")
def test_without_nft_iptables_loses_what_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    has = dataclasses.replace(needs.abilities(), nft=False, netem=False)
    if not has.iptables:
        hardware.lacking(Feature.PACKET_FILTER, "the statistic match of iptables")
    monkeypatch.setattr(needs, "abilities", lambda: has)

    def work(lab: Lab) -> None:
        assert [link.loss for link in lab.links] == ["iptables"]
        assert 305 < 4000 - wire.arrived(lab, "b", "a", 4000) < 495

    wire.in_lab(with_link(down={"loss": "10%"}), work)


@tools.needs("ip", "tc")
@pytest.mark.alone
def test_a_delay_holds_and_changes_in_place() -> None:
    def work(lab: Lab) -> None:
        apply = lambda **changes: asyncio.run(  # noqa: E731
            conditions.apply(lab, {path.replace("_", "."): to for path, to in changes.items()})
        )
        for text, seconds in (("5ms", 0.005), ("0ms", 0.0), ("20ms", 0.020)):
            apply(links_wan_delay=text)
            # Twice the delay; half a millisecond each way as in the check.
            wire.delay_holds(text, median_s(lab, "a", "b"), 2 * seconds)
        assert lab.links[0].path == ("netem" if needs.abilities().netem else "line")
        assert LABS.open(lab.name).topology == lab.topology

    wire.in_lab(with_link(), work)


@tools.needs("ip", "tc")
@pytest.mark.alone
def test_rates_losses_and_caps_change_while_a_lab_is_up() -> None:
    def work(lab: Lab) -> None:
        a, b = lab.hosts["a"], lab.hosts["b"]
        change = {"links.wan.rate": "20Mbit/s", "hosts.a.cpu.cap": "50%"}
        asyncio.run(conditions.apply(lab, change))
        slow, fast = (mbit * 1e6 * 1448 / 1514 for mbit in (20, 80))
        wire.holds("slow", over(a, b, 0.5), slow, 0.05 * slow)
        asyncio.run(conditions.apply(lab, {"links.wan.rate": "80Mbit/s", "links.wan.loss": "10%"}))
        assert wire.arrived(lab, "a", "b", 1000, 2e-4) < 960
        asyncio.run(conditions.apply(lab, {"links.wan.loss": 0}))
        wire.holds("fast", over(a, b, 0.5), fast, 0.05 * fast)
        quota = cgroups.host(lab.name, "a").file("cpu", "cpu.cfs_quota_us", "cpu.max")
        assert quota.read_text().split()[0] == "50000"
        with pytest.raises(UsageError, match="no such link"):
            asyncio.run(conditions.apply(lab, {"links.lan.rate": "1Mbit/s"}))

    wire.in_lab(with_link(rate="47Mbit/s"), work)


@tools.needs("ip", "tc")
def test_the_initial_window_and_the_congestion_control_of_a_host_hold_and_change() -> None:
    def sending(host: Host) -> tuple[str, list[str]]:
        words = "sysctl -n net.ipv4.tcp_congestion_control; ip route show"
        shown = subprocess.run(
            [*host.enter(), "sh", "-c", words], capture_output=True, text=True, check=True
        )
        control, *routes = shown.stdout.splitlines()
        return control, [route.partition(" initcwnd ")[2].strip() for route in routes]

    def work(lab: Lab) -> None:
        usual, windows = sending(lab.hosts["b"])
        assert windows == [""]
        assert sending(lab.hosts["a"]) == ("reno", ["3"])
        asyncio.run(conditions.apply(lab, {"hosts.a.tcp.initial_window": 10}))
        assert sending(lab.hosts["a"]) == ("reno", ["10"])
        asyncio.run(conditions.apply(lab, {"links.wan.delay": "1ms"}))
        assert sending(lab.hosts["a"]) == ("reno", ["10"]), "a link that is made anew"
        assert sending(lab.hosts["b"]) == (usual, [""])

    tcp = {"initial_window": 3, "congestion_control": "reno"}
    wire.in_lab({**with_link(rate="1Gbit/s"), "hosts": {"a": {"tcp": tcp}, "b": {}}}, work)


def test_a_guest_and_an_unknown_congestion_control_are_refused_with_their_place() -> None:
    for host, sentence in (
        ("{platform: qemu, tcp: {initial_window: 3}}", "host a is a qemu guest"),
        ("{tcp: {congestion_control: tahoe}}", "host a asks for tahoe"),
    ):
        with pytest.raises(PlanError, match=rf"^x.yaml:\d+:\d+: {sentence}"):
            files.from_text(f"name: t\nhosts:\n  a: {host}\n  b: {{}}\n", "x.yaml", here=True)


@tools.needs("ip", "tc")
@pytest.mark.alone
def test_sites_are_as_far_apart_as_the_matrix_says() -> None:
    values = {
        "hosts": {"a": {}, "b": {}, "c": {}, "d": {}},
        "geo": {
            "sites": {"x": ["a", "b"], "y": ["c"], "z": ["d"]},
            "latency": {"x": {"y": "10ms", "z": "20ms"}, "y": {"x": "14ms", "z": "5ms"}},
        },
    }

    def work(lab: Lab) -> None:
        # There and back: 10 + 14, 20 + 20, 5 + 5; within a site nothing is added.
        for pair, truth in {"ac": 24, "bd": 40, "cd": 10, "ab": 0}.items():
            wire.delay_holds(pair, median_s(lab, pair[0], pair[1]), truth / 1e3)
        asyncio.run(conditions.apply(lab, {"geo.latency": LATER}))
        wire.delay_holds("later", median_s(lab, "a", "c"), 0.060)

    LATER = {"x": {"y": "30ms", "z": "20ms"}, "y": {"z": "5ms"}}  # noqa: N806
    wire.in_lab(values, work)


@tools.needs("ip", "tc")
def test_hosts_between_networks_pass_packets_on() -> None:
    values = {
        "hosts": {"a": {}, "r": {}, "b": {}},
        "links": {"left": {"between": ["a", "r"]}, "right": {"between": ["r", "b"]}},
    }
    assert len(wire.in_lab(values, lambda lab: wire.round_trips_s(lab, "a", "b", 5))) == 5


@tools.needs("ip", "tc")
def test_two_labs_of_one_network_do_not_meet() -> None:
    def outer(one: Lab) -> None:
        def inner(two: Lab) -> None:
            assert one.hosts["a"].address == two.hosts["a"].address
            for lab in (one, two):
                assert len(wire.round_trips_s(lab, "a", "b", 3)) == 3
            listed = {lab.name for lab in LABS.existing()}
            assert {one.name, two.name} <= listed

        wire.in_lab(PAIR, inner)
        assert len(wire.round_trips_s(one, "a", "b", 3)) == 3

    wire.in_lab(PAIR, outer)


@tools.needs("ip", "tc")
def test_a_name_that_is_taken_is_refused_and_the_lab_stays() -> None:
    def work(lab: Lab) -> None:
        again = files.from_values({"version": 1, "name": lab.name, **PAIR})
        with pytest.raises(UsageError, match=f"A lab named {lab.name} is up already"):
            asyncio.run(LABS.create(again, say=lambda line: None))
        assert len(wire.round_trips_s(lab, "a", "b", 2)) == 2

    wire.in_lab(PAIR, work)


@tools.needs("ip", "tc")
def test_of_two_ups_of_one_name_one_is_refused() -> None:
    topology = files.from_values({"version": 1, "name": wire.name(), **PAIR})

    async def whole() -> None:
        ups = (LABS.create(topology, say=lambda line: None) for _ in range(2))
        found = await asyncio.gather(*ups, return_exceptions=True)
        try:
            assert sorted(type(one).__name__ for one in found) == ["Busy", "Lab"]
            lab = LABS.open(topology.name)
            assert len(await asyncio.to_thread(wire.round_trips_s, lab, "a", "b", 2)) == 2
        finally:
            await LABS.remove(topology.name)

    asyncio.run(whole())


@tools.needs("ip", "tc")
def test_a_lab_that_fails_halfway_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from nephoscope.measure.lab.network import links

    monkeypatch.setattr(links, "route_lines", lambda laid, host: ["route add nonsense"])
    topology = files.from_values({"version": 1, "name": wire.name(), **with_link(delay="1ms")})
    with pytest.raises(RunFailed, match="nonsense"):
        asyncio.run(LABS.create(topology, say=lambda line: None))
    assert LABS.remains(topology.name) == []


@tools.needs("ip", "tc")
def test_a_cancelled_up_leaves_nothing() -> None:
    topology = files.from_values({"version": 1, "name": wire.name(), **with_link(delay="1ms")})

    async def cancelled(after_s: float) -> None:
        task = asyncio.ensure_future(LABS.create(topology, say=lambda line: None))
        await asyncio.sleep(after_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for after_s in (0.01, 0.03, 0.05):
        try:
            asyncio.run(cancelled(after_s))
        except pytest.fail.Exception:  # it was up before: that is no failure
            asyncio.run(LABS.remove(topology.name))
        assert LABS.remains(topology.name) == []


@tools.needs("ip", "tc")
def test_down_removes_nothing_of_others() -> None:
    other = Path(f"/run/netns/nephx-{wire.name()}")
    group = cgroups.layout().of("pids").root / other.name
    subprocess.run(["ip", "netns", "add", other.name], check=True)
    group.mkdir()
    try:
        name = wire.in_lab(PAIR, lambda lab: lab.name)
        assert LABS.remains(name) == []
        assert other.exists()
        assert group.is_dir()
    finally:
        subprocess.run(["ip", "netns", "delete", other.name], check=True)
        group.rmdir()


@tools.needs("ip", "tc")
def test_down_of_no_lab_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="There is no lab named tnothere here"):
        lab_command.down.main(["tnothere"], standalone_mode=False)


@tools.needs("ip", "tc")
def test_remains_are_found_without_any_file() -> None:
    topology = files.from_values({"version": 1, "name": wire.name(), **PAIR})

    async def whole() -> None:
        await LABS.create(topology, say=lambda line: None)
        (names.directory(topology.name) / state.STATE).unlink()
        listed = {one.name: one.state for one in LABS.existing()}
        assert listed[topology.name] == "broken"
        with pytest.raises(UsageError, match="Remains of a lab named"):
            await LABS.create(topology, say=lambda line: None)
        await LABS.remove(topology.name)

    asyncio.run(whole())
    assert LABS.remains(topology.name) == []


@tools.needs("ip", "tc")
def test_what_runs_inside_ends_with_the_lab() -> None:
    async def whole() -> None:
        topology = files.from_values({"version": 1, "name": wire.name(), **PAIR})
        lab = await LABS.create(topology, say=lambda line: None)
        entered = subprocess.Popen([*lab.hosts["a"].enter(), "sleep", "60"])
        # One that joined the network alone, as `ip netns exec` does.
        beside = subprocess.Popen(["ip", "netns", "exec", lab.hosts["b"].netns.name, "sleep", "60"])
        await asyncio.sleep(0.2)
        removed = await LABS.remove(lab.name)
        assert removed.processes >= 2
        assert entered.wait(120) == beside.wait(120) == -9
        assert LABS.remains(lab.name) == []

    asyncio.run(whole())


def test_addresses_of_this_machine_are_refused_with_the_interface_s_name() -> None:
    used = [
        (network, interface)
        for network, interface in check.machine_networks()
        if network.prefixlen <= 30 and not network.is_loopback
    ]
    if not used:
        hardware.lacking(Feature.IPV4_NETWORK)
    network, interface = used[0]
    with pytest.raises(PlanError, match=rf"x.yaml:2:1: .* which this machine uses on {interface}"):
        files.from_text(f"name: t\nnetwork: {network}\nhosts: {{a: }}\n", "x.yaml", here=True)


@pytest.mark.parametrize(
    ("cpu", "words"),
    [
        ("{cpus: [4000]}", "asks for CPU 4000"),
        ("{cap: 400000%}", "more than the"),
        ("{reservation: {slice: 40ms, period: 40ms}}", "reservations"),
    ],
)
def test_what_this_machine_has_not_is_said_with_the_place(cpu: str, words: str) -> None:
    hosts = "".join(f"  h{i}: {{cpu: {cpu}}}\n" for i in range(len(machine_cpus())))
    with pytest.raises(PlanError, match=r"^x.yaml:\d+:\d+: ") as caught:
        files.from_text(f"name: t\nhosts:\n{hosts}", "x.yaml", here=True)
    assert words in str(caught.value)


def test_rates_beyond_the_box_are_said_before() -> None:
    wide = files.from_values({"version": 1, "name": "t", **with_link(rate="40Gbit/s")})
    assert "asks for 40.0 Gbit/s" in check.warnings(wide)[0]
    narrow = files.from_values({"version": 1, "name": "t", **with_link(rate="100Mbit/s")})
    assert check.warnings(narrow) == []


@tools.needs("ip", "tc")
@tools.needs("runc", "mmdebstrap")
def test_a_host_changes_its_platform_and_keeps_its_address() -> None:
    lacking = PLATFORMS["container"].lacking()
    if lacking is not None:
        hardware.lacking(Feature.LAB, str(lacking))

    def work(lab: Lab) -> None:
        address = lab.hosts["b"].address
        for platform in ("container", "bare"):
            asyncio.run(conditions.apply(lab, {"hosts.b.platform": platform}))
            assert lab.hosts["b"].platform == platform
            assert lab.hosts["b"].address == address
            assert len(wire.round_trips_s(lab, "a", "b", 3)) == 3
            for level in ("boot", "instance"):
                times = asyncio.run(conditions.renew(lab, "b", level))
                assert times is not None
                assert times.reachable_ns > 0
        with pytest.raises(UsageError, match="has no host named c"):
            asyncio.run(conditions.renew(lab, "c", "boot"))

    wire.in_lab(with_link(), work)


@tools.needs("ip", "tc")
@pytest.mark.slow
@tools.needs("linux.uml", "mmdebstrap")
def test_a_guest_keeps_its_network_when_its_link_is_recreated() -> None:
    lacking = PLATFORMS["uml"].lacking()
    if lacking is not None:
        hardware.lacking(Feature.LAB, str(lacking))
    hosts = {"a": {}, "b": {"platform": "uml", "memory": "256MiB"}}

    def work(lab: Lab) -> None:
        address = (lab.hosts["a"].address, 7000)
        with within(lab.hosts["a"].netns, lambda: socket.create_server(address)) as server:
            server.settimeout(20)
            reader = f"exec 3<>/dev/tcp/{address[0]}/{address[1]}; cat <&3"
            for delay in (None, "50ms", "5ms"):
                if delay is not None:
                    asyncio.run(conditions.apply(lab, {"links.wan.delay": delay}))
                guest = subprocess.Popen(
                    lab_command.inside(lab.hosts["b"], ["bash", "-c", reader]),
                    stdout=subprocess.PIPE,
                    text=True,
                )
                peer, _ = server.accept()
                with peer:
                    peer.sendall(b"hello")
                assert guest.communicate(timeout=120)[0] == "hello"

    wire.in_lab({"hosts": hosts, "links": {"wan": {"between": ["b", "lan"]}}}, work)
