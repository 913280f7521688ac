"""Kind `rented`: machines that a run rents from a cloud, measures and removes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator

from nephoscope.core import limits, units
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.fields import Count, Record, Size
from nephoscope.measure.targets.kinds.record import (
    ROUTED,
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target

_VARIED = ("provider", "region", "zone", "type", "image", "market", "placement")
"""Keys that may have several values: each combination is a target of its own."""

_MarketName = Literal["on demand", "spot"]
_PlacementName = Literal["none", "cluster", "spread", "partition"]


def _one_or_more(**item: Any) -> tuple[BeforeValidator, Any, WithJsonSchema]:
    """Returns what makes a field of one text, or of several. item: the JSON schema of one."""
    single = {"type": "string", **item}
    schema = {
        "anyOf": [single, {"type": "array", "items": single, "minItems": 1, "uniqueItems": True}]
    }
    return (
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
        Field(min_length=1, max_length=16),
        WithJsonSchema(schema),
    )


_Texts = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], *_one_or_more()]


_DIRECTORY = r"^/[A-Za-z0-9._/-]*[A-Za-z0-9_-]$"


class VolumeRecord(Record):
    """A volume that each of the machines gets: made for the run, attached, removed after it."""

    model_config = ConfigDict(title="RentedVolume")

    size: Size = Field(description="Its size; clouds round it up to whole GiB.")
    type: str = Field(
        default="", max_length=100, description="Its type, by the cloud's name; else the default."
    )
    directory: str = Field(
        default="",
        max_length=200,
        description="Where the machine has its file system: a level for the parameter `directory` "
        "of benchmarks. /mnt/volume-1, /mnt/volume-2, … when absent.",
    )
    per_gib_hour: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Price of a GiB for an hour, also of a snapshot, in the currency of `money`, "
        "where it is not the cloud's list price.",
    )

    def __str__(self) -> str:
        return f"{self.type or 'default type'}, {units.written(self.size, 'bytes')}"

    @field_validator("directory")
    @classmethod
    def _is_plain(cls, value: str) -> str:
        if value and not re.fullmatch(_DIRECTORY, value):
            raise ValueError(f"'{value}' is no directory. Write, for example, /mnt/volume-1")
        return value


class RentedRecord(TargetRecord):
    """Machines of one kind, rented for the run; a list in a key makes one target per value."""

    model_config = ConfigDict(title="RentedTarget")

    form: ClassVar[str] = "rented:PROVIDER/REGION/TYPE/IMAGE"

    kind: Literal["rented"] = Field(default="rented", description="How the machine is reached.")
    provider: _Texts = Field(description="Cloud: ec2, openstack, libvirt, lxd, kubernetes, ….")
    region: _Texts = Field(description="Region, by the cloud's name.")
    zone: _Texts = Field(
        default=("any",), description="Zone of the region; `any` for the cloud's choice."
    )
    type: _Texts = Field(description="Type of the machine, by the cloud's name.")
    image: _Texts = Field(description="Image that it boots, by id or name.")
    market: Annotated[tuple[_MarketName, ...], *_one_or_more(enum=["on demand", "spot"])] = Field(
        default=("on demand",), description="`on demand` or `spot`."
    )
    placement: Annotated[
        tuple[_PlacementName, ...], *_one_or_more(enum=["none", "cluster", "spread", "partition"])
    ] = Field(
        default=("none",),
        description="Placement group that is made for all machines of a zone with this value: "
        "`cluster` close together, `spread` on hardware of their own, `partition`; or `none`.",
    )
    count: Annotated[Count, Field(ge=1, le=64)] = Field(
        default=1, description="Number of machines; each becomes a target NAME-1, NAME-2, …."
    )
    endpoint: str = Field(default="", description="Address of the API, else the provider's own.")
    profile: str = Field(
        default="",
        description="Name of the credentials where the provider's own tools keep them: an AWS "
        "profile, an entry of clouds.yaml, a context of a kubeconfig.",
    )
    network: str = Field(default="", description="Network of the machine, else the default.")
    per_gib_out: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Price of a GiB that it sends to other regions and clouds; the cloud's list "
        "when absent.",
    )
    per_gib_zones: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Price of a GiB that it sends to other zones of its region, at both ends "
        "together; the cloud's list when absent.",
    )
    volumes: Annotated[tuple[VolumeRecord, ...], Field(max_length=limits.VOLUMES)] = Field(
        default=(), description="Volumes that each machine gets, besides its own disk."
    )
    login_from: str = Field(
        default="",
        description="Network (CIDR) from which logins are let in; this machine's own address when "
        "absent.",
    )

    @field_validator("volumes", mode="after")
    @classmethod
    def _each_has_a_directory(cls, volumes: tuple[VolumeRecord, ...]) -> tuple[VolumeRecord, ...]:
        named = tuple(
            volume.model_copy(update={"directory": volume.directory or f"/mnt/volume-{number + 1}"})
            for number, volume in enumerate(volumes)
        )
        places = [volume.directory for volume in named]
        if len(set(places)) < len(places):
            twice = next(place for place in places if places.count(place) > 1)
            raise ValueError(f"Two volumes are to be mounted at {twice}. Name them apart")
        return named

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        parts = rest.split("/", 3)
        if len(parts) < 4 or not all(parts):
            return None
        provider, region, type_, image = ((part,) for part in parts)
        return cls(
            name=as_name(parts[2]), provider=provider, region=region, type=type_, image=image
        )

    def each(self) -> Iterator[Self]:
        """See `TargetRecord.each`: one for each combination of values, and for each machine."""
        values = [getattr(self, key) for key in _VARIED]
        varied = [key for key, several in zip(_VARIED, values, strict=True) if len(several) > 1]
        for chosen in product(*values):
            levels: dict[str, Any] = dict(zip(_VARIED, chosen, strict=True))
            parts = [self.name, *(as_name(levels[key]) for key in varied)]
            update: dict[str, Any] = {key: (value,) for key, value in levels.items()}
            for number in range(self.count):
                name = "-".join([*parts, *([str(number + 1)] if self.count > 1 else [])])
                yield self.model_copy(update={**update, "name": name, "count": 1})

    @property
    def is_rented(self) -> bool:
        """See `TargetRecord.is_rented`."""
        return True

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        return Traits(
            machine=f"rented:{self.name}",
            place=f"rented:{self.name}",
            listens_on=ROUTED,
            sends_to=frozenset({ROUTED}),
            provisioned=True,
        )

    @property
    def boots_as(self) -> str:
        """See `TargetRecord.boots_as`."""
        return self.name

    def make(self) -> Target:
        """See `TargetRecord.make`: only a run that has rented it can. Raises UsageError."""
        raise UsageError(
            f"Target {self.name} is of kind rented, and nothing was rented for it.",
            "Measure it with `nephoscope run` or `nephoscope bench`, which rent it first.",
        )

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        zone = "" if self.zone[0] == "any" else f" ({self.zone[0]})"
        where = f"{self.provider[0]} {self.region[0]}{zone}"
        yield SideEffect(
            "rented machine",
            f"{self.type[0]}, {self.market[0]}, in {where}",
            f"target {self.name}: rented for the run, removed after it",
        )
        yield SideEffect(
            "cloud resources",
            f"a key pair and a security group in {self.provider[0]} {self.region[0]}",
            "one login for the run, from this machine only; removed after it",
        )
        for volume in self.volumes:
            yield SideEffect(
                "cloud volume",
                f"{volume}, in {where}",
                f"target {self.name}: formatted, at {volume.directory}; removed after the run",
            )
