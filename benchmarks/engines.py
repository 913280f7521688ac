"""Times percentiles with intervals of 100 series over a store of up to 10^9 samples, by engine.

usage: engines.py [--samples N...] [--engine URL...] [--rounds N] [--folder DIR] [-o FILE]

Makes runs whose trials hold histograms as the probe writes them, as trials and as day files, and
asks for p50 and p99 of each series: by the engines in alternating order, and the point values by
DuckDB over the same trial files where it is installed. Each question is a process of its own.
Prints time, CPU time of all processes and the largest memory of one, the size of the files, and
whether all answers were equal to the last bit. An engine of Spark is started for each question.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _stored import valid_trial

from nephoscope import catalog
from nephoscope.core.model import TrialRecord, factors_key
from nephoscope.features.engines.percentiles import percentiles_of
from nephoscope.measure import plans
from nephoscope.store import FINISHED, Store, StoredRun, day_files, merging
from nephoscope.store.batch import Batch
from nephoscope.store.engines import LOCAL, using
from nephoscope.store.trialfile import SCHEMA

LEVELS, TARGET = 100, "local"
OF_TRIAL = 10_000
"""Samples of a trial."""
OF_RUN = 10
"""Trials of a series in a run."""
DUCKDB = "duckdb"
START_S = 1_780_000_000.0


@cache
def buckets(level: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns the middles of the buckets of a level, and their probabilities."""
    edges = np.unique(np.round(np.exp(np.linspace(9.0, 14.0, 1200) + 0.01 * level)))
    shape = np.exp(-0.5 * ((np.log(edges) - 11.5 - 0.01 * level) / 0.5) ** 2)
    return edges, shape / shape.sum()


def make_store(place: Path | str, samples: int, seed: int = 1) -> int:
    """Makes runs of `null` an hour apart; returns the number of series, LEVELS at most.

    place: folder, or address on object storage.
    """
    levels = max(1, min(LEVELS, samples // (OF_RUN * OF_TRIAL)))
    known = catalog.load()
    plan = plans.single("null", {"value": repr([*range(1, levels + 1)])}, budget_s=None)
    settings = plans.expand(plan, known)
    rng = np.random.default_rng(seed)
    for number in range(max(1, samples // (levels * OF_RUN * OF_TRIAL))):
        run = Store(place).create(plan, 7, catalog=known, settings=settings)
        trials = [
            valid_trial(setting, place + 1, setting.index * OF_RUN + place, START_S + 3600 * number)
            for setting in settings
            for place in range(OF_RUN)
        ]
        counted = zip(trials, drawn(rng, levels, samples), strict=True)
        batches = (_batch(run.id, record, counts) for record, counts in counted)
        with run.lock():  # published once, where the store is on object storage
            run.update(**merging.merge(run, batches, [record.key.name for record in trials]))
            run.update(started_at=START_S + 3600.0 * number)
            run.finish(FINISHED)
    return levels


def drawn(rng: np.random.Generator, levels: int, samples: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yields the counts of the buckets of each trial of a run of a store of so many samples."""
    of_trial = max(1, min(OF_TRIAL, samples // OF_RUN))
    for level in range(levels):
        yield from rng.multinomial(of_trial, buckets(level)[1], OF_RUN)


def _batch(run: str, record: TrialRecord, counts: np.ndarray[Any, Any]) -> Batch:
    seen = np.flatnonzero(counts)
    middles = buckets(record.key.setting)[0]
    return Batch([(record, seen.size)], _table(run, record, middles[seen], counts[seen]))


def _table(run: str, record: TrialRecord, values: np.ndarray[Any, Any], counts: Any) -> pa.Table:
    n = values.size
    texts = {
        "run": run,
        "trial": record.key.name,
        "target": TARGET,
        "benchmark": "null",
        "metric": "null_latency_ns",
        "unit": "ns",
        "better": "lower",
        "factors": factors_key(record.factors),
    }
    numbers = {
        "round": np.full(n, record.key.round),
        "value": values,
        "count": counts.astype(np.int64),
        "at_ns": np.zeros(n, dtype=np.int64),
    }
    columns = {name: pa.repeat(text, n) for name, text in texts.items()} | numbers
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def ask(url: str, place: str) -> dict[str, Any]:
    """Asks an engine for p50 and p99 of every series; returns time, CPU time and the answers.

    cpu_s: of all processes, those of a cluster too, without the start of this one.
    question_cpu_s: of this process alone.
    """
    read = counting_objects()
    warm_up()
    chosen = is_own if url.startswith(LOCAL) else is_own_or_of_cluster
    before_s, _ = of_processes(chosen)
    started, begun = time.perf_counter(), time.process_time()
    own = Store(place)
    runs = [StoredRun(own.runs_path / name) for name in own.ids()]
    question = percentiles_of(runs, day_files.day_files(own.path))
    with using(url, str(own.path)) as engine:
        table = engine.answers(question)
        wall_s, here_s = time.perf_counter() - started, time.process_time() - begun
        cpu_s, rss_bytes = of_processes(chosen)
    rows = table.to_pylist()
    return {
        "wall_s": round(wall_s, 3),
        "cpu_s": round(cpu_s - before_s, 3),
        "question_cpu_s": round(here_s, 4),
        "rss_max_bytes": rss_bytes,
        "answers": len(rows),
        "observations": sum(row["observations"] for row in rows) // 2,
        "objects": read,
        "sha256": sha256("\n".join(map(repr, rows)).encode()).hexdigest(),
        "points": [row["value"] for row in rows],
    }


def warm_up() -> None:
    """Loads all that a question needs, by asking about a small store."""
    with tempfile.TemporaryDirectory() as folder:
        make_store(folder, 1000)
        runs = [StoredRun(Store(folder).runs_path / name) for name in Store(folder).ids()]
        with using("local:1") as engine:
            engine.answers(percentiles_of(runs))


def counting_objects() -> dict[str, int]:
    """Returns the numbers of requests of this process to object storage, which go on counting."""
    counts = {"reads": 0, "bytes": 0}
    try:
        from nephoscope.store.objects.services import Obstore
    except ImportError:
        return counts
    get, download = Obstore.get, Obstore.download

    def counted_get(self: Any, key: str, known: str = "") -> Any:
        answer = get(self, key, known)
        counts["reads"] += 1
        counts["bytes"] += len(answer.content) if answer is not None else 0
        return answer

    def counted_download(self: Any, key: str, path: Path) -> bool:
        is_there = download(self, key, path)
        counts["reads"] += 1
        counts["bytes"] += path.stat().st_size if is_there else 0
        return is_there

    Obstore.get, Obstore.download = counted_get, counted_download  # type: ignore[method-assign]
    return counts


def is_own(path: Path, values: list[str]) -> bool:
    """States whether a process is of this session."""
    return int(values[3]) == os.getsid(0)


def is_own_or_of_cluster(path: Path, values: list[str]) -> bool:
    """States whether a process is of this session, or one of Spark."""
    return is_own(path, values) or b"SPARK_HOME=" in (path / "environ").read_bytes()


def of_processes(chosen: Callable[[Path, list[str]], bool]) -> tuple[float, int]:
    """Returns CPU time of the chosen processes, and the largest peak memory of one."""
    ticks = os.sysconf("SC_CLK_TCK")
    cpu_s, rss = 0.0, 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            values = (path / "stat").read_text().rpartition(")")[2].split()
            if not chosen(path, values):
                continue
            status = (path / "status").read_text()
        except OSError:
            continue
        cpu_s += sum(map(int, values[11:15])) / ticks
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "0 0")
        rss = max(rss, int(peak.split()[1]) << 10)
    return cpu_s, rss


def ask_duckdb(store: Path) -> dict[str, Any]:
    """Asks DuckDB for the same point values over the trial files; it has no intervals for them."""
    import duckdb

    started = time.perf_counter()
    rows = duckdb.sql(
        f"""
        with merged as (
            select target, factors, value, sum(count) as n
            from '{store}/runs/*/trials/samples.parquet'
            where metric = 'null_latency_ns' group by all
        ), ranked as (
            select *, sum(n) over (partition by target, factors order by value) as below,
                sum(n) over (partition by target, factors) as total
            from merged
        )
        select target, factors, min(value) filter (below >= 0.5 * total),
            min(value) filter (below >= 0.99 * total)
        from ranked group by all order by target, factors
        """
    ).fetchall()
    cpu_s, rss_bytes = of_processes(is_own)
    return {
        "wall_s": round(time.perf_counter() - started, 2),
        "cpu_s": round(cpu_s, 2),
        "rss_max_bytes": rss_bytes,
        "answers": 2 * len(rows),
        "points": [value for row in rows for value in row[2:]],
    }


def asked_apart(url: str, store: Path | str) -> dict[str, Any]:
    """Asks in a process and a session of its own."""
    process = subprocess.run(
        [sys.executable, __file__, "--ask", url, "--store", str(store)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def measure(store: Path, urls: list[str], rounds: int, form: str) -> dict[str, Any]:
    """Asks all engines in turn, in another order in each round."""
    result: dict[str, Any] = {"bytes": size_bytes(store), "rounds": rounds, "engines": {}}
    digests, points = set(), []
    for number in range(rounds):
        order = [*urls, *([DUCKDB] if form == "trials" and has_duckdb() else [])]
        random.Random(number).shuffle(order)
        for url in order:
            answer = asked_apart(url, store)
            own = answer.pop("points")
            if url != DUCKDB:
                digests.add(answer.pop("sha256"))
            points.append(own)
            result["engines"].setdefault(url, []).append(answer)
    result["equal_to_the_last_bit"] = len(digests) == 1
    result["sha256"] = min(digests)
    result["equal_points"] = all(own == points[0] for own in points)
    return result


def has_duckdb() -> bool:
    """States whether DuckDB is installed."""
    from importlib.util import find_spec

    return find_spec("duckdb") is not None


def size_bytes(folder: Path) -> int:
    """Returns the size of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--engine", nargs="+", default=["local:1", "local"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the stores are made")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("-o", dest="to", type=Path, help="JSON file to write")
    options = parser.parse_args()
    if options.ask:
        answer = (
            ask_duckdb(Path(options.store))
            if options.ask == DUCKDB
            else ask(options.ask, options.store)
        )
        print(json.dumps(answer))
        return
    results = []
    for samples in options.samples:
        with tempfile.TemporaryDirectory(prefix="nephoscope-engines-", dir=options.folder) as made:
            store = Path(made)
            of_size: dict[str, Any] = {"samples": samples, "series": make_store(store, samples)}
            of_size["trials"] = measure(store, options.engine, options.rounds, "trials")
            print(json.dumps(of_size), file=sys.stderr)
            words = ["compact", "--keep-raw", "1s", "--store", made]
            subprocess.run([sys.executable, "-m", "nephoscope", *words], check=True, stdout=2)
            of_size["day_files"] = measure(store, options.engine, options.rounds, "day files")
            print(json.dumps(of_size), file=sys.stderr)
            results.append(of_size)
    text = json.dumps(
        {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpus": len(os.sched_getaffinity(0)),
            "load_average": [round(value, 1) for value in os.getloadavg()],
            "results": results,
        },
        indent=2,
    )
    print(text)
    if options.to is not None:
        options.to.write_text(text + "\n")


if __name__ == "__main__":
    main()
