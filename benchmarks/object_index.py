"""Runs published per second by many writers at once, by the number of shards of the index.

The service is in memory and takes as long for each request as one in a nearby region; each writer
is a thread with an index of its own. `python benchmarks/object_index.py` prints a table.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nephoscope.store.objects.object_index import ObjectIndex
from nephoscope.store.objects.primitives import (
    ConditionFailed,
    ListedObject,
    ObjectService,
    StoredObject,
)

READ_S, WRITE_S = 0.015, 0.030


class SlowMemory:
    """Objects in memory behind requests that take time."""

    def __init__(self) -> None:
        self._objects: dict[str, StoredObject] = {}
        self._lock = threading.Lock()
        self._count = 0

    def get(self, key: str, known: str = "") -> StoredObject | None:
        """Returns an object."""
        time.sleep(random.uniform(0.5, 1.5) * READ_S)
        return self._objects.get(key)

    def put(self, key: str, content: bytes | Path) -> None:
        """Writes an object."""
        assert isinstance(content, bytes)
        self._write(key, content, None)

    def create(self, key: str, content: bytes) -> str:
        """Writes an object that does not exist."""
        return self._write(key, content, "")

    def replace(self, key: str, content: bytes, version: str) -> str:
        """Writes an object that still has this version."""
        return self._write(key, content, version)

    def delete(self, key: str) -> None:
        """Removes an object."""
        self._objects.pop(key, None)

    def download(self, key: str, path: Path) -> bool:
        """Refuses: an index is read as a whole."""
        raise NotImplementedError

    def listed(self, prefix: str) -> Iterator[ListedObject]:
        """Refuses: an index is read without listing."""
        raise NotImplementedError

    def _write(self, key: str, content: bytes, version: str | None) -> str:
        time.sleep(random.uniform(0.25, 0.75) * WRITE_S)
        with self._lock:
            now = self._objects.get(key)
            if version is not None and (now.version if now else "") != version:
                raise ConditionFailed(key)
            self._count += 1
            self._objects[key] = StoredObject(content, str(self._count))
            new = str(self._count)
        time.sleep(random.uniform(0.25, 0.75) * WRITE_S)
        return new


def measured(service: ObjectService, shards: int, writers: int, runs: int) -> tuple[float, ...]:
    """Returns runs per second, repeated writes per run, and seconds of the slowest run."""
    with tempfile.TemporaryDirectory() as folder:
        indexes = [ObjectIndex(service, "memory", Path(folder)) for _ in range(writers)]
        indexes[0].begin(shards)

        def write(writer: int) -> float:
            slowest = 0.0
            for number in range(runs):
                begun = time.monotonic()
                entry = {"pack": f"{writer}-{number}", "samples": None, "state": "finished"}
                indexes[writer].put(f"run-{writer}-{number}", entry, "")
                slowest = max(slowest, time.monotonic() - begun)
            return slowest

        begun = time.monotonic()
        with ThreadPoolExecutor(writers) as threads:
            slowest = max(threads.map(write, range(writers)))
        seconds = time.monotonic() - begun
        assert len(indexes[0].refresh()) == writers * runs
    retries = sum(index.retries for index in indexes)
    return writers * runs / seconds, retries / (writers * runs), slowest


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| writers at once | shards | runs per second | repeated writes per run | slowest run |")
    print("|---:|---:|---:|---:|---:|")
    for writers in arguments.writers:
        for shards in arguments.shards:
            rate, retries, slowest = measured(SlowMemory(), shards, writers, arguments.runs)
            print(f"| {writers} | {shards} | {rate:.0f} | {retries:.2f} | {slowest:.1f} s |")


if __name__ == "__main__":
    main()
