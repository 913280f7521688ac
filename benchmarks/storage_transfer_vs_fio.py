"""storage.transfer beside fio on a local disk: objects written with a sync, read with cold caches.

Both make a new file of the same size by writes of 1 MiB through the page cache, sync it, have its
pages dropped and read it by reads of 1 MiB; opening and the sync count, dropping does not. Before
each, the disk comes to rest: a file system that is mounted with `discard` goes on discarding the
blocks of removed files for seconds, and whatever is measured then shares the disk with that. fio
repeats one random MiB, which matters only to disks that find repetitions. Bound: 0.95 to 1.05 times
fio's throughput.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from _paired import (
    Row,
    alternate,
    arguments,
    finish,
    machine,
    needed,
    paired_ratio,
    parse,
    print_table,
    probe_path,
    run_probe,
    version,
)

BOUND = (0.95, 1.05)
CHUNK_BYTES = 1 << 20
REST_S = 0.5
REST_SECTORS = 2048
"""A disk that moves less within this time has come to rest."""
REST_MAX_S = 10.0
WANTED = {"write": {"operation": "write"}, "read": {"operation": "read", "cache": "cold"}}

Rates = Mapping[str, float]
"""Operation -> bytes per second."""


def ours(directory: Path, size_bytes: int) -> Rates:
    """Rates of one trial of storage.transfer."""
    rest(directory)
    params = {
        "directory": str(directory),
        "object_bytes": [size_bytes],
        "objects": 1,
        "transactions_ns": 0,
        "verify": "never",
    }
    samples = run_probe("storage.transfer", params)
    throughput = [one for one in samples if one["metric"] == "transfer_bytes_per_s"]
    rates = {
        operation: float(sample["value"])
        for operation, factors in WANTED.items()
        for sample in throughput
        if factors.items() <= sample["factors"].items()
    }
    if rates.keys() != WANTED.keys():
        raise RuntimeError(f"storage.transfer had no cold caches: is {directory} a tmpfs?")
    return rates


def theirs(directory: Path, size_bytes: int) -> Rates:
    """Rates of fio for the same work."""
    rest(directory)
    file = directory / "fio"
    written = fio(file, size_bytes, "write", "--create_on_open=1", "--end_fsync=1")
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    read = fio(file, size_bytes, "read")
    from_disk = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
    if from_disk < 0.99 * size_bytes:
        raise RuntimeError(f"fio read {from_disk} of {size_bytes} bytes from the disk")
    file.unlink()
    return {"write": written, "read": read}


def fio(file: Path, size_bytes: int, operation: str, *options: str) -> float:
    """Bytes per second of one job of fio; its run time includes the sync at its end."""
    command = [
        "fio",
        "--name=compare",
        f"--filename={file}",
        f"--size={size_bytes}",
        f"--rw={operation}",
        f"--bs={CHUNK_BYTES}",
        "--ioengine=sync",
        "--fallocate=none",
        "--fadvise_hint=0",
        # Else dropping the pages would count as reading.
        "--invalidate=0",
        "--output-format=json",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio ended with {done.returncode}: {done.stderr.strip()}")
    (job,) = json.loads(done.stdout)["jobs"]
    if job["error"] != 0 or job[operation]["io_bytes"] != size_bytes:
        raise RuntimeError(f"fio moved something else: {done.stdout[:200]}")
    return size_bytes / (job[operation]["runtime"] / 1000)


def rest(directory: Path) -> None:
    """Waits until everything is written and the disk has nothing left to do, or for 10 s."""
    os.sync()
    device = directory.stat().st_dev
    counters = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    until_s = time.monotonic() + REST_MAX_S
    moved = REST_SECTORS
    while moved >= REST_SECTORS and time.monotonic() < until_s:
        before = sectors(counters)
        time.sleep(REST_S)
        moved = sectors(counters) - before


def sectors(counters: Path) -> int:
    """Sectors that a disk has read, written and discarded; 0 where nobody counts them."""
    fields = counters.read_text().split() if counters.exists() else []
    return sum(int(fields[place]) for place in (2, 6, 13) if place < len(fields))


def main() -> int:
    """Runs the comparison; 0 when both operations hold their bound."""
    parser = arguments("storage.transfer beside fio: files on a local disk", rounds=21)
    parser.add_argument("--mib", type=int, default=512, help="size of the file in MiB")
    parser.add_argument("--directory", default="/var/tmp", help="a directory on the disk")
    args = parse(parser)
    needed("fio", "fio")
    facts = machine()
    size_bytes = args.mib << 20

    def show(number: int, latest: Mapping[str, Rates]) -> None:
        values = "  ".join(
            f"{name} {operation} {rates[operation] / 1e6:.0f} MB/s"
            for operation in WANTED
            for name, rates in latest.items()
        )
        print(f"round {number}/{args.rounds}: {values}", file=sys.stderr)

    with tempfile.TemporaryDirectory(dir=args.directory, prefix="nephoscope-") as folder:
        directory = Path(folder)
        results = alternate(
            {
                "ours": lambda: ours(directory, size_bytes),
                "fio": lambda: theirs(directory, size_bytes),
            },
            args.rounds,
            args.seed,
            show,
        )
    rows = []
    for operation in WANTED:
        own = [rates[operation] for rates in results["ours"]]
        other = [rates[operation] for rates in results["fio"]]
        rows.append(Row(operation, "bytes_per_s", own, other, paired_ratio(own, other), BOUND))
    print_table(rows, "fio")
    versions = {"probe": version(probe_path(), "version"), "fio": version("fio", "--version")}
    settings = {"mib": args.mib, "seed": args.seed, "nice": args.nice, "realtime": args.realtime}
    return finish("storage-transfer", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
