"""The store: a directory of runs. No server, no lock file, readable by any Parquet reader."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import __version__
from nephoscope.catalog import MEANING, MEANING_OF_METRIC, BenchmarkSpec, Catalog
from nephoscope.core.counting import counted
from nephoscope.core.documents import to_json
from nephoscope.core.errors import (
    ReplayedRun,
    StoreError,
    UnknownName,
    UnreadableRun,
    UsageError,
)
from nephoscope.core.format_versions import RUN
from nephoscope.core.model import Setting
from nephoscope.store import day_files
from nephoscope.store.files import opened, sync_directory, translating_os_errors
from nephoscope.store.holder import WITHOUT_RESULTS
from nephoscope.store.manifest import FAILED, MEASURED, RUNNING, RunManifest, write_manifest
from nephoscope.store.objects.address import data_folder, folder_of
from nephoscope.store.run import StoredRun
from nephoscope.store.store_folder import StoreFolder

if TYPE_CHECKING:
    from nephoscope.measure.plans import Plan

_ID = re.compile(r"\d{8}-\d{6}-[a-z0-9][a-z0-9_-]*-[0-9a-f]{4}")

_NEW, _REMOVED = ".new", ".removed"
"""Ends of the names of folders that are not yet, or no longer, a run."""


def default_path() -> Path:
    """NEPHOSCOPE_STORE, else $XDG_DATA_HOME/nephoscope, else ~/.local/share/nephoscope.

    Of an address on object storage, the folder that mirrors it.
    """
    configured = os.environ.get("NEPHOSCOPE_STORE")
    return folder_of(configured) if configured else data_folder()


def warn_of_unreadable(sentence: str) -> None:
    """Warns of a run that is left out, where no caller takes the sentence."""
    warnings.warn(sentence, UnreadableRun, stacklevel=2)


class Store(StoreFolder):
    """A directory of runs: STORE/runs/<run id>/.

    path: of the directory; or the address of a store on object storage, of which the directory is
    then the mirror (see `objects`).
    """

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(folder_of(path) if path is not None else default_path())

    def create(
        self,
        plan: Plan,
        seed: int,
        *,
        catalog: Catalog,
        settings: Sequence[Setting],
        labels: Mapping[str, str] | None = None,
    ) -> StoredRun:
        """Begins a run of a plan; the run exists with its manifest, or not at all."""
        from nephoscope.measure import plans

        used = {name for setting in settings for name, *_ in setting.executions()}
        values = {
            "plan": plans.plan_values(plan),
            "plan_hash": plans.plan_hash(plan),
            "plan_name": plan.name,
            "question": plan.question,
            "seed": seed,
            "probe": catalog.probe,
            "protocol": catalog.protocol,
            "targets": [target.model_dump() for target in plan.targets],
            "settings": to_json(settings),
            "specs": [spec_json(spec) for spec in catalog.benchmarks.values() if spec.id in used],
            "confidence": plan.confidence,
            "margin": plan.margin,
            "budget_s": plan.budget_s,
            "labels": dict(labels or {}),
        }
        with self.new(plan.name, values) as run:
            return run

    @contextlib.contextmanager
    def new(self, name: str, values: Mapping[str, Any]) -> Iterator[StoredRun]:
        """A run that appears under its name when the block ends, and not if it fails.

        Keys given by us: version, id, state, nephoscope, created_at, started_at, finished_at,
        fingerprints, outcomes, refused, spent_s; `values` gives the others and may replace these.
        """
        started = datetime.now(UTC)
        run_id = self._unused_id(f"{started:%Y%m%d-%H%M%S}-{name}")
        full = {
            "version": RUN.version,
            "id": run_id,
            "state": RUNNING,
            "nephoscope": __version__,
            "created_at": started.timestamp(),
            "started_at": started.timestamp(),
            "finished_at": None,
            "fingerprints": {},
            "outcomes": [],
            "refused": [],
            "spent_s": 0.0,
            **values,
        }
        with self.adding(run_id) as aside:
            (aside / "trials").mkdir(parents=True)
            write_manifest(aside, RunManifest.of(full))
            run = StoredRun(aside, run_id)
            yield run
            run.path = self.runs_path / run_id

    @contextlib.contextmanager
    def adding(self, run_id: str) -> Iterator[Path]:
        """A folder, not made yet, that is the run of this id when the block ends, and vanishes if
        it fails."""
        self._begin()
        final = self.runs_path / run_id
        aside = self.runs_path / f".{run_id}.{os.getpid()}{_NEW}"
        try:
            with translating_os_errors(final, "created"):
                yield aside
                if self._mirror is not None:
                    self._mirror.mark(run_id)
                aside.rename(final)
                sync_directory(self.runs_path)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        if self._mirror is not None and self._run(run_id).state != RUNNING:
            self._publish(run_id)

    def _unused_id(self, prefix: str) -> str:
        """An identifier that no run has: many runs may begin within a second."""
        while True:
            run_id = f"{prefix}-{os.urandom(2).hex()}"
            if not (self.runs_path / run_id).exists():
                return run_id

    def _begin(self) -> None:
        self._publish_waiting()
        with translating_os_errors(self.runs_path, "created"):
            self.path.mkdir(parents=True, exist_ok=True)
            # Plans, addresses and fingerprints inside are nobody else's business; but what `sudo`
            # makes in a user's folder has to stay readable for that user.
            made_for_another = os.geteuid() != self.path.parent.stat().st_uid and not os.geteuid()
            self.runs_path.mkdir(mode=0o755 if made_for_another else 0o700, exist_ok=True)
        self.remove_leftovers()

    def remove_leftovers(self) -> None:
        """Removes what killed processes left of runs that were created or removed."""
        for left in (*self.runs_path.glob(f".*{_NEW}"), *self.runs_path.glob(f".*{_REMOVED}")):
            pid = left.name.split(".")[-2]
            if pid.isdigit() and not Path("/proc", pid).exists():
                shutil.rmtree(left, ignore_errors=True)

    @contextlib.contextmanager
    def choosing(self) -> Iterator[None]:
        """Held while a process picks the run it will measure, so that two do not pick one."""
        self._begin()
        with opened(self.runs_path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            # Network file systems may refuse locks on directories; the run's own lock remains.
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield

    def ids(self) -> list[str]:
        """The ids of all runs, oldest first; what is read of each to list it is at hand."""
        names = self._names()
        if self._mirror is not None:
            self._mirror.bring_all(names)
        return names

    def _names(self) -> list[str]:
        """The ids of all runs, oldest first."""
        if self._mirror is not None:
            self._publish_waiting()
            return [name for name in self._mirror.names() if _ID.fullmatch(name)]
        with translating_os_errors(self.runs_path, "read"):
            if not self.runs_path.exists():
                return []
            return sorted(name for name in os.listdir(self.runs_path) if _ID.fullmatch(name))

    def runs(self) -> list[StoredRun]:
        """All runs whose manifest can be read, oldest first; warns of each other one."""
        return list(self.each(warn_of_unreadable))

    def damaged(self) -> list[str]:
        """One sentence for each run whose manifest cannot be read."""
        sentences: list[str] = []
        for _ in self.each(sentences.append):
            pass
        return sentences

    def each(
        self, damaged: Callable[[str], object], *, replays: bool = True
    ) -> Iterator[StoredRun]:
        """Yields the readable runs, oldest first; `damaged` gets a sentence for each other one.

        replays: False leaves out runs that answered from a recording: they are no measurements.
        """
        runs = self._readable(counted(self.ids(), "Reading runs"), damaged)
        return (run for run in runs if replays or not run.manifest.recorded_targets)

    def _readable(
        self, ids: Iterable[str], damaged: Callable[[str], object]
    ) -> Iterator[StoredRun]:
        for run_id in ids:
            run = self._run(run_id)
            try:
                _ = run.manifest
            except StoreError as error:
                damaged(str(error))
            else:
                yield run

    def open(self, name: str) -> StoredRun:
        """The run that `find` returns; StoreError when its manifest cannot be read.

        Warns where it is a replay of a recording.
        """
        run = self.find(name)
        if run.manifest.recorded_targets:
            sentence = f"Run {run.id} is a replay of a recording: no new measurement."
            warnings.warn(sentence, ReplayedRun, stacklevel=2)
        return run

    def open_or_none(self, run_id: str) -> StoredRun | None:
        """The run of an id; None when its manifest cannot be read."""
        return next(self._readable([run_id], lambda _: None), None)

    def find(self, name: str) -> StoredRun:
        """The run of an id, of a unique beginning of one, or `latest`; damaged ones too.

        Raises UnknownName when there is none, UsageError when several begin so.
        """
        ids = self._names()
        if not ids and (name == "latest" or not day_files.day_files(self.path)):
            raise UnknownName(
                f"There is no run in {self.address}.", "Measure: `nephoscope survey`."
            )
        if name == "latest":
            chosen = [self._latest(ids)]
        else:
            chosen = [name] if name in ids else [known for known in ids if known.startswith(name)]
        if not chosen or not name:
            compacted = day_files.find(self.path, name)
            if compacted is not None:
                raise UnknownName(
                    f"The trials of run {compacted[0]} were compacted into {compacted[1]}.",
                    "`nephoscope history METRIC` reads its histograms.",
                )
            raise UnknownName(
                f"There is no run '{name}' in {self.address}.", "`nephoscope runs` shows them all."
            )
        if len(chosen) > 1:
            raise UsageError(
                f"{len(chosen)} runs begin with '{name}': {', '.join(chosen[:5])}"
                f"{', …' if len(chosen) > 5 else ''}.",
                "Write more of the id.",
            )
        return self._run(chosen[0])

    def remove(self, run: StoredRun) -> None:
        """Removes a run with its trials and reports; StoreError while a process measures it."""
        if self.absence(run.id) is not None:
            self._take_out(run.id)  # an object is damaged, so that no copy of it can be held
            return
        with run.hold():
            self.discard(run)

    def discard(self, run: StoredRun) -> None:
        """Removes a run whose lock this process has."""
        self._take_out(run.id)
        aside = self.runs_path / f".{run.id}.{os.getpid()}{_REMOVED}"
        with self.choosing(), translating_os_errors(run.path, "removed"):
            try:
                run.path.rename(aside)
            except OSError as error:
                # overlayfs renames no folder of a lower layer, in which the store of an image lies.
                if error.errno != errno.EXDEV:
                    raise
                aside = run.path
            sync_directory(self.runs_path)
            # From here on the run is gone, and what a kill leaves is removed by the next run.
            shutil.rmtree(aside)
        if self._mirror is not None:
            self._mirror.mark_path(run.id).unlink(missing_ok=True)

    def resumable(self, plan_hash: str) -> StoredRun | None:
        """The newest run of that plan that is not finished; None if there is none.

        On object storage, of those that were begun on this machine.
        """
        runs = self.runs() if self._mirror is None else self._own_unfinished()
        for run in sorted(runs, key=_created_s, reverse=True):
            if run.manifest.plan_hash == plan_hash and run.state in (RUNNING, MEASURED):
                return run
        return None

    def _own_unfinished(self) -> list[StoredRun]:
        names = self.unfinished_names()
        return list(self._readable([run for run in self._names() if run in names], lambda _: None))

    def _latest(self, ids: Sequence[str]) -> str:
        """The newest run with results or in progress, else the newest that did not fail.

        UnknownName where all failed.
        """
        newest = abandoned = None
        for run in self._newest_first(ids):
            if run.status not in WITHOUT_RESULTS:
                return run.id
            newest = newest or run
            abandoned = abandoned or (run if run.status != FAILED else None)
        if abandoned is not None:
            return abandoned.id
        if newest is None:
            return ids[-1]
        raise UnknownName(
            f"No run in {self.address} has results: the newest failed.",
            f"`nephoscope show {newest.id}` shows why.",
        )

    def newest(self) -> StoredRun | None:
        """The newest run, whatever its state; None when there is no readable one."""
        return next(self._newest_first(self._names()), None)

    def _newest_first(self, ids: Sequence[str]) -> Iterator[StoredRun]:
        """Readable runs; ids do not order the runs of one second, so their manifests do."""
        for _, group in groupby(reversed(ids), key=lambda run_id: run_id[:15]):
            yield from sorted(
                self._readable(group, warn_of_unreadable), key=_created_s, reverse=True
            )

    def _run(self, run_id: str) -> StoredRun:
        return StoredRun(self.runs_path / run_id)


def _created_s(run: StoredRun) -> float:
    return run.manifest.created_at


def spec_json(spec: BenchmarkSpec) -> dict[str, Any]:
    """A benchmark's declaration as benchmarks.json has it, without page and meaning."""
    values = {key: value for key, value in to_json(spec).items() if key not in MEANING}
    metrics = [
        {key: value for key, value in metric.items() if key not in MEANING_OF_METRIC}
        for metric in values["metrics"]
    ]
    return {**values, "metrics": metrics, "page": ""}
