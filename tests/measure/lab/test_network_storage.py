"""A real NFS server in a lab, and a guest that mounts it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from pathlib import Path
from typing import Any

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.tools import needs

from nephoscope.measure.lab import conditions, files, names, network_storage
from nephoscope.measure.lab.handle import Host
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.platforms import PLATFORMS, control
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.lab.topology import HostSpec

STATS = """\
device proc mounted on /proc with fstype proc
device 10.77.0.1:/share mounted on /mnt/other with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.0,rsize=1048576
\tnfsv4:\tbm0=0xfdffafff,acl=0x1,pnfs=not configured,lease_time=60
device 10.77.0.1:/share mounted on /mnt/share with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576
\tnfsv4:\tbm0=0xfdffafff,acl=0x1,sessions,pnfs=LAYOUT_NFSV4_1_FILES,lease_time=60
"""


def test_version_and_layout_are_those_of_the_mount() -> None:
    own = network_storage.parse_mountstats(STATS, "/mnt/share")
    assert own == {"version": "4.2", "layout": "LAYOUT_NFSV4_1_FILES"}
    other = network_storage.parse_mountstats(STATS, "/mnt/other")
    assert other == {"version": "4.0", "layout": "not configured"}


def test_a_lab_without_exports_lacks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_storage, "missing", lambda programs, what: pytest.fail("asked"))
    assert network_storage.lacking([HostSpec()]) is None


def test_a_missing_server_is_named_with_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nephoscope.measure.lab.needs.sbin", lambda program: None)
    absent = network_storage.lacking([HostSpec(exports=True)])
    assert absent is not None
    assert "apt-get install nfs-ganesha nfs-ganesha-vfs" in str(absent)


@pytest.mark.slow
@hardware.needs(Feature.ROOT, os.geteuid() == 0)
@needs("ganesha.nfsd", "ip", "tc", "qemu-system-x86_64", "qemu-img", "mmdebstrap")
def test_a_guest_mounts_what_a_host_serves_also_after_a_reboot() -> None:
    if (lacking := PLATFORMS["qemu"].lacking()) is not None:
        hardware.lacking(Feature.LAB, str(lacking))
    name, path = f"t{secrets.token_hex(4)}", "/mnt/share"
    mounts = {path: {"from": "storage", "minor_version": 1}}
    values = {
        "name": name,
        "network": f"10.{1 + secrets.randbelow(250)}.0.0/16",
        "hosts": {
            "storage": {"exports": True},
            "client": {"platform": "qemu", "memory": "512MiB", "mounts": mounts},
        },
    }
    asyncio.run(_mounted(name, path, values))
    assert LABS.remains(name) == []


async def _mounted(name: str, path: str, values: dict[str, Any]) -> None:
    try:
        lab = await LABS.create(files.from_values(values), say=print)
        served = names.disks(name) / "storage" / "share"
        facts = lab.hosts["client"].details["mounts"][path]
        assert facts == {"from": "storage", "version": "4.1", "layout": "not configured"}
        # The kernel of the guest and the disk of the server agree on the bytes.
        made = await _inside(
            lab.hosts["client"],
            f"dd if=/dev/urandom of={path}/x bs=1M count=2 2>/dev/null; sync; sha256sum <{path}/x",
        )
        assert _sha256(served / "x") == made.split()[0]
        # The server is bound by the groups of its host.
        programs = [
            Path(f"/proc/{pid}/comm").read_text().strip() for pid in cgroups.processes(name)
        ]
        assert programs.count("ganesha.nfsd") == 1
        await conditions.renew(lab, "client", "boot", say=print)
        again = await _inside(
            lab.hosts["client"], f"sha256sum <{path}/x; grep -c {path} /proc/mounts"
        )
        assert again.split() == [made.split()[0], "-", "1"]
    finally:
        if LABS.remains(name):
            await LABS.remove(name)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def _inside(host: Host, command: str) -> str:
    assert host.guest is not None
    async with control.login(host.guest, 60) as connection:
        done = await connection.run(command, timeout=120, check=True)
        return str(done.stdout)
