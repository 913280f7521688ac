"""The list of runs of a store on object storage: found without listing, changed without locks.

The runs are spread over shards by a digest of their id, so that many writers at once rarely want
the same object. A shard's head has the runs that changed last and the names of its segments, which
never change; a head is replaced only as long as it is the version that was read. When a head has
grown, its runs become a segment, so that a write costs the same in a store of any size.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import Any

from nephoscope import __version__
from nephoscope.core import limits
from nephoscope.core.errors import LaterFormat, StoreError
from nephoscope.core.format_versions import OBJECT_STORE
from nephoscope.core.reading import jsontext, regular
from nephoscope.core.records import dataclass
from nephoscope.store import digests
from nephoscope.store.files import write_atomically
from nephoscope.store.objects.primitives import ConditionFailed, ObjectService

SHARDS = 16
"""Shards of a new store. docs/decisions/0090-stores-on-object-storage.md has writes per second."""
FOLD_RUNS, MERGE_SEGMENTS = 256, 8
"""Runs of a head that become a segment; segments that are merged into one."""
REQUESTS_AT_ONCE = 16
RETRY_S = 120.0
"""How long a write is tried again while other writers are faster."""
_READINGS = 5
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 2.0

ROOT = "store.json"

IndexEntry = Mapping[str, Any]
"""A run: `pack` and `samples` (digests of its objects), `state`, `origin`; or `removed`."""


class ChangedMeanwhile(Exception):
    """Another writer changed a run. entry: as it is now; None where it is removed."""

    def __init__(self, entry: IndexEntry | None) -> None:
        super().__init__("another writer changed the run")
        self.entry = entry


@dataclass(slots=True)
class _Head:
    """A shard. version: of its object, empty where there is none. recent: counts over segments."""

    version: str = ""
    segments: tuple[str, ...] = ()
    recent: dict[str, IndexEntry] = field(default_factory=dict)

    def content(self) -> bytes:
        return _document(segments=list(self.segments), runs=self.recent, writing=new_writing())


def new_writing() -> str:
    """Returns a number that makes equal content that is written again another content.

    Tags of some services are digests of the content, and versions are not: who has the tag of the
    earlier content would keep its version, and never be able to replace the later one.
    """
    return os.urandom(4).hex()


def _document(**values: Any) -> bytes:
    head = {"version": OBJECT_STORE.version, "nephoscope": __version__}
    return digests.with_own_digest({**head, **values})


def parse_document(where: str, content: bytes) -> dict[str, Any]:
    """Returns the values of an object that this program wrote. Raises StoreError for another."""
    try:
        values = jsontext.parse(content)
    except ValueError:
        values = None
    if not isinstance(values, dict) or not digests.has_own_digest(content):
        raise StoreError(
            f"{where} is damaged, or no object of a store.",
            "Restore an earlier version of it, or name another prefix with --store.",
        )
    version = values.get("version")
    if not OBJECT_STORE.is_readable(version):
        writer = str(values.get("nephoscope") or "")
        raise LaterFormat(*OBJECT_STORE.refusal(where, version, writer))
    return values


class ObjectIndex:
    """The index of one store. cache: folder of this machine for segments, which never change.

    retries: conditional writes that were not made since another writer was faster.
    """

    def __init__(self, service: ObjectService, address: str, cache: Path) -> None:
        self._service, self._address, self._cache = service, address, cache
        self._shards = 0
        self._heads: dict[int, _Head] = {}
        self._segments: dict[str, Mapping[str, IndexEntry]] = {}
        self.retries = 0

    def exists(self) -> bool:
        """Returns whether the store was begun."""
        if not self._shards:
            answer = self._service.get(ROOT)
            if answer is not None:
                values = parse_document(f"{self._address}/{ROOT}", answer.content)
                self._shards = int(values["shards"])
        return bool(self._shards)

    def begin(self, shards: int = 0) -> None:
        """Begins the store where it does not exist yet."""
        while not self.exists():
            try:
                self._service.create(ROOT, _document(shards=shards or SHARDS))
            except ConditionFailed:  # by another writer, with its number of shards
                continue

    def refresh(self) -> dict[str, IndexEntry]:
        """Reads all shards; returns the runs that are in the store."""
        if not self.exists():
            return {}
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as threads:
            shards = list(threads.map(self._read_entries, range(self._shards)))
        entries: dict[str, IndexEntry] = {}
        for shard in shards:
            entries |= shard
        return {run: entry for run, entry in entries.items() if not entry.get("removed")}

    def entry(self, run: str) -> IndexEntry | None:
        """Returns a run as it is now; None where it is not in the store."""
        if not self.exists():
            return None
        return _present(self._read_entries(self._shard_of(run)).get(run))

    def put(self, run: str, entry: IndexEntry, expected: str) -> None:
        """Puts a run in, if it is there with this `pack`, or is not there for an empty one.

        Raises ChangedMeanwhile. One that is there with the new `pack` is left as it is: the answer
        of an earlier try was lost.
        """
        self.begin()

        def changed(before: Mapping[str, IndexEntry]) -> Mapping[str, IndexEntry]:
            now = _present(before.get(run))
            if now is not None and now["pack"] == entry["pack"]:
                return {}
            if (now or {}).get("pack", "") != expected:
                raise ChangedMeanwhile(now)
            return {run: entry}

        self._change(self._shard_of(run), changed)

    def remove(self, runs: Iterable[str]) -> dict[str, IndexEntry]:
        """Takes runs out; returns what they were."""
        gone: dict[str, IndexEntry] = {}
        by_shard: dict[int, list[str]] = {}
        for run in runs if self.exists() else ():
            by_shard.setdefault(self._shard_of(run), []).append(run)

        for shard, own in by_shard.items():

            def changed(
                before: Mapping[str, IndexEntry], own: list[str] = own
            ) -> Mapping[str, IndexEntry]:
                known = {run: entry for run in own if (entry := _present(before.get(run)))}
                gone.update(known)
                return {run: {"removed": True} for run in known}

            self._change(shard, changed)
        return gone

    def _change(
        self,
        shard: int,
        changes: Callable[[Mapping[str, IndexEntry]], Mapping[str, IndexEntry]],
    ) -> None:
        """Replaces a shard's head; again with the newer one where another writer was faster."""
        until_s = time.monotonic() + RETRY_S
        pause_s = _FIRST_PAUSE_S
        while True:
            entries = self._read_entries(shard)
            head = self._heads[shard]
            changed = changes(entries)
            if not changed:
                return
            new = _Head(head.version, head.segments, {**head.recent, **changed})
            unused = self._fold(new) if len(new.recent) > FOLD_RUNS else ()
            key = _key(shard)
            try:
                if head.version:
                    new.version = self._service.replace(key, new.content(), head.version)
                else:
                    new.version = self._service.create(key, new.content())
            except ConditionFailed:
                self.retries += 1
                if time.monotonic() > until_s:
                    raise StoreError(
                        f"{self._address} has too many writers at once.", "Try again later."
                    ) from None
                time.sleep(random.uniform(0, pause_s))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            self._heads[shard] = new
            for name in unused:
                self._service.delete(f"index/{name}")
            return

    def _fold(self, head: _Head) -> tuple[str, ...]:
        """Makes a segment of a head's runs, or one of all its segments; returns those replaced."""
        merges = len(head.segments) + 1 >= MERGE_SEGMENTS
        runs = self._entries(head) if merges else head.recent
        if merges:
            runs = {run: entry for run, entry in runs.items() if not entry.get("removed")}
        content = _document(runs=runs)
        name = f"segment-{digests.digest_of(content)[:20]}.json"
        self._service.put(f"index/{name}", content)
        replaced = head.segments if merges else ()
        head.segments = (name,) if merges else (*head.segments, name)
        head.recent = {}
        return tuple(old for old in replaced if old != name)

    def _shard_of(self, run: str) -> int:
        digest = hashlib.sha256(run.encode()).digest()
        return int.from_bytes(digest[:4], "big") % self._shards

    def _read(self, shard: int) -> _Head:
        key = _key(shard)
        known = self._heads.get(shard, _Head())
        answer = self._service.get(key, known.version)
        if answer is None:
            head = _Head()
        elif answer.version == known.version:
            head = known
        else:
            values = parse_document(f"{self._address}/{key}", answer.content)
            head = _Head(answer.version, tuple(values["segments"]), values["runs"])
        self._heads[shard] = head
        return head

    def _read_entries(self, shard: int) -> dict[str, IndexEntry]:
        """Returns the runs of a shard, also of those that are removed, as it is now."""
        for _ in range(_READINGS):
            head = self._read(shard)
            try:
                return self._entries(head)
            except LookupError:  # another writer merged its segments since the head was read
                self._heads.pop(shard, None)
        key = f"{self._address}/{_key(shard)}"
        raise StoreError(f"{key} names an object that is missing.", "Restore the store's objects.")

    def _entries(self, head: _Head) -> dict[str, IndexEntry]:
        entries: dict[str, IndexEntry] = {}
        for name in head.segments:
            entries |= self._segment(name)
        return {**entries, **head.recent}

    def _segment(self, name: str) -> Mapping[str, IndexEntry]:
        if name not in self._segments:
            path, key = self._cache / name, f"index/{name}"
            content = regular.read_regular(path, limits.RUN_LIST_BYTES) if path.exists() else b""
            if not content or not digests.has_own_digest(content):
                answer = self._service.get(key)
                if answer is None:
                    raise LookupError(key)
                content = answer.content
                parse_document(f"{self._address}/{key}", content)
                write_atomically(path, content, durable=False)
            self._segments[name] = json.loads(content)["runs"]
        return self._segments[name]


def _key(shard: int) -> str:
    return f"index/{shard:02d}.json"


def _present(entry: IndexEntry | None) -> IndexEntry | None:
    return None if entry is None or entry.get("removed") else entry
