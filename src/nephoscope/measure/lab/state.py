"""What a lab wrote down about itself: a hint for people and for `list`, never the truth.

The file is written before each thing is made, so that it never knows less than what exists. Whoever
changes a lab holds a lock on its folder; programs that are started meanwhile inherit the lock, so
that it is free only when the last of them is gone, also after a kill.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import LAB_STATE
from nephoscope.measure.lab import names
from nephoscope.measure.lab.commands import read_json, try_lock, write_json
from nephoscope.measure.provisioning import UP

STATE = "state.json"
_STEP_S, _WAIT_S = 0.02, 10.0


class Busy(UsageError):
    """Another process is changing the lab."""


def read(lab: str) -> dict[str, Any] | None:
    """Returns what the lab wrote down; None when there is nothing, or nothing that can be read."""
    return read_json(names.directory(lab) / STATE)


def refusal(lab: str, known: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the sentence on a lab of a later program, and the next step; None for another one.

    Its names say what it is made of, so that `lab down` removes it all the same.
    """
    if not LAB_STATE.is_later(known.get("version")):
        return None
    sentence, step = LAB_STATE.refusal(
        names.directory(lab) / STATE, known["version"], str(known.get("nephoscope") or "")
    )
    return sentence, f"{step[:-1]}, or remove the lab with `nephoscope lab down {lab}`."


def write(lab: str, document: dict[str, Any]) -> None:
    """Writes it down, whole or not at all."""
    write_json(names.directory(lab) / STATE, document)


@contextmanager
def making(lab: str) -> Iterator[int]:
    """Makes the folder of a new lab and holds its lock; yields the lock's descriptor.

    Raises UsageError when a lab of that name is there.
    """
    while (descriptor := _made(lab)) is None:
        continue
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _made(lab: str) -> int | None:
    """Makes the folder and locks it; None where it was removed in between: a folder without a lock
    looks like one that a killed command left."""
    path = names.directory(lab)
    # Again when a `down` of the last lab removes the parent in between.
    names.RUN.mkdir(mode=0o700, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        return None
    except FileExistsError:
        raise clash(lab) from None
    if (descriptor := _open(path)) is None:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if _is_still(descriptor, path):
        return descriptor
    os.close(descriptor)
    return None


def clash(lab: str) -> UsageError:
    """The sentence for a name that is taken."""
    known = read(lab) or {}
    if (later := refusal(lab, known)) is not None:
        return UsageError(*later)
    if known.get("phase") == UP:
        return UsageError(
            f"A lab named {lab} is up already.", f"Take it down: `nephoscope lab down {lab}`."
        )
    if is_busy(lab):
        return Busy(
            f"A lab named {lab} is being changed by process {known.get('pid', 'unknown')}.",
            "Wait for it, or end it.",
        )
    return UsageError(
        f"Remains of a lab named {lab} are here.", f"Remove them: `nephoscope lab down {lab}`."
    )


@contextmanager
def changing(lab: str) -> Iterator[int | None]:
    """Holds the lock of a lab's folder; None when it has none. Busy when another keeps it."""
    began = time.monotonic()
    path = names.directory(lab)
    while True:
        descriptor = _open(path)
        if descriptor is None:
            yield None
            return
        try:
            if try_lock(descriptor):
                if not _is_still(descriptor, path):
                    continue
                yield descriptor
                return
        finally:
            os.close(descriptor)
        if time.monotonic() - began > _WAIT_S:
            raise clash(lab)
        time.sleep(_STEP_S)


def is_busy(lab: str) -> bool:
    """Returns whether a process is changing the lab now."""
    descriptor = _open(names.directory(lab))
    if descriptor is None:
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _is_still(descriptor: int, path: Path) -> bool:
    """Returns whether the folder was not removed, and made anew by another, since it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
