"""Kind `local`: the machine that the controller runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nephoscope.measure.targets.kinds.record import (
    CONTROLLER,
    LOOPBACK,
    ROUTED,
    Directory,
    SideEffect,
    TargetRecord,
    Traits,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target


class LocalRecord(TargetRecord):
    """The machine that the controller runs on."""

    model_config = ConfigDict(title="LocalTarget")

    form: ClassVar[str] = "local"
    trial_overhead_s: ClassVar[float] = 0.05

    kind: Literal["local"] = Field(default="local", description="How the machine is reached.")
    directory: Directory = ""

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        return None if rest else cls()

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        return Traits(
            machine=CONTROLLER,
            place="local",
            listens_on=LOOPBACK,
            sends_to=frozenset({LOOPBACK, ROUTED}),
            allows_colocation=True,
        )

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        from nephoscope.measure.targets.local import LocalTarget

        return LocalTarget(self.name, directory=self.directory)

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        yield SideEffect("machine", "this one", f"target {self.name}: the probe runs as you")

    def require_programs(self) -> None:
        """See `TargetRecord.require_programs`."""
        from nephoscope.core.programs import find_probe

        find_probe()
