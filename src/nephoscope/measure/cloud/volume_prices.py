"""What the volumes of rented machines cost, and the snapshots that are made of them."""

from __future__ import annotations

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud.provider import Provider
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec, VolumeSpec
from nephoscope.measure.provisioning import Quote

_COPIES = 2
"""Volumes of its kind that exist beside one that is copied: a source, and what is restored."""


def volumes_quote(provider: Provider, spec: RentalSpec, group: MachineGroup) -> Quote | None:
    """Returns the price of a group's volumes and their copies, as if all were there for the whole
    time; None without volumes. Raises UsageError where a price is unknown, unless the user
    accepted that."""
    total: Quote | None = None
    for volume in group.volumes:
        quote = _quote(provider, spec, group, volume)
        if quote is not None:
            total = quote if total is None else total.plus(quote)
    return total


def _quote(
    provider: Provider, spec: RentalSpec, group: MachineGroup, volume: VolumeSpec
) -> Quote | None:
    currency = group.currency
    volume_gib_h = snapshot_gib_h = volume.per_gib_h
    if volume_gib_h is None and (prices := provider.storage_prices(group.region, volume.type)):
        volume_gib_h, snapshot_gib_h = prices.volume_gib_h, prices.snapshot_gib_h
        currency = prices.currency
    if volume_gib_h is None or (volume.is_copied and snapshot_gib_h is None):
        if spec.accept_unknown_price:
            return None
        what = "volumes" if volume_gib_h is None else "snapshots of volumes"
        raise UsageError(
            f"The price of {what} ({volume.type or 'default type'}) in {group.region} is unknown.",
            "Give the volume `per_gib_hour` in a plan, or --volume-price.",
        )
    gib = volume.size_bytes / 2**30
    per_h = gib * volume_gib_h
    if volume.is_copied:
        per_h = (1 + _COPIES) * per_h + gib * (snapshot_gib_h or 0.0)
    machines = group.count + group.hedge
    return Quote(per_h * machines, currency, machines=0)
