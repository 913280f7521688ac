"""Two network namespaces with a pair of virtual ports between them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests import tools

NEAR, FAR = "10.99.77.1", "10.99.77.2"


class Pair:
    """`near` and `far`: the words that run a program inside. `far_address`: where it listens."""

    far_address = FAR

    def __init__(self) -> None:
        stem = f"neph-probe-test-{os.getpid()}"
        self.names = {"near": f"{stem}-a", "far": f"{stem}-b"}
        self.near = ["ip", "netns", "exec", self.names["near"]]
        self.far = ["ip", "netns", "exec", self.names["far"]]

    def make(self) -> None:
        for name in self.names.values():
            call(["ip", "netns", "add", name])
        near, far = self.names["near"], self.names["far"]
        # Both ends are made where they belong: nothing ever stands in the machine's own namespace.
        ends = ["veth0", "type", "veth", "peer", "name", "veth0", "netns", far]
        call(["ip", "-n", near, "link", "add", *ends])
        for name, address in ((near, NEAR), (far, FAR)):
            call(["ip", "-n", name, "address", "add", f"{address}/24", "dev", "veth0"])
            for link in ("lo", "veth0"):
                call(["ip", "-n", name, "link", "set", link, "up"])

    def remove(self) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    def limit(self, side: str, bits_per_s: int) -> None:
        """Limits what leaves a side."""
        inside = self.near if side == "near" else self.far
        tc = [*inside, "tc"]
        call([*tc, "qdisc", "add", "dev", "veth0", "root", "handle", "1:", "htb", "default", "1"])
        rate = ["rate", f"{bits_per_s}bit", "burst", "16kb", "cburst", "16kb"]
        call([*tc, "class", "add", "dev", "veth0", "parent", "1:", "classid", "1:1", "htb", *rate])
        # What waits is bounded, as on a real port: a queue without an end would only delay.
        call([*tc, "qdisc", "add", "dev", "veth0", "parent", "1:1", "pfifo", "limit", "200"])

    def drop(self, side: str, per_ten_thousand: int) -> None:
        """Drops datagrams that arrive at a side, each with that chance."""
        self.filter(side, f"numgen random mod 10000 < {per_ten_thousand}")

    def drop_runs(self, side: str, length: int, of: int) -> None:
        """Drops the last `length` datagrams of every `of` that arrive at a side."""
        self.filter(side, f"numgen inc mod {of} >= {of - length}")

    def filter(self, side: str, condition: str) -> None:
        """Drops datagrams that arrive at a side and meet a condition of nftables."""
        inside = self.near if side == "near" else self.far
        call([*inside, "nft", "add", "table", "ip", "lossy"])
        chain = "{ type filter hook input priority 0 ; }"
        call([*inside, "nft", f"add chain ip lossy input {chain}"])
        rule = f"udp dport != 0 {condition} counter drop"
        call([*inside, "nft", f"add rule ip lossy input {rule}"])

    def dropped(self, side: str) -> int:
        """How many the filter of a side has dropped."""
        inside = self.near if side == "near" else self.far
        words = call([*inside, "nft", "list", "table", "ip", "lossy"]).split()
        return int(words[words.index("packets") + 1])


def call(words: Sequence[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


PROGRAMS = ("ip", "tc", "nft")
needs_it = tools.needs(*PROGRAMS)
fixture_needs_it = tools.fixture_needs(*PROGRAMS)


@contextmanager
def pair() -> Iterator[Pair]:
    """A pair that is gone afterwards, whatever happens."""
    for program in PROGRAMS:
        tools.located(program)
    made = Pair()
    try:
        made.make()
        yield made
    finally:
        made.remove()
