"""What a rental is about to do, written down and synced before each call to the cloud.

A process may be killed between a call and its answer, and a listing may not show yet what the call
made. The folder of a rental says since when that may be so: a removal lists until after that.

    $XDG_STATE_HOME/nephoscope/rentals/NAME/   else ~/.local/state; mode 0700
        rental.json     which cloud, owner, expiry, groups, and whether it is kept
        intents.jsonl   one line per intended call and per answer
        identity        private key of the machines' one-time key pair
        known_hosts     host keys that the machines were given
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephoscope.core import leases, limits
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.format_versions import RENTAL
from nephoscope.core.reading import regular
from nephoscope.measure.cloud.provider import Cause

LINES_READ_BYTES = 64 << 20
"""Longest log that is read; a rental of a thousand machines writes under 1 MB."""


def rentals_root() -> Path:
    """Returns the folder of all rentals of this user."""
    return leases.state_root() / "rentals"


@dataclass(frozen=True, slots=True)
class Intent:
    """A line of the log. at_s: seconds since the epoch. what: create, made, failed, admit, delete;
    of a machine also interrupted, ended (`seen_s`: when it was last listed before) and repriced
    (`change_per_h`: of its price)."""

    at_s: float
    what: str
    kind: str
    region: str
    token: str = ""
    count: int = 0
    ids: tuple[str, ...] = ()
    reason: str = ""
    seen_s: float = 0.0
    change_per_h: float = 0.0


class RentalFolder:
    """The folder of one rental."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        self.name = name
        self.path = (root or rentals_root()) / name
        self._log = self.path / "intents.jsonl"

    @property
    def identity(self) -> Path:
        """The private key's file."""
        return self.path / "identity"

    def write_identity(self, text: str) -> None:
        """Writes the private key, which nobody else can read; it must not be there yet."""
        descriptor = os.open(self.identity, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)

    @property
    def known_hosts(self) -> Path:
        """The file of the machines' host keys."""
        return self.path / "known_hosts"

    @contextmanager
    def making(self, document: Mapping[str, Any]) -> Iterator[None]:
        """Makes the folder and holds its lock. Raises UsageError where the name is taken."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            raise UsageError(
                f"A rental named {self.name} is here already.",
                f"Remove it with `nephoscope cloud down {self.name}`, or take another name.",
            ) from None
        with self.holding():
            self.write(document)
            _sync(self.path)
            _sync(self.path.parent)
            yield

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Holds the lock of the rental, if it has a folder. Raises UsageError while another
        process does; the lock ends with its process, also after a kill."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield
            return
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"Another process is using the rental {self.name}.",
                    "Wait for it, or end it.",
                ) from None
            yield
        finally:
            os.close(descriptor)

    def is_held(self) -> bool:
        """Returns whether a process is using the rental now."""
        try:
            with self.holding():
                return False
        except UsageError:
            return True

    def write(self, document: Mapping[str, Any]) -> None:
        """Writes what is known of the rental, whole or not at all."""
        written = self.path / "rental.json.part"
        with written.open("w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        written.rename(self.path / "rental.json")

    def read(self) -> dict[str, Any]:
        """Returns what is known of the rental; empty where a kill left nothing readable."""
        try:
            read = json.loads(regular.read_text(self.path / "rental.json", limits.STATE_BYTES))
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def refusal(self) -> tuple[str, str] | None:
        """Returns the sentence on a rental of a later program, and the next step; None for another.

        Its tags are found all the same.
        """
        known = self.read()
        if not RENTAL.is_later(known.get("version")):
            return None
        sentence, step = RENTAL.refusal(
            self.path / "rental.json", known["version"], str(known.get("nephoscope") or "")
        )
        remove = f"`nephoscope cloud down {self.name} PROVIDER`"
        return sentence, f"{step[:-1]}, or remove the rental by its tags with {remove}."

    def note(self, what: str, kind: str, region: str, **more: Any) -> None:
        """Appends a line and syncs it: the call that it announces comes after."""
        line = {"at_s": time.time(), "what": what, "kind": kind, "region": region, **more}
        with regular.open_to_append(self._log) as file:
            file.write(f"{json.dumps(line)}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    def intents(self) -> list[Intent]:
        """Returns the log. A last line that a kill cut off announced a call that was not made."""
        try:
            lines = regular.read_regular(self._log, LINES_READ_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self._log} cannot be read: {error.strerror}.") from None
        read = []
        for line in lines:
            try:
                values = json.loads(line)
                values["ids"] = tuple(values.get("ids", ()))
                read.append(Intent(**values))
            except (ValueError, TypeError):
                continue
        return read

    def settled_s(self, settle_s: float, late_s: float) -> float | None:
        """Returns from when on a listing shows everything that was asked for; None when nothing
        was. settle_s, late_s: of the cloud's traits; a call without an answer may be late."""
        settled: list[float] = []
        intents = self.intents()
        for number, intent in enumerate(intents):
            if intent.what != "create":
                continue
            following = (later for later in intents[number + 1 :] if later.token == intent.token)
            answer = next(following, None)
            is_answered = answer is not None and (
                answer.what == "made"
                or (answer.what == "failed" and answer.reason != Cause.UNANSWERED)
            )
            settled.append(intent.at_s + (settle_s if is_answered else max(settle_s, late_s)))
        return max(settled, default=None)

    def remove(self) -> None:
        """Removes the folder with the private key; one that is gone is no error."""
        shutil.rmtree(self.path, ignore_errors=True)


def folders(root: Path | None = None) -> list[RentalFolder]:
    """Returns the folders of all rentals, by name."""
    top = root or rentals_root()
    try:
        return [RentalFolder(path.name, top) for path in sorted(top.iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
