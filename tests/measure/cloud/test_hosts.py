"""Existing hosts: no two runs share one, a host is measured over ssh, nothing on it is removed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import sshd

from nephoscope.measure.cloud.model import Kind, ResourceState
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.providers.hosts import reservations
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

TAKING = """
import sys
from nephoscope.measure.cloud.model import MachineRequest, Tags
from nephoscope.measure.cloud.provider import CloudError, CloudSettings
from nephoscope.measure.cloud.providers import open_provider
cloud = open_provider(CloudSettings("hosts", sys.argv[1]))
tags = Tags(f"run{sys.argv[2]}", "tests", 4_000_000_000, sys.argv[2])
try:
    for one in cloud.create(MachineRequest("hosts", "all", "installed", tags, count=2, at_least=2)):
        print(one.id)
except CloudError as error:
    print(error.cause)
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_runs_at_the_same_time_never_share_a_host(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts"
    inventory.write_text("".join(f"192.0.2.{n}\n" for n in range(1, 6)))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", TAKING, str(inventory), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    answers = [run.communicate(timeout=60)[0].split() for run in runs]
    taken = [one for answer in answers if answer != ["capacity"] for one in answer]
    assert len(taken) == len(set(taken)) == 4
    assert answers.count(["capacity"]) == 2


def test_one_machine_in_two_lists_is_taken_once(tmp_path: Path) -> None:
    for name, text in (("a", "web ansible_host=192.0.2.1\n"), ("b", "db ansible_host=192.0.2.1\n")):
        (tmp_path / name).write_text(text)
    answers = [
        subprocess.run(
            [sys.executable, "-c", TAKING.replace("=2", "=1"), str(tmp_path / name), name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for name in ("a", "b")
    ]
    assert answers == [["web"], ["capacity"]]


@pytest.fixture(scope="module")
@sshd.fixture_needs_it
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Server]:
    with sshd.serving(tmp_path_factory.mktemp("sshd")) as made:
        yield made


def test_a_host_is_taken_measured_and_given_back(
    tmp_path: Path, server: sshd.Server, probe: Path
) -> None:
    inventory = tmp_path / "outputs.json"
    host = {
        "address": "127.0.0.1",
        "port": server.port,
        "user": server.user,
        "ansible_ssh_private_key_file": str(server.folder / "identity"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={server.known_hosts}",
    }
    inventory.write_text(json.dumps({"machine": {"sensitive": False, "value": [host]}}))
    settings = CloudSettings("hosts", str(inventory))
    rentals = Rentals(open_provider(settings), settings, root=tmp_path / "rentals")
    spec = RentalSpec("taken", (MachineGroup("box", "hosts", "machine", "installed"),), hours=1.0)

    async def whole() -> object:
        rental = await rentals.create(spec, say=lambda line: None)
        target = rental.hosts["box"].make()
        try:
            await target.open()
            trial = await target.run("null", {"value": 7.0, "samples": 2}, 30)
        finally:
            await target.close()
        assert len(list(reservations().glob("*.json"))) == 1
        swept = await rentals.remove("taken")
        assert [(one.kind, one.state) for one in swept.removed] == [
            (Kind.MACHINE, ResourceState.READY)
        ]
        return trial.samples

    assert asyncio.run(whole())
    assert list(reservations().glob("*.json")) == []
    assert server.known_hosts.exists()
