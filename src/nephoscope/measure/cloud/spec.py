"""What is to be rented: groups of machines of one cloud."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.core import units
from nephoscope.measure.cloud.model import Market, Placement

BOOT_S = 600.0
"""Longest time from the call that makes a machine to its first login."""
REPLACE = 1
"""How often a machine that fails or never answers is replaced."""


def starts_s(boot_s: float) -> float:
    """Returns the longest time to the first login in seconds, of a replacement too."""
    return (1 + REPLACE) * boot_s


@dataclass(frozen=True, slots=True)
class VolumeSpec:
    """A volume that each machine of a group gets.

    type: '' for the cloud's default. directory: where its file system is mounted. per_gib_h: price
    of a GiB for an hour, also of a snapshot, where the user knows better than the cloud's list.
    is_copied: beside it two more of its kind and a snapshot exist for a time; see `restores`.
    """

    size_bytes: int
    directory: str
    type: str = ""
    per_gib_h: float | None = None
    is_copied: bool = False

    def __str__(self) -> str:
        return f"{self.type or 'default type'}, {units.written(self.size_bytes, 'bytes')}"


@dataclass(frozen=True, slots=True)
class MachineGroup:
    """Machines of one kind in a rental.

    name: of its machines, which are called name-1, name-2, …; of a single one without the number.
    at_least: fewer are worth nothing; None for all, 0 where none at all is accepted too, as
    when the quota is reached. placement: the rental makes such a group in each zone, for all
    machines there that ask for it; placement_group: one that exists. hedge: how many more are
    launched, of which the first `count` that are ready are kept. per_h: price of one in `currency`,
    where the user knows better than the cloud's list; None for the list's. volumes: they are in the
    price of the group, and made by whoever uses them; see `Volumes`.
    """

    name: str
    region: str
    type: str
    image: str
    zone: str = ""
    market: Market = "on demand"
    count: int = 1
    at_least: int | None = None
    hedge: int = 0
    disk_bytes: int | None = None
    network: str = ""
    placement_group: str = ""
    placement: Placement | None = None
    per_h: float | None = None
    currency: str = "USD"
    volumes: tuple[VolumeSpec, ...] = ()

    def hosts(self) -> list[str]:
        """Returns the names of its machines."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number + 1}" for number in range(self.count)]


@dataclass(frozen=True, slots=True)
class RentalSpec:
    """What is to be rented.

    hours: after which the machines end by themselves, whatever becomes of the controller; the price
    is quoted for them. lease_s: how long they live without a renewal; at most `hours`. login_from:
    the network (CIDR) from which logins are let in; '' for the controller's own address. boot_s:
    longest time from the call to the first login. replace: how often a machine that fails or never
    answers is replaced. contact: whether each machine is logged in to.
    """

    name: str
    groups: tuple[MachineGroup, ...]
    hours: float
    lease_s: float = 900.0
    owner: str = ""
    login_from: str = ""
    boot_s: float = BOOT_S
    replace: int = REPLACE
    contact: bool = True
    accept_unknown_price: bool = False
    is_checked: bool = False
    """It was held against the cloud, and its images are ids; see `check`."""
    is_kept: bool = False
    """It stays when the process that made it ends, until its lease does."""
