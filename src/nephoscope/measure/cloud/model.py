"""Resources of a cloud, what is asked for, what it costs: records without I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, Self

from nephoscope.measure.provisioning import Quote

Market = Literal["on demand", "spot"]
Placement = Literal["cluster", "spread", "partition"]
"""How the machines of a placement group lie: close together, each on hardware of its own, or in
partitions that share no hardware."""

PEER_PORTS = (1024, 65535)
"""Ports of TCP and UDP that a firewall opens to machines of the same run elsewhere: servers of
benchmarks listen on them, logins do not."""


class Kind(StrEnum):
    """Kinds of resources, in the order in which they can be removed.

    A machine goes before what it uses, an image before the snapshot that it stands on.
    """

    BALANCER = "balancer"
    MACHINE = "machine"
    PLACEMENT_GROUP = "placement group"
    LAUNCH_TEMPLATE = "launch template"
    ADDRESS = "address"
    PORT = "network port"
    VOLUME = "volume"
    IMAGE = "image"
    SNAPSHOT = "snapshot"
    SECURITY_GROUP = "security group"
    KEY_PAIR = "key pair"
    RESULT_FOLDER = "result folder"
    """Objects of one rental in a bucket; no provider has any, see `bucket_listing`."""


class ResourceState(StrEnum):
    """States of a resource, as far as a decision depends on them.

    A resource that is GONE is still listed for a while by some clouds; it costs nothing.
    """

    PENDING = "pending"
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    LEAVING = "being removed"
    GONE = "gone"
    FAILED = "failed"


class Action(StrEnum):
    """What can be done to a machine that exists."""

    STOP = "stop"
    START = "start"
    REBOOT = "reboot"
    RESIZE = "resize"


_PREFIX = "nephoscope"
_WORD = r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?"


@dataclass(frozen=True, slots=True)
class Tags:
    """Whose a resource is; every resource carries them from its creation on.

    run: name of the rental. owner: who rents, a word. expires_s: seconds since the epoch after
    which anyone of this owner may remove it. token: idempotency token of the call that made it.
    """

    run: str
    owner: str
    expires_s: int
    token: str = ""

    def __post_init__(self) -> None:
        for value in (self.run, self.owner):
            if not re.fullmatch(_WORD, value):
                raise ValueError(
                    f"{value!a} is no word of at most 63 letters, digits, - and _ in it"
                )

    def as_mapping(self) -> dict[str, str]:
        """Returns them as tags of a cloud: lower-case keys, values of letters, digits and -_."""
        made = {
            f"{_PREFIX}-run": self.run,
            f"{_PREFIX}-owner": self.owner,
            f"{_PREFIX}-expires": f"{datetime.fromtimestamp(self.expires_s, UTC):%Y%m%dt%H%M%Sz}",
        }
        return {**made, f"{_PREFIX}-token": self.token} if self.token else made

    @classmethod
    def from_mapping(cls, values: Mapping[str, str]) -> Self | None:
        """Returns the tags among those of a resource; None when it is not ours."""
        try:
            expires = datetime.fromisoformat(values.get(f"{_PREFIX}-expires", "").upper())
            return cls(
                values[f"{_PREFIX}-run"],
                values[f"{_PREFIX}-owner"],
                int(expires.timestamp()),
                values.get(f"{_PREFIX}-token", ""),
            )
        except (KeyError, ValueError):
            return None

    def as_name(self, suffix: str = "") -> str:
        """Returns a name that carries them, for kinds of resources that take no tags.

        The token is not in it: it would make the name longer than some clouds take.
        """
        expires = self.as_mapping()[f"{_PREFIX}-expires"]
        return ".".join((_PREFIX, self.run, self.owner, expires, *([suffix] if suffix else [])))

    @classmethod
    def from_name(cls, name: str) -> Self | None:
        """Returns the tags that `as_name` put into a name; None when it is not ours.

        Where a cloud refuses dots in a name, it has spaces for them.
        """
        first, _, rest = name.replace(" ", ".").partition(".")
        parts = rest.split(".")
        if first != _PREFIX or len(parts) < 3:
            return None
        keys = (f"{_PREFIX}-run", f"{_PREFIX}-owner", f"{_PREFIX}-expires")
        return cls.from_mapping(dict(zip(keys, parts, strict=False)))


@dataclass(frozen=True, slots=True)
class CloudResource:
    """One resource of ours, as the cloud lists it.

    created_s: seconds since the epoch; None where the cloud does not show it.
    """

    kind: Kind
    id: str
    region: str
    tags: Tags
    state: ResourceState = ResourceState.READY
    zone: str = ""
    name: str = ""
    created_s: float | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.id} in {self.region}"


@dataclass(frozen=True, slots=True)
class Machine(CloudResource):
    """A machine of ours.

    address: the one at which the controller reaches it, '' while it has none; private_address:
    inside its cloud. host: what the cloud shows of the physical host; '' where it shows nothing.
    problem: why it failed, was stopped or removed, in the cloud's words. target: how it is reached,
    as the keys of a target in a plan, `kind` among them; empty: by ssh as root at `address`, with
    the key pair and the host key that the rental gave it.
    """

    type: str = ""
    image: str = ""
    market: Market = "on demand"
    address: str = ""
    private_address: str = ""
    host: str = ""
    problem: str = ""
    target: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class MachineRequest:
    """Machines of one kind that are asked for in one call.

    count: how many; at_least: fewer than these are worth nothing, and the cloud makes none.
    user_data: script that the machine runs as root when it starts. key_pair, security_group: ids
    of resources made before; '' for none. disk_bytes: of the root disk; None for the image's.
    placement_group, network: by the cloud's name or id; '' for its default. name: what people
    see in the cloud's own lists. max_per_h: price of an hour above which a machine of the spot
    market ends; None for the cloud's own limit.
    """

    region: str
    type: str
    image: str
    tags: Tags
    zone: str = ""
    market: Market = "on demand"
    count: int = 1
    at_least: int = 1
    user_data: str = field(default="", repr=False)
    key_pair: str = ""
    security_group: str = ""
    disk_bytes: int | None = None
    placement_group: str = ""
    network: str = ""
    name: str = ""
    max_per_h: float | None = None


@dataclass(frozen=True, slots=True)
class KeyPairRequest:
    """A public key (OpenSSH's text) that machines are to accept."""

    region: str
    tags: Tags
    public_key: str


@dataclass(frozen=True, slots=True)
class SecurityGroupRequest:
    """A firewall that lets in TCP on a port from one network (CIDR), and everything between its
    own members; nothing at all without a network. Everything goes out."""

    region: str
    tags: Tags
    source: str
    port: int = 22
    network: str = ""


@dataclass(frozen=True, slots=True)
class PlacementGroupRequest:
    """A placement group, which machines name when they are made."""

    region: str
    tags: Tags
    placement: Placement


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """A block device; from a snapshot where one is named."""

    region: str
    zone: str
    tags: Tags
    size_bytes: int
    type: str = ""
    snapshot: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """A snapshot of a volume, or of a machine's root disk."""

    region: str
    tags: Tags
    source: str


Request = (
    MachineRequest
    | KeyPairRequest
    | SecurityGroupRequest
    | PlacementGroupRequest
    | VolumeRequest
    | SnapshotRequest
)


@dataclass(frozen=True, slots=True)
class MachineType:
    """A type of machines. zones: where it is offered; empty where the cloud does not say.
    placements: of the groups in which it can be; None where the cloud does not say."""

    name: str
    vcpus: float
    memory_bytes: int
    zones: tuple[str, ...] = ()
    placements: tuple[Placement, ...] | None = None


@dataclass(frozen=True, slots=True)
class MachinePrices:
    """Prices of one machine, each in `currency`; None where unknown, 0 where nothing is billed.

    per_h: while it runs. address_h: a public address, an hour. storage_gib_h: of its disks.
    egress_gib: traffic that leaves the cloud. zones_gib: traffic to other zones of its region, all
    that sender and receiver pay. disk_bytes: of the image's own disks, which are billed where a
    request names no other size. step_s, minimum_s: billing increment and minimum
    billed time. source: where they were read, with a date where it has one.
    """

    per_h: float | None
    currency: str = "USD"
    address_h: float | None = None
    storage_gib_h: float | None = None
    egress_gib: float | None = None
    zones_gib: float | None = None
    step_s: float = 1.0
    minimum_s: float = 0.0
    source: str = ""
    disk_bytes: int = 0

    def quote(self, count: int, disk_bytes: int = 0) -> Quote | None:
        """Returns the price of so many machines; None when their hour has no known price.

        Traffic is not in it: nobody knows how much there will be.
        """
        if self.per_h is None:
            return None
        gib = (disk_bytes or self.disk_bytes) / 2**30
        hour = self.per_h + (self.address_h or 0.0) + gib * (self.storage_gib_h or 0.0)
        return Quote(
            hour * count,
            self.currency,
            step_h=self.step_s / 3600,
            minimum_h=self.minimum_s / 3600,
            machines=count,
        )


@dataclass(frozen=True, slots=True)
class StoragePrices:
    """Prices of a type of volumes, for the hour of a GiB; None where unknown."""

    volume_gib_h: float | None
    snapshot_gib_h: float | None
    currency: str = "USD"
    source: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """Whose credentials they are, as the cloud names it; `quotas` by name: (used, limit), None
    where it does not say."""

    id: str
    name: str = ""
    quotas: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
