"""The volumes of rented machines in a run: made, attached and mounted; copied and restored."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.tasks import together
from nephoscope.measure.cloud import guest_volumes
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.restores import RestoreTimes, restore
from nephoscope.measure.cloud.spec import RentalSpec, VolumeSpec
from nephoscope.measure.cloud.volumes import Volumes
from nephoscope.measure.provisioning import Say
from nephoscope.measure.runs.volume_specs import the_volume


async def mount_all(rentals: Rentals, spec: RentalSpec, rental: Rental, say: Say) -> None:
    """Makes the volumes of all machines of a rental, attaches and mounts them.

    Raises RunFailed, CloudError; what was made is removed with the rental.
    """
    parts = []
    for group in spec.groups:
        if group.volumes:
            parts += [
                _mount(rentals, rental, host, group.volumes, say)
                for host in group.hosts()
                if host in rental.machines
            ]
    await together(*parts)


async def _mount(
    rentals: Rentals, rental: Rental, host: str, specs: Sequence[VolumeSpec], say: Say
) -> None:
    volumes = _volumes(rentals, rental, host)
    target = rental.hosts[host].make()
    try:
        await target.open()
        for spec in specs:
            made = await volumes.create(spec.size_bytes, spec.type)
            device, _ = await volumes.attach(made, spec.size_bytes, target)
            await guest_volumes.mount(target, device, spec.size_bytes, spec.directory)
            say(f"{host}: {made} ({spec}) is {device.path}, mounted at {spec.directory}.")
    finally:
        await target.close()


async def restore_one(
    rentals: Rentals,
    spec: RentalSpec,
    rental: Rental,
    host: str,
    directory: str,
    data_bytes: int,
    limit_s: float,
) -> RestoreTimes:
    """Copies and restores a volume like the one in a directory; see `restores.restore`."""
    (specs,) = (group.volumes for group in spec.groups if host in group.hosts())
    volume = the_volume(specs, directory, host)
    target = rental.hosts[host].make()
    try:
        await target.open()
        volumes = _volumes(rentals, rental, host)
        return await restore(volumes, target, volume, data_bytes, limit_s)
    finally:
        await target.close()


def _volumes(rentals: Rentals, rental: Rental, host: str) -> Volumes:
    folder = RentalFolder(rental.name, rentals.root)
    return Volumes(rentals.calls, folder, rental.machines[host])
