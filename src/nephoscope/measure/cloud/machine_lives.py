"""How long rented machines lived and what ended them, in one file of this user.

$XDG_STATE_HOME/nephoscope/machine-lives.jsonl   one line per machine of a removed rental, appended
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.intents import LINES_READ_BYTES, Intent, RentalFolder, rentals_root

INTERRUPTED, FAILED, REMOVED = "interrupted", "ended", "removed"
"""What ended a machine: the spot market; the cloud otherwise, or its own system; its user."""


@dataclass(frozen=True, slots=True)
class MachineLife:
    """The life of a machine. began_s: when the cloud had made it; ended_s: seconds since the epoch,
    in the middle between the last listing with it and the first one without it; `between_s` of
    each other. end: interrupted, ended or removed."""

    rental: str
    machine: str
    provider: str
    region: str
    zone: str
    type: str
    market: str
    began_s: float
    ended_s: float
    end: str
    reason: str = ""
    between_s: float = 0.0

    @property
    def hours(self) -> float:
        """How long it lived."""
        return (self.ended_s - self.began_s) / 3600

    @property
    def is_interrupted(self) -> bool:
        """Returns whether the cloud took it back."""
        return self.end == INTERRUPTED


def append(folder: RentalFolder, ended_s: float) -> None:
    """Notes the lives of a rental's machines; of one that was never up nothing is known."""
    known = folder.read()
    machines = known.get("machines") or {}
    if not {"cloud", "hosts"} <= known.keys() or not machines:
        return
    intents = folder.intents()
    lines = []
    for machine in machines.values():
        end = _end_of(machine["id"], intents)
        # A machine that powers itself off when its time is over was not taken back.
        until = min(ended_s, float(known.get("expires_s", ended_s)))
        life = MachineLife(
            folder.name,
            machine["id"],
            known["cloud"]["provider"],
            machine["region"],
            machine["zone"],
            machine["type"],
            machine["market"],
            machine["began_s"],
            until if end is None else (end.at_s + end.seen_s) / 2,
            REMOVED if end is None else end.what,
            "" if end is None else end.reason,
            0.0 if end is None else end.at_s - end.seen_s,
        )
        lines.append(json.dumps(asdict(life)) + "\n")
    with regular.open_to_append(_file(folder.path.parent)) as file:
        file.write("".join(lines).encode())
        file.flush()
        os.fsync(file.fileno())


def _end_of(machine: str, intents: Sequence[Intent]) -> Intent | None:
    ends = [
        intent
        for intent in intents
        if intent.what in (INTERRUPTED, FAILED) and machine in intent.ids
    ]
    return ends[0] if ends else None


def read(path: Path | None = None) -> tuple[list[MachineLife], int]:
    """Returns the lives in a file, by default this user's, and how many lines were left out.

    Left out is a line that is not whole, because its process was killed, or has no length. Raises
    UsageError for a file that cannot be read.
    """
    file = path or _file(rentals_root())
    try:
        lines = regular.read_regular(file, LINES_READ_BYTES).split(b"\n")
    except FileNotFoundError:
        if path is None:
            return [], 0
        raise UsageError(f"{path}: there is no such file.", "Check the path.") from None
    except OSError as error:
        raise UsageError(f"{file}: this cannot be read: {error.strerror}.") from None
    lives, left_out = [], 0
    for line in lines:
        if not line.strip():
            continue
        try:
            values: dict[str, Any] = json.loads(line)
            life = MachineLife(**values)
            if not life.hours > 0:
                raise ValueError
        except (ValueError, TypeError):
            left_out += 1
            continue
        lives.append(life)
    return lives, left_out


def _file(rentals: Path) -> Path:
    return rentals.parent / "machine-lives.jsonl"
