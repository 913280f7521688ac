"""Candidates of a search on a cloud: launched anew, or one machine that is stopped and started."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from nephoscope.cli.kit import measuring
from nephoscope.core.errors import NephoscopeError, RunFailed
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import in_thread, together, uncancelled
from nephoscope.features.cloud import speeds
from nephoscope.features.cloud.search import CandidateMachine
from nephoscope.measure import plans
from nephoscope.measure.cloud import restart as restarts
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.spec import RentalSpec
from nephoscope.measure.plans import Plan
from nephoscope.measure.provisioning import Quote, Say
from nephoscope.measure.runs.rented_environment import machine_document
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.store import Store

if TYPE_CHECKING:
    from nephoscope.measure.cloud.model import Machine

LEASE_S = 3600.0
"""How long a candidate lives without a sign of this process."""


class Measure(Protocol):
    """Measures machines that were reached; target -> trial values of the line that is compared."""

    def __call__(
        self, hosts: Mapping[str, TargetRecord], machines: Mapping[str, Machine]
    ) -> Mapping[str, Sequence[float]]:
        """Returns the values; a target without valid trials is missing."""


class BenchmarkMeasure:
    """Measures a benchmark as a stored run of all machines of a wave.

    line: what is compared; None until the first run shows it. plan: of the run, without targets.
    """

    def __init__(
        self,
        plan: Plan,
        benchmark: str,
        line: speeds.SpeedLine | None,
        store: Store,
        labels: Mapping[str, str],
        cpus: int,
        provider: str,
    ) -> None:
        self._plan, self._benchmark, self.line = plan, benchmark, line
        self._store, self._labels, self._cpus = store, labels, cpus
        self._provider = provider

    def __call__(
        self, hosts: Mapping[str, TargetRecord], machines: Mapping[str, Machine]
    ) -> Mapping[str, Sequence[float]]:
        """See `Measure`."""
        plan = plans.fit_to_machines(
            self._plan, list(hosts.values()), dict.fromkeys(hosts, self._cpus)
        )
        stored = measuring.executed(plan, self._store, fresh=True, labels=self._labels, absent={})
        rented = {
            name: machine_document(self._provider, machine) for name, machine in machines.items()
        }
        with stored.lock():
            stored.update(rented=rented)
        measuring.reported(stored)
        values = speeds.of_target(stored, self._benchmark)
        self.line = self.line or speeds.chosen_line(values)
        return {} if self.line is None else values.get(self.line, {})


@dataclass(frozen=True, slots=True)
class Spending:
    """What a search may cost. quote: of one machine; None where nothing has a price. keep_h: hours
    for which the kept machine is rented; trial_h: expected of one launch. limit: of all; None."""

    quote: Quote | None
    keep_h: float
    trial_h: float
    limit: float | None


class Candidates:
    """Launches machines, each a rental of its own, all of one specification.

    seconds_of: time of a unit of work of a value. removed_cost: of the machines that are gone.
    """

    def __init__(
        self,
        rentals: Rentals,
        spec: RentalSpec,
        measure: Measure,
        line: speeds.SpeedLine | None,
        spending: Spending,
        say: Say,
    ) -> None:
        self._rentals, self._spec, self._measure = rentals, spec, measure
        self._line, self._spending, self._say = line, spending, say
        self._up: dict[str, Rental] = {}
        self._since: dict[str, float] = {}
        self._number = 0
        self.hours = 0.0
        self.removed_cost = 0.0
        self.problems: list[str] = []
        self.selected: Rental | None = None

    @property
    def line(self) -> speeds.SpeedLine | None:
        """Returns what is compared, once it is known."""
        return self._line or getattr(self._measure, "line", None)

    async def launch(self, count: int) -> Sequence[CandidateMachine]:
        """See `CandidateSource.launch`: side by side, then measured in one run."""
        names = []
        for _ in range(count):
            self._number += 1
            names.append(f"{self._spec.name}-{self._number}")
        results = await together(*(self._create(name) for name in names))
        failed = [entry for entry in results if isinstance(entry, NephoscopeError)]
        self.problems += [entry.message for entry in failed]
        made = [entry for entry in results if isinstance(entry, Rental)]
        if not made:
            raise failed[0]
        return await self._measured(made)

    async def _create(self, name: str) -> Rental | NephoscopeError:
        began = time.monotonic()
        (group,) = self._spec.groups
        spec = replace(self._spec, name=name, groups=(replace(group, name=name),))
        try:
            rental = await self._rentals.create(spec, say=self._say)
        except RunFailed as error:
            return error
        self._up[name], self._since[name] = rental, began
        self.problems += rental.notes
        return rental

    async def _measured(self, rentals: Sequence[Rental]) -> list[CandidateMachine]:
        for entry in self._up.values():
            await self._rentals.renew(entry, LEASE_S)
        machines = {name: machine for entry in rentals for name, machine in entry.machines.items()}
        hosts = {name: host for entry in rentals for name, host in entry.hosts.items()}
        try:
            values = await in_thread(self._measure, hosts, machines)
        except RunFailed as error:
            self.problems.append(error.message)
            values = {}
        made = []
        for entry in rentals:
            ((name, machine),) = entry.machines.items()
            line, own = self.line, list(values.get(name, ()))
            if line is None or not own:
                self.problems.append(f"{name} ({machine.id}) gave no valid trial.")
                await self._remove(entry.name)
                continue
            seconds = line.seconds(statistics.median(own))
            made.append(
                CandidateMachine(
                    name, entry.name, machine.id, machine.zone, machine.host, seconds, tuple(own)
                )
            )
        return made

    def refuses(self, count: int) -> str:
        """See `CandidateSource.refuses`: with the next trials and the hours of the kept machine."""
        spending = self._spending
        if spending.quote is None or spending.limit is None:
            return ""
        quote = spending.quote
        next_cost = count * quote.cost(spending.trial_h) + quote.cost(spending.keep_h)
        cost = self.removed_cost + next_cost
        if cost <= spending.limit:
            return ""
        return (
            f"{count} more with the machine that is kept for {spending.keep_h:g} h would make "
            f"{cost:.4g} {quote.currency}, more than the limit of {spending.limit:g}."
        )

    async def give_up(self, candidate: CandidateMachine) -> None:
        """See `CandidateSource.give_up`."""
        await self._remove(candidate.rental)

    async def remove(self, candidate: CandidateMachine) -> None:
        """See `CandidateSource.remove`."""
        await self._remove(candidate.rental)

    async def _remove(self, name: str) -> None:
        await uncancelled(self._rentals.remove(name))
        self._up.pop(name, None)
        self._account(name)

    def _account(self, name: str) -> None:
        """Adds the time of a machine until now: until its removal, or until it is kept."""
        hours = (time.monotonic() - self._since.pop(name)) / 3600
        self.hours += hours
        if self._spending.quote is not None:
            self.removed_cost += self._spending.quote.cost(hours)

    async def keep(self, candidate: CandidateMachine) -> None:
        """See `CandidateSource.keep`."""
        self.selected = self._up[candidate.rental]
        await self._rentals.keep(self.selected)
        self._account(candidate.rental)
        del self._up[candidate.rental]

    async def close(self) -> None:
        """See `CandidateSource.close`."""
        for name in list(self._up):
            await self._remove(name)


class Restarts(Candidates):
    """One machine that is stopped and started, which may put it on another host each time."""

    def __init__(
        self,
        rentals: Rentals,
        spec: RentalSpec,
        measure: Measure,
        line: speeds.SpeedLine | None,
        spending: Spending,
        say: Say,
    ) -> None:
        restarts.require_restarts(rentals)
        super().__init__(rentals, spec, measure, line, spending, say)

    async def give_up(self, candidate: CandidateMachine) -> None:
        """See `CandidateSource.give_up`: the next start takes its place."""

    async def launch(self, count: int) -> Sequence[CandidateMachine]:
        """See `CandidateSource.launch`: a launch the first time, then that machine restarted."""
        if not self._up:
            return await super().launch(count)
        ((name, rental),) = self._up.items()
        again = await restarts.restart(
            self._rentals, rental, LEASE_S, say=self._say, contact=self._spec.contact
        )
        self._up[name] = again
        return await self._measured([again])
