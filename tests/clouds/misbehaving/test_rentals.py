"""Whole rentals on machines of the double: rented, reached over ssh, measured, removed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests import tools

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.providers.ec2 import Ec2
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

from .double import ROOT, SECRET, Double
from .helpers import IMAGE_NAME

pytestmark = [tools.needs("sshd", "ssh-keygen"), pytest.mark.usefixtures("root_only", "probe")]


@pytest.fixture
def machines(cloud: Double, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    # Its answers are never old here, so that nothing has to be waited for.
    monkeypatch.setattr(Ec2, "traits", replace(Ec2.traits, settle_s=0.1))
    cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3)
    yield cloud
    cloud.reset()


def rentals(cloud: Double, folder: Path) -> Rentals:
    settings = CloudSettings("ec2", cloud.endpoint)
    return Rentals(open_provider(settings), settings, root=folder)


def spec(name: str, **more: object) -> RentalSpec:
    group = MachineGroup("m", "us-east-1", "t3.micro", IMAGE_NAME, count=2)
    return RentalSpec(name, (group,), hours=1.0, owner="tests", **more)  # type: ignore[arg-type]


def test_machines_are_rented_reached_and_removed(machines: Double, tmp_path: Path) -> None:
    ours = rentals(machines, tmp_path)
    said: list[str] = []

    async def whole() -> None:
        made = await ours.create(spec("r1"), say=said.append)
        assert sorted(made.hosts) == ["m-1", "m-2"]
        target = made.hosts["m-1"].make()
        try:
            await target.open()
            done = await target.command(["hostname"])
            assert made.machines["m-1"].id in str(done)
        finally:
            await target.close()
        await ours.renew(made, 600)
        assert ours.existing()[0].state == "up"
        await ours.remove("r1")

    asyncio.run(whole())
    assert machines.live() == []
    assert {each["kind"] for each in machines.oracle()} == {
        "instance", "volume", "key-pair", "security-group",
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    assert SECRET not in "".join(said)


@pytest.mark.slow
def test_a_machine_that_never_answers_is_replaced(machines: Double, tmp_path: Path) -> None:
    machines.fault("silent", next=1)
    ours = rentals(machines, tmp_path)
    said: list[str] = []
    wanted = spec("r2", boot_s=4.0, login_from="127.0.0.1/32")

    async def whole() -> None:
        made = await ours.create(wanted, say=said.append)
        assert len(made.hosts) == 2
        states = [each["state"] for each in machines.live("instance")]
        assert states.count("running") == 2
        await ours.remove("r2")

    asyncio.run(whole())
    assert "never answered" in "".join(said)
    # The most likely cause, where the user named the network.
    assert "(logins are let in from 127.0.0.1/32)" in "".join(said)
    assert machines.live() == []


@pytest.mark.slow
def test_machines_of_a_controller_that_was_killed_end_by_their_lease(
    machines: Double, tmp_path: Path
) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path;"
        "from tests.clouds.misbehaving.double import Double;"
        "from tests.clouds.misbehaving.test_rentals import rentals, spec;"
        "ours = rentals(Double(sys.argv[1], ''), Path(sys.argv[2]));"
        "asyncio.run(ours.create(spec('r3', lease_s=1.0), say=lambda line: None));"
        "print('up', flush=True); import time; time.sleep(600)"
    )
    environment = {**os.environ, **machines.environment()}
    with subprocess.Popen(
        [sys.executable, "-c", program, machines.endpoint, str(tmp_path)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        until = time.monotonic() + 60
        while time.monotonic() < until and len(machines.live("instance")) < 2:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    while machines.live("instance"):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert machines.live("volume") == []
    # The rest costs nothing, and goes with the next removal.
    assert {each["kind"] for each in machines.live()} == {"key-pair", "security-group"}
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_text(errors="replace")
    asyncio.run(rentals(machines, tmp_path).remove("r3"))
    assert machines.live() == []


def test_too_few_machines_leave_nothing(machines: Double, tmp_path: Path) -> None:
    machines.capacity("us-east-1a", "*", 1)
    machines.capacity("us-east-1b", "*", 1)
    machines.capacity("us-east-1c", "*", 1)
    with pytest.raises(RunFailed, match="do not have sufficient"):
        asyncio.run(rentals(machines, tmp_path).create(spec("r4"), say=lambda line: None))
    assert machines.live() == []
    assert list(tmp_path.iterdir()) == []
