"""Disks of the double's machines: files in memory behind loop devices, with planted speeds.

A machine has a /dev of its own, in which a volume shows when it is attached. The block layer limits
what the machine's processes read and write directly.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from .cloud import Cloud, Resource
from .cpu_share import move

GROUPS = Path("/sys/fs/cgroup/blkio")
OWN_DISK_MIB = 192
_POLL_S = 0.01


def _run(*words: str) -> str:
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def are_there() -> bool:
    """Whether this machine limits loop devices by group."""
    return (GROUPS / "blkio.throttle.read_iops_device").exists()


def detach_all(folder: Path) -> None:
    """Loop devices of a double that was killed, by the folder of its files."""
    listed = _run("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
    for line in listed.splitlines():
        name, _, file = line.partition(" ")
        if file.strip().startswith(f"{folder}/"):
            subprocess.run(["losetup", "--detach", name], capture_output=True)


class Disks:
    """The disks of all machines of a double."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self._cloud, self._folder = cloud, folder
        self._loops: dict[str, str] = {}
        self._groups: dict[str, Path] = {}
        self._of: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    # Files: one of each volume and snapshot, sparse.

    def _file(self, id: str) -> Path:
        return self._folder / f"disk-{id}"

    def make(self, volume: Resource) -> None:
        source = self._file(volume.data["snapshot"]) if volume.data["snapshot"] else None
        if source is not None and source.exists():
            _run("cp", "--sparse=always", str(source), str(self._file(volume.id)))
            if self._cloud.faults.strikes("rotten-snapshot", ""):
                with self._file(volume.id).open("r+b") as file:
                    file.seek(4096)
                    file.write(b"rotten")
        else:
            self._file(volume.id).touch()
        with self._file(volume.id).open("r+b") as file:
            file.truncate(volume.data["size"] << 30)

    def copy(self, volume: Resource, snapshot: Resource) -> None:
        if self._file(volume.id).exists():
            _run("cp", "--sparse=always", str(self._file(volume.id)), str(self._file(snapshot.id)))

    def remove(self, resource: Resource) -> None:
        self._file(resource.id).unlink(missing_ok=True)

    # A machine: its group of processes, its own disk.

    def begin(self, instance: str, folder: Path, pid: int) -> None:
        """Before the machine boots; with an own disk, and what is attached already."""
        group = GROUPS / folder.parent.name / instance
        group.mkdir(parents=True, exist_ok=True)
        move(group, pid)
        self._groups[instance] = group
        own = self._file(instance)
        if not own.exists():
            with own.open("wb") as file:
                file.truncate(OWN_DISK_MIB << 20)
            _run("mkfs.ext4", "-q", "-F", str(own))
        (folder / "own-disk").write_text(self._loop(instance))
        self._limit(instance, instance, self._cloud.settings["disk_iops"])
        (folder / "devices").write_text("")
        for volume in self._attached(instance):
            self._loop(volume.id)
            self._of.setdefault(instance, set()).add(volume.id)
            self._show(volume, instance, folder, None)

    def _attached(self, instance: str) -> list[Resource]:
        return [
            each
            for each in list(self._cloud.resources.values())
            if each.kind == "volume"
            and each.data.get("instance") == instance
            and self._file(each.id).exists()
        ]

    def end(self, instance: str) -> None:
        """After the last process of a machine."""
        for id in (*self._of.pop(instance, ()), instance):
            self._unloop(id)
        if group := self._groups.pop(instance, None):
            with contextlib.suppress(OSError):
                group.rmdir()

    def close(self) -> None:
        for id in list(self._loops):
            self._unloop(id)
        with contextlib.suppress(OSError):
            (GROUPS / self._folder.name).rmdir()

    # Loop devices.

    def _loop(self, id: str) -> str:
        with self._lock:
            if id not in self._loops:
                self._loops[id] = _run("losetup", "--find", "--show", str(self._file(id)))
            return self._loops[id]

    def _unloop(self, id: str) -> None:
        with self._lock:
            if (loop := self._loops.pop(id, None)) is not None:
                # What still has it mounted keeps it until it ends.
                subprocess.run(["losetup", "--detach", loop], capture_output=True)

    def _number(self, id: str) -> str:
        return (Path("/sys/block") / Path(self._loops[id]).name / "dev").read_text().strip()

    def _limit(self, instance: str, id: str, iops: float) -> None:
        for way in ("read", "write"):
            file = self._groups[instance] / f"blkio.throttle.{way}_iops_device"
            file.write_text(f"{self._number(id)} {int(iops)}")

    # Attachment.

    def attach(self, volume: Resource, machine: Any) -> None:
        """The device shows `attach_s` later."""
        if not self._file(volume.id).exists():
            return
        self._loop(volume.id)
        self._of.setdefault(machine.instance.id, set()).add(volume.id)
        pid = machine.process.pid
        arguments = (volume, machine.instance.id, machine.disk, pid)
        delay = self._cloud.settings["attach_s"] / self._cloud.clock.scale
        timer = threading.Timer(delay, self._show, arguments)
        timer.daemon = True
        timer.start()

    def _show(self, volume: Resource, instance: str, folder: Path, pid: int | None) -> None:
        if self._cloud.faults.strikes("no-device", ""):
            return
        settings, group = self._cloud.settings, self._groups[instance]
        speeds = settings["volume_iops"]
        self._limit(instance, volume.id, speeds.get(volume.data["type"], 0))
        number = self._number(volume.id)
        if volume.data["snapshot"] and settings["lazy_bytes_per_s"] and not volume.data.get("read"):
            lazy = group / "blkio.throttle.read_bps_device"
            lazy.write_text(f"{number} {int(settings['lazy_bytes_per_s'])}")
            threading.Thread(target=self._hydrate, args=(volume, lazy, number), daemon=True).start()
        name = volume.data["device"].replace("/dev/sd", "xvd")
        with (folder / "devices").open("a") as file:
            file.write(f"{name} {number.replace(':', ' ')}\n")
        if pid is not None:
            inside = ["nsenter", f"--mount=/proc/{pid}/ns/mnt"]
            if self._cloud.faults.strikes("mounted-device", ""):
                _run("mkfs.ext4", "-q", "-F", self._loops[volume.id])
                _run(*inside, "mount", self._loops[volume.id], f"{folder}/root/media")
            _run(*inside, "mknod", f"{folder}/root/dev/{name}", "b", *number.split(":"))

    def _hydrate(self, volume: Resource, lazy: Path, number: str) -> None:
        """Ends the limit of a restored volume once so much of it has been read."""
        stat = Path(f"/sys/dev/block/{number}/stat")
        wanted = self._cloud.settings["lazy_bytes"] // 512
        with contextlib.suppress(OSError):
            before = int(stat.read_text().split()[2])
            while int(stat.read_text().split()[2]) - before < wanted:
                time.sleep(_POLL_S)
            lazy.write_text(f"{number} 0")
        volume.data["read"] = True

    def detach(self, volume: Resource, machine: Any) -> None:
        if volume.id not in self._loops or machine is None:
            return
        number = self._number(volume.id)
        name = volume.data["device"].replace("/dev/sd", "xvd")
        inside = ["nsenter", f"--mount=/proc/{machine.process.pid}/ns/mnt"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            _run(*inside, "rm", "-f", f"{machine.disk}/root/dev/{name}")
            devices = machine.disk / "devices"
            lines = devices.read_text().splitlines()
            kept = [line for line in lines if not line.startswith(f"{name} ")]
            devices.write_text("".join(f"{line}\n" for line in kept))
            for file in self._groups[machine.instance.id].glob("blkio.throttle.*_device"):
                file.write_text(f"{number} 0")
        self._of[machine.instance.id].discard(volume.id)
        self._unloop(volume.id)
