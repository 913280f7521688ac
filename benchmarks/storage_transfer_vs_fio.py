"""storage.transfer beside fio on a local disk: objects written with a sync, read with cold caches.

Both make a new file of the same size by writes of 1 MiB through the page cache, sync it, have its
pages dropped and read it at once by reads of 1 MiB; opening and the sync count, dropping does not.
Before each, the disk comes to rest: a file system mounted with `discard` goes on discarding
the blocks of removed files for seconds, and a measurement then shares the disk with that. fio
repeats one random MiB, which matters only to disks that find repetitions. Bound: 0.95 to 1.05 times
fio's throughput.

The rate of a virtual disk often varies by more than this from one second to the next. Then
`--limit MB` sets the rate of the disk for both (root; a control group), and shows whether each
reports what was set; the kernel lets up to 0.1 s of traffic pass before it limits, which counts
little in a file that takes several seconds. Version 1 of control groups does not limit what the
kernel writes back by itself, without a sync: the file has to be smaller than that begins with
(vm.dirty_background_ratio).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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

from nephoscope.measure.lab.limits import cgroups, disk
from nephoscope.measure.lab.topology import DiskSpec

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
    """Rates of fio for the same work, in one start: its second job reads what the first wrote."""
    rest(directory)
    file = directory / "fio"
    command = [
        "fio",
        f"--filename={file}",
        f"--size={size_bytes}",
        f"--bs={CHUNK_BYTES}",
        "--ioengine=sync",
        "--fallocate=none",
        "--fadvise_hint=0",
        # Else dropping the pages would count as reading.
        "--invalidate=0",
        # Else fio makes the file of the second job before the first.
        "--create_on_open=1",
        "--output-format=json",
        "--name=write",
        "--rw=write",
        "--end_fsync=1",
        "--name=read",
        "--rw=read",
        "--stonewall",
        f"--exec_prerun=dd if={file} iflag=nocache count=0",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, cwd=directory
    )
    from_disk = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
    file.unlink(missing_ok=True)
    if done.returncode != 0:
        raise RuntimeError(f"fio ended with {done.returncode}: {done.stderr.strip()}")
    if from_disk < 0.99 * size_bytes:
        raise RuntimeError(f"fio read {from_disk} of {size_bytes} bytes from the disk")
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return {job["jobname"]: bytes_per_s(job, size_bytes) for job in jobs}


def bytes_per_s(job: Mapping[str, Any], size_bytes: int) -> float:
    """Throughput of a job of fio; its run time includes the sync at its end."""
    part = job[job["jobname"]]
    if job["error"] != 0 or part["io_bytes"] != size_bytes:
        raise RuntimeError(f"fio moved something else: {str(job)[:200]}")
    return size_bytes / (float(part["runtime"]) / 1000)


@contextmanager
def limited_disk(directory: Path, bytes_per_s: float) -> Iterator[Path]:
    """Yields the `cgroup.procs` of a control group that reads from and writes to the disk of
    `directory` at this rate; kills and removes what is in it afterwards."""
    name = f"fio-{os.getpid()}"
    group = cgroups.host(name, "disk")
    try:
        group.make()
        limit = DiskSpec.model_validate({"read": bytes_per_s, "write": bytes_per_s})
        disk.apply(group, directory, limit)
        yield group.file("io", "cgroup.procs", "cgroup.procs")
    finally:
        cgroups.remove(name)


def run_limited(directory: Path, bytes_per_s: float) -> int:
    """Runs this script again in such a group; its exit code."""
    with limited_disk(directory, bytes_per_s) as processes:
        return subprocess.run(
            [sys.executable, *sys.argv, "--inside"],
            preexec_fn=lambda: processes.write_text(str(os.getpid())),
            check=False,
        ).returncode


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
    parser.add_argument("--limit", type=int, metavar="MB", help="rate of the disk in MB/s")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parse(parser)
    needed("fio", "fio")
    if args.limit and not args.inside:
        return run_limited(Path(args.directory), args.limit * 1e6)
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
    settings = {
        "mib": args.mib,
        "limit_mb_per_s": args.limit,
        "seed": args.seed,
        "nice": args.nice,
        "realtime": args.realtime,
    }
    return finish("storage-transfer", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
