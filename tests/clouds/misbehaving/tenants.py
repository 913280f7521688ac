"""Processes that rent from the double and may be killed at any moment.

`python -m tests.clouds.misbehaving.tenants ENDPOINT FOLDER SCALE` reads a name a line, and for each
starts a process that rents, waits, and removes; it prints the process's id. They are forks of one
process that has read the libraries, so that hundreds can be killed in minutes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers.ec2 import Ec2
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.cloud.volumes import Volumes

from .helpers import IMAGE_NAME

REGIONS = ("us-east-1", "eu-west-1")
LAG_S = 30.0
"""Largest age of the double's answers, in its own seconds."""

HOURS = 2.0


def provider(endpoint: str, scale: float) -> Ec2:
    """The provider, which knows how fast the double's time goes."""
    Ec2.traits = replace(Ec2.traits, settle_s=LAG_S / scale + 0.1)
    made = Ec2(CloudSettings("ec2", endpoint))
    for region in REGIONS:
        for service in ("ec2", "elbv2"):
            made.client(service, region)
    return made


def rentals(made: Ec2, endpoint: str, folder: Path) -> Rentals:
    """Rentals of one folder."""
    return Rentals(made, CloudSettings("ec2", endpoint), root=folder)


def spec(name: str) -> RentalSpec:
    """Three machines in two regions, some of them on the spot market, one in a placement group."""
    east, west = (MachineGroup(host, region, "t3.micro", IMAGE_NAME) for host, region in
                  zip(("a", "b"), REGIONS, strict=True))  # fmt: skip
    groups = (replace(east, count=2, at_least=1), replace(west, market="spot", placement="spread"))
    return RentalSpec(
        name, groups, HOURS, owner="tests", login_from="203.0.113.7/32", contact=False,
        accept_unknown_price=True,
    )  # fmt: skip


async def rent(rentals: Rentals, name: str) -> None:
    """One whole rental."""
    await rentals.create(spec(name), say=lambda line: None)
    await asyncio.sleep(0.3)
    await rentals.remove(name)


async def copy_volumes(rentals: Rentals, name: str) -> None:
    """A machine, a volume of it that is attached and copied, and a volume of the copy."""
    (group, _) = spec(name).groups
    one = replace(spec(name), groups=(replace(group, count=1),))
    rental = await rentals.create(one, say=lambda line: None)
    (machine,) = rental.machines.values()
    volumes = Volumes(rentals.calls, RentalFolder(name, rentals.root), machine)
    provider = rentals.provider
    source = await volumes.create(1 << 30, "gp3")
    await rentals.calls.repeat(lambda: provider.attach(machine, source))
    await rentals.calls.repeat(lambda: provider.detach(source))
    snapshot = await volumes.snapshot(source, 60.0)
    restored = await volumes.create(1 << 30, "gp3", snapshot.id)
    for resource in (restored, snapshot, source):
        await volumes.delete(resource)
    await rentals.remove(name)


def main() -> None:
    endpoint, folder, scale = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    made = provider(endpoint, scale)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid:
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        os.close(0)
        status = 0
        try:
            # Those whose names begin so have volumes too.
            work = copy_volumes if line.startswith("volumes") else rent
            asyncio.run(work(rentals(made, endpoint, folder), line.strip()))
        except Exception as error:
            status = 1
            with (folder / "failures").open("a") as file:
                file.write(f"{line.strip()} {time.time():.1f} {type(error).__name__}: {error}\n")
        os._exit(status)


if __name__ == "__main__":
    main()
