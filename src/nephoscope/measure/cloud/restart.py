"""A rented machine is stopped and started, which may put it on another physical host."""

from __future__ import annotations

import time
from dataclasses import replace

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.reading import regular
from nephoscope.measure.cloud.calls import BackOff
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.launch import Following
from nephoscope.measure.cloud.model import Action, Machine, MachineRequest, ResourceState
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.spec import BOOT_S, RentalSpec
from nephoscope.measure.provisioning import Say


def require_restarts(rentals: Rentals) -> None:
    """Raises UsageError for a cloud that cannot stop and start a machine."""
    if not {Action.STOP, Action.START} <= rentals.provider.traits.actions:
        raise UsageError(
            f"{rentals.settings.provider} cannot stop and start a machine.",
            "Launch new machines instead: leave out `--by stop-start`.",
        )


async def restart(
    rentals: Rentals, rental: Rental, lease_s: float, *, say: Say, contact: bool = True
) -> Rental:
    """Stops the only machine of a rental, starts it and logs in again; returns the rental anew.

    lease_s: of the machine from then on. Raises RunFailed where it does not come back.
    """
    ((name, machine),) = rental.machines.items()
    calls, provider = rentals.calls, rentals.provider
    folder = RentalFolder(rental.name, rentals.root)
    say(f"{machine} is stopped and started.")
    await calls.repeat(lambda: provider.act(machine, Action.STOP))
    await _until(rentals, rental, machine, ResourceState.STOPPED)
    began = time.monotonic()
    await calls.repeat(lambda: provider.act(machine, Action.START))
    answer_s = time.monotonic() - began
    machine = await _until(rentals, rental, machine, ResourceState.READY)
    spec = RentalSpec(rental.name, (), hours=1.0, contact=contact)
    request = MachineRequest(machine.region, machine.type, machine.image, machine.tags)
    host_key = ""
    if folder.known_hosts.exists():
        host_key = " ".join(regular.read_text(folder.known_hosts).split()[1:3])
    following = Following(calls, folder, host_key, spec, request, began, answer_s)
    made = await following.follow([machine], 1)
    if not made:
        raise RunFailed(
            f"{machine} did not come back: {'; '.join(following.reasons) or 'no answer'}.",
            f"Remove it with `nephoscope cloud down {rental.name}`.",
        )
    (launched,) = made
    host = launched.target.model_copy(update={"name": name})
    again = replace(
        rental,
        machines={name: launched.machine},
        hosts={name: host},
        times={name: launched.times},
    )
    if contact:
        await rentals.renew(again, lease_s)
    return again


async def _until(
    rentals: Rentals, rental: Rental, machine: Machine, state: ResourceState
) -> Machine:
    """Returns the machine as soon as the cloud lists it in a state. Raises RunFailed after ten
    minutes, or when it is gone."""
    until, back_off = time.monotonic() + BOOT_S, BackOff()
    while True:
        machines = await rentals.calls.machines(machine.region, rental.name)
        listed = [entry for entry in machines if entry.id == machine.id]
        if listed and listed[0].state is state:
            return listed[0]
        if time.monotonic() >= until or (listed and listed[0].state is ResourceState.FAILED):
            now = listed[0].state if listed else "not listed"
            raise RunFailed(f"{machine} is {now}, not {state}, after a stop and start.")
        await back_off.wait(until)
