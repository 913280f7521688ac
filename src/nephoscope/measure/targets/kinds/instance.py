"""Kind `instance`: an instance of LXD or Incus, in which programs are started by the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nephoscope.measure.targets.kinds.record import (
    CONTROLLER,
    Directory,
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target

_NAME = r"^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$"


class InstanceRecord(TargetRecord):
    """An instance of LXD or Incus; its server starts the probe in it."""

    model_config = ConfigDict(title="InstanceTarget")

    form: ClassVar[str] = "instance:NAME"
    trial_overhead_s: ClassVar[float] = 0.25

    kind: Literal["instance"] = Field(default="instance", description="How the machine is reached.")
    instance: Annotated[str, Field(pattern=_NAME)] = Field(description="Name of the instance.")
    project: str = Field(default="default", description="Project that it is in.")
    remote: str = Field(
        default="",
        description="Remote of `lxc remote list` or `incus remote list`; this machine when absent.",
    )
    server: str = Field(
        default="", description="Address (https://…) or socket of the server, instead of a remote."
    )
    directory: Directory = ""

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        remote, _, name = rest.rpartition(":")
        if not re.match(_NAME, name):
            return None
        return cls(name=as_name(name), instance=name, remote=remote)

    def traits(self) -> Traits:
        """See `TargetRecord.traits`; an instance of this machine shares its CPUs."""
        is_here = not self.remote and not self.server.startswith("https:")
        server = self.remote or self.server or "this machine"
        network = f"the bridge of LXD of {server}"
        return Traits(
            machine=CONTROLLER if is_here else f"instance:{server}",
            place=f"instance:{server}/{self.project}/{self.instance}",
            listens_on=network,
            sends_to=frozenset({network}),
            provisioned=True,
            closed_network=f"instances reach one another only, and this is {network}",
        )

    def make(self) -> Target:
        """See `TargetRecord.make`. Raises UsageError where no server is found."""
        from nephoscope.measure.targets.exec.channel import ExecTarget
        from nephoscope.measure.targets.exec.lxd import InstanceChannel, Lxd, server_of

        lxd = Lxd(server_of(self.server, self.remote), self.project)
        return ExecTarget(self.name, InstanceChannel(self.name, lxd, self.instance, self.directory))

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        where = f"{self.remote}:{self.instance}" if self.remote else self.instance
        yield SideEffect("instance", where, f"target {self.name}: the probe runs in it")
        yield SideEffect(
            "far file", f"{where}:~/.cache/nephoscope", "the probe by its hash, work of a trial"
        )
