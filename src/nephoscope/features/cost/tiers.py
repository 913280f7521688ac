"""Prices by volume: tiers that are half-open, adjoin each other and begin at zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from nephoscope.core.reading.fields import Record
from nephoscope.features.cost.quantities import NotNegative, Positive

GB_BYTES = {"GB": 1e9, "GiB": float(1 << 30)}
Gigabyte = Literal["GB", "GiB"]


class Tier(Record):
    """A price per gigabyte from one volume up to, and without, another one."""

    from_gb: NotNegative = Field(default=0.0, description="Volume at which the tier begins.")
    to_gb: Positive | None = Field(
        default=None, description="Volume at which the next tier begins; the last one has none."
    )
    price_per_gb: NotNegative = Field(description="Price of a gigabyte in this tier.")


def _adjoining(tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
    ends = [*(tier.from_gb for tier in tiers[1:]), None]
    if tiers[0].from_gb != 0:
        raise ValueError(
            f"the first tier begins at {tiers[0].from_gb:g}, not at 0. "
            "Add a tier for the volume below it."
        )
    for number, (tier, end) in enumerate(zip(tiers, ends, strict=True), 1):
        if tier.to_gb is not None and tier.to_gb <= tier.from_gb:
            raise ValueError(f"tier {number} ends before it begins. Order the tiers by volume.")
        if tier.to_gb == end:
            continue
        if end is None:
            raise ValueError("the last tier has an end. Leave out its `to_gb`.")
        if tier.to_gb is None or tier.to_gb > end:
            raise ValueError(
                f"tiers {number} and {number + 1} overlap from {end:g} on. "
                f"End tier {number} with `to_gb: {end:g}`."
            )
        raise ValueError(
            f"there is no price between {tier.to_gb:g} and {end:g}. "
            f"Begin tier {number + 1} with `from_gb: {tier.to_gb:g}`."
        )
    return tiers


Tiers = Annotated[tuple[Tier, ...], Field(min_length=1, max_length=100), AfterValidator(_adjoining)]


def price_of(volume_gb: float, tiers: Sequence[Tier]) -> float:
    """Returns the price of a volume, each part of it at the price of its tier."""
    total = 0.0
    for tier in tiers:
        end = volume_gb if tier.to_gb is None else min(volume_gb, tier.to_gb)
        total += max(0.0, end - tier.from_gb) * tier.price_per_gb
    return total
