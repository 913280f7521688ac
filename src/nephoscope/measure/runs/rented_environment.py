"""The rented machines of a plan: rented before the first trial, removed after the last one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.restores import RestoreTimes
from nephoscope.measure.cloud.spec import BOOT_S, RentalSpec
from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.plans import Plan
from nephoscope.measure.provisioning import Quote, SpendingLimit, authorise
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.rented_boots import boot_times
from nephoscope.measure.runs.rented_network import RentedNetworks
from nephoscope.measure.runs.rented_price import RentPrice, whole_price
from nephoscope.measure.runs.rented_specs import LEASE_S, renewals_of, rental_specs
from nephoscope.measure.runs.rented_volumes import mount_all, restore_one
from nephoscope.measure.runs.schedule.cells import LAUNCH
from nephoscope.measure.runs.schedule.progress import budget_s
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.store import StoredRun

RENEWAL_S = 300.0
"""How often the machines are asked to renew their lease, and whether they were rebooted."""

LAST_RENEWAL_S = 10.0
"""How long the last question of a run waits for its answer."""

EVENTS_S = 60.0
"""How often the cloud is asked what happened to the machines."""


@dataclass(slots=True)
class _Rented:
    rentals: Rentals
    spec: RentalSpec
    rental: Rental
    renewed_s: float
    events_s: float
    admitted: Mapping[str, set[str]] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)
    events: dict[str, list[dict[str, str]]] = field(default_factory=dict)


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
        self._networks: RentedNetworks | None = None
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
        self._networks = RentedNetworks.of(self._plan, are_apart=renewals_of(self._plan) > 0)
        traffic = self._networks.traffic_price(self._plan, wanted)
        quote = whole_price(self._plan, wanted, traffic.quote)
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
        await self._admit()
        self._run.update(rented=self._documents())

    async def _admit(self) -> None:
        """Lets each pair of machines in that meets from two networks: exactly their addresses."""
        networks = self._networks
        if networks is None or not networks.across:
            return
        machines = {
            name: machine
            for rented in self._rented
            for name, machine in rented.rental.machines.items()
            if machine.state is not ResourceState.GONE
        }
        for rented in self._rented:
            sources = {
                region: networks.addresses_for(
                    [
                        name
                        for name, machine in rented.rental.machines.items()
                        if machine.region == region
                    ],
                    machines,
                )
                for region in rented.rental.firewalls
            }
            if rented.admitted == sources:
                continue
            await rented.rentals.admit(rented.rental, sources)
            rented.admitted = sources
            for region, addresses in sources.items():
                if addresses:
                    self._say(f"{region} lets in {', '.join(sorted(addresses))} of this run.")

    def _documents(self) -> dict[str, Any]:
        """Returns what was rented for each target, for the manifest."""
        return {
            name: {
                **machine_document(rented.rentals.settings.provider, machine),
                **({"events": rented.events[name]} if name in rented.events else {}),
                **self._prices_of(rented, name),
            }
            for rented in self._rented
            for name, machine in rented.rental.machines.items()
        }

    def _prices_of(self, rented: _Rented, name: str) -> dict[str, Any]:
        """Returns the prices of a machine, where they are known."""
        (target,) = (entry for entry in self._plan.targets if entry.name == name)
        assert isinstance(target, RentedRecord)
        listed = rented.rentals.listed_prices(rented.spec, name)
        stated = {key: getattr(target, key) for key in ("per_hour", "per_gib_out", "per_gib_zones")}
        from_list = (
            {}
            if listed is None
            else {
                "per_hour": listed.per_h,
                "per_gib_out": listed.egress_gib,
                "per_gib_zones": listed.zones_gib,
            }
        )
        money = self._plan.money
        currency = money.currency if money is not None else listed.currency if listed else "USD"
        known = {key: value for key, value in stated.items() if value is not None}
        values = from_list | known | {"currency": currency}
        return {key: value for key, value in values.items() if value is not None}

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
        await mount_all(rentals, spec, rental, self._say)
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
        await self._admit()
        self._run.update(rented=self._documents())
        (rental,) = (entry.rental for entry in self._rented if entry.spec.name == spec.name)
        return await boot_times(rental, host)

    async def restore(
        self, host: str, directory: str, data_bytes: int, limit_s: float
    ) -> RestoreTimes:
        """See `Environment.restore`."""
        for rented in self._rented:
            if host in rented.rental.machines:
                where = (rented.rentals, rented.spec, rented.rental, host, directory)
                return await restore_one(*where, data_bytes, limit_s)
        return await super().restore(host, directory, data_bytes, limit_s)

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
            happened = {"at": _utc_now(), "event": str(event.kind), "detail": event.detail}
            rented.events.setdefault(event.machine, []).append(happened)
        if events and rented in self._rented:
            self._run.update(rented=self._documents())
        # A machine that was stopped and started has another address, and nobody else's stays.
        with contextlib.suppress(NephoscopeError):
            await self._admit()

    async def _report_last(self, rented: _Rented) -> None:
        await self._report_events(rented)
        machines = rented.rental.machines.values()
        if all(machine.state is ResourceState.READY for machine in machines):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_RENEWAL_S):
                    await self._renew_lease(rented)

    async def down(self) -> None:
        """See `Environment.down`: until a listing confirms that nothing is left."""
        await together(*(self._report_last(rental) for rental in self._rented))
        rented, self._rented = self._rented, []
        # Whatever becomes of one cloud, the others are cleared.
        ended = await asyncio.gather(
            *(rental.rentals.remove(rental.rental.name) for rental in rented),
            return_exceptions=True,
        )
        self._until = time.monotonic()
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure


def _utc_now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


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


def _hosts(spec: RentalSpec) -> list[str]:
    return [name for group in spec.groups for name in group.hosts()]


async def price_of(plan: Plan) -> RentPrice:
    """Returns the price of what a plan rents.

    It asks the clouds and creates nothing. Raises UsageError, Lacking, CloudError.
    """
    rented, hours = [], 0.0
    for cloud, spec in rental_specs(plan, "preview", plan.seed or 0):
        rentals = Rentals(open_provider(cloud), cloud)
        rented.append((rentals, await rentals.checked(spec)))
        hours = spec.hours
    networks = RentedNetworks.of(plan, are_apart=renewals_of(plan) > 0)
    traffic = networks.traffic_price(plan, rented)
    return RentPrice(whole_price(plan, rented, traffic.quote), hours, traffic)
