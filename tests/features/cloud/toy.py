"""A cloud in this process whose machines have a planted CPU model, host and quota."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from contract.toy_cloud import ToyCloud
from nephoscope.measure.cloud.model import (
    Action,
    CloudResource,
    Kind,
    Machine,
    MachineRequest,
    Request,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudTraits
from nephoscope.measure.targets.base import Endpoint, IpVersion
from nephoscope.measure.targets.kinds.record import ROUTED, SideEffect, TargetRecord, Traits
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.target import Target

MIX: Mapping[str, float] = {"Epyc 7571": 0.5, "Xeon 8259CL": 0.3, "Xeon 8175M": 0.2}


class PlantedTarget(Target):
    """This machine, with the identity of another one."""

    def __init__(self, name: str, model: str, number: int) -> None:
        super().__init__(name, LocalChannel(name))
        self._model, self._number = model, number

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """See `Target.open`."""
        await self._channel.open(timeout_s)
        await self._where()
        return {
            "cpu": {"by_cpuid": {"brand": self._model}, "agree": True},
            "identity": {"machine_id_hash": f"{self._number:016x}"},
        }

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`."""
        return Endpoint("127.0.0.1", "127.0.0.1")


class PlantedRecord(TargetRecord):
    """A machine of the toy cloud."""

    model_config = ConfigDict(title="PlantedTarget")

    form: ClassVar[str] = "planted:NUMBER"

    kind: Literal["planted"] = Field(default="planted", description="How the machine is reached.")
    model: str = Field(default="", description="CPU model.")
    number: int = Field(default=0, description="Which machine.")

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        return None

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        key = f"planted:{self.number}"
        return Traits(machine=key, place=key, listens_on=ROUTED, sends_to=frozenset({ROUTED}))

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        return PlantedTarget(self.name, self.model, self.number)

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        yield SideEffect("planted", str(self.number), f"target {self.name}")


class PlantedCloud(ToyCloud):
    """See `ToyCloud`. quota: machines at the same time; hosts: physical ones, drawn at random; 0
    shows none. silent: numbers of the machines that never run."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE, Kind.KEY_PAIR}),
        actions=frozenset(Action),
        tokens=True,
        user_data=False,
    )

    def __init__(self, folder: Path, *, quota: int = 100, hosts: int = 0, seed: int = 0) -> None:
        super().__init__(folder, capacity=1000)
        self._quota, self._hosts = quota, hosts
        self._draws = random.Random(seed)
        self.made: list[Machine] = []
        self.silent: set[int] = set()
        self._lock = threading.Lock()
        self.most = 0

    def _make(self, kind: Kind, request: Request) -> list[CloudResource]:
        with self._lock:
            return self._make_alone(kind, request)

    def _make_alone(self, kind: Kind, request: Request) -> list[CloudResource]:
        if isinstance(request, MachineRequest):
            live = len(self.all(Kind.MACHINE))
            if live + request.at_least > self._quota:
                raise CloudError(Cause.QUOTA, f"toy: the quota of {self._quota} is reached.")
            self.most = max(self.most, live + 1)
        made = super()._make(kind, request)
        return [self._planted(one) if isinstance(one, Machine) else one for one in made]

    def _planted(self, machine: Machine) -> Machine:
        number = len(self.made) + 1
        (model,) = self._draws.choices(list(MIX), list(MIX.values()))
        host = f"host-{self._draws.randrange(self._hosts)}" if self._hosts else ""
        problem = "it failed to start" if number in self.silent else ""
        target = {"kind": "planted", "model": model, "number": number}
        planted = replace(machine, target=target, host=host, problem=problem)
        state = {"state": "failed"} if problem else {}
        self._write(planted, **state)
        self.made.append(planted)
        return planted

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`: a start puts it on another host, with the speed of a new machine."""
        super().act(machine, action, value)
        if action is Action.START:
            (listed,) = [one for one in self.all(Kind.MACHINE) if one.id == machine.id]
            assert isinstance(listed, Machine)
            self._planted(listed)

    def models(self) -> Sequence[str]:
        """Returns the planted model of each machine that was made."""
        return [str(one.target["model"]) for one in self.made]
