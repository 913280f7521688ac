"""Stores of several controllers put into one: runs are copied whole, or refused by name.

What would be copied is decided before the first copy, so that a conflict leaves the store as it
was. Each run appears with one rename of its folder; a kill leaves some runs copied and no run
half, and the same command copies the others.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nephoscope.core import limits
from nephoscope.core.counting import counted
from nephoscope.core.documents import to_json
from nephoscope.core.errors import StoreError
from nephoscope.core.naming import plural
from nephoscope.core.reading import regular
from nephoscope.store import day_files, summary
from nephoscope.store.digests import digest_of, digest_of_file
from nephoscope.store.files import make_durable, translating_os_errors
from nephoscope.store.manifest import RUNNING, RunManifest, write_manifest
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store
from nephoscope.store.summary import RunMeasurements

_IDENTITY = (
    *("id", "plan", "plan_hash", "settings", "specs", "targets", "seed"),
    *("nephoscope", "created_at", "fingerprints", "imported"),
)
"""Attributes of a manifest that never change once a run has ended."""
_TRIALS = "trials"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class MergedSource:
    """What became of the runs of one store.

    copied, present: ids of runs that were copied, and of those that the store had already.
    compacted: ids of runs that day files hold, of which the summaries were copied. left_out: a
    sentence for each run that was not copied.
    """

    store: str
    copied: tuple[str, ...]
    present: tuple[str, ...]
    compacted: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(slots=True)
class _SourceStore:
    store: Store
    runs: list[StoredRun] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    summaries: list[RunMeasurements] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def content_digest(run: StoredRun) -> str:
    """Returns the digest of what a run measured and how: the same for every copy of it.

    Labels, reports and the places where it has been are no part of it. Raises StoreError.
    """
    return digest_of(json.dumps(_content(run), sort_keys=True, default=str).encode())


def _content(run: StoredRun) -> dict[str, Any]:
    manifest = run.manifest
    content = {name: to_json(getattr(manifest, name)) for name in _IDENTITY}
    merged = manifest.merged_trials
    if merged is not None:
        content[_TRIALS] = [merged["records_sha256"], merged["samples_sha256"]]
    else:
        run.bring_samples()
        with translating_os_errors(run.trials_path, "read"):
            content[_TRIALS] = {
                path.stem: digest_of_file(path, limits.TRIAL_FILE_BYTES)
                for path in sorted(run.trials_path.glob("[rw]*.parquet"))
            }
    return content


class StoreMerge:
    """The merge of stores into `target`. leaves_out: conflicting runs are left out and named; else
    they are in `conflicts`, and nothing may be copied."""

    def __init__(self, target: Store, sources: Sequence[Store], *, leaves_out: bool) -> None:
        self._target = target
        self._leaves_out = leaves_out
        self.conflicts: list[str] = []
        self._known: dict[str, tuple[str, StoredRun]] = {}
        self._compacted: dict[str, tuple[str, RunMeasurements]] = {}
        self._units: dict[tuple[str, str], tuple[str, str]] = {}
        self._watches: dict[str, tuple[str, Any]] = {}
        self._plans: dict[str, tuple[str, RunManifest]] = {}
        """Hash of a plan -> the first run that has it, with its store's address."""
        self._take_target()
        self._sources = [self._source(store) for store in sources]

    def _take_target(self) -> None:
        store, address = self._target, self._target.address
        self._watches = {name: (address, plan) for name, plan in _watches(store)}
        for run in store.each(lambda _: None):
            self._take(run, address)
        problems: list[str] = []
        for measured in day_files.summaries(store.path, problems):
            self._compacted[measured.run] = (address, measured)

    def _source(self, store: Store) -> _SourceStore:
        source, address = _SourceStore(store), store.address
        for name, definition in _watches(store):
            where, known = self._watches.setdefault(name, (address, definition))
            if known != definition:
                self._conflict(
                    source,
                    f"The watch '{name}' has another definition in {address} than in {where} "
                    f"({_differences(known, definition)}); their runs would be one series.",
                )
        for run in store.each(source.left_out.append):
            self._sort_run(source, run, address)
        for measured in day_files.summaries(store.path, source.left_out):
            self._sort_summary(source, measured, address)
        return source

    def _sort_run(self, source: _SourceStore, run: StoredRun, address: str) -> None:
        known = self._known.get(run.id)
        if known is not None:
            where, known_run = known
            content, known_content = _content(run), _content(known_run)
            if content == known_content:
                source.present.append(run.id)
            else:
                self._conflict(
                    source,
                    f"Run {run.id} is in {address} and in {where} with other content "
                    f"({_differences(known_content, content)}).",
                )
            return
        if run.id in self._compacted:
            source.present.append(run.id)
            return
        if run.state == RUNNING:
            source.left_out.append(
                f"Run {run.id} has not ended: end or resume it in {address}, and merge again."
            )
            return
        if problem := self._unit_problem(address, run):
            self._conflict(source, problem)
            return
        damaged = run.integrity().damaged
        if damaged:
            source.left_out.append(f"Run {run.id} is damaged in {address}: {damaged[0]}")
            return
        self._take(run, address)
        source.runs.append(run)

    def _take(self, run: StoredRun, address: str) -> None:
        """Takes in a run that the store has, or will have."""
        self._known[run.id] = (address, run)
        self._add_units(address, run)
        self._plans.setdefault(run.manifest.plan_hash, (address, run.manifest))

    def _sort_summary(self, source: _SourceStore, measured: RunMeasurements, address: str) -> None:
        if measured.run in self._known:
            source.present.append(measured.run)
            return
        known = self._compacted.setdefault(measured.run, (address, measured))
        if known[1] is measured:
            source.summaries.append(measured)
        elif summary.line_of(known[1]) == summary.line_of(measured):
            source.present.append(measured.run)
        else:
            self._conflict(
                source,
                f"The compacted run {measured.run} is in {address} and in {known[0]} with other "
                "content.",
            )

    def _conflict(self, source: _SourceStore, sentence: str) -> None:
        (source.left_out if self._leaves_out else self.conflicts).append(sentence)

    def _unit_problem(self, address: str, run: StoredRun) -> str:
        """Returns that a metric has another unit in another store; '' where none has."""
        for key, unit in _units(run):
            where, known = self._units.get(key, (address, unit))
            if known != unit:
                return (
                    f"Run {run.id} in {address} has {key[1]} of {key[0]} in {unit}, and {where} "
                    f"has it in {known}."
                )
        return ""

    def _add_units(self, address: str, run: StoredRun) -> None:
        for key, unit in _units(run):
            self._units.setdefault(key, (address, unit))

    def require_one_plan(self) -> None:
        """Adds a conflict for each plan beyond the first one of all runs."""
        if self._plans:
            (where, first), *further = self._plans.values()
            self.conflicts += [
                f"Run {manifest.id} in {address} has another plan than {first.id} in {where} "
                f"({_differences(first.plan, manifest.plan)})."
                for address, manifest in further
            ]

    def preview(self) -> list[MergedSource]:
        """Returns what `apply` would do."""
        return [_result(source) for source in self._sources]

    def apply(self) -> list[MergedSource]:
        """Copies what is missing. Raises StoreError; what was copied by then stays."""
        for source in self._sources:
            for run in counted(source.runs, "Copying runs"):
                _copy(run, source.store.address, self._target)
            if source.summaries:
                with self._target.compacting(), day_files.locked(self._target.path):
                    writer = day_files.DayWriter(self._target.path)
                    for measured in source.summaries:
                        writer.put(measured)
        return self.preview()


def _result(source: _SourceStore) -> MergedSource:
    return MergedSource(
        source.store.address,
        tuple(run.id for run in source.runs),
        tuple(source.present),
        tuple(measured.run for measured in source.summaries),
        tuple(source.left_out),
    )


def _copy(run: StoredRun, address: str, target: Store) -> None:
    """Copies a run with its provenance; it is in the target whole, or not at all."""
    origin = {
        "store": address,
        "sha256": content_digest(run),
        "at": time.time(),
        "machine": socket.gethostname(),
    }
    run.bring_samples()
    with target.adding(run.id) as aside:
        with translating_os_errors(aside, "written"):
            shutil.copytree(run.path, aside, ignore=_not_copied)
        write_manifest(
            aside,
            run.manifest.changed({"merged_from": [*run.manifest.merged_from, origin]}),
        )
        if content_digest(StoredRun(aside, run.id)) != origin["sha256"]:
            raise StoreError(
                f"Run {run.id} changed in {address} while it was copied.", "Merge again."
            )
        make_durable(path for path in aside.rglob("*") if path.is_file())


def _not_copied(folder: str, names: list[str]) -> Iterable[str]:
    """Returns what is no part of a run: locks, what was written aside, links, devices."""
    return [
        name
        for name in names
        if name.startswith(".")
        or os.path.islink(path := os.path.join(folder, name))
        or not (os.path.isfile(path) or os.path.isdir(path))
    ]


def _units(run: StoredRun) -> Iterator[tuple[tuple[str, str], str]]:
    """Yields (benchmark, metric) and unit of a run's metrics."""
    for spec in run.manifest.specs:
        for metric in spec["metrics"]:
            yield (str(spec["id"]), str(metric["id"])), str(metric["unit"])


def _watches(store: Store) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields name and definition of the watches of a store, without who wrote it."""
    for path in sorted((store.path / "watches").glob("*/watch.json")):
        try:
            values = json.loads(regular.read_regular(path, limits.STATE_BYTES))
        except (OSError, ValueError):
            continue  # `watch --list` names it
        if isinstance(values, dict):
            yield (
                path.parent.name,
                {
                    key: value
                    for key, value in values.items()
                    if key not in ("sha256", "nephoscope", "version")
                },
            )


def _differences(a: Any, b: Any) -> str:
    """Returns the names of what differs between two documents: 'plan.seed, settings'."""
    names = list(_differing(a, b, ""))
    more = f" and {plural(len(names) - _NAMED, 'more key')}" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _differing(a: Any, b: Any, place: str) -> Iterator[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys((*a, *b)):
            if a.get(key) != b.get(key):
                yield from _differing(a.get(key), b.get(key), f"{place}.{key}" if place else key)
    elif _are_lists(a, b) and len(a) == len(b):
        for number, (left, right) in enumerate(zip(a, b, strict=True), start=1):
            if left != right:
                yield from _differing(left, right, f"{place}[{number}]")
    else:
        yield place


def _are_lists(a: Any, b: Any) -> bool:
    return isinstance(a, list | tuple) and isinstance(b, list | tuple)
