"""Machines of the spot market, rented to see how long they live; they do nothing meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from nephoscope.core.errors import NephoscopeError, UsageError
from nephoscope.core.tasks import together, uncancelled
from nephoscope.measure.cloud.model import Machine, ResourceState
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.spec import RentalSpec
from nephoscope.measure.provisioning import SpendingLimit, create_within

Say = Callable[[str], None]

LISTED_S = 30.0
"""How often the machines are listed: the error of a life is half of it."""
LEASE_S = 900.0
"""How long machines live without a sign of the controller."""
_NOTICE = (
    "t=$(curl -sf -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "
    "http://169.254.169.254/latest/api/token) || exit 0; "
    'curl -sf -m 2 -H "X-aws-ec2-metadata-token: $t" '
    "http://169.254.169.254/latest/meta-data/spot/instance-action || exit 0"
)
"""Prints the notice of an interruption on EC2, two minutes before it; nothing where there is none:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""


def require_spot(rentals: Rentals) -> None:
    """Raises UsageError for a cloud without a spot market."""
    if "spot" not in rentals.provider.traits.markets:
        raise UsageError(
            f"{rentals.settings.provider} has no spot market, so that nothing is interrupted.",
            "Name a provider with one, such as ec2.",
        )


async def watch_lives(
    rentals: Rentals,
    spec: RentalSpec,
    *,
    seconds: float,
    limit: SpendingLimit | None,
    say: Say,
    listed_s: float = LISTED_S,
) -> None:
    """Rents machines, waits until all were interrupted or the time is over, and removes them.

    Their lives are noted when they are removed; see `machine_lives`.
    """
    rental = await create_within(rentals, spec, hours=spec.hours, limit=limit, say=say)
    try:
        await _watch(rentals, rental, time.monotonic() + seconds, min(listed_s, seconds / 4), say)
    finally:
        await uncancelled(rentals.remove(rental.name))


async def _watch(rentals: Rentals, rental: Rental, until: float, listed_s: float, say: Say) -> None:
    noticed: set[str] = set()
    renewed = time.monotonic()
    while time.monotonic() < until and _running(rental.machines.values()):
        await asyncio.sleep(max(0.0, min(listed_s, until - time.monotonic())))
        for name, text in await _notices(rental, noticed):
            noticed.add(name)
            say(f"{name} has the notice of an interruption: {text}.")
        try:
            rental, events = await rentals.events(rental)
        except NephoscopeError as error:
            say(f"The machines were not listed: {error}")
            continue
        for event in events:
            say(str(event))
        if time.monotonic() - renewed > LEASE_S / 4:
            renewed = time.monotonic()
            try:
                await rentals.renew(_with_running(rental), LEASE_S)
            except NephoscopeError as error:
                say(f"The lease of {rental.name} was not renewed: {error}")


def _running(machines: Iterable[Machine]) -> list[Machine]:
    return [machine for machine in machines if machine.state is ResourceState.READY]


def _with_running(rental: Rental) -> Rental:
    hosts = {
        name: host
        for name, host in rental.hosts.items()
        if rental.machines[name].state is ResourceState.READY
    }
    return replace(rental, hosts=hosts)


async def _notices(rental: Rental, noticed: set[str]) -> list[tuple[str, str]]:
    """Returns the machines that have a notice, and its text; a machine that does not answer has
    none."""

    async def read(name: str) -> tuple[str, str]:
        target = rental.hosts[name].make()
        try:
            await target.open(timeout_s=5.0)
            ended = await target.command(["sh", "-c", _NOTICE])
            return name, ended.stdout.decode(errors="replace").strip()[:200]
        except NephoscopeError:
            return name, ""
        finally:
            await target.close()

    names = [
        name
        for name, machine in rental.machines.items()
        if machine.state is ResourceState.READY and name not in noticed and name in rental.hosts
    ]
    return [(name, text) for name, text in await together(*map(read, names)) if text]
