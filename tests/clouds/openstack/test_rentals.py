"""Whole rentals on real clouds, as a user types them: rented, booted, measured, removed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from tests.clouds import renting
from tests.clouds.renting import Renting

from nephoscope.measure.cloud.provider import CloudSettings

from . import hypervisor as hypervisors
from . import tenants
from .cloud import Cloud
from .configuration import FAKE, QEMU, REGION
from .hypervisor import Hypervisor

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("probe")]


def nephoscope(folder: Path, *words: str) -> str:
    """Runs the program with its state in a folder; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "nephoscope", *words],
        cwd=folder,
        env={
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "NEPHOSCOPE_STORE": str(folder / "store"),
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def plan(folder: Path, **target: object) -> Path:
    """A plan that measures two rented machines."""
    document = {
        "version": 1,
        "name": "rented",
        "question": "Do both compute equally fast?",
        "budget": "15min",
        "money": {"limit": 1},
        "repeat": {"min": 3, "max": 3},
        "targets": [{"name": "vm", "kind": "rented", "count": 2, **target}],
        "benchmarks": [{"benchmark": "cpu.pi", "params": {"digits": 1000}}],
    }
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def assert_secretless(folder: Path, text: str, *secrets: str) -> None:
    """No secret is in what was printed, nor in any file but those in which the user keeps them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    kept = [path for path in files if path.name not in ("clouds.yaml", "aws")]
    texts = [text, *(path.read_bytes().decode(errors="replace") for path in kept)]
    assert not [secret for secret in secrets for one in texts if secret in one]


def test_doctor_says_whose_account_it_is_and_its_quotas(
    openstack_cloud: Cloud, renter: CloudSettings, tmp_path: Path
) -> None:
    said = nephoscope(tmp_path, "cloud", "doctor", "openstack", "--profile", "renter")
    assert "renters" in said
    assert "instances" in said


def test_two_machines_of_the_cloud_are_measured(
    openstack_cloud: Cloud, renter: CloudSettings, tmp_path: Path
) -> None:
    from . import oracles

    file = plan(
        tmp_path,
        provider="openstack",
        endpoint=renter.endpoint,
        profile="renter",
        region=REGION,
        zone=QEMU,
        type="m1.tiny",
        image="guest",
        per_hour=0.01,
    )
    said = nephoscope(tmp_path, "run", str(file))
    assert "vm-1" in said
    assert "vm-2" in said
    oracles.until_nothing(openstack_cloud)
    assert_secretless(tmp_path, said, openstack_cloud.site.renter, openstack_cloud.ec2_keys[1])


def test_two_machines_of_libvirt_are_measured(hypervisor: Hypervisor, tmp_path: Path) -> None:
    file = plan(
        tmp_path,
        provider="libvirt",
        profile=hypervisor.uri,
        region="host",
        type="1x256m",
        image=hypervisors.IMAGE,
    )
    said = nephoscope(tmp_path, "run", str(file))
    assert "vm-1" in said
    assert "vm-2" in said
    assert hypervisor.room.run("virsh", "-q", "list", "--all", "--name").split() == []
    assert hypervisor.room.run("virsh", "-q", "vol-list", "default").split() == []


def test_a_volume_of_libvirt_is_copied_and_restored(hypervisor: Hypervisor, tmp_path: Path) -> None:
    """Its guest sees disks that are added while it runs, and has no place to mount one at."""
    wanted = Renting(
        "libvirt", "", str(tmp_path), "host", "1x256m", hypervisors.IMAGE, profile=hypervisor.uri
    )
    size = 32 << 20
    times = asyncio.run(
        renting.volume_restored(wanted, "restored", size, refusal="Read-only file system")
    )
    assert 0 < times.first_block_s < times.usable_s
    assert min(times.attached_s, times.detached_s, times.snapshot_s, times.second_read_s) > 0
    assert hypervisor.room.run("virsh", "-q", "vol-list", "default").split() == []


def test_twenty_machines_are_rented_and_removed(
    openstack_cloud: Cloud, renter: CloudSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from . import oracles

    monkeypatch.setitem(tenants.COUNTS, FAKE, 20)
    ours = tenants.rentals(renter, tmp_path / "rentals")
    began = time.monotonic()
    made = asyncio.run(ours.create(tenants.spec("twenty", FAKE), say=lambda line: None))
    ready_s = time.monotonic() - began
    assert len(made.machines) == 20
    assert len(oracles.machines(openstack_cloud, "twenty")) == 20
    asyncio.run(ours.remove("twenty"))
    removed_s = time.monotonic() - began - ready_s
    settled_s = oracles.until_nothing(openstack_cloud)
    times = f"ready {ready_s:.1f} s, removed {removed_s:.1f} s, zero {settled_s:.1f} s later"
    print(f"20 machines: {times}")  # noqa: T201
