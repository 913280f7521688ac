"""Times the dashboard's overview, trends and run list over a store of many runs.

usage: serve_overview.py [--runs N] [--requests N] [--folder DIR]

Makes a store of copies of one run (its trials are hard links), starts `nephoscope serve` on a free
port of loopback, waits until it has read every run, and then asks in random order. Prints for each
address the median and the 95th percentile with distribution-free intervals, the maximum, the memory
of the server, and what else used the CPUs meanwhile.
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
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scipy.stats import binom

from nephoscope.store.digests import with_own_digest

ADDRESSES = ("overview", "trends", "runs", "runs?text=rack-7&limit=50", "runs?offset=9000")
TARGET_S = 0.2


def make_store(folder: Path, runs: int) -> None:
    """Makes one run of the benchmark `null`, and copies of it with other ids, days and labels."""
    command = [sys.executable, "-m", "nephoscope", "bench", "null", "--repetitions", "5"]
    subprocess.run([*command, f"--store={folder}"], check=True, capture_output=True)
    (original,) = (folder / "runs").iterdir()
    manifest = json.loads((original / "manifest.json").read_text())
    manifest.pop("sha256")
    day = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(runs - 1):
        at = day + timedelta(minutes=20 * number)
        run_id = f"{at:%Y%m%d-%H%M%S}-null-{number % 65536:04x}"
        path = folder / "runs" / run_id
        for part in ("trials", "report"):
            (path / part).mkdir(parents=True)
            for file in (original / part).iterdir():
                os.link(file, path / part / file.name)
        os.link(original / "journal.jsonl", path / "journal.jsonl")
        moments = {"created_at": at.timestamp(), "started_at": at.timestamp()}
        names = {"name": f"target-{number % 40}"}
        targets = [{**target, **names} for target in manifest["targets"]]
        labels = {"rack": f"rack-{number % 20}"}
        changed = {**manifest, "id": run_id, **moments, "labels": labels, "targets": targets}
        (path / "manifest.json").write_bytes(with_own_digest(changed))


def quantile(values: list[float], share: float) -> str:
    """Returns a quantile in ms with its 95 % interval from order statistics."""
    ordered = sorted(values)
    n = len(ordered)
    low, high = int(binom.ppf(0.025, n, share)), int(binom.ppf(0.975, n, share))
    ends = [ordered[min(n - 1, max(0, place))] for place in (low - 1, int(share * n), high)]
    return f"{1e3 * ends[1]:.1f} [{1e3 * ends[0]:.1f}, {1e3 * ends[2]:.1f}]"


def ask(url: str) -> tuple[float, dict[str, object]]:
    """Returns the time of a request in seconds, and the document."""
    started = time.perf_counter()
    with urllib.request.urlopen(url, timeout=120) as response:
        content = response.read()
    return time.perf_counter() - started, json.loads(content)


def memory_bytes(pid: int, key: str) -> int:
    """Returns a line of a process's status in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=200, help="of each address")
    parser.add_argument("--folder", type=Path, help="store to use, or to make")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nephoscope-serve-") as made:
        folder = options.folder or Path(made)
        if not (folder / "runs").exists():
            make_store(folder, options.runs)
        measure(folder, options.requests)


def measure(folder: Path, requests: int) -> None:
    """Starts a server and times requests to it."""
    command = [sys.executable, "-m", "nephoscope", "serve", "--port=0", f"--store={folder}"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip() + "api/v1/"
        started = time.perf_counter()
        first_s, overview = ask(url + "overview")
        while overview["runs_read"] != overview["runs"]:
            _, overview = ask(url + "overview")
        cold_s = time.perf_counter() - started
        print(
            f"{overview['runs']} runs; first answer after {first_s:.2f} s, all read: {cold_s:.1f} s"
        )
        started = time.perf_counter()
        while not ask(url + "trends")[1]["complete"]:
            pass
        print(
            f"trends of the targets: first whole answer after {time.perf_counter() - started:.1f} s"
        )
        for address in ADDRESSES:
            ask(url + address)
        times: dict[str, list[float]] = {address: [] for address in ADDRESSES}
        order = [address for address in ADDRESSES for _ in range(requests)]
        random.Random(7).shuffle(order)
        load_before = os.getloadavg()[0]
        for address in order:
            times[address].append(ask(url + address)[0])
            time.sleep(0.02)  # so that the list is looked at again now and then
        for address, values in times.items():
            verdict = "within" if sorted(values)[int(0.95 * len(values))] < TARGET_S else "beyond"
            print(
                f"{address}: p50 {quantile(values, 0.5)} ms, p95 {quantile(values, 0.95)} ms, "
                f"maximum {1e3 * max(values):.1f} ms, n = {len(values)}; p95 {verdict} 200 ms"
            )
        peak, now = (memory_bytes(server.pid, key) for key in ("VmHWM", "VmRSS"))
        print(f"memory of the server: {now >> 20} MiB, at most {peak >> 20} MiB")
        print(f"load average before and after: {load_before:.1f}, {os.getloadavg()[0]:.1f}")
    finally:
        server.terminate()
        server.wait(60)


if __name__ == "__main__":
    main()
