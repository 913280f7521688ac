"""What becomes of rented machines: listed again, their spot prices read again, both noted.

The notes are in the log of the rental, so that its end can say how long each machine lived.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from nephoscope.core.records import dataclass
from nephoscope.core.tasks import together
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.events import EventKind, MachineEvent, events_between
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import (
    Kind,
    Machine,
    MachineRequest,
    ResourceState,
    Tags,
)
from nephoscope.measure.cloud.provider import CloudError

PRICES_S = 300.0
"""How often spot prices are read; they change every few hours."""
_PATIENCE_S = 10.0

ENDS = (EventKind.INTERRUPTED, EventKind.ENDED)


@dataclass(slots=True)
class RentalObservation:
    """What was seen of one rental last. listed_s, prices_s: seconds since the epoch. per_h: of a
    machine of the spot market, by its name."""

    listed_s: float = field(default_factory=time.time)
    prices_s: float = 0.0
    per_h: dict[str, float] = field(default_factory=dict)


async def observe(
    calls: CloudCalls,
    folder: RentalFolder,
    machines: Mapping[str, Machine],
    seen: RentalObservation,
    patience_s: float | None = None,
) -> tuple[dict[str, Machine], list[MachineEvent]]:
    """Returns the machines as the cloud lists them now, and what happened since `seen`, which it
    updates. patience_s: for how long a failing list is read again; None for that of `calls`."""
    names = {machine.id: name for name, machine in machines.items()}
    listed: dict[str, Machine] = {}
    for region in sorted({machine.region for machine in machines.values()}):
        for resource in await calls.machines(region, folder.name, patience_s):
            if resource.id in names:
                listed[names[resource.id]] = resource
    happened = list(events_between(machines, listed))
    for event in happened:
        if event.kind in ENDS:
            note_end(folder, machines[event.machine], event, seen.listed_s)
    now = {
        name: listed.get(name, replace(machine, state=ResourceState.GONE))
        for name, machine in machines.items()
    }
    seen.listed_s = time.time()
    if seen.listed_s - seen.prices_s >= PRICES_S:
        seen.prices_s = seen.listed_s
        happened += await _price_changes(calls, folder, now, seen)
    return now, happened


def note_end(folder: RentalFolder, machine: Machine, event: MachineEvent, seen_s: float) -> None:
    """Notes in the log of a rental that a machine has ended since it was last seen."""
    if folder.path.exists():
        folder.note(
            "interrupted" if event.kind is EventKind.INTERRUPTED else "ended",
            machine.kind,
            machine.region,
            ids=[machine.id],
            reason=event.detail,
            seen_s=seen_s,
        )


async def _price_changes(
    calls: CloudCalls,
    folder: RentalFolder,
    machines: Mapping[str, Machine],
    seen: RentalObservation,
) -> list[MachineEvent]:
    """Returns the machines whose price on the spot market is another one than before; a price that
    is unknown, or that nobody answers, is no event."""
    running = {
        name: machine
        for name, machine in machines.items()
        if machine.market == "spot" and machine.state is ResourceState.READY
    }
    places = sorted({_place(machine) for machine in running.values()})
    by_id = {_place(machine): machine for machine in running.values()}
    prices = dict(
        zip(places, await together(*(_price(calls, by_id[each]) for each in places)), strict=True)
    )
    changes = []
    for name, machine in running.items():
        price = prices[_place(machine)]
        if price is None:
            continue
        per_h, currency = price
        before = seen.per_h.get(name)
        seen.per_h[name] = per_h
        if before is not None and per_h != before:
            detail = f"{before:.4g}, now {per_h:.4g} {currency} an hour"
            changes.append(MachineEvent(name, EventKind.REPRICED, detail))
            if folder.path.exists():
                folder.note(
                    "repriced", Kind.MACHINE, machine.region, ids=[machine.id],
                    change_per_h=per_h - before,
                )  # fmt: skip
    return changes


def _place(machine: Machine) -> tuple[str, str, str, str]:
    return machine.region, machine.zone, machine.type, machine.image


async def _price(calls: CloudCalls, machine: Machine) -> tuple[float, str] | None:
    request = MachineRequest(
        machine.region, machine.type, machine.image, machine.tags, machine.zone, market="spot"
    )
    try:
        prices = await calls.repeat(lambda: calls.provider.prices(request), _PATIENCE_S)
    except CloudError:
        return None
    return None if prices is None or prices.per_h is None else (prices.per_h, prices.currency)


def beginning(machine: Machine) -> dict[str, Any]:
    """Returns what the end of a machine has to know of its beginning."""
    now = time.time()
    return {
        "id": machine.id,
        "region": machine.region,
        "zone": machine.zone,
        "type": machine.type,
        "market": machine.market,
        "began_s": min(machine.created_s or now, now),
    }


async def note_interruptions(
    calls: CloudCalls, folder: RentalFolder, seen: RentalObservation | None
) -> None:
    """Notes which machines of the spot market the cloud took back before their removal.

    seen: what this process saw last; None where another process made the rental. What a list does
    not answer now stays unknown: the removal does not wait for it.
    """
    known = folder.read()
    noted = {id_ for intent in folder.intents() if intent.seen_s for id_ in intent.ids}
    spot = {
        name: Machine(
            Kind.MACHINE, each["id"], each["region"],
            Tags(folder.name, known["owner"], int(known["expires_s"])), market="spot",
        )
        for name, each in (known.get("machines") or {}).items()
        if each["market"] == "spot" and each["id"] not in noted
    }  # fmt: skip
    if not spot:
        return
    began_s = min(each["began_s"] for each in known["machines"].values())
    last = seen or RentalObservation(listed_s=began_s)
    last.prices_s = time.time()
    with contextlib.suppress(CloudError):
        await observe(calls, folder, spot, last, _PATIENCE_S)
