"""The trials of a run as they are on the disk: in files of their own or merged; whole, damaged
or missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import StoreError
from nephoscope.core.model import TrialRecord
from nephoscope.core.records import dataclass
from nephoscope.store.batch import Batch
from nephoscope.store.files import translating_os_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from nephoscope.store.merged_trials import MergedTrial, MergedTrials

Version = tuple[int, int, int]
"""Inode, size and time of change of a file."""

_MISSING: Version = (0, 0, 0)
_UNKNOWN: Version = (-1, 0, 0)
"""Of what cannot be looked at, such as a loop of links; the error of reading it names the cause."""


@dataclass(frozen=True, slots=True)
class TrialFile:
    """A trial as it was read. digest: of its file, as it was stored; empty where it is not known.

    path: of its file, or of all samples where it is merged.
    """

    path: Path
    version: Version
    digest: str
    record: TrialRecord
    readable: bool
    merged: MergedTrial | None = None

    @property
    def is_missing(self) -> bool:
        """States whether there is no file where one was stored."""
        return self.version == _MISSING


def batches_of(files: Iterable[TrialFile], columns: Sequence[str] | None = None) -> Iterator[Batch]:
    """Yields the samples of readable trials in their order; of merged ones, many at once.

    columns: the only ones that are needed, in which texts may be dictionaries
    (`trialfile.column_lists`); None for all of them as they are.
    """
    held: list[TrialFile] = []
    for file in files:
        if held and not _continues(held[-1], file):
            yield _batch(held, columns)
            held = []
        held.append(file)
    if held:
        yield _batch(held, columns)


def _continues(before: TrialFile, file: TrialFile) -> bool:
    """States whether the samples of a trial are read at once with those before."""
    a, b = before.merged, file.merged
    if a is None or b is None or b.row != a.row + a.rows:
        return False
    return a.file.chunk_of(a.row) == a.file.chunk_of(b.row)


def _batch(files: Sequence[TrialFile], columns: Sequence[str] | None) -> Batch:
    first = files[0]
    if first.merged is None:
        record, table = _read(first.path, first.version, first.digest)
        return Batch([(record, table.num_rows)], table)
    trials = [(file.record, file.merged.rows) for file in files if file.merged is not None]
    rows = sum(number for _, number in trials)
    return Batch(trials, first.merged.file.table(first.merged.row, rows, columns))


@dataclass(frozen=True, slots=True)
class Integrity:
    """How many trial files are as they were stored, and how many are without a digest.

    damaged: one sentence for each other file of the run.
    """

    verified: int
    unverified: int
    damaged: tuple[str, ...]


class TrialFiles:
    """Reads the trials of one run; what did not change since the last look is not read again.

    A page asks several times, and every reading verifies the whole file.
    """

    def __init__(self) -> None:
        self._files: dict[Path, TrialFile] = {}
        self._merged: tuple[tuple[Version, ...], MergedTrials] | None = None
        self._seen: tuple[Path, tuple[Version, ...], list[TrialFile]] | None = None
        """The folder, its version, those of the merged files, and the trials at the last look."""

    def add(self, path: Path, digest: str, record: TrialRecord) -> None:
        """Takes in a trial that this process has stored, which then need not be read."""
        self._files[path] = TrialFile(path, _version(path), digest, record, readable=True)

    def read(
        self,
        folder: Path,
        digests: Mapping[str, str],
        settings: Sequence[Mapping[str, Any]],
        merged: Mapping[str, Any],
        names: Callable[[], Iterable[str]],
    ) -> list[TrialFile]:
        """Returns the trials in the order of execution; what is damaged or missing comes first.

        digests: of each file that the journal knows since the run was merged. merged: the
        manifest's entry; empty before. names: returns the names of the trials that were merged;
        asked where some are damaged.
        """
        versions = (_version(folder), *_merged_versions(folder)) if merged else ()
        if versions and not digests and self._seen and self._seen[:2] == (folder, versions):
            return [*self._seen[2]]
        earlier = self._read_merged(folder, merged, settings, names) if merged else {}
        with translating_os_errors(folder, "read"):
            present = set(folder.glob("[rw]*.parquet"))
        files = {}
        for path in sorted(present | {folder / name for name in digests}):
            digest = digests.get(path.name, "")
            if not digest and path.stem in earlier:
                continue  # a kill kept it from being removed
            version = _version(path)
            if version == _MISSING and not digest:  # taken away since the folder was listed
                continue
            known = self._files.get(path)
            if known is None or (known.version, known.digest) != (version, digest):
                known = _file(path, version, digest, settings)
            if known is not None:
                files[path] = known
                earlier.pop(path.stem, None)  # measured again, since it was damaged
        self._files = files
        every = (*files.values(), *earlier.values())
        looked = sorted(every, key=lambda file: (file.record.position, file.record.key.name))
        self._seen = folder, versions, looked
        return [*looked]

    @property
    def problems(self) -> list[str]:
        """Returns sentences on damage that is not of one trial."""
        return self._merged[1].problems if self._merged else []

    def _read_merged(
        self,
        folder: Path,
        entry: Mapping[str, Any],
        settings: Sequence[Mapping[str, Any]],
        names: Callable[[], Iterable[str]],
    ) -> dict[str, TrialFile]:
        """Returns the merged trials by their names."""
        from nephoscope.store import merged_trials, trialfile

        samples, records = merged_trials.paths(folder)
        versions = _merged_versions(folder)
        known = self._merged[1] if self._merged and self._merged[0] == versions else None
        if known is None or known.samples != samples:
            known = merged_trials.MergedTrials(folder, entry)
            self._merged = versions, known
        digest = entry["samples_sha256"]
        trials = {
            trial.record.key.name: TrialFile(
                samples, versions[0], digest, trial.record, readable=True, merged=trial
            )
            for trial in known.trials
            if trial.readable
        }
        if len(trials) < entry["trials"]:
            damaged = {trial.record.key.name for trial in known.trials if not trial.readable}
            for name in {*names()} - trials.keys():
                path = samples if name in damaged else records
                reason = f"{path} is damaged: {name} is not as it was stored."
                stand_in = trialfile.damaged_record(folder / f"{name}.parquet", settings, reason)
                if stand_in is not None:
                    trials[name] = TrialFile(path, _MISSING, "", stand_in, readable=False)
        return trials


def _merged_versions(folder: Path) -> tuple[Version, ...]:
    """Returns the versions of the two files in which trials are merged."""
    from nephoscope.store import merged_trials

    return tuple(map(_version, merged_trials.paths(folder)))


def _version(path: Path) -> Version:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return _MISSING
    except OSError:
        return _UNKNOWN
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


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


def forget_read_files() -> None:
    """Forgets the files that were read, after those of a run were merged and removed."""
    _read.cache_clear()
