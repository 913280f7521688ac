"""Joins this machine to the room of a cloud."""

from __future__ import annotations

import contextlib
import ipaddress
import random
import subprocess
from collections.abc import Iterator

from tests.clouds.rooms import Room


@contextlib.contextmanager
def joined(running: Room) -> Iterator[tuple[str, ipaddress.IPv4Network]]:
    """Joins this machine to a room; yields the room's address and the network of its guests.

    The guests are behind the room: a bridge of the cloud, and one of libvirt's own machines.
    """
    number = _free_number()
    guests = ipaddress.ip_network(f"10.231.{number}.0/24")
    assert isinstance(guests, ipaddress.IPv4Network)
    outside, inside = f"10.230.{number}.1", f"10.230.{number}.2"
    link = f"neph{number}o"
    here = ("ip", "link")
    subprocess.run(
        [*here, "add", link, "type", "veth", "peer", "cloud0", "netns", str(running.pid)],
        check=True,
    )
    try:
        for words in (
            f"address add {outside}/30 dev {link}",
            f"link set {link} up",
            f"route add {guests} via {inside}",
            f"route add 10.232.{number}.0/24 via {inside}",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        running.run(
            *("sh", "-ec"),
            f"ip address add {inside}/30 dev cloud0; ip link set cloud0 up; "
            "ip link add guests0 type veth peer guests1; ip link set guests0 up; "
            f"ip address add 10.231.{number}.1/24 dev guests1; ip link set guests1 up; "
            f"ip route add default via {outside}; "
            "echo 1 >/proc/sys/net/ipv4/ip_forward",
        )
        yield inside, guests
    finally:
        # It goes with the room; sooner when only the test has failed.
        subprocess.run([*here, "delete", link], check=False, capture_output=True)


def _free_number() -> int:
    """A number whose networks nobody on this machine uses; other tests may run clouds too."""
    taken = subprocess.run(["ip", "route", "show"], capture_output=True, text=True, check=True)
    # Not the generator that a test may have seeded.
    numbers = random.SystemRandom().sample(range(1, 255), 254)
    return next(one for one in numbers if f"10.230.{one}." not in taken.stdout)
