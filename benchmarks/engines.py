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
from nephoscope.store.engines import using
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


def make_store(folder: Path, samples: int) -> None:
    """Makes runs of `null` with LEVELS settings, an hour apart."""
    known = catalog.load()
    plan = plans.single("null", {"value": repr([*range(1, LEVELS + 1)])}, budget_s=None)
    settings = plans.expand(plan, known)
    rng = np.random.default_rng(1)
    for number in range(max(1, samples // (LEVELS * OF_RUN * OF_TRIAL))):
        run = Store(folder).create(plan, 7, catalog=known, settings=settings)
        trials = [
            valid_trial(setting, place + 1, setting.index * OF_RUN + place, START_S + 3600 * number)
            for setting in settings
            for place in range(OF_RUN)
        ]
        drawn = (
            counts
            for level in range(LEVELS)
            for counts in rng.multinomial(OF_TRIAL, buckets(level)[1], OF_RUN)
        )
        batches = (_batch(run.id, record, counts) for record, counts in zip(trials, drawn))  # noqa: B905
        run.update(**merging.merge(run, batches, [record.key.name for record in trials]))
        run.update(started_at=START_S + 3600.0 * number)
        run.finish(FINISHED)


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


def ask(url: str, store: Path) -> dict[str, Any]:
    """Asks an engine for p50 and p99 of every series; returns time, CPU time and the answers."""
    own = Store(store)
    runs = [StoredRun(own.runs_path / name) for name in own.ids()]
    question = percentiles_of(runs, day_files.day_files(store))
    started = time.perf_counter()
    with using(url, str(store)) as engine:
        table = engine.answers(question)
        cpu_s, rss_bytes = of_session()
    rows = table.to_pylist()
    return {
        "wall_s": round(time.perf_counter() - started, 2),
        "cpu_s": round(cpu_s, 2),
        "rss_max_bytes": rss_bytes,
        "answers": len(rows),
        "observations": sum(row["observations"] for row in rows) // 2,
        "sha256": sha256("\n".join(map(repr, rows)).encode()).hexdigest(),
        "points": [row["value"] for row in rows],
    }


def of_session() -> tuple[float, int]:
    """Returns CPU time of all processes of this session, and the largest peak memory of one."""
    session, ticks = os.getsid(0), os.sysconf("SC_CLK_TCK")
    cpu_s, rss = 0.0, 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            values = (path / "stat").read_text().rpartition(")")[2].split()
            status = (path / "status").read_text()
        except OSError:
            continue
        if int(values[3]) == session:
            cpu_s += sum(map(int, values[11:13])) / ticks
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
    cpu_s, rss_bytes = of_session()
    return {
        "wall_s": round(time.perf_counter() - started, 2),
        "cpu_s": round(cpu_s, 2),
        "rss_max_bytes": rss_bytes,
        "answers": 2 * len(rows),
        "points": [value for row in rows for value in row[2:]],
    }


def asked_apart(url: str, store: Path) -> dict[str, Any]:
    """Asks in a process and a session of its own."""
    process = subprocess.run(
        [sys.executable, __file__, "--ask", url, "--folder", str(store)],
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
    parser.add_argument("-o", dest="to", type=Path, help="JSON file to write")
    options = parser.parse_args()
    if options.ask:
        answer = (
            ask_duckdb(options.folder)
            if options.ask == DUCKDB
            else ask(options.ask, options.folder)
        )
        print(json.dumps(answer))
        return
    results = []
    for samples in options.samples:
        with tempfile.TemporaryDirectory(prefix="nephoscope-engines-", dir=options.folder) as made:
            store = Path(made)
            make_store(store, samples)
            of_size: dict[str, Any] = {"samples": samples, "series": LEVELS}
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
