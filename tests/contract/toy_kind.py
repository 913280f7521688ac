"""A kind of target that only tests know: one file like every kind; a fixture adds its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nephoscope.measure.targets.base import Endpoint, IpVersion
from nephoscope.measure.targets.kinds.record import ROUTED, SideEffect, TargetRecord, Traits
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.target import Target


class ToyTarget(Target):
    """Stands for a machine of its own; its programs run here."""

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`."""
        address = "::1" if version == 6 else "127.0.0.1"
        return Endpoint(address, address)


class ToyRecord(TargetRecord):
    """A rented machine with a number."""

    model_config = ConfigDict(title="ToyTarget")

    form: ClassVar[str] = "toy:NUMBER"

    kind: Literal["toy"] = Field(default="toy", description="How the machine is reached.")
    number: int = Field(description="Which machine.")

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        return cls(name=f"toy{rest}", number=int(rest)) if rest.isdigit() else None

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        key = f"toy:{self.number}"
        return Traits(machine=key, place=key, listens_on=ROUTED, sends_to=frozenset({ROUTED}))

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        return ToyTarget(self.name, LocalChannel(self.name))

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        yield SideEffect("toy", str(self.number), f"target {self.name}")
