"""The lab of a plan: its conditions, its boots.

A lab that this run made is taken down with the run, whatever ends it. One that was up before, with
the same topology, is used and left up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.model import Invalidity
from nephoscope.measure.provisioning import UP, Provisioned, SpendingLimit, create_within
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.schedule.cells import PLATFORM
from nephoscope.measure.runs.schedule.progress import budget_s
from nephoscope.measure.targets.kinds.record import TargetRecord as Target
from nephoscope.store import StoredRun

if TYPE_CHECKING:
    from nephoscope.measure.lab.boot import BootTimes
    from nephoscope.measure.lab.handle import Lab

_UNKNOWN = object()


class LabEnvironment(Environment):
    """The lab of a plan."""

    def __init__(self, plan: Plan, run: StoredRun, say: Callable[[str], None]) -> None:
        from nephoscope.measure.lab import files

        assert plan.lab is not None
        self._run = run
        self._say = say
        self._topology = (
            files.load(plan.lab) if isinstance(plan.lab, str) else files.from_values(plan.lab)
        )
        self._lab: Lab | None = None
        self._made = False
        self._conditions: dict[str, Any] = {}
        seconds, money = budget_s(plan), plan.money
        self._hours = None if seconds is None else seconds / 3600
        self._limit = (
            None
            if money is None
            else SpendingLimit(money.limit, money.currency, money.machine_hours)
        )

    @property
    def lab(self) -> Lab:
        """The lab, which is up."""
        assert self._lab is not None
        return self._lab

    async def up(self) -> None:
        """See `Environment.up`. UsageError when another lab has the name."""
        from nephoscope.measure.lab.provisioner import LABS

        name = self._topology.name
        existing = {lab.name: lab for lab in LABS.existing()}.get(name)
        # Ours from before a kill: its hosts may be half made and their conditions are unknown.
        is_own = self._run.manifest.lab_made == name
        if existing is not None and is_own:
            self._say(f"Lab {name} is left over from a run that was ended; it is created again.")
            await LABS.remove(name)
        elif existing is not None:
            self._lab = self._checked_existing(existing)
            return
        # Said before it is made: after a kill in between, the next process knows whose it is.
        self._run.update(lab_made=name)
        self._made = True
        self._say(f"Lab {name} is made ({plural(len(self._topology.hosts), 'host')}).")
        self._lab = await create_within(
            LABS, self._topology, hours=self._hours, limit=self._limit, say=self._say
        )
        for warning in self._lab.warnings:
            self._say(warning)

    def _checked_existing(self, existing: Provisioned) -> Lab:
        """The lab that somebody else made, if it is the plan's."""
        from nephoscope.measure.lab.provisioner import LABS

        name = self._topology.name
        remove = f"`nephoscope lab down {name}`"
        if existing.state != UP and not existing.problem:
            raise UsageError(
                f"A lab '{name}' is {existing.state}.",
                f"Wait until it is up, or remove it with {remove}.",
            )
        lab = LABS.open(name)
        if lab.topology != self._topology:
            raise UsageError(
                f"A lab '{name}' is up, and its topology is another than the plan's.",
                f"Take it down with {remove}, or name the plan's lab differently.",
            )
        self._say(f"Lab {name} is up already; it is used and left up.")
        return lab

    def placed(self, target: Target) -> Target:
        """See `Environment.placed`."""
        return target.placed_in(self._topology.name)

    def accepts(self, target: Target) -> Sequence[Invalidity]:
        """See `Environment.accepts`: a host that has a cap now may be throttled."""
        path = f"hosts.{target.topology_host}.cpu.cap"
        return () if self._conditions.get(path, self._own(path)) is None else ("throttled",)

    async def apply(self, conditions: Mapping[str, Any]) -> frozenset[str]:
        """See `Environment.apply`."""
        from nephoscope.measure.lab import conditions as changing

        # What an earlier trial set and this one does not goes back to the topology's own value.
        every = {**{path: self._own(path) for path in self._conditions}, **conditions}
        now = self._conditions
        wanted = {path: v for path, v in every.items() if path not in now or now[path] != v}
        if not wanted:
            return frozenset()
        before = {name: host.platform for name, host in self.lab.hosts.items()}
        # Should the next step fail half way, nothing is known: then all of it is set again.
        self._conditions = dict.fromkeys(every, _UNKNOWN)
        await changing.apply(self.lab, wanted, self._say)
        self._conditions = every
        return frozenset(
            name for name, host in self.lab.hosts.items() if before.get(name) != host.platform
        )

    def _own(self, path: str) -> Any:
        """The value at a path of the topology as the plan has it, else the default; None where
        there is none."""
        value: Any = self._topology.model_dump(mode="json", by_alias=True)
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return "bare" if value is None and path.endswith(PLATFORM) else value

    async def renew(
        self, host: str, level: str, conditions: Mapping[str, Any] | None = None
    ) -> BootTimes | None:
        """See `Environment.renew`."""
        from nephoscope.measure.lab import conditions as changing

        if conditions and host in await self.apply(conditions):
            return self.lab.hosts[host].boot
        return await changing.renew(
            self.lab, host, "instance" if level == "instance" else "boot", self._say
        )

    async def down(self) -> None:
        """See `Environment.down`; of a lab that was up before, the conditions are put back."""
        from nephoscope.measure.lab.provisioner import LABS

        if self._made:
            await LABS.remove(self._topology.name)
            self._run.update(lab_made="")
        elif self._lab is not None:
            await self.apply({})
