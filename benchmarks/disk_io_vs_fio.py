"""disk.io beside fio: 4 KiB random reads and writes, direct, io_uring, depth 1 and 32.

Both use a new file of the same size in the same directory, filled in the same way (reserved, then
written directly with incompressible data, then synced), warm up for a tenth of the duration and
count for the duration. fio's submission settings are its defaults, and neither registers buffers or
polls. Bound: 0.95 to 1.05 times fio's IOPS.

The rows without a CPU leave both programs to the scheduler, as a user would; those are the ones the
bound is about. The others pin both to one CPU each, because where a program sits relative to the
disk's interrupt changes depth 1 by several percent and would otherwise hide in the noise.
"""

from __future__ import annotations

import argparse
import itertools
import json
import mmap
import os
import subprocess
import sys
import tempfile
from functools import partial

from _paired import (
    arguments,
    compare,
    finish,
    machine,
    needed,
    one_value,
    parse,
    print_table,
    probe_path,
    run_probe,
    version,
)

BOUND = (0.95, 1.05)
RECORD_BYTES = 4096
FILL_BYTES = 4 << 20


def ours(directory: str, operation: str, depth: int, args: argparse.Namespace) -> float:
    """Operations a second of one trial of disk.io. operation: randread or randwrite."""
    params = {
        "directory": directory,
        "file_bytes": args.file_mib << 20,
        "record_bytes": RECORD_BYTES,
        "operation": operation,
        "queue_depth": depth,
        "direct": True,
        "engine": "io_uring",
        "duration_ns": int(args.seconds * 1e9),
    }
    return one_value(run_probe("disk.io", params), "disk_operations_per_s")


def fill(path: str, size: int) -> None:
    """Makes a file as disk.io makes its own."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_DIRECT
    file = os.open(path, flags, 0o600)
    try:
        os.posix_fallocate(file, 0, size)
        # Anonymous memory is aligned to pages, as direct writes need it.
        with mmap.mmap(-1, min(size, FILL_BYTES)) as data:
            for at in range(0, size, len(data)):
                data[:] = os.urandom(len(data))
                os.pwrite(file, memoryview(data)[: size - at], at)
        os.fsync(file)
    finally:
        os.close(file)


def fio(directory: str, operation: str, depth: int, args: argparse.Namespace) -> float:
    """Operations a second of one run of fio with the same settings."""
    path = os.path.join(directory, "fio")
    fill(path, args.file_mib << 20)
    command = [
        "fio",
        "--name=compare",
        f"--filename={path}",
        f"--size={args.file_mib}M",
        f"--rw={operation}",
        "--norandommap=1",  # any record at any time, as ours
        f"--bs={RECORD_BYTES}",
        "--direct=1",
        "--ioengine=io_uring",
        f"--iodepth={depth}",
        "--time_based=1",
        f"--runtime={round(args.seconds * 1000)}ms",
        f"--ramp_time={round(args.seconds * 100)}ms",
        "--unlink=1",
        "--output-format=json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio ended with {done.returncode}: {done.stderr.strip()}")
    jobs = json.loads(done.stdout)["jobs"]
    direction = operation.removeprefix("rand")
    if len(jobs) != 1 or jobs[0]["error"] != 0 or jobs[0][direction]["total_ios"] == 0:
        raise RuntimeError(f"fio did nothing: {done.stdout[:200]}")
    return float(jobs[0][direction]["iops"])


def main() -> int:
    """Runs the comparison; 0 when all hold their bound."""
    parser = arguments("disk.io beside fio: 4 KiB random reads and writes, direct")
    parser.add_argument("--seconds", type=float, default=1.0, help="counted time of a trial")
    parser.add_argument("--file-mib", type=int, default=64, help="size of the file in MiB")
    parser.add_argument("--pinned", type=int, default=2, help="also pin both to the first N CPUs")
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 32], help="queue depths")
    parser.add_argument("--directory", default="/var/tmp", help="a directory on the disk")
    args = parse(parser)
    needed("fio", "fio")
    facts = machine()
    rows = []
    everywhere = os.sched_getaffinity(0)
    placements: list[tuple[str, set[int]]] = [("", everywhere)]
    placements += [(f" cpu {cpu}", {cpu}) for cpu in sorted(everywhere)[: args.pinned]]
    with tempfile.TemporaryDirectory(dir=args.directory, prefix="nephoscope-") as directory:
        for operation, depth in itertools.product(("randread", "randwrite"), args.depths):
            for label, cpus in placements:
                os.sched_setaffinity(0, cpus)  # inherited by both programs
                asked = (directory, operation, depth, args)
                row = compare(
                    f"{operation} depth {depth}{label}",
                    "operations_per_s",
                    partial(ours, *asked),
                    partial(fio, *asked),
                    BOUND,
                    args.rounds,
                    args.seed + depth,
                )
                rows.append(row)
    os.sched_setaffinity(0, everywhere)
    print_table(rows, "fio")
    versions = {"probe": version(probe_path(), "version"), "fio": version("fio", "--version")}
    settings = {
        "seconds": args.seconds,
        "file_mib": args.file_mib,
        "seed": args.seed,
        "nice": args.nice,
        "realtime": args.realtime,
        "pinned": args.pinned,
    }
    return finish("disk-io", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
