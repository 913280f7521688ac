"""What a security group lets in, enforced in the network namespace of each machine.

A rule whose source is a group lets in the private addresses of its members, not their public ones:
https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html#security-group-referencing
Answers to what a machine began itself are let in: security groups are stateful. The public address
of a machine is not its own: it is translated, as in a VPC.
"""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Iterator

from .cloud import Cloud, Resource

_TABLE = "table ip nephoscope-cloud"


def text(cloud: Cloud, instance: Resource, controller: str) -> str:
    """The packet filter of a machine, for `nft -f -`. controller: the address from which this
    machine's loopback is seen there."""
    private, public = instance.data["private"], instance.data["address"]
    rules = list(_rules(cloud, instance, controller))
    policy = "drop" if instance.data["groups"] else "accept"
    lines = [
        f"{_TABLE} {{}}",
        f"delete {_TABLE}",
        f"{_TABLE} {{",
        "chain pre {",
        "type nat hook prerouting priority -100;",
        f"ip daddr {public} dnat to {private}",
        "}",
        "chain in {",
        f"type filter hook input priority 0; policy {policy};",
        "iif lo accept",
        "ct state established,related accept",
        *rules,
        "}",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _rules(cloud: Cloud, instance: Resource, controller: str) -> Iterator[str]:
    for group in instance.data["groups"]:
        for protocol, low, high, source in cloud.resources[group].data["rules"]:
            sources = _sources(cloud, source, controller)
            if not sources:
                continue
            words = f"ip saddr {{ {', '.join(sources)} }}"
            if protocol in ("tcp", "udp"):
                words += f" {protocol} dport {low}-{high}"
            elif protocol == "icmp":
                words += " ip protocol icmp"
            yield f"{words} accept"


def _sources(cloud: Cloud, source: str, controller: str) -> list[str]:
    if source.startswith("sg-"):
        return sorted(
            each.data["private"]
            for each in list(cloud.resources.values())
            if each.kind == "instance"
            and source in each.data["groups"]
            and each.state(cloud.now()) != "terminated"
        )
    network = ipaddress.ip_network(source)
    if network.is_loopback:
        return [controller]
    return [str(network)] if network.version == 4 else []


def apply(pid: int, script: str) -> None:
    """Gives the network namespace of a process its packet filter."""
    words = ["nsenter", f"--net=/proc/{pid}/ns/net", "nft", "-f", "-"]
    subprocess.run(words, input=script, text=True, check=True, capture_output=True)
