"""Rented machines, created all or nothing, found again by tag, and removed; see `Provisioner`."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.tasks import together, uncancelled
from nephoscope.measure.cloud import ended_rentals, machine_lives, user_data
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.check import checked
from nephoscope.measure.cloud.events import MachineEvent
from nephoscope.measure.cloud.intents import RentalFolder, folders
from nephoscope.measure.cloud.launch import (
    Launch,
    Launched,
    LaunchTimes,
    Shortfall,
    request_of,
    target_of,
)
from nephoscope.measure.cloud.login_network import login_network
from nephoscope.measure.cloud.model import (
    CloudResource,
    KeyPairRequest,
    Kind,
    Machine,
    MachinePrices,
    ResourceState,
    SecurityGroupRequest,
    Tags,
)
from nephoscope.measure.cloud.observation import (
    RentalObservation,
    beginning,
    note_interruptions,
    observe,
)
from nephoscope.measure.cloud.placements import in_placements
from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.rental_state import document_of, provisioned, tags_of
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.cloud.sweep import Swept, sweep
from nephoscope.measure.cloud.unattended import Unattended, launch
from nephoscope.measure.cloud.volume_prices import volumes_quote
from nephoscope.measure.provisioning import UP, Provisioned, Quote, Say

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord


@dataclass(frozen=True, slots=True)
class Rental:
    """Machines that are rented and were reached. hosts: by name, as targets of plans; times: of
    their launches, firewalls: by region; none of a rental that was opened again. notes: on machines
    that failed or never answered, also where another one replaced them."""

    name: str
    machines: Mapping[str, Machine]
    hosts: Mapping[str, TargetRecord]
    expires_s: int
    times: Mapping[str, LaunchTimes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    firewalls: Mapping[str, CloudResource] = field(default_factory=dict)

    @property
    def boot_s(self) -> dict[str, float]:
        """Name -> seconds from the call to the first login."""
        return {name: times.ready_s for name, times in self.times.items()}


class Rentals:
    """Rents machines from one cloud."""

    def __init__(
        self,
        provider: Provider,
        settings: CloudSettings,
        *,
        root: Path | None = None,
        patience_s: float = 120.0,
        say: Say = lambda line: None,
    ) -> None:
        self.provider = provider
        self.settings = settings
        self.calls = CloudCalls(provider, patience_s, say)
        self.root = root
        self._held: dict[str, ExitStack] = {}
        self._seen: dict[str, RentalObservation] = {}
        self._quotes: dict[str, Quote] = {}
        self._prices: dict[tuple[str, str], MachinePrices | None] = {}
        self._spot_per_h: dict[tuple[str, str], float | None] = {}

    def quote(self, spec: RentalSpec) -> Quote | None:
        """See `Provisioner.quote`. Raises UsageError where a price is unknown, unless the user
        accepted that."""
        if not self.provider.traits.rents:
            return None
        total: Quote | None = None
        for group in spec.groups:
            quote = self._quote(spec, group)
            if quote is None:
                if spec.accept_unknown_price:
                    continue
                raise UsageError(
                    f"The price of {group.type} ({group.market}) in {group.region} is unknown.",
                    "Give `per_hour` for it in a plan, or accept that with --accept-unknown-price.",
                )
            total = quote if total is None else total.plus(quote)
        if total is not None:
            self._quotes[spec.name] = total
        return total

    def _quote(self, spec: RentalSpec, group: MachineGroup) -> Quote | None:
        count = group.count + group.hedge
        quote: Quote | None
        if group.per_h is not None:
            quote = Quote(group.per_h * count, group.currency, machines=count)
        else:
            # Asked again: a spot price changes, and the one that is quoted is the one that holds.
            self._prices.pop((spec.name, group.name), None)
            prices = self._price_list(spec, group)
            if prices is not None and group.market == "spot":
                # What was priced is the most that is paid: a dearer market ends the machine.
                self._spot_per_h[spec.name, group.name] = prices.per_h
            quote = prices.quote(count, group.disk_bytes or 0) if prices else None
        volumes = volumes_quote(self.provider, spec, group)
        return quote if volumes is None or quote is None else quote.plus(volumes)

    def per_gib(self, spec: RentalSpec, name: str, *, is_in_region: bool) -> float | None:
        """Returns the price of a GiB that a group's machines send to other zones of their region,
        or to other regions and clouds; 0 where nobody is paid, None where it is unknown."""
        if not self.provider.traits.rents:
            return 0.0
        (group,) = (group for group in spec.groups if group.name == name)
        prices = self._price_list(spec, group)
        if prices is None:
            return None
        return prices.zones_gib if is_in_region else prices.egress_gib

    def listed_prices(self, spec: RentalSpec, name: str) -> MachinePrices | None:
        """Returns the prices of a group's machines as they were read for its quote; None where
        they were not read."""
        return self._prices.get((spec.name, name))

    def _price_list(self, spec: RentalSpec, group: MachineGroup) -> MachinePrices | None:
        key = (spec.name, group.name)
        if key not in self._prices:
            request = request_of(spec, group, tags_of(spec, 0), self.provider.traits)
            self._prices[key] = self.provider.prices(request)
        return self._prices[key]

    async def checked(self, spec: RentalSpec) -> RentalSpec:
        """Returns a rental that was held against what the cloud offers; see `check.checked`."""
        return await checked(self.calls, spec, self.settings.provider)

    async def create(
        self, spec: RentalSpec, *, say: Say, unattended: Unattended | None = None
    ) -> Rental:
        """See `Provisioner.create`; raises CloudError with the cloud's own words.

        Where `spec.is_kept`, the rental outlives this process; else its lock is held until
        `remove`, and a sweep removes it as soon as this process has ended. unattended: nobody logs
        in to the machines, which are not waited for.
        """
        spec = await self.checked(spec)
        folder = RentalFolder(spec.name, self.root)
        expires_s = int(time.time() + 3600 * spec.hours)
        quote = self._quotes.get(spec.name)
        document = {
            **document_of(spec, expires_s),
            "cloud": asdict(self.settings),
            "quote": None if quote is None else asdict(quote),
            **({} if unattended is None else unattended.document),
        }
        tags = tags_of(spec, expires_s)
        with ExitStack() as stack:
            stack.enter_context(folder.making(document))
            try:
                await self._refuse_taken(spec)
                if unattended is None:
                    rental = await self._make(spec, tags, folder, say)
                else:
                    rental = await self._leave_alone(spec, tags, folder, unattended, say)
            except BaseException as error:
                await uncancelled(self._undo(folder, error, say))
                raise
            hosts = {name: resource.id for name, resource in rental.machines.items()}
            lives = {name: beginning(machine) for name, machine in rental.machines.items()}
            folder.write({**document, "phase": UP, "hosts": hosts, "machines": lives})
            self._seen[spec.name] = RentalObservation()
            if not spec.is_kept:
                self._held[spec.name] = stack.pop_all()
        return rental

    async def _refuse_taken(self, spec: RentalSpec) -> None:
        """Raises UsageError where a rental of that name has left something."""
        for region in sorted({group.region for group in spec.groups}):
            if present := await self.calls.list(region, spec.name):
                raise UsageError(
                    f"{present[0]} belongs to a rental named {spec.name} already.",
                    f"Remove it with `nephoscope cloud sweep {self.settings.provider} --run "
                    f"{spec.name}`.",
                )

    async def _leave_alone(
        self,
        spec: RentalSpec,
        tags: Tags,
        folder: RentalFolder,
        unattended: Unattended,
        say: Say,
    ) -> Rental:
        spot_per_h = self._spot_per_h
        machines, shortfalls = await launch(
            self.calls, spec, tags, folder, unattended, spot_per_h, say
        )
        return Rental(spec.name, machines, {}, tags.expires_s, shortfalls=tuple(shortfalls))

    async def _make(self, spec: RentalSpec, tags: Tags, folder: RentalFolder, say: Say) -> Rental:
        kinds = self.provider.traits.kinds
        regions = sorted({group.region for group in spec.groups})
        keys = user_data.MachineKeys.generate()
        folder.write_identity(keys.private + "\n")
        key_pairs: dict[str, str] = {}
        firewalls: dict[str, CloudResource] = {}
        for region in regions:
            if Kind.KEY_PAIR in kinds:
                wanted = KeyPairRequest(region, tags, keys.public)
                key_pairs[region] = (await self.calls.make(wanted, folder))[0].id
            if Kind.SECURITY_GROUP in kinds:
                source = login_network(
                    spec.login_from,
                    self.settings.endpoint,
                    is_public=self.provider.traits.is_public,
                )
                network = next(
                    (resource.network for resource in spec.groups if resource.region == region), ""
                )
                group = SecurityGroupRequest(region, tags, source, network=network)
                firewalls[region] = (await self.calls.make(group, folder))[0]
        groups = await in_placements(self.calls, spec.groups, tags, folder)
        script = user_data.script(keys, int(min(spec.lease_s, 3600 * spec.hours)))
        launches = [
            Launch(
                spec,
                group,
                request_of(
                    spec,
                    group,
                    tags,
                    self.provider.traits,
                    user_data=script,
                    key_pair=key_pairs.get(group.region, ""),
                    security_group=(
                        firewalls[group.region].id if group.region in firewalls else ""
                    ),
                    max_per_h=self._spot_per_h.get((spec.name, group.name)),
                ),
            )
            for group in groups
        ]
        host_key = " ".join(keys.host_public.split()[:2])
        parts = await together(
            *(resource.run(self.calls, folder, host_key, say) for resource in launches)
        )
        machines = {name: made for part in parts for name, made in part.items()}
        await self._remove_surplus(spec, machines, folder, say)
        return Rental(
            spec.name,
            {name: made.machine for name, made in machines.items()},
            {name: made.target for name, made in machines.items()},
            tags.expires_s,
            {name: made.times for name, made in machines.items()},
            tuple(f"{entry.group.name}: {why}." for entry in launches for why in entry.reasons),
            tuple(entry.shortfall for entry in launches if entry.shortfall is not None),
            firewalls,
        )

    async def admit(self, rental: Rental, sources: Mapping[str, Collection[str]]) -> None:
        """Lets machines of the same run in that are elsewhere, and no others. sources: their
        addresses, by region of the rental; a region without a firewall needs nothing."""
        folder = RentalFolder(rental.name, self.root)
        for region, firewall in rental.firewalls.items():
            addresses = sorted(sources.get(region, ()))
            folder.note("admit", firewall.kind, region, ids=[firewall.id])
            await self.calls.repeat(partial(self.provider.admit, firewall, addresses))

    async def _remove_surplus(
        self, spec: RentalSpec, machines: Mapping[str, Launched], folder: RentalFolder, say: Say
    ) -> None:
        """Removes machines of this rental that nobody counts: hedges, replaced, made twice."""
        wanted = {made.machine.id for made in machines.values()}
        for region in {group.region for group in spec.groups}:
            for resource in await self.calls.machines(region, spec.name):
                if resource.state is not ResourceState.GONE and resource.id not in wanted:
                    folder.note("delete", resource.kind, region, ids=[resource.id])
                    say(f"{resource} is not needed and is removed.")
                    await self.calls.repeat(partial(self.provider.delete, resource))

    async def _undo(self, folder: RentalFolder, error: BaseException, say: Say) -> None:
        """Removes what was made before a failure; what stays is told with the failure."""
        say(f"Removing what was made of {folder.name}.")
        try:
            swept = await self._sweep(folder, say)
            swept.require_clean(
                f"nephoscope cloud sweep {self.settings.provider} --run {folder.name}"
            )
        except RunFailed as failed:
            raise RunFailed(f"{error} And: {failed.message}", failed.hint) from error
        folder.remove()

    def existing(self) -> list[Provisioned]:
        """See `Provisioner.existing`: by the folders here and the tags in every region."""
        known = {folder.name: folder for folder in folders(self.root)}
        resources: dict[str, list[CloudResource]] = {}
        for region in self.provider.regions():
            for resource in self.provider.resources(region):
                if resource.state is not ResourceState.GONE:
                    resources.setdefault(resource.tags.run, []).append(resource)
        names = sorted(known.keys() | resources.keys())
        return [provisioned(name, known.get(name), resources.get(name, [])) for name in names]

    def open(self, name: str) -> Rental:
        """See `Provisioner.open`."""
        folder = RentalFolder(name, self.root)
        if (refusal := folder.refusal()) is not None:
            raise UsageError(*refusal)
        known = folder.read()
        if known.get("phase") != UP:
            raise UsageError(
                f"No rental named {name} is up here.", "Run `nephoscope cloud list` to see them."
            )
        listed = {
            resource.id: resource
            for region in known["regions"]
            for resource in self.provider.resources(region, name)
            if isinstance(resource, Machine) and resource.state is ResourceState.READY
        }
        machines = {host: listed[id_] for host, id_ in known["hosts"].items() if id_ in listed}
        if missing := [host for host in known["hosts"] if host not in machines]:
            raise UsageError(
                f"Rental {name} is broken: {', '.join(missing)} no longer runs.",
                f"Remove it with `nephoscope cloud down {name}`, then create it again.",
            )
        hosts = {host: target_of(host, resource, folder) for host, resource in machines.items()}
        return Rental(name, machines, hosts, known["expires_s"])

    async def remove(self, name: str) -> Swept:
        """See `Provisioner.remove`: until a listing confirms it."""
        folder = RentalFolder(name, self.root)
        self._held.pop(name, ExitStack()).close()
        with folder.holding():
            await note_interruptions(self.calls, folder, self._seen.get(name))
            ended_s = time.time()
            swept = await self._sweep(folder, lambda line: None)
            swept.require_clean(f"nephoscope cloud down {name}")
            ended_rentals.append(folder, time.time())
            machine_lives.append(folder, ended_s)
            folder.remove()
        return swept

    async def events(self, rental: Rental) -> tuple[Rental, Sequence[MachineEvent]]:
        """Returns the rental as the cloud lists it now, and what happened to it meanwhile."""
        seen = self._seen.setdefault(rental.name, RentalObservation())
        folder = RentalFolder(rental.name, self.root)
        machines, happened = await observe(self.calls, folder, rental.machines, seen)
        return replace(rental, machines=machines), happened

    async def renew(self, rental: Rental, lease_s: float) -> dict[str, str]:
        """Moves the end of the machines' lease, never beyond what was quoted.

        Returns for each machine a word that is another one after each boot; machines that do not
        say it are missing.
        """
        if not self.provider.traits.user_data:
            return {}
        left_s = min(lease_s, rental.expires_s - time.time())
        command = ["sh", "-c", user_data.renewal(max(int(left_s), 0))]
        boots: dict[str, str] = {}

        async def renewed(name: str, record: TargetRecord) -> None:
            target = record.make()
            try:
                await target.open()
                ended = await target.command(command)
            finally:
                await target.close()
            if ended.returncode != 0:
                words = ended.stderr_tail.strip() or ended.why or f"status {ended.returncode}"
                raise RunFailed(f"{name} did not renew its lease: {words}.")
            if word := ended.stdout.decode("ascii", "replace").strip():
                boots[name] = word

        await together(*(renewed(name, record) for name, record in rental.hosts.items()))
        return boots

    async def keep(self, rental: Rental) -> None:
        """Leaves a rental up when this process ends, until the time for which it was quoted."""
        await self.renew(rental, rental.expires_s - time.time())
        folder = RentalFolder(rental.name, self.root)
        folder.write({**folder.read(), "is_kept": True})
        self._held.pop(rental.name, ExitStack()).close()

    async def _sweep(self, folder: RentalFolder, say: Say) -> Swept:
        known = folder.read()
        # Without a folder here it may be anywhere; with one, where something was asked for.
        creates = [intent for intent in folder.intents() if intent.what == "create"]
        regions: Iterable[str] = {intent.region for intent in creates}
        if not known:
            regions = await self.calls.repeat(self.provider.regions)
        is_here, began_s = folder.path.exists(), time.time()

        def settled_s() -> float:
            traits = self.provider.traits
            at_s = folder.settled_s(traits.settle_s, traits.late_s)
            if at_s is None and not is_here:
                # It was asked for elsewhere, who knows when.
                return began_s + max(traits.settle_s, traits.late_s)
            return at_s or 0.0

        return await sweep(
            self.calls,
            regions,
            run=folder.name,
            wanted=lambda resource: (
                resource.tags.run == folder.name
                and known.get("owner") in (None, resource.tags.owner)
            ),
            settled_s=settled_s,
            say=say,
        )
