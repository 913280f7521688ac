"""A lab that is not: it remembers what was asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core.errors import RunFailed
from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.targets.kinds.record import TargetRecord

TOPOLOGY = {"version": 1, "name": "dbl", "hosts": {"a": {}, "b": {}}, "links": {}}


class LabDouble(Environment):
    """Stands for environment.LabEnvironment; one for each process of a run.

    fails: what raises RunFailed: 'up', or a condition's value.
    """

    def __init__(self, log: list[str], fails: frozenset[Any] = frozenset()) -> None:
        self.log = log
        self._fails = fails
        self._now: dict[str, Any] = {}

    def made(self, *_: Any) -> LabDouble:
        return self

    async def up(self) -> None:
        self.log.append("up")
        if "up" in self._fails:
            raise RunFailed("The lab cannot be made.", "Look at it.")

    def placed(self, target: TargetRecord) -> TargetRecord:
        return target.model_copy(update={"lab": "dbl"})

    async def apply(self, conditions: Mapping[str, Any]) -> frozenset[str]:
        if dict(conditions) == self._now:
            return frozenset()
        before, self._now = self._now, dict(conditions)
        self.log.append(f"apply {self._now}")
        if self._fails & set(conditions.values()):
            self._now = {"unknown": True}
            raise RunFailed("That cannot be set.", "Choose another.")
        changed = {
            p for p in conditions if p.endswith(".platform") and before.get(p) != self._now[p]
        }
        return frozenset(path.split(".")[1] for path in changed)

    async def renew(
        self, host: str, level: str, conditions: Mapping[str, Any] | None = None
    ) -> BootTimes | None:
        made = host in await self.apply(conditions) if conditions else False
        self.log.append(f"made {host}" if made else f"renew {host} {level}")
        return BootTimes(1_000_000, 3_000_000, 6_000_000)

    async def down(self) -> None:
        self.log.append("down")
