"""What a topology file says, as records: hosts, switches, links, sites; no I/O.

The field texts become the JSON Schema that editors complete. A condition is a dotted path into
this: `links.wan.delay`, `links.wan.up.rate`, `hosts.b.cpu.cap`, `hosts.b.platform`.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import Field, GetPydanticSchema, WithJsonSchema, field_validator, model_validator
from pydantic_core import core_schema

from nephoscope.core import limits
from nephoscope.core.documents import DRAFT
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.fields import (
    NAME,
    Count,
    Delay,
    DiskRate,
    LineRate,
    Part,
    Record,
    Seconds,
    Size,
    read_by,
)
from nephoscope.measure.lab.platform_table import GUESTS, TABLE

PlatformName = Annotated[
    str, GetPydanticSchema(lambda source, handler: core_schema.literal_schema(list(TABLE)))
]
"""A `Literal` of the names in the table."""

Mechanism = Literal["auto", "netem", "line"]

LAB_NAME_LENGTH = 12
"""Names of namespaces and groups begin with it, and device names have 15 characters."""

_Name = Annotated[str, Field(pattern=NAME)]


def parse_cpus(text: str) -> float:
    """CPUs of '50%' (half of one), '150%', '1.5'. UsageError on anything else."""
    match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*(%?)\s*", text)
    if match is None:
        raise UsageError(f"'{text}' is no share of a CPU.", "Write 50% or 0.5.")
    return float(match[1]) / (100 if match[2] else 1)


Cpus = Annotated[
    float,
    read_by(parse_cpus),
    # 1 ms in the kernel's default period of 100 ms is the least that CFS bandwidth takes.
    Field(ge=0.01, le=4096),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0.01, "maximum": 4096},
                {"type": "string", "pattern": r"^\s*[0-9.]+\s*%?\s*$"},
            ],
            "examples": ["50%", 1.5],
        }
    ),
]


class Reservation(Record):
    """CPU time that is given in every period, whatever else runs (SCHED_DEADLINE)."""

    slice_s: Seconds = Field(alias="slice", description="CPU time in each period: 30ms.")
    period_s: Seconds = Field(alias="period", description="Length of the period: 40ms.")

    @model_validator(mode="after")
    def _within(self) -> Reservation:
        if self.slice_s > self.period_s:
            raise ValueError("the slice is longer than the period. Write slice <= period")
        # The kernel's bounds (sched_deadline): slice >= 1 us resolution 1024 ns, period <= 4 s.
        if self.slice_s < 2e-6 or self.period_s > 4.0:
            raise ValueError("the kernel takes slices from 2us and periods to 4s")
        return self

    @property
    def cpus(self) -> float:
        """The part of one CPU that it takes, 0..1."""
        return self.slice_s / self.period_s


class CpuSpec(Record):
    """CPUs of a host, and its share of them."""

    cpus: tuple[Annotated[Count, Field(ge=0, le=4095)], ...] = Field(
        default=(), description="Numbers of the CPUs it may run on; all when absent."
    )
    weight: Annotated[Count, Field(ge=1, le=10_000)] = Field(
        default=100, description="Share under contention, beside the other hosts' weights."
    )
    cap: Cpus | None = Field(
        default=None, description="Most CPU time: 50% is half a CPU, 150% one and a half."
    )
    cap_period_s: Annotated[Seconds, Field(ge=0.001, le=1.0)] = Field(
        default=0.1,
        alias="cap_period",
        description="How often the cap is refilled: 100ms, from 1ms to 1s.",
    )
    reservation: Reservation | None = Field(
        default=None, description="CPU time that every thread is given in each period."
    )
    hidden: bool = Field(
        default=False,
        description="Whether programs inside see no control group and none of its counters, as "
        "behind a hypervisor; bare hosts.",
    )

    @model_validator(mode="after")
    def _a_cap_that_can_be(self) -> CpuSpec:
        # 1 ms is the least quota that CFS bandwidth takes.
        if self.cap is not None and self.cap * self.cap_period_s < 0.000999:
            raise ValueError("the cap is less than 1 ms in its period. Raise `cap` or `cap_period`")
        return self


class DiskSpec(Record):
    """Most that a host may read and write."""

    read_bytes_per_s: DiskRate | None = Field(
        default=None, alias="read", description="Bytes a second: 20MiB/s."
    )
    write_bytes_per_s: DiskRate | None = Field(
        default=None, alias="write", description="Bytes a second: 10MiB/s."
    )


class TcpSpec(Record):
    """How a host sends over TCP; bare hosts and containers."""

    initial_window_segments: Annotated[Count, Field(ge=1, le=1000)] | None = Field(
        default=None,
        alias="initial_window",
        description="Segments that it sends before the first acknowledgement; by default the "
        "kernel's, 10.",
    )
    congestion_control: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,14}$")] | None = Field(
        default=None,
        description="Congestion control, such as reno or cubic; by default that of the machine.",
    )


class MountSpec(Record):
    """A folder of another host, mounted by NFS."""

    host: _Name = Field(alias="from", description="Name of the host that exports the folder.")
    minor_version: Annotated[Count, Field(ge=0, le=2)] = Field(
        default=1, description="Minor version of NFS 4: 0, 1 or 2."
    )
    connections: Annotated[Count, Field(ge=1, le=16)] = Field(
        default=1, description="TCP connections to the server (nconnect of nfs(5))."
    )


class HostSpec(Record):
    """One host: how it is realised and what it is given."""

    platform: PlatformName = Field(
        default="bare",
        description="; ".join(f"{name}: {entry.description}" for name, entry in TABLE.items())
        + ".",
    )
    address: str | None = Field(
        default=None, description="Address within `network`; the next free one when absent."
    )
    cpu: CpuSpec = Field(default_factory=CpuSpec, description="CPUs and shares of them.")
    memory_bytes: Size | None = Field(
        default=None,
        alias="memory",
        description="Memory limit; of a guest the size of its memory.",
    )
    disk: DiskSpec = Field(default_factory=DiskSpec, description="Disk bandwidth limits.")
    tcp: TcpSpec = Field(default_factory=TcpSpec, description="How it sends over TCP.")
    vcpus: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Virtual CPUs; guests only."
    )
    exports: bool = Field(
        default=False,
        description="Whether it serves a folder of its own by NFS 4 (nfs-ganesha); bare hosts.",
    )
    mounts: dict[Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_-]+)+$")], MountSpec] = Field(
        default_factory=dict,
        description="Folders of hosts that export one, by the path where each is mounted; "
        "QEMU guests.",
    )
    ipv6: bool = Field(
        default=False,
        description="IPv6 inside. Off by default: its own chatter (router and neighbour discovery) "
        "would be in every packet count.",
    )

    @property
    def is_guest(self) -> bool:
        """Returns whether it has a kernel of its own."""
        return self.platform in GUESTS

    @field_validator("address")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ipaddress.IPv4Address(value)
            except ValueError:
                raise ValueError(f"'{value}' is no IPv4 address. Write 10.77.0.5") from None
        return value


class SwitchSpec(Record):
    """One switch: a bridge that learns addresses; it has no settings yet."""


class Conditions(Record):
    """Conditions for packets in one direction."""

    rate_bits_per_s: LineRate | None = Field(
        default=None, alias="rate", description="Most bits a second, headers of layer 2 included."
    )
    delay_s: Delay | None = Field(default=None, alias="delay", description="Time on the way.")
    jitter_s: Delay | None = Field(
        default=None, alias="jitter", description="The delay varies by up to this, uniformly."
    )
    loss_ratio: Part | None = Field(
        default=None, alias="loss", description="Part of the packets that is lost."
    )
    duplicate_ratio: Part | None = Field(
        default=None, alias="duplicate", description="Part of the packets that arrives twice."
    )


class LinkSpec(Conditions):
    """A cable between two hosts or switches. What it says holds for EACH direction."""

    between: tuple[_Name, _Name] = Field(description="The two ends: names of hosts or switches.")
    ingress_bits_per_s: LineRate | None = Field(
        default=None,
        alias="ingress",
        description="Most bits a second that the first end takes in, shaped on arrival.",
    )
    up: Conditions = Field(
        default_factory=Conditions,
        description="What differs in the direction away from the first end.",
    )
    down: Conditions = Field(
        default_factory=Conditions,
        description="What differs in the direction toward the first end.",
    )
    queue_packets: Annotated[Count, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        alias="queue",
        description="Packets that wait before a shaper; by default 50 ms at its rate.",
    )
    burst_bytes: Size | None = Field(
        default=None,
        alias="burst",
        description="What its shapers let pass at once after a pause; by default 2 ms at the rate. "
        "With less than a frame, 64B, a shaper is like a wire: after each frame the next one waits "
        "until that one would be through.",
    )
    mtu_bytes: Annotated[Count, Field(ge=576, le=9000)] = Field(
        default=1500, alias="mtu", description="Largest packet."
    )
    mechanism: Mechanism = Field(
        default="auto",
        description="What delays and loses: netem (kernel), line (our program), auto: netem where "
        "the kernel has it. With `line` even an undelayed link goes through the program, so that "
        "alternatives with and without delay differ in nothing else.",
    )

    def direction(self, name: Literal["up", "down"]) -> Direction:
        """Returns what holds in one direction, all values filled in."""
        own = self.up if name == "up" else self.down

        def pick(field: str) -> float | None:
            value: float | None = getattr(own, field)
            return getattr(self, field) if value is None else value

        return Direction(
            rate_bits_per_s=pick("rate_bits_per_s"),
            delay_ns=round((pick("delay_s") or 0) * 1e9),
            jitter_ns=round((pick("jitter_s") or 0) * 1e9),
            loss_ratio=pick("loss_ratio") or 0.0,
            duplicate_ratio=pick("duplicate_ratio") or 0.0,
        )

    @property
    def delays(self) -> bool:
        """Returns whether a mechanism that can hold packets back is needed; a delay of 0 that is
        written down asks for it too, because a plan may change it."""
        sides = (self, self.up, self.down)
        if any(side.delay_s is not None or side.jitter_s is not None for side in sides):
            return True
        return any(side.duplicate_ratio for side in sides)

    @model_validator(mode="after")
    def _jitter_within_delay(self) -> LinkSpec:
        sides: tuple[Literal["up", "down"], ...] = ("up", "down")
        for name in sides:
            side = self.direction(name)
            if side.jitter_ns > side.delay_ns:
                raise ValueError(
                    "the jitter is larger than the delay, and nothing arrives before it was sent. "
                    "Write jitter <= delay"
                )
        if self.between[0] == self.between[1]:
            raise ValueError(f"both ends are '{self.between[0]}'. Name two")
        return self


class Direction(Record):
    """Conditions in one direction of a link; every value is present, 0 for none."""

    rate_bits_per_s: float | None
    delay_ns: int
    jitter_ns: int
    loss_ratio: float
    duplicate_ratio: float


class Geo(Record):
    """Sites placed on a matrix of one-way delays."""

    sites: dict[_Name, tuple[_Name, ...]] = Field(
        min_length=2, description="Site -> its hosts. Each site has a switch of the site's name."
    )
    latency: str | dict[_Name, dict[_Name, Delay]] = Field(
        description="From -> to -> one-way delay, or a CSV file of it. One direction is enough "
        "where both are the same."
    )
    jitter_s: Delay = Field(
        default=0.0, alias="jitter", description="Each delay varies by up to this, uniformly."
    )
    loss_ratio: Part = Field(default=0.0, alias="loss", description="Of packets between sites.")

    def delay_s(self, source: str, destination: str) -> float | None:
        """One-way delay between two sites; that of the other direction when only it is given."""
        if not isinstance(self.latency, dict):
            return None
        there = self.latency.get(source, {}).get(destination)
        return self.latency.get(destination, {}).get(source) if there is None else there


class Topology(Record):
    """A cloud in one Linux box: hosts, switches, links, sites."""

    version: Literal[1] = Field(default=1, description="Version of the topology format.")
    name: str = Field(
        pattern=NAME,
        max_length=LAB_NAME_LENGTH,
        description="Name of the lab; everything that it makes carries it.",
    )
    network: str = Field(
        default="10.77.0.0/16", description="Addresses of the hosts, given out in order."
    )
    hosts: dict[_Name, HostSpec] = Field(
        min_length=1, max_length=limits.LAB_HOSTS, description="The machines, by name."
    )
    switches: dict[_Name, SwitchSpec] = Field(
        default_factory=dict,
        description="The switches, by name. When absent, one named `lan`, which every host "
        "without a link joins.",
    )
    links: dict[_Name, LinkSpec] = Field(default_factory=dict, description="Cables, by name.")
    geo: Geo | None = Field(default=None, description="Sites on a matrix of delays.")

    @field_validator("network")
    @classmethod
    def _a_network(cls, value: str) -> str:
        try:
            network = ipaddress.IPv4Network(value)
        except ValueError as error:
            raise ValueError(
                f"'{value}' is no IPv4 network ({error}). Write 10.77.0.0/16"
            ) from None
        if network.prefixlen > 30:
            raise ValueError(f"'{value}' has no room for two hosts. Write 10.77.0.0/16")
        return value

    @field_validator("hosts", "switches", "links", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        # `lan:` with nothing behind it is YAML for null, and here for "as it is by default".
        if isinstance(value, dict):
            return {key: {} if spec is None else spec for key, spec in value.items()}
        return value


def topology_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of topology.schema.json."""
    schema: dict[str, Any] = Topology.model_json_schema(by_alias=True)
    schema["$schema"] = DRAFT
    schema["title"] = "Nephoscope lab topology"
    # `a:` with nothing behind it is a host, switch or link as it is by default.
    for kind in ("hosts", "switches"):
        named = schema["properties"][kind]["patternProperties"]
        for pattern, record in named.items():
            named[pattern] = {"anyOf": [record, {"type": "null"}]}
    return schema
