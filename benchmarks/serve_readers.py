"""What 50 readers of `nephoscope serve` change of a run that is measured on the same machine.

usage: serve_readers.py [--rounds N] [--readers N] [--seed N] [--write]

A round measures one plan three times in random order: with a server that nobody asks, the same
again (A/A), and with readers. Each reader is a page: it asks for the overview every five seconds
and follows the run's stream of events to its end. Ratios are taken inside rounds. The change holds
where the ratio with readers lies in the A/A interval. The readers stand for browsers on other
machines: here they get CPU time that nothing else wants (SCHED_IDLE).
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from _paired import alternate, arguments, machine, paired_ratio, parse, write_result

PROGRAM = [sys.executable, "-m", "nephoscope"]
PLAN = """
version: 1
name: beside-readers
repeat: {min: 5, max: 5}
warmup: 1
benchmarks:
  - {benchmark: cpu.hash, params: {duration_ns: 100ms}}
  - {benchmark: cpu.switch, params: {duration_ns: 200ms}}
  - {benchmark: net.loopback, params: {duration_ns: 200ms}}
"""
METRICS = ("hash_bytes_per_s", "switches_per_s", "loopback_round_trips_per_s")
POLL_S = 5.0
"""Seconds after which the page's overview asks again."""


async def body_of(url: str, path: str) -> str:
    """Returns the body of a response, that of an endless one once it ends."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=1 << 24)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode()
    )
    text = (await reader.read()).decode()
    writer.close()
    return text.partition("\r\n\r\n")[2]


async def read_page(url: str, start_s: float, counts: dict[str, int]) -> None:
    """Reads as a page does until it is cancelled. counts: overviews, and events of streams."""
    await asyncio.sleep(start_s)
    followed: set[str] = set()
    streams: set[asyncio.Task[None]] = set()

    async def follow(run: str) -> None:
        counts["events"] += (await body_of(url, f"/api/v1/runs/{run}/events")).count("event: ")

    while True:
        overview = json.loads(await body_of(url, "/api/v1/overview"))
        counts["overviews"] += 1
        for row in overview["running"]:
            if row["id"] not in followed:
                followed.add(row["id"])
                streams.add(asyncio.create_task(follow(row["id"])))
        await asyncio.sleep(POLL_S if streams else 0.5)


def readers(url: str, count: int, pipe: Connection) -> None:
    """Reads until the other end of the pipe says so, and sends the counts."""
    counts = {"overviews": 0, "events": 0}
    order = random.Random(1)

    async def read() -> None:
        tasks = [
            asyncio.create_task(read_page(url, order.uniform(0, 0.5), counts)) for _ in range(count)
        ]
        await asyncio.to_thread(pipe.recv)
        for task in tasks:
            task.cancel()
        failed = [one for one in await asyncio.gather(*tasks, return_exceptions=True) if one]
        assert all(isinstance(one, asyncio.CancelledError) for one in failed), failed

    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    asyncio.run(read())
    pipe.send(counts)


def measured(store: Path, plan: Path) -> dict[str, float]:
    """Runs the plan; returns the estimate of each metric."""
    before = {*(store / "runs").iterdir()}
    command = [*PROGRAM, "run", "--fresh", str(plan), f"--store={store}"]
    subprocess.run(command, check=True, capture_output=True)
    (run,) = {*(store / "runs").iterdir()} - before
    lines = json.loads((run / "report" / "result.json").read_text())["metrics"]
    return {
        line["metric"]: line["estimate"]["value"] for line in lines if line["metric"] in METRICS
    }


def beside(store: Path, plan: Path, url: str, count: int, seen: dict[str, int]) -> dict[str, float]:
    """Returns what `measured` does, with so many readers. seen: gets what they read."""
    near, far = multiprocessing.Pipe()
    process = multiprocessing.Process(target=readers, args=(url, count, far))
    process.start()
    far.close()
    try:
        values = measured(store, plan)
        near.send("end")
        for name, number in near.recv().items():
            seen[name] = seen.get(name, 0) + number
    finally:
        process.join(60)
    return values


def main() -> int:
    """Measures, prints and judges."""
    parser = arguments((__doc__ or "").splitlines()[0], rounds=11)
    parser.add_argument("--readers", type=int, default=50)
    options = parse(parser)
    facts = machine()
    seen: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="nephoscope-readers-") as folder:
        store, plan = Path(folder) / "store", Path(folder) / "plan.yaml"
        plan.write_text(PLAN)
        (store / "runs").mkdir(parents=True)
        command = [*PROGRAM, "serve", "--port=0", f"--store={store}"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            measured(store, plan)
            values = alternate(
                {
                    "alone": lambda: measured(store, plan),
                    "alone again": lambda: measured(store, plan),
                    "readers": lambda: beside(store, plan, url, options.readers, seen),
                },
                options.rounds,
                options.seed,
                lambda number, latest: print(f"round {number}/{options.rounds}", file=sys.stderr),
            )
        finally:
            with suppress(subprocess.TimeoutExpired):
                server.terminate()
                server.wait(60)
    rows = []
    for metric in METRICS:
        alone, again, read = ([one[metric] for one in values[name]] for name in values)
        same, changed = paired_ratio(again, alone), paired_ratio(read, alone)
        holds = same.low <= changed.value <= same.high
        rows.append(
            {"metric": metric, "a_a": asdict(same), "readers": asdict(changed), "holds": holds}
        )
        print(
            f"{metric}: A/A {same.value:.4f} [{same.low:.4f}, {same.high:.4f}], with readers "
            f"{changed.value:.4f} [{changed.low:.4f}, {changed.high:.4f}], n = {same.n} rounds, "
            f"{same.confidence:.1%}: {'within' if holds else 'beyond'} the A/A interval"
        )
    print(f"read by {options.readers} readers: {seen}; load average {os.getloadavg()[0]:.1f}")
    if options.write:
        settings = {"rounds": options.rounds, "seed": options.seed, "readers": options.readers}
        write_result(
            "serve-readers", {"machine": facts, "settings": settings, "read": seen, "rows": rows}
        )
    return 0 if all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
