"""Times `nephoscope history` over a store whose runs hold 10^8 samples.

usage: large_history.py [--runs N] [--trials N] [--samples N] [--queries N] [--folder DIR] [-o FILE]

Makes runs whose trials hold a histogram of latencies each, in buckets of three digits as the probe
writes them. Then asks for a percentile by the command line: without summaries (they are computed),
with them (in random order a percentile that they hold and one that is computed), with the runs
compacted into day files, and there by windows of a day. Prints time and memory of the processes,
the size of the store, and what else used the CPUs meanwhile.
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
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from _stored import valid_trial
from scipy.stats import binom

from nephoscope import catalog
from nephoscope.core.model import Sample
from nephoscope.measure import plans
from nephoscope.store import FINISHED, Store

START_S = 1_780_000_000.0
STEP_S = 3600.0
METRICS = ("null_latency_p99_ns", "null_latency_p97_ns")
"""One that summaries hold, one that is computed from their histograms."""


def bucketed(latencies: np.ndarray[Any, Any]) -> tuple[list[float], list[int]]:
    """Returns values and counts as hdrhistogram stores three digits: middles of its buckets."""
    exponent = np.maximum(0, np.floor(np.log2(latencies)).astype(np.int64) - 10)
    width = 2.0**exponent
    middles = np.floor(latencies / width) * width + np.floor(width / 2)
    values, counts = np.unique(middles, return_counts=True)
    return values.tolist(), counts.tolist()


def make_store(folder: Path, runs: int, trials: int, samples: int) -> None:
    """Makes runs of the benchmark `null`, an hour apart, each on its own level of latency."""
    known = catalog.load()
    plan = plans.single("null", {}, budget_s=None)
    (setting,) = plans.expand(plan, known)
    spec = known.benchmark("null")
    rng = np.random.default_rng(1)
    for number in range(runs):
        run = Store(folder).create(plan, 7, catalog=known, settings=[setting])
        level = 11 + 0.02 * rng.standard_normal()
        stored = []
        for position in range(trials):
            pairs = zip(*bucketed(rng.lognormal(level, 0.5, samples)), strict=True)
            record = valid_trial(setting, position + 1, position, START_S + STEP_S * number)
            rows = [Sample("null_latency_ns", value, count) for value, count in pairs]
            stored.append((record, rows, spec, ()))
        run.append_together(stored)
        run.update(started_at=START_S + STEP_S * number)
        run.finish(FINISHED)


def ask(store: Path, *words: str) -> dict[str, Any]:
    """Runs the command line; returns its time and memory, and the number of points."""
    command = [sys.executable, "-m", "nephoscope", *words, "--json", f"--store={store}"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    document = json.load(process.stdout)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return {
        "wall_s": time.perf_counter() - started,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "rss_bytes": usage.ru_maxrss << 10,
        "points": sum(len(one["points"]) for one in document.get("series", ())),
    }


def summary(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns median and 95th percentile of the time, with intervals from order statistics."""
    times = sorted(one["wall_s"] for one in answers)
    n = len(times)

    def quantile(share: float) -> list[float]:
        low, high = int(binom.ppf(0.025, n, share)), int(binom.ppf(0.975, n, share))
        ends = (min(n - 1, int(share * n)), max(0, low - 1), min(n - 1, high))
        return [round(times[place], 3) for place in ends]

    return {
        "n": n,
        "wall_p50_s": quantile(0.5),
        "wall_p95_s": quantile(0.95),
        "cpu_p50_s": round(sorted(one["cpu_s"] for one in answers)[n // 2], 3),
        "rss_max_bytes": max(one["rss_bytes"] for one in answers),
        "points": answers[0]["points"],
    }


def size_bytes(folder: Path) -> int:
    """Returns the size of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(store: Path, queries: int) -> dict[str, Any]:
    """Asks in the states that a store has one after the other."""
    result: dict[str, Any] = {"trials_bytes": size_bytes(store)}
    result["without_summaries"] = ask(store, "history", METRICS[0])
    result["with_summaries_bytes"] = size_bytes(store)
    for state in ("with_summaries", "day_files"):
        if state == "day_files":
            result["compaction"] = ask(store, "compact", "--keep-raw", "1s")
            result["day_files_bytes"] = size_bytes(store)
        order = [metric for metric in METRICS for _ in range(queries)]
        random.Random(7).shuffle(order)
        answers: dict[str, list[dict[str, Any]]] = {metric: [] for metric in METRICS}
        for metric in order:
            answers[metric].append(ask(store, "history", metric))
        result[state] = {metric: summary(own) for metric, own in answers.items()}
    result["windows_of_a_day"] = ask(store, "history", METRICS[0], "--window", "1d")
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=10, help="of each run")
    parser.add_argument("--samples", type=int, default=10_000, help="of each trial")
    parser.add_argument("--queries", type=int, default=40, help="of each percentile and state")
    parser.add_argument("--folder", type=Path, help="store to make, which is changed")
    parser.add_argument("-o", dest="to", type=Path, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nephoscope-history-") as made:
        folder = options.folder or Path(made)
        if not (folder / "runs").exists():
            make_store(folder, options.runs, options.trials, options.samples)
        load_before = os.getloadavg()[0]
        result = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "runs": options.runs,
            "trials": options.trials,
            "samples": options.runs * options.trials * options.samples,
            **measure(folder, options.queries),
            "load_average": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        }
    text = json.dumps(result, indent=2)
    print(text)
    if options.to is not None:
        options.to.write_text(text + "\n")


if __name__ == "__main__":
    main()
