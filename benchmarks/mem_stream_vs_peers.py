"""mem.stream beside likwid-bench and stress-ng: the triad, same arrays, same pinned threads.

Three things differ between the programs and are made alike here. likwid-bench calls STREAM's triad
`stream` (its `triad` moves four arrays), takes the three arrays' sum as size and counts MB of 10^6
bytes; stress-ng runs all four kernels and counts MB of 2^20 bytes, which its own count of
floating-point operations confirms in each run. Against stress-ng two figures of ours stand: the
triad, and the same mix of the four kernels. Everyone's figure is total bytes over total time, the
mean of the passes and never the best one. Ours and stress-ng ask for huge pages, likwid-bench
cannot; a row with ours on small pages shows what that is worth. Bound: at least 0.97 of each peer,
so of the best.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from _paired import (
    Row,
    arguments,
    finish,
    interleave,
    machine,
    needed,
    paired_ratio,
    parse,
    print_table,
    probe_path,
    run_probe,
    version,
)

Bound = tuple[float | None, float | None]
BOUND: Bound = (0.97, None)
# likwid's kernels of the triad with streaming stores, and the CPU flags that each needs.
LIKWID_KERNELS = {
    "stream_mem_avx512_fma": {"avx512f"},
    "stream_mem_avx512": {"avx512f"},
    "stream_mem_avx_fma": {"avx", "fma"},
    "stream_mem_avx": {"avx"},
    "stream_mem_sse": {"sse2"},
}
KERNEL_BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
# stress-ng prints no rate for runs that it finds too short, about 4.5 s of its own kernels' time;
# where it did not get the CPU for so long, the next duration is tried.
STRESS_SECONDS = (5, 10, 20)


def last_level_bytes() -> int:
    """Size of the last-level cache of the first allowed CPU, in bytes."""
    cpu = min(os.sched_getaffinity(0))
    best = (0, 0)
    for index in Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
        text = (index / "size").read_text().strip()
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[text[-1]]
        best = max(best, (int((index / "level").read_text()), int(text[:-1]) * unit))
    if best[1] == 0:
        raise SystemExit("The size of the last-level cache is unknown: set --bytes-per-array.")
    return best[1]


def run(command: Sequence[str]) -> str:
    """Standard output and error of `command`; RuntimeError with its words when it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd="/tmp"
    )
    text = done.stdout + done.stderr
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {text[-300:].strip()}")
    return text


def ours(threads: int, array_bytes: int, passes: int, pages: str) -> dict[str, float]:
    """One trial of mem.stream: bytes per second of each kernel and of the mix of all four."""
    params = {
        "threads": threads,
        "bytes_per_array": array_bytes,
        "types": ["double"],
        # One pass of so many laps is what likwid-bench calls iterations.
        "passes": 1,
        "laps": passes,
        "store": "nontemporal",
        "pages": pages,
    }
    seconds_per_byte = dict.fromkeys(KERNEL_BYTES, 0.0)
    for sample in run_probe("mem.stream", params):
        if sample["metric"] == "stream_bytes_per_s":
            seconds_per_byte[sample["factors"]["kernel"]] += 1 / sample["value"]
    rates = {kernel: 1 / value for kernel, value in seconds_per_byte.items()}
    per_element = sum(KERNEL_BYTES[kernel] * seconds_per_byte[kernel] for kernel in KERNEL_BYTES)
    return {**rates, "mix": sum(KERNEL_BYTES.values()) / per_element}


def likwid(kernel: str, threads: int, array_bytes: int, passes: int) -> float:
    """Bytes per second of one run of likwid-bench; each thread places its own part."""
    work = f"S0:{3 * array_bytes // 1000}kB:{threads}"
    text = run(["likwid-bench", "-t", kernel, "-i", str(passes), "-W", work])
    return float(found(r"^MByte/s:\s+([\d.]+)$", text)) * 1e6


def stress(threads: int, array_bytes: int) -> float:
    """Bytes per second that all instances of one run of stress-ng read and wrote together.

    Each array of an instance is four times the cache size it is told, divided by the instances.
    """
    cpus = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:threads])
    command = ["stress-ng", "--stream", str(threads), "--stream-l3-size", str(array_bytes // 4)]
    command += ["--stream-madvise", "hugepage", "--taskset", cpus, "--metrics"]
    pattern = r"memory rate: ([\d.]+) MB read/sec, ([\d.]+) MB write/sec, ([\d.]+) Mflop/sec"
    for seconds in STRESS_SECONDS:
        text = run([*command, "-t", str(seconds)])
        instances = [tuple(map(float, match)) for match in re.findall(pattern, text)]
        if len(instances) == threads:
            break
    if len(instances) != threads:
        raise RuntimeError(f"stress-ng gave {len(instances)} rates for {threads} instances: {text}")
    total = 0.0
    for read, write, mflop in instances:
        # Four kernels read 48 and write 32 bytes for 4 operations on doubles.
        if abs(read * 2**20 / (mflop * 1e6 * 12) - 1) > 0.01:
            raise RuntimeError(f"stress-ng's MB are not MiB: {read} MB for {mflop} Mflop")
        total += (read + write) * 2**20
    return total


def found(pattern: str, text: str) -> str:
    """The only group of `pattern` in `text`; LookupError when it is missing."""
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise LookupError(f"no {pattern!r} in: {text[-300:]}")
    return match.group(1)


def likwid_kernels() -> list[str]:
    """Those of likwid's kernels that it has in this version and that this CPU can run."""
    listed = run(["likwid-bench", "-a"])
    flags = set(found(r"^flags\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text()).split())
    kernels = LIKWID_KERNELS.items()
    return [name for name, needs in kernels if needs <= flags and f"{name} -" in listed]


def rows_for(threads: int, array_bytes: int, args: argparse.Namespace) -> list[Row]:
    """All rows of one number of threads, from two interleaved runs, the quick peer's first."""

    def row(name: str, mine: list[float], other: list[float], bound: Bound = BOUND) -> Row:
        name = f"{threads}t {name}"
        return Row(name, "bytes_per_s", mine, other, paired_ratio(mine, other), bound)

    trials: list[dict[str, float]] = []

    def triad(pages: str = "huge") -> float:
        trials.append(ours(threads, array_bytes, args.passes, pages))
        return trials[-1]["triad"]

    seed = args.seed + threads
    rows: list[Row] = []
    if "likwid" in args.peers:
        kernels = [name for name in likwid_kernels() if name in args.kernels]
        quick: dict[str, Callable[[], float]] = {"ours": triad, "small": lambda: triad("small")}
        for kernel in kernels:
            quick[kernel] = lambda kernel=kernel: likwid(  # type: ignore[misc]
                kernel, threads, array_bytes, args.passes
            )
        values = interleave(quick, args.rounds, seed, f"{threads} threads")
        rows += [row(kernel[7:], values["ours"], values[kernel]) for kernel in kernels]
        rows.append(row("small by huge", values["small"], values["ours"], (None, None)))
    if "stress-ng" in args.peers:
        trials.clear()
        slow = {"ours": triad, "stress-ng": lambda: stress(threads, array_bytes)}
        values = interleave(slow, args.rounds, seed, f"{threads} threads")
        rows.append(row("stress-ng", values["ours"], values["stress-ng"]))
        rows.append(row("stress-ng, mix", [one["mix"] for one in trials], values["stress-ng"]))
    return rows


def main() -> int:
    """Runs the comparison; 0 when ours holds the bound against every peer."""
    parser = arguments("mem.stream beside likwid-bench and stress-ng", rounds=11)
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--threads", type=int, nargs="+", default=sorted({1, cpus}), help="numbers of threads"
    )
    parser.add_argument(
        "--bytes-per-array", type=int, default=0, help="0: four times the last-level cache"
    )
    parser.add_argument("--passes", type=int, default=8, help="passes of each trial")
    peers = ("likwid", "stress-ng")
    parser.add_argument("--peers", nargs="+", choices=peers, default=peers, help="whom to meet")
    parser.add_argument(
        "--kernels",
        nargs="+",
        choices=LIKWID_KERNELS,
        default=list(LIKWID_KERNELS),
        help="of likwid-bench, where this CPU can run them",
    )
    args = parse(parser)
    needed("likwid-bench", "likwid")
    needed("stress-ng", "stress-ng")
    facts = machine()
    # Whole kB, so that likwid's size is the same to the byte.
    array_bytes = (args.bytes_per_array or 4 * last_level_bytes()) // 64_000 * 64_000
    rows: list[Row] = []
    for threads in args.threads:
        rows += rows_for(threads, array_bytes, args)
    print_table(rows, "peer")
    versions = {
        "probe": version(probe_path(), "version"),
        "likwid-bench": "Debian " + version("dpkg-query", "-W", "-f=${Version}", "likwid"),
        "stress-ng": version("stress-ng", "--version"),
    }
    settings = {
        "bytes_per_array": array_bytes,
        "passes": args.passes,
        "seed": args.seed,
        "nice": os.nice(0),
    }
    return finish("mem-stream", rows, versions, settings, facts, args.write)


if __name__ == "__main__":
    sys.exit(main())
