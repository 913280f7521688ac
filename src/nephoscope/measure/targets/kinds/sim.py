"""Kind `sim`: a simulated machine or cloud; the simulator answers as the probe would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nephoscope.catalog import ANSWERED, SIMULATION, BenchmarkSpec
from nephoscope.measure.targets.kinds.record import (
    CONTROLLER,
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target


class SimRecord(TargetRecord):
    """The simulator; a machine of a scheduler scenario where one is given."""

    model_config = ConfigDict(title="SimTarget")

    form: ClassVar[str] = "sim[:[VM@]SCENARIO]"
    trial_overhead_s: ClassVar[float] = 0.05

    kind: Literal["sim"] = Field(default="sim", description="How the machine is reached.")
    machine: str | dict[str, Any] = Field(
        default="",
        description="The simulated machine, a scheduler scenario: the name of a built-in one, a "
        "file, or the scenario itself. Only cpu.gaps needs one.",
    )
    host: str = Field(
        default="",
        description="The virtual machine to measure from, where the scenario has several.",
    )

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`: a scenario that is built in, or of a file."""
        if not rest:
            return cls(name="sim")
        from nephoscope.catalog import scenarios

        vm, at, name = rest.rpartition("@")
        scenario = scenarios.load(scenarios.SCHEDULER, name)
        named = as_name(f"{vm}-{scenario.name}" if at else scenario.name)
        return cls(name=named, machine=dict(scenario.values), host=vm)

    def traits(self) -> Traits:
        """See `TargetRecord.traits`; the simulator itself runs on this machine."""
        return Traits(
            machine=CONTROLLER,
            place=f"sim:{self.host}",
            listens_on="",
            sends_to=frozenset(),
            simulated=True,
        )

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        from nephoscope.catalog import scenarios
        from nephoscope.measure.targets.simulated import SimTarget

        machine = self.machine
        if isinstance(machine, str) and machine:
            machine = dict(scenarios.load(scenarios.SCHEDULER, machine).values)
        values = machine if isinstance(machine, dict) else None
        return SimTarget(self.name, machine=values, vm=self.host)

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        yield SideEffect(
            "simulation", "no machine", f"target {self.name}: the simulator runs as you"
        )

    def require_programs(self) -> None:
        """See `TargetRecord.require_programs`."""
        from nephoscope.core.programs import find_simulator

        find_simulator()

    def unanswered(self, spec: BenchmarkSpec) -> tuple[str, str] | None:
        """See `TargetRecord.unanswered`: it answers simulations and little of what machines do."""
        if spec.kind == SIMULATION or spec.id in ANSWERED:
            return None
        return (
            f"'{self.name}' is simulated and does not answer {spec.id}.",
            f"It answers the simulations and {', '.join(ANSWERED)}.",
        )
