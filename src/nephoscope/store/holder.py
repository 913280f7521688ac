"""Who measures a run: the process that holds the run's lock, and no other of its number.

A process id is used again, so the journal names the process with the moment of its start and the
boot of the machine; the lock says that it still measures.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from nephoscope.core.errors import StoreError
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.store.files import opened, translating_os_errors
from nephoscope.store.manifest import FAILED

NOT_STARTED: Final = "not started"
INTERRUPTED: Final = "interrupted"
KILLED: Final = "killed"
ABANDONED = (NOT_STARTED, INTERRUPTED, KILLED)
"""What a run whose manifest says `running` is while no process measures it."""
WITHOUT_RESULTS = (*ABANDONED, FAILED)
"""Runs that `latest` passes over."""

Events = list[dict[str, Any]]
"""The events of a run's journal."""

_PIDS = 1 << 22
"""No process id of Linux is as large."""
_RELEASE_S = 1.0
"""How long a lock without a living holder is waited for; a fork takes milliseconds."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that measures a run. here: whether it runs on this machine, in this boot."""

    pid: int
    machine: str
    here: bool


def identity() -> dict[str, Any]:
    """What tells this process from every other one: pid, start, boot and machine's name."""
    pid = os.getpid()
    return {
        "pid": pid,
        "started_ticks": started_ticks(pid),
        "boot_id": _boot_id(),
        "machine": socket.gethostname(),
    }


def left_state(events: Events) -> str:
    """Returns INTERRUPTED where the last process ended its session, else KILLED."""
    sessions = [
        event["event"]
        for event in events
        if event.get("event") in ("session_started", "session_ended")
    ]
    return INTERRUPTED if sessions and sessions[-1] == "session_ended" else KILLED


def holder_of(journal: Path, events: Events) -> Holder | None:
    """The process that holds the lock on `journal`; None when nobody does."""
    if not _is_locked(journal):
        return None
    last = _last_start(events)
    pid = last.get("pid")
    pid = pid if isinstance(pid, int) and 0 < pid < _PIDS else 0
    return Holder(pid, str(last.get("machine", "")), pid > 0 and _is(pid, last, journal))


def _last_start(events: Events) -> Mapping[str, Any]:
    starts = [event for event in events if event.get("event") == "session_started"]
    return starts[-1] if starts else {}


def started_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since the boot; None when there is none of that id."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The program's name is in brackets and may hold blanks and brackets; the rest counts from 3.
    after = text.rpartition(")")[2].split()
    return int(after[19]) if len(after) > 19 else None


@contextlib.contextmanager
def locked(run_id: str, journal: Path, events: Callable[[], Events]) -> Iterator[None]:
    """Holds the lock on the journal of a run alone; the kernel ends it with this process.

    events: reads the journal. Raises StoreError while another process measures the run.
    """
    with opened(journal, os.O_RDWR | os.O_CREAT, 0o644) as descriptor:
        _take_lock(descriptor, run_id, journal, events)
        yield


@contextlib.contextmanager
def lock_if_free(journal: Path) -> Iterator[bool]:
    """Holds the lock of a run where no process has it; yields whether that is so."""
    with opened(journal, os.O_RDWR | os.O_CREAT, 0o644) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            yield error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
        else:
            yield True


def _take_lock(descriptor: int, run_id: str, journal: Path, events: Callable[[], Events]) -> None:
    """Takes the lock after a killed holder's last child has let go of it.

    A child has the lock too from its fork to its exec, and outlives its parent by that long;
    whoever asks for the holder has it for a moment.
    """
    until_s = time.monotonic() + _RELEASE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # a file system without locks: two at once are the user's care
            process = holder_of(journal, events())
            is_measured = process and process.here and process.pid != os.getpid()
            if is_measured or time.monotonic() > until_s:
                pid = _last_start(events()).get("pid")
                raise StoreError(
                    f"Run {run_id} is being measured by "
                    f"{f'process {pid}' if pid else 'another process'}.",
                    f"Wait for it to end, or end it with `nephoscope stop {run_id}`.",
                ) from error
            time.sleep(0.01)
        else:
            return


def _is(pid: int, session: Mapping[str, Any], journal: Path) -> bool:
    ticks = started_ticks(pid)
    return (
        ticks is not None
        and ticks == session.get("started_ticks")
        and _boot_id() == session.get("boot_id")
        and _has_open(pid, journal)
    )


def _has_open(pid: int, journal: Path) -> bool:
    with contextlib.suppress(OSError):
        own = journal.stat()
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(link.stat(), own):
                    return True
    return False


def _is_locked(journal: Path) -> bool:
    with (
        translating_os_errors(journal, "opened"),
        contextlib.suppress(FileNotFoundError),
        regular.open_regular(journal) as stream,
    ):
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Without locks (some network file systems) nobody can be seen holding one.
            return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    return False


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
