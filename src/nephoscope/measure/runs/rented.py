"""The rented machines of a plan: rented before the first trial, removed after the last one."""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import NephoscopeError, PlanError, RunFailed, TargetError, UsageError
from nephoscope.core.naming import plural
from nephoscope.core.tasks import together
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.rental import Rental, Rentals, Shortfall
from nephoscope.measure.cloud.spec import BOOT_S, MachineGroup, RentalSpec
from nephoscope.measure.plans import Plan
from nephoscope.measure.provisioning import Quote, SpendingLimit, authorise
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.schedule.progress import budget_s
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.store import StoredRun

if TYPE_CHECKING:
    from nephoscope.measure.lab.boot import BootTimes

LEASE_S = 3600.0
"""How long machines live without a sign of the controller; renewed between trials."""

WITHOUT_BUDGET_H = 24.0
"""After which machines that cost nothing end, where the plan has no budget."""


@dataclass(slots=True)
class _Rented:
    rentals: Rentals
    rental: Rental
    renewed: float


class RentedEnvironment(Environment):
    """The rented machines of a plan, one rental for each cloud.

    is_partial: machines that the cloud does not grant, or that never answer, are missing; else
    nothing is measured without them. boot_s: longest time to a first login. shortfalls,
    notes: of those, as of `Rental`. cost: what was rented, so far, at the quoted prices; None where
    nothing has a price.
    """

    def __init__(
        self,
        plan: Plan,
        run: StoredRun,
        say: Callable[[str], None],
        *,
        is_partial: bool = False,
        boot_s: float = BOOT_S,
    ) -> None:
        self._run, self._say = run, say
        self._least = 0 if is_partial else None
        self._boot_s = boot_s
        self._quote: Quote | None = None
        self._since: float | None = None
        self._until: float | None = None
        self._launches: set[str] = set()
        self.shortfalls: list[Shortfall] = []
        self.notes: list[str] = []
        self._targets = [one for one in plan.targets if isinstance(one, RentedRecord)]
        self._budget_s = budget_s(plan)
        money = plan.money
        self._limit = None if money is None else SpendingLimit(money.limit, money.currency)
        self._rented: list[_Rented] = []

    async def up(self) -> None:
        """See `Environment.up`: the clouds side by side, of each the machines in random order, so
        that no level of a factor is always the first."""
        specs = self.specs()
        opened = [Rentals(open_provider(cloud), cloud) for cloud, _ in specs]
        for rentals, (_, spec) in zip(opened, specs, strict=True):
            if RentalFolder(spec.name).path.exists():
                name = spec.name
                self._say(f"Rental {name} was left by a run that was ended; it is rented anew.")
                await rentals.remove(name)
        wanted = [
            (rentals, await rentals.checked(spec))
            for rentals, (_, spec) in zip(opened, specs, strict=True)
        ]
        quotes = [quote for rentals, spec in wanted if (quote := rentals.quote(spec)) is not None]
        if quotes:
            # Together: each cloud alone may be below a limit that all of them exceed.
            hours = wanted[0][1].hours if self._budget_s is not None else None
            self._quote = reduce(Quote.plus, quotes)
            authorise(self._quote, hours, self._limit, self._say)
        self._since = time.monotonic()
        await together(*(self._rent(rentals, spec) for rentals, spec in wanted))
        if not any(one.rental.machines for one in self._rented):
            reasons = dict.fromkeys(one.reason for one in self.shortfalls)
            raise RunFailed(
                f"None of {plural(len(self._targets), 'machine')} was rented: "
                f"{'; '.join(reasons)}.",
                "Ask for fewer machines, or for another zone or type.",
            )
        self._run.update(rented=self._documents())

    def _documents(self) -> dict[str, Any]:
        """Returns what was rented for each target, for the manifest."""
        return {
            name: {
                "provider": one.rentals.settings.provider,
                "id": machine.id,
                "region": machine.region,
                "zone": machine.zone,
                "type": machine.type,
                "host": machine.host,
            }
            for one in self._rented
            for name, machine in one.rental.machines.items()
        }

    @property
    def cost(self) -> float | None:
        """Returns the cost so far; of all machines that were asked for, for the whole time."""
        if self._quote is None or self._since is None:
            return None
        return self._quote.cost(((self._until or time.monotonic()) - self._since) / 3600)

    def specs(self) -> list[tuple[CloudSettings, RentalSpec]]:
        """Returns what is rented: one rental for each cloud and network that may log in."""
        groups: dict[tuple[CloudSettings, str], list[MachineGroup]] = defaultdict(list)
        for one in self._targets:
            cloud = CloudSettings(one.provider[0], one.endpoint, one.profile)
            zone = "" if one.zone[0] == "any" else one.zone[0]
            group = MachineGroup(
                one.name,
                one.region[0],
                one.type[0],
                one.image[0],
                zone=zone,
                market=one.market[0],
                at_least=self._least,
                network=one.network,
                per_h=one.per_hour,
                currency="USD" if self._limit is None else self._limit.currency,
            )
            groups[cloud, one.login_from].append(group)
        drawn = random.Random(self._run.manifest.seed or 0)
        specs = []
        for number, ((cloud, login_from), several) in enumerate(groups.items()):
            drawn.shuffle(several)
            hours = WITHOUT_BUDGET_H
            if self._budget_s is not None:
                hours = (self._budget_s + self._boot_s) / 3600
            name = rental_name(self._run.id, number)
            spec = RentalSpec(
                name,
                tuple(several),
                hours=hours,
                lease_s=LEASE_S,
                login_from=login_from,
                boot_s=self._boot_s,
            )
            specs.append((cloud, spec))
        return specs

    async def _rent(self, rentals: Rentals, spec: RentalSpec) -> None:
        hosts = plural(len(spec.groups), "machine")
        self._say(f"{hosts} of {rentals.settings.provider} rented as {spec.name}.")
        rental = await rentals.create(spec, say=self._say)
        self._rented.append(_Rented(rentals, rental, time.monotonic()))
        for name, seconds in rental.boot_s.items():
            self._say(f"{name}: first login {seconds:.1f} s after the call.")
        self.shortfalls += rental.shortfalls
        self.notes += rental.notes

    def placed(self, target: TargetRecord) -> TargetRecord:
        """See `Environment.placed`: a rented machine as it is reached."""
        for rented in self._rented:
            if (host := rented.rental.hosts.get(target.name)) is not None:
                return host.model_copy(update={"roles": target.roles, "per_hour": target.per_hour})
        for one in self.shortfalls:
            if one.group == target.name:
                raise TargetError(f"{target.name} was not rented: {one.reason}.")
        return target

    async def renew(
        self, host: str, level: str, conditions: Mapping[str, Any] | None = None
    ) -> BootTimes | None:
        """See `Environment.renew`: the launch itself, once for each machine of a run.

        Raises PlanError for a second one.
        """
        from nephoscope.measure.lab.boot import BootTimes

        for one in self._rented:
            if (times := one.rental.times.get(host)) is not None and host not in self._launches:
                self._launches.add(host)
                answer_ns, running_ns, login_ns = (
                    round(1e9 * at) for at in (times.answer_s, times.running_s, times.login_s)
                )
                return BootTimes(None, None, login_ns, answer_ns=answer_ns, running_ns=running_ns)
        raise PlanError(
            f"'{host}' is launched once in a run, which is its only boot.",
            "Give `host.boot` the repetition {min: 1, max: 1}, and leave out `design.nest`.",
        )

    async def apply(self, conditions: Mapping[str, Any]) -> frozenset[str]:
        """See `Environment.apply`: called before each trial, so that no trial is disturbed by the
        renewal of a lease."""
        for rented in self._rented:
            if time.monotonic() - rented.renewed > LEASE_S / 4:
                try:
                    await rented.rentals.renew(rented.rental, LEASE_S)
                    rented.renewed = time.monotonic()
                except NephoscopeError as error:
                    self._say(f"The lease of {rented.rental.name} was not renewed: {error}")
        return await super().apply(conditions)

    async def down(self) -> None:
        """See `Environment.down`: until a listing confirms that nothing is left."""
        rented, self._rented = self._rented, []
        try:
            await together(*(one.rentals.remove(one.rental.name) for one in rented))
        finally:
            self._until = time.monotonic()


def rental_name(run: str, number: int) -> str:
    """Returns the name of a run's rental, a word for tags."""
    return f"{re.sub(r'[^a-z0-9]+', '-', run.lower())[-56:].strip('-')}-{number + 1}"


def require_alone(plan: Plan) -> None:
    """Raises UsageError for a plan with both a lab and rented machines."""
    if plan.lab is not None and any(isinstance(one, RentedRecord) for one in plan.targets):
        raise UsageError(
            "The plan has a lab and rented machines, between which there is no network.",
            "Make two plans of it and compare their runs.",
        )
