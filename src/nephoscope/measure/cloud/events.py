"""What happened to machines after they were created: two listings compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.model import Machine, ResourceState

_OWN_END = "Client."
"""How EC2's reasons begin where the machine powered itself off, or its owner removed it:
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html"""


class EventKind(StrEnum):
    """What can happen to a machine that nobody here asked for."""

    INTERRUPTED = "interrupted by the cloud"
    ENDED = "ended"
    STOPPED = "stopped"
    STARTED = "started again"
    REBOOTED = "up again after a reboot"
    MOVED = "moved to another host"
    RESIZED = "of another type"
    READDRESSED = "at another address"
    REPRICED = "at another price"


@dataclass(frozen=True, slots=True)
class MachineEvent:
    """An event between two listings. detail: the cloud's words, or both values."""

    machine: str
    kind: EventKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.machine} is {self.kind}{f' ({self.detail})' if self.detail else ''}."


def events_between(
    before: Mapping[str, Machine], after: Mapping[str, Machine]
) -> Iterator[MachineEvent]:
    """Yields what happened between two listings of the same machines, by their names here.

    A machine that is no longer listed has ended; on the spot market it was interrupted, unless the
    cloud says that its own system or its owner ended it.
    """
    for name, old in before.items():
        new = after.get(name)
        if new is None or new.state in (
            ResourceState.GONE,
            ResourceState.LEAVING,
            ResourceState.FAILED,
        ):
            if old.state not in (ResourceState.GONE, ResourceState.LEAVING, ResourceState.FAILED):
                problem = "" if new is None else new.problem
                is_interrupted = old.market == "spot" and not problem.startswith(_OWN_END)
                kind = EventKind.INTERRUPTED if is_interrupted else EventKind.ENDED
                yield MachineEvent(name, kind, problem)
            continue
        if old.state is ResourceState.READY and new.state in (
            ResourceState.STOPPING,
            ResourceState.STOPPED,
        ):
            yield MachineEvent(name, EventKind.STOPPED, new.problem)
        if (
            old.state in (ResourceState.STOPPING, ResourceState.STOPPED)
            and new.state is ResourceState.READY
        ):
            yield MachineEvent(name, EventKind.STARTED)
        for kind, was, now in (
            (EventKind.MOVED, old.host, new.host),
            (EventKind.RESIZED, old.type, new.type),
            (EventKind.READDRESSED, old.address, new.address),
        ):
            if was and now and was != now:
                yield MachineEvent(name, kind, f"{was}, now {now}")


def reboots_between(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[MachineEvent]:
    """Yields the reboots between two renewals, from the words that machines say of their boots.

    No list of a cloud shows a reboot. A machine that did not answer once says nothing of it.
    """
    for name, word in after.items():
        if before.get(name, word) != word:
            yield MachineEvent(name, EventKind.REBOOTED)
