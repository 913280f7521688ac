"""The documents of `nephoscope cloud`."""

from __future__ import annotations

from nephoscope.cli.kit.documents import Rows
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class CloudCheck:
    """What a cloud answers to the credentials. errors: of what it did not answer, one sentence
    each; a missing price is null."""

    provider: str
    account: str
    regions: Rows
    quotas: Rows
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RentedMachines:
    """A rental that was created, or a preview of it. cost: up to its end; null where unknown."""

    name: str
    machines: Rows
    expires: str
    cost: float | None
    currency: str
    elapsed_s: float | None


@dataclass(frozen=True, slots=True)
class RentalList:
    """Rentals, found by their folders here and by tag in every region."""

    rentals: Rows


@dataclass(frozen=True, slots=True)
class SweptResources:
    """What a sweep removed, found and left. remaining: not confirmed as removed, or, in a preview,
    what would be removed."""

    removed: Rows
    remaining: Rows
    spared: Rows
    unlisted: Rows


@dataclass(frozen=True, slots=True)
class CloudBill:
    """What rentals cost by the bill, beside what was quoted; quoted is null where this machine
    knows no quote. left_out: reason -> rows that were not used."""

    rentals: Rows
    left_out: dict[str, int]
