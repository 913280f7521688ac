"""Folders that a host of a lab serves by NFS (nfs-ganesha), and their mounts in guests.

Options: ganesha-core-config(8), ganesha-export-config(8), nfs(5). What a mount came to is read from
the guest's kernel (`/proc/self/mountstats`).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.measure.lab.handle import GuestAccess, HostPlan
from nephoscope.measure.lab.images import MODULES
from nephoscope.measure.lab.needs import missing, sbin
from nephoscope.measure.lab.network import namespaces
from nephoscope.measure.lab.platforms import control
from nephoscope.measure.lab.platforms.base import disks, last_words, launch
from nephoscope.measure.lab.topology import HostSpec

PORT = 2049
SHARE = "/share"
"""The path under which a host's one folder is mounted."""
_FILE_SYSTEM = "nfs-ganesha-vfs"
"""Debian's package of what serves folders of this machine."""
_READY_S, _MOUNT_S = 60.0, 120.0

# Without a grace period: no client of an earlier server may claim its locks, and the first write
# would wait for 90 s.
_CONFIGURATION = """\
NFS_CORE_PARAM {{
  Protocols = 4; NFS_Port = {port}; Bind_Addr = {address};
  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
}}
NFSv4 {{
  Minor_Versions = 0, 1, 2; Graceless = true; Only_Numeric_Owners = true;
  RecoveryRoot = "{recovery}";
}}
EXPORT {{
  Export_Id = 1; Path = "{folder}"; Pseudo = "{share}"; Access_Type = RW;
  Squash = No_Root_Squash; SecType = sys; Protocols = 4; Transports = TCP;
  FSAL {{ Name = VFS; }}
}}
"""

_MOUNT = """\
set -e
b=/bin/busybox
if ! $b grep -q nfs4 /proc/filesystems; then
  while read -r module; do $b insmod "{modules}/$module"; done <{modules}/order
fi
$b mkdir -p {path}
$b mount -t nfs4 -o {options} {address}:{share} {path}
$b cat /proc/self/mountstats
"""


def lacking(specs: Iterable[HostSpec]) -> Lacking | None:
    """Returns what this machine lacks for the servers of a lab's hosts."""
    if not any(spec.exports for spec in specs):
        return None
    what = "A host that exports a folder"
    if (absent := missing({"ganesha.nfsd": f"nfs-ganesha {_FILE_SYSTEM}"}, what)) is not None:
        return absent
    if not any(Path("/usr/lib").glob("*/ganesha/libfsalvfs.so")):
        return Lacking(f"{what} needs {_FILE_SYSTEM}.", f"Run `apt-get install {_FILE_SYSTEM}`.")
    return None


async def serve(plan: HostPlan, lock: int | None) -> Mapping[str, Any]:
    """Starts the server of a host's folder and waits until it answers; facts for `details`.

    It ends with the host's groups. Raises RunFailed when it does not start.
    """
    folder, recovery = disks(plan) / "share", plan.directory / "recovery"
    for needed in (folder, recovery):
        needed.mkdir(mode=0o700, exist_ok=True)
    configuration, log = plan.directory / "ganesha.conf", plan.directory / "ganesha.log"
    text = _CONFIGURATION.format(
        port=PORT, address=plan.address, recovery=recovery, folder=folder, share=SHARE
    )
    configuration.write_text(text, encoding="utf-8")
    log.touch()
    words = [str(sbin("ganesha.nfsd")), "-F", "-f", str(configuration), "-L", str(log)]
    words += ["-N", "NIV_CRIT", "-p", str(plan.directory / "ganesha.pid")]
    process = await launch(plan, words, log=log, lock=lock)
    until = time.monotonic() + _READY_S
    while not await asyncio.to_thread(_answers, plan):
        if not process.alive() or time.monotonic() > until:
            raise RunFailed(
                f"The NFS server of host {plan.name} did not start: {last_words(log)}.",
                "Take the lab down and up again.",
            )
        await asyncio.sleep(0.05)
    return {"exports": SHARE}


def _answers(plan: HostPlan) -> bool:
    with contextlib.closing(namespaces.within(plan.netns, socket.socket)) as client:
        client.settimeout(1.0)
        return client.connect_ex((plan.address, PORT)) == 0


async def mount(plan: HostPlan, access: GuestAccess) -> Mapping[str, Any]:
    """Mounts in a guest what it is to have; facts of each mount for `details`.

    Raises RunFailed with the guest's own words.
    """
    mounts: dict[str, Any] = {}
    async with control.login(access, _MOUNT_S) as connection:
        for path, spec in plan.spec.mounts.items():
            address = plan.peers[spec.host]
            options = f"vers=4.{spec.minor_version},proto=tcp,sec=sys,hard,nodev,nosuid"
            options += f",nconnect={spec.connections}" if spec.connections > 1 else ""
            script = _MOUNT.format(
                modules=f"/{MODULES}",
                path=shlex.quote(path),
                options=f"{options},addr={address},clientaddr={plan.address}",
                address=address,
                share=SHARE,
            )
            done = await connection.run(script, check=False, timeout=_MOUNT_S)
            if done.exit_status != 0:
                words = str(done.stderr).strip().splitlines() or ["the mount did not end"]
                raise RunFailed(
                    f"Host {plan.name} cannot mount the folder of host {spec.host} at {path}: "
                    f"{words[-1].rstrip('.')}.",
                    "Check that a link leads from one host to the other.",
                )
            mounts[path] = {"from": spec.host, **parse_mountstats(str(done.stdout), path)}
    return {"mounts": mounts}


def parse_mountstats(text: str, path: str) -> dict[str, str]:
    """Version and layout (pNFS) of the NFS mount at a path, of the text of /proc/self/mountstats.

    layout: the word of the kernel; "not configured" where the server grants no layouts.
    """
    parts = re.split(r"^device ", text, flags=re.MULTILINE)
    own = next(part for part in parts if f" mounted on {path} with fstype nfs" in part)
    version = re.search(r"\bvers=([0-9.]+)", own)
    layout = re.search(r"\bpnfs=([^,\n]+)", own)
    return {
        "version": version[1] if version else "unknown",
        "layout": layout[1] if layout else "none",
    }
