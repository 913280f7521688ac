"""The loads beside their peers: fio, stress-ng, perf bench.

Each row runs both in turn, in random order round by round, pinned to the same CPU. Bounds: a set
rate is the same rate (0.98 to 1.02); as fast as it goes fio's psync and ours do the same system
calls (0.9 to 1.1); a handover by a pipe costs what perf's costs (0.9 to 1.1). stress-ng switches
between two processes and counts each of its turns, so its row has no bound and is shown only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial

from _paired import (
    Row,
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

RECORD_BYTES = 4096
FILE_BYTES = 64 << 20


def our_disk(directory: str, operation: str, rate: float, seconds: float) -> float:
    """Operations a second of load.disk with one thread."""
    params = {
        "directory": directory,
        "operation": operation,
        "record_bytes": RECORD_BYTES,
        "file_bytes": FILE_BYTES,
        "threads": 1,
        "operations_per_s": rate,
        "duration_ns": int(seconds * 1e9),
    }
    return one_value(run_probe("load.disk", params), "load_operations_per_s")


def fio(directory: str, operation: str, rate: float, seconds: float) -> float:
    """Operations a second of fio, one job by psync on a file that it has laid out before."""
    command = [
        "fio",
        "--name=compare",
        f"--filename={os.path.join(directory, 'fio')}",
        f"--size={FILE_BYTES}",
        f"--rw=rand{operation}",
        "--norandommap=1",
        f"--bs={RECORD_BYTES}",
        "--direct=1",
        "--ioengine=psync",
        "--time_based=1",
        f"--runtime={round(seconds * 1000)}ms",
        "--output-format=json",
        *([f"--rate_iops={rate:.0f}"] if rate else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio ended with {done.returncode}: {done.stderr.strip()}")
    (job,) = json.loads(done.stdout)["jobs"]
    return float(job[operation]["iops"])


def our_switches(method: str, seconds: float) -> float:
    """Switches a second of load.switches, one pair."""
    params = {"threads": 1, "method": method, "duration_ns": int(seconds * 1e9)}
    return one_value(run_probe("load.switches", params), "load_switches_per_s")


def stress_ng(seconds: float) -> float:
    """Operations a second of stress-ng's pipe switcher, one instance."""
    command = ["stress-ng", "--switch", "1", "--switch-method", "pipe"]
    command += ["--timeout", f"{max(1, round(seconds))}s", "--metrics", "--stdout"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    for line in done.stdout.splitlines():
        words = line.split()
        if "switch" in words and "dispatching" not in line and len(words) > 8:
            at = words.index("switch")
            if words[at + 1].isdigit():
                return float(words[at + 1]) / float(words[at + 2])
    raise RuntimeError(f"stress-ng told no rate: {done.stdout[-500:]}")


def our_handover(seconds: float) -> float:
    """Handovers a second of cpu.switch by a pipe."""
    samples = run_probe("cpu.switch", {"duration_ns": int(seconds * 1e9)})
    return one_value(samples, "switches_per_s")


def perf_pipe(round_trips: int) -> float:
    """Handovers a second of perf's pipe benchmark between two threads."""
    command = ["perf", "bench", "-f", "simple", "sched", "pipe", "-T", "-l", str(round_trips)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"perf ended with {done.returncode}: {done.stderr.strip()}")
    return 2 * round_trips / float(done.stdout.split()[0])


def rows(args: argparse.Namespace, directory: str) -> list[Row]:
    """Every comparison."""
    seconds = args.seconds
    pairs: list[
        tuple[str, Callable[[], float], Callable[[], float], tuple[float | None, float | None]]
    ] = []
    for operation in ("read", "write"):
        for rate, bound in ((500.0, (0.98, 1.02)), (0.0, (0.9, 1.1))):
            name = f"{operation} {'at 500/s' if rate else 'as fast as it goes'}"
            ours = partial(our_disk, directory, operation, rate, seconds)
            theirs = partial(fio, directory, operation, rate, seconds)
            pairs.append((name, ours, theirs, bound))
    pairs.append(
        ("handover, perf", partial(our_handover, seconds), partial(perf_pipe, 100_000), (0.9, 1.1))
    )
    pairs.append(
        (
            "load, stress-ng",
            partial(our_switches, "pipe", seconds),
            partial(stress_ng, seconds),
            (None, None),
        )
    )
    return [
        compare(name, "per_s", ours, theirs, bound, args.rounds, args.seed + number)
        for number, (name, ours, theirs, bound) in enumerate(pairs)
    ]


def main() -> int:
    """Runs the comparison; 0 when every bound holds."""
    parser = arguments("the loads beside fio, perf bench and stress-ng", rounds=11)
    parser.add_argument("--seconds", type=float, default=0.5, help="time of a trial")
    parser.add_argument("--directory", default="/var/tmp", help="a directory on the disk")
    args = parse(parser)
    for tool, package in (("fio", "fio"), ("perf", "linux-perf"), ("stress-ng", "stress-ng")):
        needed(tool, package)
    facts = machine()
    # Inherited by all programs: a switch is a switch only where two share a CPU.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(dir=args.directory, prefix="nephoscope-") as directory:
        done = rows(args, directory)
    print_table(done, "peer")
    versions = {
        "probe": version(probe_path(), "version"),
        "fio": version("fio", "--version"),
        "perf": version("perf", "--version"),
        "stress-ng": version("stress-ng", "--version"),
    }
    settings = {"seconds": args.seconds, "seed": args.seed, "record_bytes": RECORD_BYTES}
    return finish("loads", done, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
