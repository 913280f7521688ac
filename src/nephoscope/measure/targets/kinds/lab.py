"""Kind `lab`: a host of a lab on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nephoscope.core.reading.fields import NAME
from nephoscope.measure.targets.kinds.record import (
    CONTROLLER,
    Directory,
    SideEffect,
    TargetRecord,
    Traits,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target


class LabRecord(TargetRecord):
    """A host of the plan's own lab, or of one that is up."""

    model_config = ConfigDict(title="LabTarget")

    form: ClassVar[str] = "lab:LAB/HOST"

    kind: Literal["lab"] = Field(default="lab", description="How the machine is reached.")
    lab: str = Field(
        default="", description="Name of a lab that is up; the plan's own lab when absent."
    )
    host: str = Field(
        default="", description="Host of the topology; the target's own name when absent."
    )
    directory: Directory = ""

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        lab, slash, host = rest.partition("/")
        if not (slash and re.match(NAME, lab) and re.match(NAME, host)):
            return None
        return cls(name=host, lab=lab, host=host)

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        network = f"the lab '{self.lab}'"
        return Traits(
            machine=CONTROLLER,
            place=f"lab:{self.lab}/{self.topology_host}",
            listens_on=network,
            sends_to=frozenset({network}),
            provisioned=True,
            closed_network=f"a lab has no way out to other networks, and this is {network}",
        )

    def make(self) -> Target:
        """See `TargetRecord.make`. Raises UsageError when it is a host of no lab yet."""
        from nephoscope.core.errors import UsageError
        from nephoscope.measure.targets.lab import LabTarget

        if not self.lab:
            raise UsageError(
                f"Target {self.name} is of kind lab and names no lab.",
                "Give the plan a `lab:`, or the target the name of a lab that is up.",
            )
        return LabTarget(self.name, self.lab, self.topology_host, directory=self.directory)

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        why = (
            "made for the run, removed after it" if self.in_plan_lab else "it has to be up already"
        )
        where = f"{self.lab or lab}/{self.topology_host}"
        yield SideEffect("lab host", where, f"target {self.name}: {why}")

    @property
    def topology_host(self) -> str:
        """See `TargetRecord.topology_host`."""
        return self.host or self.name

    @property
    def in_plan_lab(self) -> bool:
        """See `TargetRecord.in_plan_lab`."""
        return not self.lab

    def placed_in(self, lab: str) -> Self:
        """See `TargetRecord.placed_in`."""
        return self if self.lab else self.model_copy(update={"lab": lab})
