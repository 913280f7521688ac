"""Many writers at once on one store, killed at drawn moments; figures of what became of it.

`python -m tests.store.objects.writers ADDRESS --writers 100 --kills 20` prints them as JSON. Each
writer is a process with a mirror of its own, as on a machine of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.store.factory import SPEC, trial_record

from nephoscope.core.model import Sample, TrialRecord
from nephoscope.store import FINISHED, Store
from nephoscope.store.objects import object_index, opening
from nephoscope.store.store import spec_json

_DIES_WITH_ITS_PARENT = 1
LIFE_S = 1.0
"""Mean time until a writer is killed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the runs. measured: whole runs in the writers' mirrors. lost, unreadable,
    doubled: of these. retries: conditional writes that another writer was faster for."""

    address: str
    writers: int
    kills: int
    shards: int
    measured: int
    lost: int
    unreadable: int
    doubled: int
    retries: int
    seconds: float
    runs_per_s: float
    objects_per_run: float


def manifest_values(number: int) -> dict[str, object]:
    setting = {"benchmark": SPEC.id, "params": {}, "factors": {}, "index": 0}
    return {
        "plan": {"benchmarks": [{"benchmark": SPEC.id}]},
        "plan_hash": str(number),
        "plan_name": "many",
        "seed": 1,
        "targets": [{"name": "local", "kind": "local"}],
        "settings": [setting],
        "specs": [spec_json(SPEC)],
        "state": FINISHED,
    }


def record(number: int) -> TrialRecord:
    return trial_record(number)


def write_runs(address: str, home: Path, seed: int, count: int) -> int:
    """Measures and publishes so many runs; returns the retries."""
    os.environ["XDG_DATA_HOME"] = str(home)
    opening.mirror_of.cache_clear()
    random.seed(seed)
    store = Store(address)
    for number in range(count):
        with store.new("many", manifest_values(number)) as run:
            run.store_all(
                [(record(n), [Sample("null_ns", seed + n)], SPEC, ()) for n in range(1, 3)]
            )
            run.finish(FINISHED)
    mirror = opening.mirror_of(store.path)
    assert mirror is not None
    return mirror.index.retries


def _child(address: str, home: Path, seed: int, count: int) -> int:
    """Starts a writer as a process; it notes its retries in a file when it ends."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        ctypes.CDLL(None).prctl(_DIES_WITH_ITS_PARENT, signal.SIGKILL)
        os.nice(5)  # kills are made in time by a parent that does not wait for its writers
        warnings.simplefilter("ignore")
        retries = write_runs(address, home, seed, count)
        (home / f"retries-{os.getpid()}").write_text(str(retries))
        code = 0
    finally:
        os._exit(code)


def run_writers(
    address: str,
    folder: Path,
    *,
    writers: int,
    kills: int,
    runs: int,
    life_s: float = LIFE_S,
    seed: int = 7,
) -> Outcome:
    """Has writers killed so often each, lets them end with so many runs, and looks at the store."""
    drawn = random.Random(seed)
    homes = [folder / f"writer-{number}" for number in range(writers)]
    for home in homes:
        home.mkdir(parents=True)
    begun = time.monotonic()
    lives = dict.fromkeys(range(writers), 0)
    alive: dict[int, tuple[int, float]] = {}
    while lives or alive:
        busy = {known for known, _ in alive.values()}
        for number in [*lives]:
            if number in busy:
                continue
            is_last = lives[number] >= kills
            pid = _child(
                address, homes[number], 1000 * number + lives[number], runs if is_last else 10**6
            )
            until = time.monotonic() + (1e6 if is_last else drawn.expovariate(1 / life_s))
            alive[pid] = (number, until)
            lives[number] += 1
            if is_last:
                del lives[number]
        now = time.monotonic()
        for pid, (_, until) in [*alive.items()]:
            if now > until:
                os.kill(pid, signal.SIGKILL)
            # Not waited for: it takes long to end among so many, and others are to be killed.
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                if until > 1e5 + now and status:
                    raise AssertionError(f"a writer ended with {status}")
                del alive[pid]
        time.sleep(0.005)
    seconds = time.monotonic() - begun
    return _outcome(address, homes, folder / "reader", kills, seconds)


def _outcome(
    address: str, homes: Sequence[Path], reader: Path, kills: int, seconds: float
) -> Outcome:
    measured: list[str] = []
    for home in homes:
        runs = home.glob("nephoscope/objects/*/runs/2*")
        measured += [path.name for path in runs if (path / "manifest.json").exists()]
        # What the last kill left is published by the next command.
        os.environ["XDG_DATA_HOME"] = str(home)
        opening.mirror_of.cache_clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Store(address).choosing():
                pass
    os.environ["XDG_DATA_HOME"] = str(reader)
    opening.mirror_of.cache_clear()
    store = Store(address)
    mirror = opening.mirror_of(store.path)
    assert mirror is not None
    stored = store.ids()
    unreadable = 0
    for run_id in stored:
        integrity = store.open(run_id).integrity()
        unreadable += bool(integrity.damaged) or integrity.verified != 2
    keys = [each.key for each in mirror.service.listed("runs/")]
    retries = sum(int(path.read_text()) for home in homes for path in home.glob("retries-*"))
    return Outcome(
        address,
        len(homes),
        kills,
        object_index.SHARDS,
        len(measured),
        len(set(measured) - set(stored)),
        unreadable,
        len(stored) - len(set(stored)) + len(measured) - len(set(measured)),
        retries,
        round(seconds, 1),
        round(len(stored) / seconds, 1),
        round(len(keys) / max(len(stored), 1), 2),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--writers", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=object_index.SHARDS)
    parser.add_argument("--life", type=float, default=LIFE_S, help="mean seconds until a kill")
    arguments = parser.parse_args()
    object_index.SHARDS = arguments.shards
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_writers(
            arguments.address,
            Path(folder),
            writers=arguments.writers,
            kills=arguments.kills,
            runs=arguments.runs,
            life_s=arguments.life,
        )
    print(json.dumps(asdict(outcome)))  # noqa: T201


if __name__ == "__main__":
    main()
