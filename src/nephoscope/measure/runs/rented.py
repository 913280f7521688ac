"""The rented machines of a plan: rented before the first trial, removed after the last one."""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.core.errors import NephoscopeError, UsageError
from nephoscope.core.naming import plural
from nephoscope.core.tasks import together
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.spec import BOOT_S, MachineGroup, RentalSpec
from nephoscope.measure.plans import Plan
from nephoscope.measure.provisioning import SpendingLimit, create_within
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.schedule.progress import budget_s
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.measure.targets.kinds.rented import RentedRecord
from nephoscope.store import StoredRun

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
    """The rented machines of a plan, one rental for each cloud."""

    def __init__(self, plan: Plan, run: StoredRun, say: Callable[[str], None]) -> None:
        self._run, self._say = run, say
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
        await together(
            *(self._rent(rentals, spec) for rentals, (_, spec) in zip(opened, specs, strict=True))
        )

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
                network=one.network,
            )
            groups[cloud, one.login_from].append(group)
        drawn = random.Random(self._run.manifest.seed or 0)
        specs = []
        for number, ((cloud, login_from), several) in enumerate(groups.items()):
            drawn.shuffle(several)
            hours = WITHOUT_BUDGET_H
            if self._budget_s is not None:
                hours = (self._budget_s + BOOT_S) / 3600
            name = rental_name(self._run.id, number)
            spec = RentalSpec(
                name, tuple(several), hours=hours, lease_s=LEASE_S, login_from=login_from
            )
            specs.append((cloud, spec))
        return specs

    async def _rent(self, rentals: Rentals, spec: RentalSpec) -> None:
        hosts = plural(len(spec.groups), "machine")
        self._say(f"{hosts} of {rentals.settings.provider} rented as {spec.name}.")
        hours = spec.hours if self._budget_s is not None else None
        rental = await create_within(rentals, spec, hours=hours, limit=self._limit, say=self._say)
        self._rented.append(_Rented(rentals, rental, time.monotonic()))
        for name, seconds in rental.boot_s.items():
            self._say(f"{name}: first login {seconds:.1f} s after the call.")

    def placed(self, target: TargetRecord) -> TargetRecord:
        """See `Environment.placed`: a rented machine as it is reached."""
        for rented in self._rented:
            if (host := rented.rental.hosts.get(target.name)) is not None:
                return host.model_copy(update={"roles": target.roles, "per_hour": target.per_hour})
        return target

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
        await together(*(one.rentals.remove(one.rental.name) for one in rented))


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
