"""Processes that rent from the real cloud and may be killed at any moment.

`python -m tests.clouds.openstack.tenants PROVIDER ENDPOINT FOLDER` reads a name and a zone a line,
and for each starts a process that rents, waits, and removes; it prints the process's id. They are
forks of one process that has read the libraries.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

from .configuration import FAKE, REGION

COUNTS = {FAKE: 3}
"""Machines that a tenant rents in a zone; one elsewhere."""


def rentals(settings: CloudSettings, folder: Path) -> Rentals:
    """Rentals of one folder; the cloud's daemons are away for longer than its users like."""
    return Rentals(open_provider(settings), settings, root=folder, patience_s=180.0)


def spec(name: str, zone: str, **more: object) -> RentalSpec:
    """Machines in one zone that nobody logs in to."""
    group = MachineGroup("m", REGION, "m1.tiny", "guest", zone=zone, count=COUNTS.get(zone, 1))
    values = {"contact": False, **more}
    return RentalSpec(name, (group,), hours=1.0, owner="tests", accept_unknown_price=True, **values)  # type: ignore[arg-type]


async def rent(rentals: Rentals, name: str, zone: str) -> None:
    """One whole rental. A machine whose daemon was killed while it was made stays as it is for
    ever, and is replaced."""
    await rentals.create(spec(name, zone, boot_s=90.0), say=lambda line: None)
    await asyncio.sleep(1.0)
    await rentals.remove(name)


def main() -> None:
    provider, endpoint, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    settings = CloudSettings(provider, endpoint, "renter")
    open_provider(settings)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid:
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        os.close(0)
        status = 0
        name, zone = line.split()
        try:
            asyncio.run(rent(rentals(settings, folder), name, zone))
        except Exception as error:
            status = 1
            with (folder.parent / "failures").open("a") as file:
                file.write(f"{name} {time.time():.1f} {type(error).__name__}: {error}\n")
        os._exit(status)


if __name__ == "__main__":
    main()
