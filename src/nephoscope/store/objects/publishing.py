"""Publishes runs of a mirror: objects first, then the index, then what they replaced is removed.

A kill between any two steps leaves the run as it was for others, and its mark on this machine, so
that the next command publishes it. Nothing waits for a lock: an entry is replaced only while it is
the one from which the change began, else the changes are put together.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.reading import regular
from nephoscope.store import summary
from nephoscope.store.digests import digest_of, digest_of_file
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.holder import lock_if_free
from nephoscope.store.manifest import (
    MEASURED,
    RUNNING,
    RunManifest,
    read_manifest,
    write_manifest,
)
from nephoscope.store.objects import packs
from nephoscope.store.objects.conditions import require_conditional_writes
from nephoscope.store.objects.mirror import (
    Mirror,
    new_name,
    pack_key,
    samples_key,
)
from nephoscope.store.objects.object_index import ChangedMeanwhile, IndexEntry


def begin_change(mirror: Mirror, run_id: str) -> None:
    """Prepares a change of a run: its newest state is here, and marked as being changed.

    Raises StoreError for a run that another machine has not ended.
    """
    if mirror.mark_path(run_id).exists():
        return
    entry = mirror.entry(run_id)
    if entry is not None:
        if entry["state"] == RUNNING and entry["origin"] != mirror.identity:
            machine = entry["origin"].partition(" ")[0]
            raise StoreError(
                f"Run {run_id} was begun on machine {machine} and has not ended.",
                "Continue or stop it there, or start a new run with --fresh.",
            )
        mirror.bring(run_id)
    mirror.mark(run_id)


def publish(mirror: Mirror, run_id: str) -> None:
    """Publishes a run if it changed since it was published or brought. Raises StoreError."""
    folder = mirror.runs / run_id
    mark = mirror.mark_path(run_id)
    while folder.is_dir() and (folder / "manifest.json").exists():
        base = mirror.base(run_id)
        stamp = summary.stamp_of(folder)
        if base.get("stamp") == stamp:
            break
        try:
            _publish_state(mirror, folder, base, stamp)
            break
        except ChangedMeanwhile as change:
            _take_over(mirror, folder, base, change.entry)
    _delete_earlier(mirror, run_id)
    with translating_os_errors(mark, "removed"):
        mark.unlink(missing_ok=True)


def _publish_state(mirror: Mirror, folder: Path, base: Mapping[str, Any], stamp: str) -> None:
    run_id = folder.name
    require_conditional_writes(mirror)
    manifest = read_manifest(folder / "manifest.json")
    content = packs.packed(folder)
    samples = _samples(mirror, folder, base)
    entry = {
        "pack": new_name(digest_of(content)),
        "samples": samples,
        "state": manifest.state,
        "origin": base.get("origin") or mirror.identity,
    }
    values = {**entry, "stamp": stamp, "labels": dict(manifest.labels)}
    _note(mirror, run_id, values, base)
    if samples and samples != base.get("samples"):
        mirror.service.put(samples_key(run_id, samples), folder / packs.SAMPLES)
    mirror.service.put(pack_key(run_id, entry), content)
    mirror.index.put(run_id, entry, base.get("pack", ""))
    mirror.set_base(folder, values)
    mirror.entry(run_id)


def _note(mirror: Mirror, run_id: str, values: Mapping[str, Any], base: Mapping[str, Any]) -> None:
    """Notes in the mark of a run what is about to be published, before its first object is.

    If the answer of the index is lost, this tells our own entry from another writer's. `earlier`
    has the states whose objects are removed afterwards: the one that is replaced, and those whose
    publishing was killed.
    """
    earlier = _states_of(mirror, run_id)
    if base:
        earlier.append(base)
    names = [{key: state[key] for key in ("pack", "samples")} for state in earlier]
    write_atomically(mirror.mark_path(run_id), json.dumps({**values, "earlier": names}).encode())


def _states_of(mirror: Mirror, run_id: str) -> list[Mapping[str, Any]]:
    """Returns the states that a mark names: the one that was being published, and earlier ones."""
    with contextlib.suppress(ValueError, OSError):
        mark = regular.read_regular(mirror.mark_path(run_id), limits.STATE_BYTES)
        noted = json.loads(mark or b"{}")
        if noted.get("pack"):
            return [noted, *noted.get("earlier", ())]
    return []


def _delete_earlier(mirror: Mirror, run_id: str) -> None:
    """Removes the objects of the states that a mark names, but those of the published one."""
    now = mirror.base(run_id)
    for state in _states_of(mirror, run_id) if now else ():
        if state["pack"] != now["pack"]:
            _delete_objects(mirror, run_id, state, now)


def _samples(mirror: Mirror, folder: Path, base: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns digest and size of the samples; the published ones where they are elsewhere."""
    path = folder / packs.SAMPLES
    known = base.get("samples")
    if mirror.are_samples_elsewhere(folder.name):
        return dict(known) if known else None
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    if known and (known["bytes"], known["mtime_ns"]) == (stat.st_size, stat.st_mtime_ns):
        return dict(known)
    with translating_os_errors(path, "read"):
        digest = digest_of_file(path, limits.SAMPLES_BYTES)
    return {"name": new_name(digest), "bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _take_over(
    mirror: Mirror, folder: Path, base: Mapping[str, Any], entry: IndexEntry | None
) -> None:
    """Puts a published change of another writer and the change here together.

    Trials change on the machine that measures; elsewhere only labels and the end of the report do.
    """
    run_id = folder.name
    for written in _states_of(mirror, run_id)[:1]:
        if entry is not None and written["pack"] == entry["pack"]:
            # The answer of this machine's own write was lost.
            mirror.set_base(folder, {key: written[key] for key in written if key != "earlier"})
            return
    is_measured_here = not base or base["origin"] == mirror.identity
    if entry is None and not is_measured_here:
        shutil.rmtree(folder, ignore_errors=True)
        mirror.mark_path(run_id).unlink(missing_ok=True)
        raise StoreError(f"Run {run_id} was removed by another machine meanwhile.")
    if entry is None:
        mirror.clear_base(folder)  # what was measured is published again
        return
    published = mirror.runs / f".{run_id}.{os.getpid()}.new"
    try:
        if mirror.unpack_into(published, run_id, entry):
            if is_measured_here:
                _keep_trials(mirror, folder, published, base)
            else:
                _keep_published(folder, published, base)
    finally:
        shutil.rmtree(published, ignore_errors=True)


def _keep_trials(mirror: Mirror, folder: Path, published: Path, base: Mapping[str, Any]) -> None:
    """Takes the labels of the published state over, and that state as the one to replace."""
    manifest, read = _manifests(folder, published)
    labels = merged_labels(base.get("labels", {}), manifest.labels, read.labels)
    write_manifest(folder, manifest.changed({"labels": labels}))
    mirror.set_base(folder, {**mirror.base_of(published), "stamp": ""})


def _keep_published(folder: Path, published: Path, base: Mapping[str, Any]) -> None:
    """Makes the folder the published state, with the labels and the state that were set here."""
    manifest, read = _manifests(folder, published)
    changes: dict[str, Any] = {
        "labels": merged_labels(base.get("labels", {}), manifest.labels, read.labels)
    }
    if read.state == MEASURED:
        changes |= {"state": manifest.state, "journal": manifest.journal}
        shutil.copy2(folder / "journal.jsonl", published / "journal.jsonl")
    if changes != {"labels": read.labels}:
        write_manifest(published, read.changed(changes))
    with translating_os_errors(folder, "written"):
        shutil.rmtree(folder)
        published.rename(folder)


def _manifests(folder: Path, published: Path) -> tuple[RunManifest, RunManifest]:
    return read_manifest(folder / "manifest.json"), read_manifest(published / "manifest.json")


def merged_labels(
    base: Mapping[str, str], changed: Mapping[str, str], published: Mapping[str, str]
) -> dict[str, str]:
    """Returns the published labels with those changes that were made here since `base`."""
    merged = dict(published)
    for key in base.keys() | changed.keys():
        if changed.get(key) != base.get(key):
            merged.pop(key, None)
            if key in changed:
                merged[key] = changed[key]
    return merged


def publish_waiting(mirror: Mirror, say: Callable[[str], object]) -> None:
    """Publishes what a killed process, or one without a connection, left on this machine.

    say: takes a sentence for each run.
    """
    for run_id in mirror.unpublished():
        folder = mirror.runs / run_id
        if not (folder / "manifest.json").exists():
            mirror.mark_path(run_id).unlink(missing_ok=True)
            continue
        with lock_if_free(folder / "journal.jsonl") as is_free:
            if not is_free:
                continue  # a process of this machine measures or changes it
            changed = mirror.base(run_id).get("stamp") != summary.stamp_of(folder)
            try:
                publish(mirror, run_id)
            except StoreError as error:
                say(f"Run {run_id} waits on this machine: {error.message}")
                continue
        if changed:
            say(f"Run {run_id}, which an earlier command left here, was published.")


def remove(mirror: Mirror, run_ids: Iterable[str]) -> None:
    """Takes runs out of the index, then removes their objects."""
    for run_id, entry in mirror.index.remove(run_ids).items():
        _delete_objects(mirror, run_id, entry, {})
    mirror.entries(fresh=True)


def _delete_objects(
    mirror: Mirror, run_id: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Removes the objects of a state that nothing names any more; a reader of it looks again."""
    keys = {pack_key(run_id, old)} - {pack_key(run_id, new)}
    if old.get("samples"):
        keys |= {samples_key(run_id, old["samples"])} - {
            samples_key(run_id, new.get("samples") or {})
        }
    for key in keys:
        # What is left takes space, and nothing names it.
        with contextlib.suppress(StoreError):
            mirror.service.delete(key)
