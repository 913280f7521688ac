"""The trial files of a run as they are on the disk: whole, damaged or missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.errors import StoreError
from nephoscope.model import TrialRecord
from nephoscope.store.files import translating_os_errors

if TYPE_CHECKING:
    import pyarrow as pa

Version = tuple[int, int, int]
"""Inode, size and time of change of a file."""

_MISSING: Version = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class TrialFile:
    """A trial file as it was read. digest: as the journal has it; empty where it has none."""

    path: Path
    version: Version
    digest: str
    record: TrialRecord
    readable: bool

    def read(self) -> tuple[TrialRecord, pa.Table]:
        """Returns the record and the samples."""
        return _read(self.path, self.version, self.digest)


@dataclass(frozen=True, slots=True)
class Integrity:
    """How many trial files are as they were stored, and how many are without a digest.

    damaged: one sentence for each other file of the run.
    """

    verified: int
    unverified: int
    damaged: tuple[str, ...]


def integrity_of(files: Sequence[TrialFile], sentences: Sequence[str] = ()) -> Integrity:
    """Returns the integrity of a run's files. sentences: on damaged files that are no trials."""
    return Integrity(
        verified=sum(file.readable and bool(file.digest) for file in files),
        unverified=sum(file.readable and not file.digest for file in files),
        damaged=tuple(
            reason for file in files if not file.readable for reason in file.record.reasons
        )
        + tuple(sentences),
    )


class TrialFiles:
    """Reads the files of one run; what did not change since the last look is not read again.

    A page asks several times, and every reading verifies the whole file.
    """

    def __init__(self) -> None:
        self._files: dict[Path, TrialFile] = {}

    def look(
        self, folder: Path, digests: Mapping[str, str], settings: Sequence[Mapping[str, Any]]
    ) -> list[TrialFile]:
        """Returns the files in the order of execution; what is damaged or missing comes first.

        digests: of each file that the journal knows.
        """
        with translating_os_errors(folder, "read"):
            present = set(folder.glob("[rw]*.parquet"))
        files = {}
        for path in sorted(present | {folder / name for name in digests}):
            digest = digests.get(path.name, "")
            try:
                stat = path.stat()
                version = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            except FileNotFoundError:
                if not digest:  # taken away since the folder was listed
                    continue
                version = _MISSING
            known = self._files.get(path)
            if known is None or (known.version, known.digest) != (version, digest):
                known = _file(path, version, digest, settings)
            if known is not None:
                files[path] = known
        self._files = files
        return sorted(files.values(), key=lambda file: (file.record.position, file.record.key.name))


def _file(
    path: Path, version: Version, digest: str, settings: Sequence[Mapping[str, Any]]
) -> TrialFile | None:
    """What a file holds; None for one that is damaged and whose name is no trial's."""
    from nephoscope.store import trialfile

    reason = f"{path} is missing."
    if version != _MISSING:
        try:
            record, _ = _read(path, version, digest)
            return TrialFile(path, version, digest, record, readable=True)
        except StoreError as error:
            reason = error.message
    damaged = trialfile.damaged_record(path, settings, reason)
    return None if damaged is None else TrialFile(path, version, digest, damaged, readable=False)


@lru_cache(maxsize=512)
def _read(path: Path, version: Version, digest: str) -> tuple[TrialRecord, pa.Table]:
    """Reads a trial's file of a version; an analysis asks for the same trials several times."""
    from nephoscope.store import trialfile

    return trialfile.read(path, digest)
