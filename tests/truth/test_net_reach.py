"""net.reach: what one tenant reaches of another, with the right answer planted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import veth
from channel import controlled
from tests.attempts import attempt
from tests.tools import needs
from trials import Trial, refused, run

pytestmark = [veth.needs_it, needs("ethtool", "ping"), pytest.mark.together]

HOST, THIRD, FOREIGN = (f"10.99.76.{number}" for number in (2, 3, 77))
ONE_VLAN = {"a": {"vlan": 10}, "b": {"vlan": 10}, "c": {"vlan": 10}}
TWO_VLANS = {"a": {"vlan": 10}, "b": {"vlan": 20}, "c": {"vlan": 20}}
LEAK = {**TWO_VLANS, "a": {"vlan": 10, "tagged": [20]}}
OPEN, CLOSED = 8080, 8081
MS = 1_000_000
PARAMS = {
    "host": HOST,
    "authorised_hosts": [HOST],
    "tcp_ports": [OPEN, CLOSED],
    "udp_ports": [CLOSED],
    "vlans": [20],
    "foreign_address": FOREIGN,
    "wait_ns": 500 * MS,
    "listen_ns": 0,
}

LISTENER = f"""
import socket
with socket.create_server(("{HOST}", {OPEN})) as server:
    print("ready", flush=True)
    while True:
        server.accept()[0].close()
"""
SENDER = """
import socket, sys
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("veth0", 0))
own, to = (bytes.fromhex(word.replace(":", "")) for word in sys.argv[1:3])
for destination, count in ((to, int(sys.argv[3])), (b"\\xff" * 6, int(sys.argv[4]))):
    for _ in range(count):
        port.send(destination + own + b"\\x88\\xb5" + bytes(46))
"""


def station(number: int) -> str:
    return f"02:00:00:00:76:{number:02x}"


class Machines:
    """Three machines a, b and c at a switch: the words that run a program inside each."""

    def __init__(self) -> None:
        self.names = {name: f"neph-reach-test-{os.getpid()}-{name}" for name in "sabc"}
        self.inside = {name: ["ip", "netns", "exec", space] for name, space in self.names.items()}
        self.programs: list[subprocess.Popen[str]] = []

    def make(self) -> None:
        for space in self.names.values():
            veth.call(["ip", "netns", "add", space])
            # Nothing but what the test sends is on the wires.
            without = "net.ipv6.conf.default.disable_ipv6=1"
            veth.call(["ip", "netns", "exec", space, "sysctl", "-q", "-w", without])
            veth.call(["ip", "-n", space, "link", "set", "lo", "up"])
        for number, name in enumerate("abc", 1):
            space, switch = self.names[name], self.names["s"]
            ends = ["veth0", "address", station(number), "type", "veth"]
            ends += ["peer", "name", f"port-{name}", "netns", switch]
            veth.call(["ip", "-n", space, "link", "add", *ends])
            address = f"10.99.76.{number}/24"
            veth.call(["ip", "-n", space, "address", "add", address, "dev", "veth0"])
            veth.call(["ip", "-n", space, "link", "set", "veth0", "up"])
            veth.call(["ip", "-n", switch, "link", "set", f"port-{name}", "up"])
            # A packet that the switch copies has no sum that a card would add later.
            veth.call([*self.inside[name], "ethtool", "-K", "veth0", "tx", "off"])

    def start(self, name: str, *words: str) -> None:
        """Starts a program inside, which prints a line when it is ready."""
        pipe = subprocess.PIPE
        program = subprocess.Popen([*self.inside[name], *words], stdout=pipe, text=True)
        self.programs.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"

    def send_frames(self, unicast: int, broadcast: int) -> None:
        """Sends frames from c: to b, and to all."""
        counts = [str(unicast), str(broadcast)]
        words = [sys.executable, "-c", SENDER, station(3), station(2), *counts]
        veth.call([*self.inside["c"], *words])

    def refuse(self, rule: str) -> None:
        """Adds a rule to what b lets in."""
        for words in (
            "add table ip rules",
            "add chain ip rules input { type filter hook input priority 0 ; }",
            f"add rule ip rules input {rule}",
        ):
            veth.call([*self.inside["b"], "nft", words])

    def remove(self) -> None:
        for program in self.programs:
            program.kill()
            program.communicate()
        for space in self.names.values():
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)


@contextmanager
def machines(ports: dict[str, Any], *, floods: bool = False) -> Iterator[Machines]:
    made = Machines()
    try:
        made.make()
        named = {f"port-{name}": port for name, port in ports.items()}
        settings = json.dumps({"ports": named, "floods": floods})
        made.start("s", sys.executable, str(Path(__file__).with_name("vlan_switch.py")), settings)
        made.start("b", sys.executable, "-c", LISTENER)
        yield made
    finally:
        made.remove()


def answered(trial: Trial) -> dict[str, float]:
    return trial.by("answered_ratio", "probe")


EVERY = [
    "arp",
    "arp-vlan-20",
    "arp-foreign",
    "icmp",
    f"tcp-{OPEN}",
    f"tcp-{CLOSED}",
    f"udp-{CLOSED}",
]


@pytest.mark.truth("net.reach", "answered_ratio", "accepted_ratio")
@pytest.mark.parametrize(
    ("ports", "rule", "reached"),
    [
        # One broadcast domain: all but the tag of another VLAN.
        (ONE_VLAN, "", {*EVERY} - {"arp-vlan-20"}),
        # Rules on packets leave requests for the address alone.
        (ONE_VLAN, f"tcp dport {OPEN} drop", {*EVERY} - {"arp-vlan-20", f"tcp-{OPEN}"}),
        (ONE_VLAN, "ip saddr 10.99.76.1 drop", {"arp", "arp-foreign"}),
        (TWO_VLANS, "", set()),
        # A port that accepts the tag of the other VLAN.
        (LEAK, "", {"arp-vlan-20"}),
    ],
    ids=["one network", "a port is closed", "rules by address", "two VLANs", "a VLAN leaks"],
)
def test_what_is_reached_is_what_was_left_open(
    ports: dict[str, Any], rule: str, reached: set[str]
) -> None:
    with machines(ports) as made:
        if rule:
            made.refuse(rule)
        trial = run("net.reach", {**PARAMS, "attempts": 1}, before=made.inside["a"])
    assert answered(trial) == {probe: float(probe in reached) for probe in EVERY}
    is_open = f"tcp-{OPEN}" in reached
    assert trial.by("accepted_ratio", "probe") == {
        f"tcp-{OPEN}": float(is_open),
        f"tcp-{CLOSED}": 0.0,
    }


@pytest.mark.truth("net.reach", "answered_ratio", "accepted_ratio")
def test_a_share_of_the_attempts_may_be_answered() -> None:
    """One of three packets to the port is dropped, and one of three echo requests."""
    with machines(ONE_VLAN) as made:
        # No attempt is repeated by TCP itself within its wait.
        made.refuse(f"tcp dport {OPEN} tcp flags syn numgen inc mod 3 == 1 drop")
        made.refuse("icmp type echo-request numgen inc mod 3 == 1 drop")
        trial = run("net.reach", {**PARAMS, "attempts": 3}, before=made.inside["a"])
    assert answered(trial)["icmp"] == pytest.approx(2 / 3)
    assert answered(trial)[f"tcp-{OPEN}"] == pytest.approx(2 / 3)
    assert trial.by("accepted_ratio", "probe")[f"tcp-{OPEN}"] == pytest.approx(2 / 3)


@pytest.mark.truth("net.reach", "foreign_unicast_frames_count", "foreign_broadcast_frames_count")
@pytest.mark.parametrize(("floods", "seen"), [(True, 40), (False, 0)], ids=["a hub", "a switch"])
def test_frames_of_others_are_counted_where_they_pass_by(floods: bool, seen: int) -> None:
    params = {**PARAMS, "attempts": 1, "tcp_ports": [], "listen_ns": 1500 * MS}

    def once() -> tuple[str, bool]:
        with machines(ONE_VLAN, floods=floods) as made:
            # The switch knows the station of b, which has sent before.
            veth.call([*made.inside["b"], "ping", "-q", "-c", "1", "-W", "1", THIRD])
            with controlled("run", "net.reach", params, before=made.inside["a"]) as probe:
                probe.ready()
                probe.say("go")
                made.send_frames(40, 7)
                trial = probe.trial()
        unicast = trial.one("foreign_unicast_frames_count")
        broadcast = trial.one("foreign_broadcast_frames_count")
        return f"{unicast:.0f} of {seen}, {broadcast:.0f} of 7", (unicast, broadcast) == (seen, 7)

    # A program that waits long for its CPU sends after the window.
    attempt("frames of others", once)


def test_only_hosts_of_the_user_are_asked() -> None:
    assert refused("net.reach", {"host": "192.0.2.1"}) == (2, "not_authorised")
    foreign = {"foreign_address": "nowhere"}
    assert refused("net.reach", foreign)[0] == 2
    assert refused("net.reach", {"host": "::1"})[0] == 2


def test_loopback_has_ports_and_no_frames() -> None:
    trial = run("net.reach", {"tcp_ports": [1], "wait_ns": 50 * MS, "attempts": 1})
    assert answered(trial) == {"icmp": 1.0, "tcp-1": 1.0}
    assert not trial.all("foreign_unicast_frames_count")
