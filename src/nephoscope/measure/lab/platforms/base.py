"""What every platform does: make a host of a namespace and groups that are there already."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.core.records import dataclass
from nephoscope.measure.lab import commands, names, processes
from nephoscope.measure.lab.commands import entering
from nephoscope.measure.lab.handle import HostPlan, StartedHost
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.provisioning import Say

_TICKS_AT = 19
"""Field of /proc/PID/stat with the start time, counted after the name."""


class Platform(abc.ABC):
    """One way of realising a host; the base class needs nothing and leaves nothing."""

    def lacking(self) -> Lacking | None:
        """Returns what this machine lacks for it; None when it can be used here."""
        return None

    async def prepare(self, say: Say) -> None:  # noqa: B027 - most platforms share nothing
        """Makes what all hosts of it share (images). Raises RunFailed, Lacking."""

    @abc.abstractmethod
    async def start(
        self, plan: HostPlan, *, say: Say, lock: int | None = None, keep: bool = False
    ) -> StartedHost:
        """Starts the host and waits until it answers. Everything it makes lies in the plan's
        folder, namespace and groups, so that sweeping those removes it.

        lock: descriptor that the programs it starts hold until they are in their group.
        keep: boot the disk that an earlier `start` left (a reboot), not a new instance.
        Raises RunFailed when it does not start; what it made may be left for the sweep.
        """

    async def stop(self, plan: HostPlan) -> None:  # noqa: B027 - a bare host has no program
        """Ends it in order, within a bound, then kills it. May be called twice, also for a host
        that never started."""


def disks(plan: HostPlan) -> Path:
    """The host's folder for what it writes, on a disk; made when it is not there."""
    folder = names.disks(plan.lab) / plan.name
    for level in (names.DISKS, folder.parent, folder):
        with contextlib.suppress(FileExistsError):
            level.mkdir(mode=0o700)
    return folder


def not_root(what: str) -> Lacking | None:
    """Lacking unless this process is root."""
    if os.geteuid() == 0:
        return None
    return Lacking(f"{what} needs root.", "Run the command with sudo.")


@functools.cache
def chrooted(what: str) -> Lacking | None:
    """Lacking where our root folder is not the root of our mounts.

    Whoever joins a mount namespace gets the root of its mounts as root folder: in a chroot that is
    the machine's own root, outside of what this process was given.
    """
    root = os.stat("/")
    words = ["nsenter", "--mount=/proc/self/ns/mnt", "stat", "-c", "%d %i", "/"]
    try:
        seen = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        why = str(error).rstrip(".")
        return Lacking(
            f"{what} needs to join a mount namespace; `{' '.join(words)}` failed: {why}.",
            "Install util-linux, or run the command where root may join namespaces.",
        )
    if seen.split() == [str(root.st_dev), str(root.st_ino)]:
        return None
    return Lacking(
        f"{what} needs a root folder that is the root of the mounts; this is a chroot, whose "
        "programs would enter the machine around it instead of the container.",
        "Run the command outside of the chroot, or enter it by pivot_root.",
    )


# The id is written by the process that becomes the program. Standard input was the lab's lock; the
# program must not hold that.
_BECOME = 'echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@" </dev/null'
_ENTER_S = 10.0
_GONE_CHECKS = 25
"""Looks, 2 ms and more apart, after which a process is believed to be gone: in the middle of an
exec it has no command line to be found by."""


async def launch(plan: HostPlan, program: Sequence[str], *, log: Path, lock: int | None) -> Process:
    """Starts a program that stays, in the host's groups and namespace, output into `log`.

    It is no child of this process: it stays when this process ends. RunFailed with its last words
    when it could not enter.
    """
    pid_file = plan.directory / "pid"
    pid_file.unlink(missing_ok=True)
    enter = entering(cgroups=plan.cgroups, netns=plan.netns)
    words = ["setsid", "--fork", *enter, "sh", "-c", _BECOME, "start", str(pid_file), *program]
    environment = {**commands.environment(), "TMPDIR": "/dev/shm", "HOME": "/nonexistent"}
    with log.open("ab") as out:
        done = await asyncio.to_thread(
            subprocess.run,
            words,
            stdin=subprocess.DEVNULL if lock is None else lock,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
    until, unseen = time.monotonic() + _ENTER_S, 0
    while done.returncode == 0 and time.monotonic() < until:
        # Looked at before the file is read: it may be written in between.
        inside = pid_file.exists()
        unseen = 0 if inside or _entering(words) else unseen + 1
        if (process := Process.read(pid_file)) is not None:
            process.write(pid_file)
            return process
        if inside:
            return Process(0, -1)  # it has ended already
        if unseen >= _GONE_CHECKS:
            break
        await asyncio.sleep(0.002)
    raise RunFailed(
        f"host {plan.name} ({plan.spec.platform}) could not be started: {last_words(log)}.",
        "Run `nephoscope lab check` to see what this machine can do.",
    )


def _entering(words: Sequence[str]) -> bool:
    """Returns whether a process of ours is still on its way into the host."""
    wanted = os.fsencode("\0".join(words[-3:]))
    return bool(processes.matching(lambda process: wanted in (process / "cmdline").read_bytes()))


def last_words(log: Path) -> str:
    """The last line of a file that says something."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "it said nothing"
    words = [line.strip() for line in lines if line.strip()]
    return words[-1].rstrip(".")[:300] if words else "it said nothing"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that is no child of ours; the start time tells it from a later one of its id."""

    pid: int
    started_ticks: int

    @classmethod
    def read(cls, pid_file: Path) -> Process | None:
        """The process whose id a file holds; None when it is gone."""
        try:
            words = pid_file.read_text(encoding="ascii").split()
            pid = int(words[0])
        except (OSError, ValueError, IndexError):
            return None
        ticks = _ticks(pid)
        known = int(words[1]) if len(words) > 1 else ticks
        return None if ticks is None or ticks != known else cls(pid, ticks)

    def write(self, pid_file: Path) -> None:
        """Writes it down for `read`, with the start time."""
        aside = pid_file.with_suffix(".new")
        aside.write_text(f"{self.pid} {self.started_ticks}\n", encoding="ascii")
        aside.rename(pid_file)

    def alive(self) -> bool:
        """Returns whether it still runs (a zombie does not)."""
        return _ticks(self.pid) == self.started_ticks

    def ask_to_end(self) -> None:
        """SIGTERM, to this process and no later one of its id."""
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(handle, signal.SIGTERM)
            finally:
                os.close(handle)

    async def ended(self, within_s: float) -> bool:
        """Returns whether it ends within a time."""
        until = time.monotonic() + within_s
        while self.alive():
            if time.monotonic() > until:
                return False
            await asyncio.sleep(0.005)
        return True


def _ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[_TICKS_AT])


async def end_group(plan: HostPlan) -> None:
    """Kills every process in the host's groups and waits until they are gone."""
    await asyncio.to_thread(cgroups.host(plan.lab, plan.name).kill)


async def first_program(plan: HostPlan, entry: Sequence[str]) -> None:
    """Runs a program that does nothing inside the host. RunFailed when that is not possible."""
    try:
        code, _, err = await commands.run_to_end([*entry, "/bin/true"])
    except TimeoutError:
        code, err = 1, b"it did not end"
    if code != 0:
        lines = err.decode(errors="replace").strip().splitlines()
        raise RunFailed(
            f"host {plan.name} ({plan.spec.platform}) runs no program: "
            f"{lines[-1].rstrip('.') if lines else 'it said nothing'}.",
            "Run `nephoscope lab check` to see what this machine can do.",
        )
