"""A rental as a program: made, measured, removed; a test kills it and sweeps what it left.

Arguments: a cloud's settings and what to rent, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud.leftovers import SweepScope, sweep_leftovers
from nephoscope.measure.cloud.model import MachineRequest, Tags
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.rental_state import own_name
from nephoscope.measure.cloud.restores import RestoreTimes
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec, VolumeSpec
from nephoscope.measure.runs import rented_volumes
from nephoscope.measure.targets.probe.target import Target


@dataclass(frozen=True)
class Renting:
    """What is rented. root: the folder of rentals."""

    provider: str
    endpoint: str
    root: str
    region: str
    type: str
    image: str
    count: int = 2
    profile: str = ""

    def rentals(self) -> Rentals:
        settings = CloudSettings(self.provider, self.endpoint, self.profile)
        return Rentals(open_provider(settings), settings, root=Path(self.root))

    def spec(self, name: str) -> RentalSpec:
        group = MachineGroup("box", self.region, self.type, self.image, count=self.count)
        return RentalSpec(name, (group,), hours=0.5, boot_s=60.0)


async def whole(renting: Renting, name: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Makes, measures and removes; returns a value of each machine and the seconds of each step."""
    rentals, began = renting.rentals(), time.monotonic()
    rental = await rentals.create(renting.spec(name), say=say)
    ready_s, values = time.monotonic() - began, {}
    for host, record in rental.hosts.items():
        target = record.make()
        try:
            fingerprint = await target.open()
            trial = await target.run("null", {"value": 5.0, "samples": 3}, 30)
            values[host] = [s.value for s in trial.samples if s.metric == "null_ns"]
            assert fingerprint["reached"], fingerprint
        finally:
            await target.close()
    measured_s = time.monotonic() - began
    say("measured")
    await rentals.remove(name)
    return {
        "values": values,
        "ready_s": ready_s,
        "measured_s": measured_s,
        "removed_s": time.monotonic() - began,
    }


async def volume_restored(
    renting: Renting, name: str, size_bytes: int, refusal: str = ""
) -> RestoreTimes:
    """Rents a machine with a volume, writes a file there, and copies and restores such a volume.

    refusal: words with which a guest without programs for file systems refuses the first part.
    """
    rentals = renting.rentals()
    volume = VolumeSpec(size_bytes, "/mnt/volume-1", is_copied=True)
    (group,) = renting.spec(name).groups
    groups = (replace(group, count=1, volumes=(volume,)),)
    spec = replace(renting.spec(name), groups=groups, boot_s=300.0)
    rental = await rentals.create(spec, say=lambda line: None)
    try:
        mounting = rented_volumes.mount_all(rentals, spec, rental, lambda line: None)
        if refusal:
            with pytest.raises(RunFailed, match=refusal):
                await mounting
        else:
            await mounting
            await _written(rental.hosts["box"].make())
        return await rented_volumes.restore_one(
            rentals, spec, rental, "box", "/mnt/volume-1", 4 << 20, 300.0
        )
    finally:
        await rentals.remove(name)


async def _written(target: Target) -> None:
    try:
        await target.open()
        words = "echo written > /mnt/volume-1/file && sync && cat /mnt/volume-1/file"
        ended = await target.command(["sh", "-c", words])
        assert ended.stdout == b"written\n", ended
    finally:
        await target.close()


def run(renting: Renting, name: str, after_s: float | None = None) -> float:
    """Runs the program, killed after so long; returns for how long it ran."""
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.clouds.renting", json.dumps(asdict(renting)), name],
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert child.wait(after_s) == 0
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()
    return time.monotonic() - began


def swept(renting: Renting, name: str) -> None:
    """What a user does after a kill; raises when something is left."""
    result = asyncio.run(
        sweep_leftovers(
            renting.rentals(), SweepScope(run=name), say=lambda line: None, patience_s=120
        )
    )
    result.require_clean("again")


def campaign(
    renting: Renting, kills: int, left: Callable[[], list[str]], seed: int = 33
) -> list[int]:
    """Kills a controller at drawn moments of its life and sweeps; returns how many machines each
    had left.

    left: the oracle, what of ours the cloud itself still runs or keeps.
    """
    drawn = random.Random(seed)
    provider = renting.rentals().provider
    whole_s = run(renting, "unharmed")
    assert left() == []
    machines = []
    for number in range(kills):
        name = f"kill{number}"
        run(renting, name, drawn.uniform(0.15, 1.0) * whole_s)
        machines.append(len(provider.resources(renting.region)))
        swept(renting, name)
        assert left() == [], (number, left())
        assert list(provider.resources(renting.region)) == []
    return machines


def request(renting: Renting, name: str, token: str, count: int = 1) -> MachineRequest:
    tags = Tags(name, own_name(), int(time.time()) + 600, token)
    return MachineRequest(
        renting.region, renting.type, renting.image, tags, count=count, at_least=count
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    wanted = Renting(**json.loads(sys.argv[1]))
    _say(json.dumps(asyncio.run(whole(wanted, sys.argv[2], _say))))
