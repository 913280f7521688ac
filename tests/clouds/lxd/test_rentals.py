"""Rentals on a real LXD: measured from end to end, killed and swept, ended by their own lease."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.clouds import lxd, renting
from tests.clouds.lxd.contract import lxd_server  # noqa: F401 - a fixture
from tests.clouds.renting import Renting
from tests.tools import needs

from nephoscope.measure.cloud.model import Kind, ResourceState, SnapshotRequest, VolumeRequest
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import open_provider

pytestmark = [pytest.mark.slow, needs(*lxd.PROGRAMS)]

KILLS = 12


@pytest.fixture
def wanted(lxd_server: lxd.LxdServer, tmp_path: Path) -> Renting:  # noqa: F811
    return Renting("lxd", lxd_server.socket, str(tmp_path), "default", "1cpu-128mib", lxd.IMAGE)


def test_machines_are_rented_measured_and_removed(
    wanted: Renting,
    lxd_server: lxd.LxdServer,  # noqa: F811
) -> None:
    said: list[str] = []
    result = asyncio.run(renting.whole(wanted, "whole", said.append))
    assert result["values"] == {"box-1": [5.0] * 3, "box-2": [5.0] * 3}
    assert lxd_server.instances() == []


def test_a_killed_controller_leaves_nothing_that_a_sweep_does_not_find(
    wanted: Renting,
    lxd_server: lxd.LxdServer,  # noqa: F811
) -> None:
    machines = renting.campaign(wanted, KILLS, lxd_server.instances)
    assert max(machines) > 0, machines  # else no kill was in the middle


def test_a_machine_whose_controller_is_gone_ends_by_itself(
    wanted: Renting,
    lxd_server: lxd.LxdServer,  # noqa: F811
) -> None:
    """Its user data has run without cloud-init, and powers it off when the lease is over."""
    cloud = open_provider(CloudSettings("lxd", wanted.endpoint))
    image = cloud.image("default", lxd.IMAGE)
    asked = replace(
        renting.request(wanted, "lease", "f" * 32),
        image=image,
        user_data="#!/bin/sh\n(sleep 3; poweroff) >/dev/null 2>&1 &\n",
    )
    (machine,) = cloud.create(asked)
    until = time.monotonic() + 60
    while (found := cloud.resources("default", "lease"))[0].state is not ResourceState.STOPPED:
        assert time.monotonic() < until, found
        time.sleep(0.2)
    renting.swept(wanted, "lease")
    assert lxd_server.instances() == []
    assert machine.kind is Kind.MACHINE


def test_volumes_and_snapshots_of_machines_are_found_by_their_tags(wanted: Renting) -> None:
    cloud = open_provider(CloudSettings("lxd", wanted.endpoint))
    asked = replace(
        renting.request(wanted, "disks", "a" * 32), image=cloud.image("default", lxd.IMAGE)
    )
    (machine,) = cloud.create(asked)
    tags = replace(asked.tags, token="b" * 32)
    (volume,) = cloud.create(VolumeRequest("default", "", tags, 1 << 20))
    for number, source in enumerate((machine.id, volume.id)):
        cloud.create(SnapshotRequest("default", replace(tags, token=f"{number}" * 32), source))
    found = cloud.resources("default", "disks")
    kinds = sorted(one.kind for one in found)
    assert kinds == [Kind.MACHINE, Kind.SNAPSHOT, Kind.SNAPSHOT, Kind.VOLUME]
    renting.swept(wanted, "disks")
    assert list(cloud.resources("default", "disks")) == []


def test_a_volume_is_mounted_copied_and_restored(wanted: Renting) -> None:
    """Volumes are folders here, which LXD mounts itself; what was written is there again."""
    times = asyncio.run(renting.volume_restored(wanted, "restored", 16 << 20))
    assert 0 < times.first_block_s < times.usable_s
    assert min(times.snapshot_s, times.first_read_s, times.second_read_s) > 0
    cloud = open_provider(CloudSettings("lxd", wanted.endpoint))
    assert list(cloud.resources("default", "restored")) == []
