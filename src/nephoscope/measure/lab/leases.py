"""Leases: a lab that a process made for its own work ends with it.

The process holds a lock on a file of the lab; the kernel lets go of it when the process ends, also
when it is killed. A lab whose lock is free has nobody who would remove it. One that was made by
hand (`nephoscope lab up`) has no such file once it is up; one that has none, is not up and is not
being changed is what a killed command left before it took its lease, or of what it was removing.
Every command asks for such labs, so that this imports little.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from nephoscope.measure.lab import names

_FILE = "lease"
_held: dict[str, int] = {}


def take(lab: str) -> None:
    """Leases a lab whose folder is there to this process. OSError where it cannot be written."""
    path = names.directory(lab) / _FILE
    # Nobody sees the file before it is locked.
    aside = path.with_name(f".{_FILE}.{os.getpid()}")
    descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    aside.rename(path)
    end(lab)
    _held[lab] = descriptor


def end(lab: str) -> None:
    """Ends the lease that this process has of a lab, if it has one."""
    if (descriptor := _held.pop(lab, None)) is not None:
        os.close(descriptor)


def waive(lab: str) -> None:
    """Makes a lab that this process leased stay after it."""
    (names.directory(lab) / _FILE).unlink()
    end(lab)


def is_abandoned(lab: str) -> bool:
    """Returns whether the process that made a lab for its work, or was making it, has ended."""
    try:
        descriptor = os.open(names.directory(lab) / _FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return _is_half_made(lab)
    except OSError:
        return False
    with contextlib.closing(os.fdopen(descriptor)) as file:
        try:
            # Shared: two commands that ask at one time do not take each other for the owner.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _is_half_made(lab: str) -> bool:
    from nephoscope.measure.lab import state  # rarely needed
    from nephoscope.measure.provisioning import UP

    if state.is_busy(lab) or not names.directory(lab).is_dir():
        return False
    # What cannot be read may be of a lab that is up.
    known = state.read(lab)
    has_state = (names.directory(lab) / state.STATE).exists()
    return not has_state if known is None else known.get("phase") != UP


def abandoned() -> list[str]:
    """Returns the labs whose process has ended, by name."""
    return sorted(lab for lab in names.labs_in(names.RUN) if is_abandoned(lab))
