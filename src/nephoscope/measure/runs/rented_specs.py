"""What a run of a plan rents, from the plan alone."""

from __future__ import annotations

import random
import re
from collections import defaultdict

from nephoscope.catalog import HOST_BOOT
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.spec import BOOT_S, MachineGroup, RentalSpec, starts_s
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.cells import LAUNCH
from nephoscope.measure.runs.schedule.progress import budget_s
from nephoscope.measure.runs.volume_specs import volume_specs
from nephoscope.measure.targets.kinds.rented import RentedRecord

LEASE_S = 3600.0
"""How long machines live without a sign of the controller; renewed between trials."""

WITHOUT_BUDGET_H = 24.0
"""After which machines that cost nothing end, where the plan has no budget."""


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
    is_renewed = renewals_of(plan) > 0
    for target in plan.targets:
        if isinstance(target, RentedRecord):
            cloud = CloudSettings(target.provider[0], target.endpoint, target.profile)
            own = target.name if is_renewed else ""
            groups[cloud, target.login_from, own].append(_group(plan, target, at_least))
    seconds = budget_s(plan)
    hours = WITHOUT_BUDGET_H if seconds is None else (seconds + starts_s(boot_s)) / 3600
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


def _group(plan: Plan, target: RentedRecord, at_least: int | None) -> MachineGroup:
    return MachineGroup(
        target.name,
        target.region[0],
        target.type[0],
        target.image[0],
        zone="" if target.zone[0] == "any" else target.zone[0],
        market=target.market[0],
        at_least=at_least,
        network=target.network,
        placement=None if target.placement[0] == "none" else target.placement[0],
        per_h=target.per_hour,
        currency="USD" if plan.money is None else plan.money.currency,
        volumes=volume_specs(plan, target),
    )


def renewals_of(plan: Plan) -> int:
    """Returns how often each machine is made anew at most."""
    nest = plan.design.nest
    rounds = [
        plan.repeat_of(number).max + plan.warmup
        for number, entry in enumerate(plan.benchmarks)
        if entry.benchmark == HOST_BOOT and entry.params.get("level") != LAUNCH
    ]
    return sum(rounds) + (nest.boots if nest is not None and nest.boots > 1 else 0)


def rental_name(run: str, number: int) -> str:
    """Returns the name of a run's rental, a word for tags."""
    return f"{re.sub(r'[^a-z0-9]+', '-', run.lower())[-56:].strip('-')}-{number + 1}"
