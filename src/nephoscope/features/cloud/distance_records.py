"""Distances between places: the records."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.core.model import Estimate


@dataclass(frozen=True, slots=True)
class PlaceDistance:
    """What one pair of machines has. goodput: from `place_a` to `place_b`, and back; an estimate is
    None where no trial of it is valid, and `missing` says why.

    placement: of both machines; '' where none was varied. way: private or public addresses.
    """

    place_a: str
    place_b: str
    machine_a: str
    machine_b: str
    rtt: Estimate | None
    goodput: Estimate | None
    goodput_back: Estimate | None
    placement: str = ""
    way: str = "private"
    missing: str = ""


@dataclass(frozen=True, slots=True)
class PlacementEffect:
    """A kind of placement against machines of the same place without one: ratios of medians.

    goodput: from the first machine of each pair to the second; None where one has no value.
    """

    place: str
    placement: str
    rtt_without: Estimate
    rtt_with: Estimate
    rtt_ratio: Estimate
    goodput_ratio: Estimate | None


@dataclass(frozen=True, slots=True)
class PlaceSpeed:
    """What a machine computed at a place: the headline metric of one benchmark."""

    place: str
    benchmark: str
    metric: str
    is_time: bool
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class PlacePrice:
    """Prices at which a place was rented; None where unknown. per_gib_out: of traffic to other
    regions and clouds. per_gib_zones: to other zones of its region."""

    place: str
    per_hour: float | None
    per_gib_out: float | None
    currency: str
    per_gib_zones: float | None = None


@dataclass(frozen=True, slots=True)
class CloudDistances:
    """Distances between all places of a run. places: in the order of the plan."""

    places: tuple[str, ...]
    pairs: tuple[PlaceDistance, ...]
    effects: tuple[PlacementEffect, ...] = ()
    speeds: tuple[PlaceSpeed, ...] = ()
    prices: tuple[PlacePrice, ...] = ()
