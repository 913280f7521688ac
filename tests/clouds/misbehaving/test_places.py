"""Machines in several regions and clouds: enforced firewalls, planted distances."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import tools

from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers.ec2 import Ec2
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

from . import double as doubles
from .double import ROOT, Double
from .helpers import IMAGE_NAME

pytestmark = [
    tools.needs("sshd", "ssh-keygen", "nft"),
    pytest.mark.usefixtures("root_only", "probe"),
    pytest.mark.slow,
]

PORT = 2000
FAST = {"machines": True, "boot_s": 0.3, "shutdown_s": 0.3, "lag_s": 0.0}

FAR, ABROAD = 0.02, 0.03
"""Planted round trips: between regions, and from the first cloud to the second."""
RATE = 50e6
PAYLOAD = 1448 / 1514
"""Bytes of a stream per byte that the delay line counts: headers of TCP, IP and Ethernet."""


@pytest.fixture
def machines(cloud: Double) -> Iterator[Double]:
    cloud.settings(**FAST)
    yield cloud
    cloud.reset()


async def said(rentals: Any, host: str, script: str) -> str:
    target = rentals.hosts[host].make()
    try:
        await target.open()
        ended = await target.command(["sh", "-c", script])
        return str(ended.stdout.decode().strip())
    finally:
        await target.close()


def test_a_peer_elsewhere_is_refused_before_it_is_let_in(
    machines: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in machines.environment().items():
        monkeypatch.setenv(name, value)
    provider = Ec2(CloudSettings("ec2", machines.endpoint))
    rentals = Rentals(provider, CloudSettings("ec2", machines.endpoint), root=tmp_path)
    groups = tuple(
        MachineGroup(name, region, "m5.large", IMAGE_NAME)
        for name, region in (("a", "us-east-1"), ("b", "us-east-1"), ("far", "eu-west-1"))
    )
    spec = RentalSpec("walls", groups, hours=0.5, accept_unknown_price=True)

    async def whole() -> None:
        rental = await rentals.create(spec, say=lambda line: None)
        listed = {name: machine.private_address for name, machine in rental.machines.items()}
        public = {name: machine.address for name, machine in rental.machines.items()}
        serve = f"nohup python3 -m http.server {PORT} --bind {listed['a']} >/dev/null 2>&1 &"
        await said(rental, "a", f"{serve} sleep 2")

        async def reaches(host: str, address: str, port: int = PORT) -> bool:
            connect = f"timeout 2 bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null"
            return await said(rental, host, f"{connect} && echo yes || echo no") == "yes"

        # A member of the group, at the private address only; nobody from another region.
        assert await reaches("b", listed["a"])
        assert not await reaches("b", public["a"])
        assert not await reaches("far", public["a"])
        await rentals.admit(rental, {"us-east-1": [public["far"]]})
        assert await reaches("far", public["a"])
        assert not await reaches("far", public["a"], 22)
        (rules,) = (
            one["rules"]
            for one in machines.oracle()
            if one["kind"] == "security-group" and one["region"] == "us-east-1"
        )
        assert {source for _, _, _, source in rules if source.endswith("/32")} == {
            f"{public['far']}/32", "127.0.0.1/32",
        }  # fmt: skip
        # Another machine has its address now.
        await rentals.admit(rental, {"us-east-1": ["10.213.0.9"]})
        assert not await reaches("far", public["a"])

    asyncio.run(whole())
    asyncio.run(rentals.remove("walls"))
    assert machines.live() == []


def command(cloud: Double, folder: Path, *words: str) -> Any:
    """The document of a command."""
    ended = subprocess.run(
        [sys.executable, "-m", "nephoscope", "cloud", *words, "--json"],
        cwd=ROOT,
        env={
            **os.environ,
            **cloud.environment(),
            "NEPHOSCOPE_STORE": str(folder / "store"),
            "XDG_STATE_HOME": str(folder / "state"),
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_planted_distances_over_regions_and_two_clouds_are_recovered(
    cloud: Double, tmp_path: Path
) -> None:
    with doubles.running() as other:
        cloud.settings(
            **FAST,
            paths=[
                ["us-east-1", "eu-west-1", FAR, RATE],
                ["*", "outside", ABROAD / 3, RATE],
            ],
        )
        other.settings(**FAST, paths=[["*", "outside", 2 * ABROAD / 3, 2 * RATE]])
        cloud.join(other.bridge())
        places = (
            "us-east-1/us-east-1a", "eu-west-1",
            f"ec2:ap-south-1,endpoint={other.endpoint},name=abroad",
        )  # fmt: skip
        rented = ("--type", "m5.large", "--image", IMAGE_NAME, "--endpoint", cloud.endpoint)
        result = command(
            cloud, tmp_path, "distances", "ec2", *rented, "--money", "3",
            *(word for place in places for word in ("--place", place)),
            "--repetitions", "6", "--duration", "300ms", "--transfer", "4MB",
        )  # fmt: skip
        assert cloud.live() == other.live() == []
        assert cloud.defects() == other.defects() == []
    cloud.reset()
    pairs = {
        frozenset({pair["machine_a"], pair["machine_b"]}): pair for pair in result["cloud"]["pairs"]
    }
    planted = {
        frozenset({"us-east-1a", "eu-west-1"}): (FAR, RATE, "public"),
        frozenset({"us-east-1a", "abroad"}): (ABROAD, RATE, "public"),
        frozenset({"eu-west-1", "abroad"}): (ABROAD, RATE, "public"),
    }
    assert pairs.keys() == planted.keys()
    for ends, (rtt_s, bits_per_s, way) in planted.items():
        pair = pairs[ends]
        assert (pair["way"], pair["missing"]) == (way, "")
        # A busy machine wakes the line and both programs late, never early.
        assert rtt_s <= pair["rtt"]["value"] / 1e9 <= rtt_s + 0.003, ends
        # Slow start fills the path within ten round trips, of which half are lost.
        most = bits_per_s / 8 * PAYLOAD
        least = 4e6 / (4e6 / most + 5 * rtt_s + 0.05)
        for goodput in (pair["goodput"], pair["goodput_back"]):
            assert 0.9 * least <= goodput["value"] <= 1.02 * most, ends
        assert pair["rtt"]["n"] == 6
    decided = command(
        cloud, tmp_path, "where", "latest", "--data", "10GB@ec2:eu-west-1", "--compute",
        "1h@ec2:eu-west-1", "--compute", "20min@ec2:us-east-1a", "--compute", "1h@ec2:ap-south-1",
    )  # fmt: skip
    row = next(row for row in decided["rows"] if row["run_at"] == "ec2:us-east-1a")
    assert row["transfer_s"]["value"] == pytest.approx(10e9 / (RATE / 8 * PAYLOAD), rel=0.15)
    assert row["time_s"]["value"] == pytest.approx(row["transfer_s"]["value"] + 1200)
    assert (
        "fastest at ec2:us-east-1a, with the data kept at ec2:eu-west-1" in decided["verdicts"][0]
    )
