"""Times what a user waits for among thousands of server types.

usage: market_speed.py [--types N] [--rounds N] [--write]

`market`: a store of made types with 20 metrics and a price in one region each (default 10,000
rows); cold is the command in a process of its own, warm the table and its section in a process that
has the store open, as the dashboard has. `rank`: 4,000 alternatives with 20 metrics and 4 values
each in a CSV file, the command in a process of its own. Prints median, minimum and maximum of wall
and CPU time, and the load before each execution: on a busy machine only CPU time means much.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import _paired
import numpy as np

from nephoscope.core.model import Better
from nephoscope.features.market import prices, table
from nephoscope.features.market.records import PricedOffer
from nephoscope.features.market.section import PRINTED, market_section
from nephoscope.store.market import catalogue
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import MarketMetric, ServerType, TypeReading

METRICS = ("geekbench/score cores=all", *(f"made.{number}/rate" for number in range(19)))
RANKED, VALUES = 4_000, 4


def make_store(folder: Path, types: int) -> None:
    """Makes types of eight providers with prices."""
    rng = np.random.default_rng(1)
    readings, offers = [], []
    for number in range(types):
        cpus = int(2 ** rng.integers(0, 7))
        server = ServerType(
            f"provider-{number % 8}",
            f"type-{number:05d}",
            "made",
            "1",
            architecture="x86_64",
            cpus=cpus,
            cpu_model=f"CPU {number % 40}",
            memory_bytes=cpus << 32,
        )
        rates = 1000 * cpus * np.exp(rng.normal(scale=0.3, size=len(METRICS)))
        figures = [(metric, float(rate), 0) for metric, rate in zip(METRICS, rates, strict=True)]
        metrics = {
            metric: MarketMetric("per_s" if "rate" in metric else "points", Better.HIGHER)
            for metric in METRICS
        }
        readings.append(TypeReading(server, figures, metrics))
        price = 0.04 * cpus * float(np.exp(rng.normal(scale=0.2)))
        offers.append(
            PricedOffer(*server.key, "r1", "USD", price, None, "2026-11-01", "made prices")
        )
    own = catalogue.folder_of(folder)
    own.mkdir(parents=True, exist_ok=True)
    catalogue.write_part(own, 1, readings)
    present = {reading.type.key: "1" for reading in readings}
    catalogue.merge(own, "made", present, {"tool": "made"})
    prices.store_prices(folder, prices.PriceList(offers))


def make_figures(file: Path) -> None:
    """Makes a file of alternatives with four values of each metric."""
    rng = np.random.default_rng(2)
    with file.open("w", encoding="utf-8") as stream:
        stream.write("alternative,benchmark,metric,value,unit,better\n")
        for number in range(RANKED):
            levels = np.exp(rng.normal(scale=0.4, size=20))
            for metric, level in enumerate(levels):
                for value in level * np.exp(rng.normal(scale=0.02, size=VALUES)):
                    stream.write(f"t{number},b{metric},rate,{value:.6g},per_s,higher\n")


Times = tuple[float, float]
"""Wall time and CPU time in seconds."""


def command(*words: str) -> Times:
    """Returns the times of a command."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # no user has it
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "nephoscope", *words],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    wall_s = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def warm(store: Path) -> Callable[[], Times]:
    """Returns what times a table of an open store."""
    opened = MarketCatalogue.of_store(store)
    assert opened is not None
    listed = prices.stored_prices(store)
    request = table.MarketRequest(metrics=METRICS[1:], top=None)

    def run() -> Times:
        start, cpu = time.perf_counter(), time.process_time()
        built = table.build(opened, listed, request)
        market_section(built, PRINTED)
        return time.perf_counter() - start, time.process_time() - cpu

    run()
    return run


def timed(name: str, run: Callable[[], Times], rounds: int) -> dict[str, Any]:
    """Returns the times of a case, which it prints."""
    times: list[Times] = []
    loads: list[float] = []
    for _ in range(rounds):
        loads.append(os.getloadavg()[0])
        times.append(run())
    columns = {"wall_s": [wall for wall, _ in times], "cpu_s": [cpu for _, cpu in times]}
    parts = (
        f"{what} {statistics.median(own):.2f} s [{min(own):.2f}, {max(own):.2f}]"
        for what, own in (("wall", columns["wall_s"]), ("CPU", columns["cpu_s"]))
    )
    print(f"{name:<30} {', '.join(parts)}, n = {rounds}, load {min(loads):.1f}-{max(loads):.1f}")
    return {**columns, "loads": loads}


def main(words: Sequence[str] | None = None) -> int:
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--types", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        store, figures = Path(folder) / "store", Path(folder) / "figures.csv"
        make_store(store, args.types)
        make_figures(figures)
        metrics = [word for name in METRICS[1:] for word in ("--metric", name)]
        market = ("market", *metrics, "--top", str(args.types), "--store", str(store))
        cases: dict[str, Callable[[], Times]] = {
            f"market, {args.types:,} rows, warm": warm(store),
            f"market, {args.types:,} rows, cold": lambda: command(*market),
            f"rank, {RANKED:,} x 20 x {VALUES}": lambda: command("rank", str(figures)),
        }
        command(*market)  # the first start compiles bytecode
        rows = {name: timed(name, run, args.rounds) for name, run in cases.items()}
    if args.write:
        _paired.write_result("market-speed", {"machine": _paired.machine(), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
