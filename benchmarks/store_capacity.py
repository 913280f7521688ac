"""Costs of storing and analysing samples by their number: a power law, checked at a larger store.

usage: store_capacity.py [--samples N...] [--rounds N...] [--check N] [--engine URL...]
                         [--objects ADDRESS] [--folder DIR] [-o FILE]

Makes stores of `engines.py` with another seed in each round. Measures the bytes of trials and of
day files, the CPU time of storing, compacting and of p50 and p99 with intervals of every series,
and the largest memory of a process. CPU time is that of one process without its start. The
exponent comes from a regression of logarithms, its interval from Student's t; the store of --check
is compared with the prediction interval of the fit. --engine asks further engines once a size,
--objects a copy of the store on object storage. `tools/store_capacity_page.py` makes a page of the
result.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import engines
import numpy as np
from _power_law import fitted

from nephoscope import __version__
from nephoscope.features.compaction.compact import Policy, compact
from nephoscope.store import Store

HERE = "local:1"
CHECK_SEED = 99
FITTED_FROM = engines.LEVELS * engines.OF_RUN * engines.OF_TRIAL
"""Samples of a run. Smaller stores have one smaller run, whose fixed costs would bend the line."""
QUANTITIES = {
    "trial_bytes": "bytes",
    "day_bytes": "bytes",
    "store_cpu_s": "s",
    "compact_cpu_s": "s",
    "ask_trials_cpu_s": "s",
    "ask_days_cpu_s": "s",
}
"""Name of a quantity that is fitted -> its unit."""


def measured(samples: int, seed: int, folder: Path, urls: Sequence[str]) -> dict[str, Any]:
    """Returns the costs of one store, and the answers of engines about it."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-stores-", dir=folder) as made:
        store = Path(made)
        point: dict[str, Any] = {"samples": samples, "seed": seed}
        point["store_cpu_s"] = apart("--make", made, samples, seed)
        point["trial_bytes"] = of_files(store.glob("runs/*/trials/*"))
        point["files_bytes"] = engines.size_bytes(store)
        trials = engines.measure(store, list(urls), 1, "trials")
        point["compact_cpu_s"] = apart("--compact", made)
        point["day_bytes"] = of_files(store.glob("days/**/*.jsonl"))
        days = engines.measure(store, list(urls), 1, "day files")
        for name, asked in (("trials", trials), ("days", days)):
            point[f"ask_{name}_cpu_s"] = asked["engines"][HERE][0]["question_cpu_s"]
            point[name] = asked
        return point


def all_measured(
    sizes: Sequence[int], rounds: Sequence[int], folder: Path, urls: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yields the costs of so many stores of each size; engines are asked about the first ones."""
    for samples, count in zip(sizes, rounds, strict=True):
        for seed in range(1, count + 1):
            yield measured(samples, seed, folder, [HERE, *(urls if seed == 1 else ())])


def on_objects(samples: int, seed: int, address: str) -> dict[str, Any]:
    """Returns what asking a store on object storage costs: trials and day files, each first read
    by a machine that has nothing of the store; and trials again."""
    place = f"{address}-{samples}-{os.urandom(3).hex()}"
    result: dict[str, Any] = {"samples": samples}
    with tempfile.TemporaryDirectory(prefix="nephoscope-stores-") as machines:
        machine = partial(os.environ.__setitem__, "XDG_DATA_HOME")
        machine(f"{machines}/writer")
        result["store_cpu_s"] = apart("--make", place, samples, seed)
        # Another local store would have other ids, by which intervals depend on the order of runs.
        (mirror,) = Path(machines).glob("writer/nephoscope/objects/*/runs")
        shutil.copytree(mirror, f"{machines}/local/runs", ignore=shutil.ignore_patterns(".*"))
        result["local"] = engines.asked_apart(HERE, f"{machines}/local")
        machine(f"{machines}/reader")
        result["first"] = engines.asked_apart(HERE, place)
        result["again"] = engines.asked_apart(HERE, place)
        machine(f"{machines}/writer")
        result["compact_cpu_s"] = apart("--compact", place)
        machine(f"{machines}/later-reader")
        result["days"] = engines.asked_apart(HERE, place)
    del os.environ["XDG_DATA_HOME"]
    for name in ("local", "first", "again", "days"):
        del result[name]["points"]
    return result


def all_on_objects(sizes: Sequence[int], check: int, address: str) -> Iterator[dict[str, Any]]:
    """Yields the costs of a store of each size on object storage."""
    for samples in sizes:
        yield on_objects(samples, 1, address)
    if check:
        yield on_objects(check, CHECK_SEED, address)


def apart(step: str, place: str, *words: int) -> float:
    """Runs a step on a store in a process of its own; returns its CPU time without the start."""
    command = [sys.executable, __file__, step, *map(str, words), place]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def stored(samples: int, seed: int, place: str) -> float:
    """Makes a store; returns the CPU time of storing without that of drawing the samples."""
    engines.warm_up()
    begun = time.process_time()
    levels = engines.make_store(place, samples, seed)
    made_s = time.process_time() - begun
    begun = time.process_time()
    rng = np.random.default_rng(seed)
    of_run = levels * engines.OF_RUN * engines.OF_TRIAL
    for _ in range(max(1, samples // of_run)):
        for _ in engines.drawn(rng, levels, samples):
            pass
    return made_s - (time.process_time() - begun)


def compacted(place: str) -> float:
    """Compacts all runs of a store; returns the CPU time."""
    policy = Policy(keep_raw_s=1)
    with tempfile.TemporaryDirectory() as warm:
        engines.make_store(warm, 1000)
        compact(Store(warm), policy)
    begun = time.process_time()
    compact(Store(place), policy)
    return time.process_time() - begun


def of_files(paths: Iterable[Path]) -> int:
    """Returns the size of files."""
    return sum(path.stat().st_size for path in paths)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[10**6, 10**7, 3 * 10**7, 10**8])
    parser.add_argument("--rounds", type=int, nargs="+", default=[5, 5, 3, 3], help="of each size")
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--engine", nargs="*", default=["local:2"])
    parser.add_argument("--objects", help="address on object storage, to which a number is added")
    parser.add_argument("--folder", type=Path, help="where the stores are made")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--compact", help=argparse.SUPPRESS)
    parser.add_argument("-o", dest="to", type=Path, help="JSON file to write")
    options = parser.parse_args()
    if options.make:
        samples, seed, place = options.make
        print(stored(int(samples), int(seed), place))
        return
    if options.compact:
        print(compacted(options.compact))
        return
    result: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "cpus": len(os.sched_getaffinity(0)),
        "load_average": [round(value, 1) for value in os.getloadavg()],
        "samples_of_trial": engines.OF_TRIAL,
        "fitted_from": FITTED_FROM,
        "points": [],
        "objects": [],
    }

    def save() -> None:
        if options.to is not None:
            options.to.write_text(json.dumps(result, indent=1) + "\n")

    for point in all_measured(options.samples, options.rounds, options.folder, options.engine):
        result["points"].append(point)
        print(json.dumps(point), file=sys.stderr)
        save()
    if options.objects:
        for costs in all_on_objects(options.samples, options.check, options.objects):
            result["objects"].append(costs)
            print(json.dumps(costs), file=sys.stderr)
            save()
    check = None
    if options.check:
        check = measured(options.check, CHECK_SEED, options.folder, [HERE, *options.engine])
        result["check"] = check
    points = [point for point in result["points"] if point["samples"] >= FITTED_FROM]
    for name, unit in QUANTITIES.items():
        fit = fitted(
            [point["samples"] for point in points],
            [point[name] for point in points],
            None if check is None or name not in check else (check["samples"], check[name]),
        )
        result.setdefault("fits", {})[name] = {"unit": unit, **fit}
    result["load_average_after"] = [round(value, 1) for value in os.getloadavg()]
    save()
    print(json.dumps(result["fits"], indent=1))


if __name__ == "__main__":
    main()
