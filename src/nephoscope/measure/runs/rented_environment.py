"""The rented machines of a plan: rented before the first trial, removed after the last one."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import HOST_BOOT
from nephoscope.core.errors import (
    NephoscopeError,
    PlanError,
    RunFailed,
    TargetError,
    UsageError,
)
from nephoscope.core.naming import plural
from nephoscope.core.tasks import together
from nephoscope.measure.cloud.events import reboots_between
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.launch import Shortfall
from nephoscope.measure.cloud.model import Machine, ResourceState
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.spec import BOOT_S, MachineGroup, RentalSpec
from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.plans import Plan, estimate, expand
from nephoscope.measure.provisioning import Quote, SpendingLimit, authorise
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.rented_boots import boot_times
from nephoscope.measure.runs.schedule.cells import LAUNCH
from nephoscope.measure.runs.schedule.progress import budget_s
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.measure.targets.kinds.service import ServiceRecord
from nephoscope.store import StoredRun

LEASE_S = 3600.0
"""How long machines live without a sign of the controller; renewed between trials."""

RENEWAL_S = 300.0
"""How often the machines are asked to renew their lease, and whether they were rebooted."""

LAST_RENEWAL_S = 10.0
"""How long the last question of a run waits for its answer."""

EVENTS_S = 60.0
"""How often the cloud is asked what happened to the machines."""

WITHOUT_BUDGET_H = 24.0
"""After which machines that cost nothing end, where the plan has no budget."""


@dataclass(slots=True)
class _Rented:
    rentals: Rentals
    spec: RentalSpec
    rental: Rental
    renewed_s: float
    events_s: float
    boots: dict[str, str] = field(default_factory=dict)


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
        if plan.lab is not None:
            raise UsageError(
                "The plan has a lab and rented machines, between which there is no network.",
                "Make two plans of it and compare their runs.",
            )
        self._plan, self._run, self._say = plan, run, say
        self._budget_s = budget_s(plan)
        money = plan.money
        self._specs: list[tuple[Rentals, RentalSpec]] = []
        self._limit = (
            None
            if money is None
            else SpendingLimit(money.limit, money.currency, money.machine_hours)
        )
        self._rented: list[_Rented] = []
        self._least = 0 if is_partial else None
        self._boot_s = boot_s
        self._quote: Quote | None = None
        self._since: float | None = None
        self._until: float | None = None
        self._launches: set[str] = set()
        self.shortfalls: list[Shortfall] = []
        self.notes: list[str] = []

    async def up(self) -> None:
        """See `Environment.up`: the clouds side by side, of each the machines in random order, so
        that no level of a factor is always the first."""
        specs = rental_specs(
            self._plan,
            self._run.id,
            self._run.manifest.seed or 0,
            at_least=self._least,
            boot_s=self._boot_s,
        )
        opened = [Rentals(open_provider(cloud), cloud, say=self._say) for cloud, _ in specs]
        for rentals, (_, spec) in zip(opened, specs, strict=True):
            if RentalFolder(spec.name).path.exists():
                name = spec.name
                self._say(f"Rental {name} was left by a run that was ended; it is rented anew.")
                await rentals.remove(name)
        wanted = [
            (rentals, await rentals.checked(spec))
            for rentals, (_, spec) in zip(opened, specs, strict=True)
        ]
        quote = _whole_price(self._plan, [rentals.quote(spec) for rentals, spec in wanted])
        if quote is not None:
            hours = None if self._budget_s is None else wanted[0][1].hours
            authorise(quote, hours, self._limit, self._say)
        self._specs = wanted
        self._quote, self._since = quote, time.monotonic()
        await together(*(self._rent(rentals, spec) for rentals, spec in wanted))
        if not any(rented.rental.machines for rented in self._rented):
            reasons = dict.fromkeys(shortfall.reason for shortfall in self.shortfalls)
            number = sum(len(spec.groups) for _, spec in wanted)
            raise RunFailed(
                f"None of {plural(number, 'machine')} was rented: {'; '.join(reasons)}.",
                "Ask for fewer machines, or for another zone or type.",
            )
        self._run.update(rented=self._documents())

    def _documents(self) -> dict[str, Any]:
        """Returns what was rented for each target, for the manifest."""
        return {
            name: machine_document(rented.rentals.settings.provider, machine)
            for rented in self._rented
            for name, machine in rented.rental.machines.items()
        }

    @property
    def cost(self) -> float | None:
        """Returns the cost so far; of all machines that were asked for, for the whole time."""
        if self._quote is None or self._since is None:
            return None
        return self._quote.cost(((self._until or time.monotonic()) - self._since) / 3600)

    async def _rent(self, rentals: Rentals, spec: RentalSpec) -> None:
        hosts = plural(len(spec.groups), "machine")
        self._say(f"Renting {hosts} of {rentals.settings.provider} as {spec.name}.")
        rental = await rentals.create(spec, say=self._say)
        rented = _Rented(rentals, spec, rental, time.monotonic(), time.monotonic())
        self._rented.append(rented)
        await self._renew_lease(rented)
        for name, seconds in rental.boot_s.items():
            self._say(f"{name}: first login {seconds:.1f} s after the call.")
        self.shortfalls += rental.shortfalls
        self.notes += rental.notes

    def placed(self, target: TargetRecord) -> TargetRecord:
        """See `Environment.placed`: a rented machine as it is reached."""
        for rented in self._rented:
            if (host := rented.rental.hosts.get(target.name)) is not None:
                return host.model_copy(update={"roles": target.roles, "per_hour": target.per_hour})
        for shortfall in self.shortfalls:
            if shortfall.group == target.name:
                raise TargetError(f"{target.name} was not rented: {shortfall.reason}.")
        return target

    async def apply(self, conditions: Mapping[str, Any]) -> frozenset[str]:
        """See `Environment.apply`: called before each trial, so that no trial is disturbed by a
        question to the cloud or the renewal of a lease."""
        for rented in self._rented:
            if time.monotonic() - rented.events_s > EVENTS_S:
                await self._report_events(rented)
            if time.monotonic() - rented.renewed_s > RENEWAL_S:
                await self._renew_lease(rented)
        return await super().apply(conditions)

    async def _renew_lease(self, rented: _Rented) -> None:
        """Renews the lease, and says which machines were rebooted since the last time."""
        rented.renewed_s = time.monotonic()
        try:
            boots = await rented.rentals.renew(rented.rental, LEASE_S)
        except NephoscopeError as error:
            self._say(f"The lease of {rented.rental.name} was not renewed: {error}")
            return
        for event in reboots_between(rented.boots, boots):
            self._say(str(event))
        rented.boots |= boots

    async def renew(
        self, host: str, level: str, conditions: Mapping[str, Any] | None = None
    ) -> BootTimes | None:
        """See `Environment.renew`: the machine is removed, and rented anew in its own rental.

        At level LAUNCH the launch by `up` counts, once. Raises PlanError for a second one.
        """
        if level == LAUNCH:
            return await self._launch(host)
        (spec,) = (spec for _, spec in self._specs if host in _hosts(spec))
        for rented in [entry for entry in self._rented if entry.spec.name == spec.name]:
            # Listed until it is gone: `down` removes what a failure leaves here.
            await rented.rentals.remove(spec.name)
            self._rented.remove(rented)
        (rentals,) = (rentals for rentals, entry in self._specs if entry.name == spec.name)
        await self._rent(rentals, spec)
        self._run.update(rented=self._documents())
        (rental,) = (entry.rental for entry in self._rented if entry.spec.name == spec.name)
        return await boot_times(rental, host)

    async def _launch(self, host: str) -> BootTimes:
        for rented in self._rented:
            if host in rented.rental.times and host not in self._launches:
                times = await boot_times(rented.rental, host)
                self._launches.add(host)
                return times
        raise PlanError(
            f"'{host}' is launched once in a run, and `level: {LAUNCH}` records that one launch.",
            f"Give {HOST_BOOT} the repetition {{min: 1, max: 1}} and the plan `warmup: 0`.",
        )

    async def _report_events(self, rented: _Rented) -> None:
        """Says what happened to the machines since the last time."""
        rented.events_s = time.monotonic()
        try:
            rented.rental, events = await rented.rentals.events(rented.rental)
        except NephoscopeError as error:
            self._say(f"The machines of {rented.rental.name} were not listed: {error}")
            return
        for event in events:
            self._say(str(event))

    async def _report_last(self, rented: _Rented) -> None:
        await self._report_events(rented)
        machines = rented.rental.machines.values()
        if all(machine.state is ResourceState.READY for machine in machines):
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_RENEWAL_S):
                    await self._renew_lease(rented)

    async def down(self) -> None:
        """See `Environment.down`: until a listing confirms that nothing is left."""
        rented, self._rented = self._rented, []
        await together(*(self._report_last(rental) for rental in rented))
        # Whatever becomes of one cloud, the others are cleared.
        ended = await asyncio.gather(
            *(rental.rentals.remove(rental.rental.name) for rental in rented),
            return_exceptions=True,
        )
        self._until = time.monotonic()
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure


def machine_document(provider: str, machine: Machine) -> dict[str, str]:
    """Returns what a manifest keeps of a rented machine. provider: its word."""
    return {
        "provider": provider,
        "id": machine.id,
        "region": machine.region,
        "zone": machine.zone,
        "type": machine.type,
        "image": machine.image,
        "host": machine.host,
    }


def rental_specs(
    plan: Plan,
    run: str,
    seed: int,
    *,
    at_least: int | None = None,
    boot_s: float = BOOT_S,
) -> list[tuple[CloudSettings, RentalSpec]]:
    """Returns what a run of a plan rents: one rental for each cloud and network that may log in;
    where machines are made anew, one for each machine.

    The machines of a rental are in random order, drawn by the seed. at_least: of each target; see
    `MachineGroup`.
    """
    groups: dict[tuple[CloudSettings, str, str], list[MachineGroup]] = defaultdict(list)
    is_renewed = _renewals(plan) > 0
    currency = "USD" if plan.money is None else plan.money.currency
    for target in plan.targets:
        if isinstance(target, RentedRecord):
            cloud = CloudSettings(target.provider[0], target.endpoint, target.profile)
            own = target.name if is_renewed else ""
            groups[cloud, target.login_from, own].append(_group(target, currency, at_least))
    seconds = budget_s(plan)
    hours = WITHOUT_BUDGET_H if seconds is None else (seconds + boot_s) / 3600
    drawn = random.Random(seed)
    specs = []
    for number, ((cloud, login_from, _), several) in enumerate(groups.items()):
        drawn.shuffle(several)
        name = rental_name(run, number)
        spec = RentalSpec(
            name,
            tuple(several),
            hours=hours,
            lease_s=LEASE_S,
            login_from=login_from,
            boot_s=boot_s,
        )
        specs.append((cloud, spec))
    return specs


def _group(target: RentedRecord, currency: str, at_least: int | None) -> MachineGroup:
    return MachineGroup(
        target.name,
        target.region[0],
        target.type[0],
        target.image[0],
        zone="" if target.zone[0] == "any" else target.zone[0],
        market=target.market[0],
        at_least=at_least,
        network=target.network,
        per_h=target.per_hour,
        currency=currency,
    )


def total_of(quotes: Sequence[Quote | None]) -> Quote | None:
    """Returns the price of all together: each cloud alone may be below a limit that they exceed
    together. None where nothing is paid."""
    priced = [quote for quote in quotes if quote is not None]
    return reduce(Quote.plus, priced) if priced else None


def _hosts(spec: RentalSpec) -> list[str]:
    return [name for group in spec.groups for name in group.hosts()]


def _renewals(plan: Plan) -> int:
    """Returns how often each machine is made anew at most."""
    nest = plan.design.nest
    rounds = [
        plan.repeat_of(number).max + plan.warmup
        for number, entry in enumerate(plan.benchmarks)
        if entry.benchmark == HOST_BOOT and entry.params.get("level") != LAUNCH
    ]
    return sum(rounds) + (nest.boots if nest is not None and nest.boots > 1 else 0)


def _whole_price(plan: Plan, quotes: Sequence[Quote | None]) -> Quote | None:
    """Returns the price of rented machines, which may be made anew, and of services beside them;
    None where no machine is paid. `Progress` alone bounds what services cost then."""
    machines = total_of([_with_renewals(quote, _renewals(plan)) for quote in quotes])
    return None if machines is None else total_of([machines, _of_services(plan)])


def _with_renewals(quote: Quote | None, renewals: int) -> Quote | None:
    """Returns the price with that of machines made anew, each of which is billed for itself."""
    if quote is None:
        return None
    least_h = max(quote.minimum_h, quote.step_h)
    return replace(quote, once=quote.once + renewals * least_h * quote.per_h)


def _of_services(plan: Plan) -> Quote | None:
    """Returns the price of the plan's services: by the hour, and of the least use; None where none
    has a price."""
    services = [
        service
        for service in plan.targets
        if isinstance(service, ServiceRecord) and service.is_priced
    ]
    if not services:
        return None
    known = catalog.load()
    used = estimate(plan, expand(plan, known), known).money_used_least
    per_h = sum(service.per_hour or 0.0 for service in services)
    currency = "USD" if plan.money is None else plan.money.currency
    return Quote(per_h, currency, once=used, machines=0)


async def price_of(plan: Plan) -> tuple[Quote | None, float]:
    """Returns the price of the machines that a plan rents, and the hours that are rented.

    It asks the clouds and creates nothing. Raises UsageError, Lacking, CloudError.
    """
    quotes, hours = [], 0.0
    for cloud, spec in rental_specs(plan, "preview", plan.seed or 0):
        rentals = Rentals(open_provider(cloud), cloud)
        quotes.append(rentals.quote(await rentals.checked(spec)))
        hours = spec.hours
    return _whole_price(plan, quotes), hours


def rental_name(run: str, number: int) -> str:
    """Returns the name of a run's rental, a word for tags."""
    return f"{re.sub(r'[^a-z0-9]+', '-', run.lower())[-56:].strip('-')}-{number + 1}"
