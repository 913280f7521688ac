"""Container: runc, on the machine's kernel, with a Debian of its own that it cannot write to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nephoscope.core.errors import Lacking
from nephoscope.measure.lab import boot, images, names
from nephoscope.measure.lab.boot import Console
from nephoscope.measure.lab.commands import entering
from nephoscope.measure.lab.handle import HostPlan, StartedHost
from nephoscope.measure.lab.limits import cgroups, hierarchies
from nephoscope.measure.lab.needs import missing, sbin
from nephoscope.measure.lab.platforms.base import (
    Platform,
    Process,
    chrooted,
    disks,
    end_group,
    first_program,
    launch,
    not_root,
)
from nephoscope.measure.provisioning import Say

CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_NET_BIND_SERVICE")
"""What root may do inside: files, its own processes, low ports. The probe needs none of them."""

PIDS_MAX = 4096
"""Processes and threads inside; a fork bomb ends there, not at the machine's own limit."""
_DENIED = [
    *("acct", "add_key", "bpf", "clock_adjtime", "clock_settime", "delete_module", "finit_module"),
    *("fsconfig", "fsmount", "fsopen", "fspick", "init_module", "ioperm", "iopl"),
    *("kexec_file_load", "kexec_load", "keyctl", "mount", "mount_setattr", "move_mount"),
    *("name_to_handle_at", "open_by_handle_at", "open_tree", "pivot_root", "quotactl"),
    *("quotactl_fd", "reboot", "request_key", "setns", "settimeofday", "swapoff", "swapon"),
    *("syslog", "umount2", "unshare", "userfaultfd", "vhangup"),
]
"""System calls that manage a machine, or that make defects of its kernel reachable."""
_CLONE_NEWUSER = 0x1000_0000
_FIRST_USER, _USERS, _RANGES = 0x7100_0000, 1 << 16, 0xE00
"""User ids that no distribution or service manager hands out, above those of guests
(systemd, UIDS-GIDS)."""
_ENOSYS = 38

_REASONS = {"kernel": "a container runs on the machine's own kernel"}
_WAY_IN_S = 30.0
_WRITABLE = ("tmp", "var/tmp", "root")
"""Folders that can be written to inside: the home, where a probe is put, and those for work."""

_ROOT = Path("/mnt")
"""Where the container's root is mounted, in a mount namespace of its own: a path that its root, who
owns nothing on this machine, may follow, and that exists outside too, as `runc exec` demands."""

# The overlay is in no mount table of the machine, and goes with the container's last process.
# Changes are the mount points that runc makes, nothing else; they lie in memory, since a disk that
# is an overlay itself cannot hold the upper layer of another. A user namespace may not mount a /sys
# that shows a network namespace of somebody else: it is mounted for it.
_IN_PRIVATE = (
    'mount -t tmpfs -o size=1m tmpfs "$3" && mkdir "$3/upper" "$3/work" "$3/sys" && cd "$1" && '
    f'mount -t overlay -o "lowerdir=$2,upperdir=$3/upper,workdir=$3/work" overlay {_ROOT} && '
    f'touch {_ROOT}/etc/hosts && mount -t sysfs sysfs "$3/sys" && '
    'shift 3 && exec "$@"'
)


class Container(Platform):
    """One container for each host, its first process our own small init."""

    def lacking(self) -> Lacking | None:
        """See `Platform.lacking`."""
        what = "A host of platform container"
        return (
            not_root(what) or missing({"runc": "runc"}, what) or images.lacking() or chrooted(what)
        )

    async def prepare(self, say: Say) -> None:
        """See `Platform.prepare`."""
        await images.ensure(say)

    async def start(
        self, plan: HostPlan, *, say: Say, lock: int | None = None, keep: bool = False
    ) -> StartedHost:
        """See `Platform.start`."""
        image = await images.ensure(say)
        began = time.monotonic_ns()
        folder, disk = plan.directory, disks(plan)
        if not keep:
            for name in _WRITABLE:
                shutil.rmtree(disk / name, ignore_errors=True)
        shutil.rmtree(folder / "runc", ignore_errors=True)
        (disk / "changes").mkdir(mode=0o700, exist_ok=True)
        first = _ids(plan)["hostID"]
        for name in _WRITABLE:
            (disk / name).mkdir(mode=0o755, parents=True, exist_ok=True)
            os.chown(disk / name, first, first)
        plan.hosts_path.write_text(plan.hosts_text, encoding="utf-8")
        (folder / "config.json").write_text(json.dumps(bundle(plan), indent=1), encoding="utf-8")
        log = folder / "console.log"
        console = Console(log)
        console.skip()
        init = folder / "init.pid"
        init.unlink(missing_ok=True)
        words = [*_private(plan, image.folder), *_runc(plan), "run", "--detach"]
        container = names.namespace(plan.lab, plan.name)
        words += ["--pid-file", str(init), "--bundle", str(folder), container]
        runc = await launch(plan, words, log=log, lock=lock)

        def alive() -> bool:
            return runc.alive() or Process.read(init) is not None

        # The network belongs to the machine's user namespace: who joined another may not enter it.
        entry = (*entering(netns=plan.netns), *_runc(plan), "exec", container)

        async def answers() -> bool:
            await first_program(plan, entry)
            return True

        times = await boot.watch(
            f"host {plan.name} (container)", began, console, alive, answers, _WAY_IN_S
        )
        if (process := Process.read(init)) is not None:
            process.write(init)
        booted = replace(times, kernel_ns=None, reasons={**times.reasons, **_REASONS})
        details = {"image": image.content, "capabilities": list(CAPABILITIES)}
        return StartedHost(booted, entry, None, details)

    async def stop(self, plan: HostPlan) -> None:
        """See `Platform.stop`: its init ends on SIGTERM, and the kernel ends the rest with it."""
        process = Process.read(plan.directory / "init.pid")
        if process is not None:
            process.ask_to_end()
            await process.ended(2.0)
        await end_group(plan)
        shutil.rmtree(plan.directory / "runc", ignore_errors=True)
        await asyncio.to_thread(_forget_groups, plan)


PLATFORM = Container()


def _runc(plan: HostPlan) -> list[str]:
    return [str(sbin("runc")), "--root", str(plan.directory / "runc")]


def _private(plan: HostPlan, image: Path) -> list[str]:
    # The image's folder is named relative to where we are: a comma or colon in the path of the
    # cache would be read as an option.
    paths = (image, "rootfs", _changes(plan))
    inside = ["sh", "-c", _IN_PRIVATE, "mount", *map(str, paths)]
    return ["unshare", "--mount", "--propagation", "private", *inside]


def _changes(plan: HostPlan) -> Path:
    return names.disks(plan.lab) / plan.name / "changes"


def bundle(plan: HostPlan) -> dict[str, Any]:
    """The container's configuration (OCI runtime specification 1.0.2)."""
    capabilities = {
        kind: list(CAPABILITIES) for kind in ("bounding", "effective", "permitted", "ambient")
    }
    return {
        "ociVersion": "1.0.2",
        "hostname": plan.name,
        "root": {"path": str(_ROOT), "readonly": True},
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/usr/lib/nephoscope/container-init"],
            "env": [
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME=/root",
            ],
            "cwd": "/",
            "capabilities": capabilities,
            "noNewPrivileges": True,
        },
        "mounts": list(_mounts(plan)),
        "linux": {
            "cgroupsPath": f"/{cgroups.PREFIX}/{plan.lab}/{plan.name}",
            "namespaces": [{"type": kind} for kind in ("user", "pid", "ipc", "uts", "mount")],
            "uidMappings": [_ids(plan)],
            "gidMappings": [_ids(plan)],
            "resources": {
                "devices": [{"allow": False, "access": "rwm"}],
                "pids": {"limit": PIDS_MAX},
            },
            "seccomp": _seccomp(),
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": [
                f"/proc/{name}" for name in ("bus", "fs", "irq", "sys", "sysrq-trigger")
            ],
        },
    }


def _ids(plan: HostPlan) -> dict[str, int]:
    """Returns the users and groups of the container, root first, as users who own nothing here."""
    number = zlib.crc32(f"{plan.lab}/{plan.name}".encode()) % _RANGES
    return {"containerID": 0, "hostID": _FIRST_USER + number * _USERS, "size": _USERS}


def _seccomp() -> dict[str, Any]:
    """Allows all but `_DENIED` and user namespaces; x32 and 32-bit system calls end the process."""
    new_user = {"index": 0, "value": _CLONE_NEWUSER, "valueTwo": _CLONE_NEWUSER}
    denied = {"action": "SCMP_ACT_ERRNO"}
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            {**denied, "names": _DENIED},
            {**denied, "names": ["clone"], "args": [{**new_user, "op": "SCMP_CMP_MASKED_EQ"}]},
            # Its flags lie in memory, which a filter cannot read; the C library then takes clone.
            {**denied, "names": ["clone3"], "errnoRet": _ENOSYS},
        ],
    }


def _mounts(plan: HostPlan) -> Iterator[Mapping[str, Any]]:
    def mount(where: str, kind: str, *options: str, source: str = "") -> Mapping[str, Any]:
        plain = {"destination": where, "type": kind, "source": source or kind}
        return {**plain, "options": ["nosuid", *options]}

    yield mount("/proc", "proc", "noexec", "nodev")
    yield mount("/dev", "tmpfs", "strictatime", "mode=755", "size=65536k")
    yield mount(
        "/dev/pts", "devpts", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"
    )
    yield mount("/dev/shm", "tmpfs", "nodev", "mode=1777")
    yield mount(
        "/sys", "bind", "rbind", "noexec", "nodev", "ro", source=str(_changes(plan) / "sys")
    )
    yield mount("/sys/fs/cgroup", "cgroup", "noexec", "nodev", "relatime", "ro")
    yield mount("/run", "tmpfs", "nodev", "mode=755")
    yield mount("/etc/hosts", "bind", "bind", "ro", "nodev", source=str(plan.hosts_path))
    # On a disk, so that a disk benchmark in here measures one.
    for name in _WRITABLE:
        yield mount(
            f"/{name}",
            "bind",
            "rbind",
            "rw",
            "nodev",
            source=str(names.disks(plan.lab) / plan.name / name),
        )


def _forget_groups(plan: HostPlan) -> None:
    """Removes the groups that runc made where the lab has none of its own (devices)."""
    own = set(plan.cgroups)
    for tree in hierarchies.layout().hierarchies:
        group = tree.root / cgroups.PREFIX / plan.lab / plan.name
        if group not in own:
            with contextlib.suppress(OSError):
                group.rmdir()
