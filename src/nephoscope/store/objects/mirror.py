"""The folder of this machine that mirrors a store on object storage.

A run that is measured here is written into the folder as into any local store, and published when
its lock is released: first its objects, then its entry in the index, which is the moment from which
others see it. What a killed process left is published by the next command. A run of others is
brought into the folder when it is first asked for, its samples when they are first read.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.reading import regular
from nephoscope.store.digests import digest_of
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.objects import packs
from nephoscope.store.objects.address import ObjectAddress
from nephoscope.store.objects.object_index import (
    REQUESTS_AT_ONCE,
    IndexEntry,
    ObjectIndex,
)
from nephoscope.store.objects.primitives import ObjectService

REFRESH_S = 2.0
"""Age up to which a process uses the index as it read it."""
_OWN, _UNPUBLISHED = ".objects", "unpublished"
_BASE, _SPARSE = ".published-", ".samples-elsewhere"
"""Files of a run's folder: the published state that it is, by the digest of its pack; and a mark
that its samples are an empty file of their size so far."""
_NEW, _OLD = ".new", ".removed"


class Mirror:
    """A folder that mirrors one store. Used by several threads."""

    def __init__(self, folder: Path, address: ObjectAddress, service: ObjectService) -> None:
        self.folder, self.address, self.service = folder, address.text, service
        self.runs = folder / "runs"
        self._own = folder / _OWN
        self.index = ObjectIndex(service, self.address, self._own / "segments")
        self._entries: dict[str, IndexEntry] = {}
        self._refreshed_s = -1e9
        self._lock = threading.RLock()
        self.removed_later: list[str] | None = None
        """Runs to take out of the index together; None where each is taken out at once."""
        self.is_published = False
        """What earlier commands left was looked for in this process."""
        for path in (self.runs, self._own / "segments", self._own / _UNPUBLISHED):
            with translating_os_errors(path, "created"):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def identity(self) -> str:
        """Returns a text that no other mirror has; made once."""
        path = self._own / "identity"
        with translating_os_errors(path, "written"):
            if not path.exists():
                number = os.urandom(8).hex()
                aside = path.with_name(f".{number}")
                aside.write_text(f"{os.uname().nodename} {number}", encoding="utf-8")
                with contextlib.suppress(FileExistsError):  # another process was faster
                    os.link(aside, path)
                aside.unlink()
            return regular.read_text(path)

    def names(self) -> list[str]:
        """Returns the ids of all runs: those of the index, and those that wait here."""
        waiting = {name for name in self.unpublished() if (self.runs / name).is_dir()}
        return sorted(self.entries().keys() | waiting)

    def entries(self, *, fresh: bool = False) -> Mapping[str, IndexEntry]:
        """Returns the runs of the index; read again where that is older than `REFRESH_S`."""
        with self._lock:
            if fresh or time.monotonic() - self._refreshed_s > REFRESH_S:
                self._entries = self.index.refresh()
                self._refreshed_s = time.monotonic()
            return self._entries

    def known_entry(self, run_id: str) -> IndexEntry | None:
        """Returns a run of the index as it was read last."""
        return (self._entries if self._refreshed_s > 0 else self.entries()).get(run_id)

    def entry(self, run_id: str) -> IndexEntry | None:
        """Returns a run of the index as it is now."""
        entry = self.index.entry(run_id)
        with self._lock:
            if entry is not None:
                self._entries = {**self._entries, run_id: entry}
            else:
                self._entries = {run: e for run, e in self._entries.items() if run != run_id}
        return entry

    # Marks of runs that wait for being published.

    def unpublished(self) -> list[str]:
        """Returns the ids of runs that changed here since they were published."""
        with translating_os_errors(self._own, "read"):
            return sorted(os.listdir(self._own / _UNPUBLISHED))

    def mark_path(self, run_id: str) -> Path:
        """Returns the file that marks a run as changed; its content is what is being published."""
        return self._own / _UNPUBLISHED / run_id

    def mark(self, run_id: str) -> None:
        """Marks a run as one that is being changed here."""
        path = self.mark_path(run_id)
        with translating_os_errors(path, "written"):
            path.touch()

    # The published state that a folder is.

    def base(self, run_id: str) -> dict[str, Any]:
        """Returns what was published or brought last: `pack`, `samples`, `stamp`, `labels`."""
        return self.base_of(self.runs / run_id)

    def base_of(self, folder: Path) -> dict[str, Any]:
        """Returns the published state that a folder is; empty where it was never published."""
        with translating_os_errors(folder, "read"):
            for path in folder.glob(f"{_BASE}*"):
                with contextlib.suppress(ValueError, FileNotFoundError):
                    values: dict[str, Any] = json.loads(
                        regular.read_regular(path, limits.STATE_BYTES)
                    )
                    return values
        return {}

    def clear_base(self, folder: Path) -> None:
        """Notes that a run's folder was never published."""
        with translating_os_errors(folder, "written"):
            for path in folder.glob(f"{_BASE}*"):
                path.unlink(missing_ok=True)

    def set_base(self, folder: Path, values: Mapping[str, Any]) -> None:
        """Notes that a run's folder is this published state."""
        name = f"{_BASE}{name_of(values['pack'])}"
        write_atomically(folder / name, json.dumps(values).encode(), durable=False)
        with translating_os_errors(folder, "written"):
            for path in folder.glob(f"{_BASE}*"):
                if path.name != name:
                    path.unlink(missing_ok=True)

    # Bringing runs of the index into the folder.

    def bring_all(self, run_ids: Iterable[str]) -> None:
        """Brings runs, many at once; one that cannot be brought is left out."""

        def bring(run_id: str) -> None:
            with contextlib.suppress(StoreError):
                self.bring(run_id)

        missing = [run_id for run_id in run_ids if not self._is_here(run_id)]
        if missing:
            with ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
                list(threads.map(bring, missing))

    def bring(self, run_id: str) -> None:
        """Makes a run's folder as the index has it. A run that is in neither is left to its reader.

        Raises StoreError where an object is missing or damaged.
        """
        if run_id.startswith(".") or self._is_here(run_id):
            return  # one that is being made has no name yet
        entry = self.known_entry(run_id)
        for _ in range(3):
            if entry is None:
                return
            aside = self.runs / f".{run_id}.{os.getpid()}-{threading.get_ident()}{_NEW}"
            try:
                if self.unpack_into(aside, run_id, entry):
                    self._swap(aside, run_id)
                    return
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            entry = self.entry(run_id)  # published again, or removed, since it was looked up
        raise StoreError(f"{self.address}/{pack_key(run_id, entry or {})} is missing.", _RESTORE)

    def _is_here(self, run_id: str) -> bool:
        entry = self.known_entry(run_id)
        if entry is None or self.mark_path(run_id).exists():
            return True
        return (self.runs / run_id / f"{_BASE}{name_of(entry['pack'])}").exists()

    def unpack_into(self, folder: Path, run_id: str, entry: IndexEntry) -> bool:
        """Writes a published run into an empty folder, its samples as an empty file of their size.

        Returns False where its object is gone. Raises StoreError for a damaged one.
        """
        from nephoscope.store.manifest import read_manifest
        from nephoscope.store.summary import stamp_of

        key = pack_key(run_id, entry)
        answer = self.service.get(key)
        if answer is None:
            return False
        if digest_of(answer.content) != entry["pack"].partition(".")[0]:
            raise StoreError(
                f"{self.address}/{key} is damaged: its content is not what was stored.", _RESTORE
            )
        with translating_os_errors(folder, "written"):
            folder.mkdir(mode=0o700)
            (folder / "trials").mkdir()
        packs.unpack(answer.content, folder, f"{self.address}/{key}")
        if entry.get("samples"):
            _make_sparse(folder, entry["samples"])
        labels = read_manifest(folder / "manifest.json").labels
        self.set_base(folder, {**entry, "stamp": stamp_of(folder), "labels": dict(labels)})
        return True

    def _swap(self, aside: Path, run_id: str) -> None:
        final = self.runs / run_id
        old = self.runs / f".{run_id}.{os.getpid()}{_OLD}"
        with translating_os_errors(final, "written"):
            with contextlib.suppress(FileNotFoundError):
                final.rename(old)
            # Another process of this machine may have brought it meanwhile, which is as good.
            with contextlib.suppress(OSError):
                aside.rename(final)
        shutil.rmtree(old, ignore_errors=True)

    def bring_samples(self, run_id: str) -> None:
        """Fetches the samples of a run that was brought without. Raises StoreError."""
        folder = self.runs / run_id
        mark = folder / _SPARSE
        if not mark.exists():
            return
        samples = self.base(run_id).get("samples") or {}
        key = samples_key(run_id, samples)
        path = folder / packs.SAMPLES
        if not self.service.download(key, path):
            raise StoreError(f"{self.address}/{key} is missing.", _RESTORE)
        with translating_os_errors(path, "written"):
            os.utime(path, ns=(samples["mtime_ns"], samples["mtime_ns"]))
            mark.unlink(missing_ok=True)

    def forget(self, run_ids: Iterable[str]) -> None:
        """Removes copies, so that they are brought again; not those that wait here."""
        waiting = set(self.unpublished())
        for run_id in run_ids:
            if run_id not in waiting and self.known_entry(run_id) is not None:
                shutil.rmtree(self.runs / run_id, ignore_errors=True)

    def are_samples_elsewhere(self, run_id: str) -> bool:
        """States whether a run's samples were not fetched yet."""
        return (self.runs / run_id / _SPARSE).exists()


_RESTORE = "Restore the store's objects from a copy, or remove the run."


def new_name(digest: str) -> str:
    """Returns what names content: its digest, and a number that no other writing of it has.

    Without the number, who removes an object that was replaced could remove the same content that
    another writer has just stored again.
    """
    return f"{digest}.{os.urandom(4).hex()}"


def name_of(name: str) -> str:
    """Returns a name of `new_name` as keys of objects have it."""
    digest, _, number = name.partition(".")
    return f"{digest[:12]}-{number}"


def pack_key(run_id: str, entry: Mapping[str, Any]) -> str:
    """Returns the key of the object with a run's files."""
    return f"runs/{run_id}/run-{name_of(str(entry.get('pack', '')))}.tar.gz"


def samples_key(run_id: str, samples: Mapping[str, Any]) -> str:
    """Returns the key of the object with a run's samples."""
    return f"runs/{run_id}/samples-{name_of(str(samples.get('name', '')))}.parquet"


def _make_sparse(folder: Path, samples: Mapping[str, Any]) -> None:
    path = folder / packs.SAMPLES
    with translating_os_errors(path, "written"):
        (folder / _SPARSE).touch()
        path.touch()
        os.truncate(path, samples["bytes"])
        os.utime(path, ns=(samples["mtime_ns"], samples["mtime_ns"]))
