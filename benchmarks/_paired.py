"""Side-by-side comparison of two programs: rounds in random order, paired ratios, one interval.

A round runs every alternative once, in fresh random order, so that drift of the machine hits all
alike; the ratio is taken inside each round. The interval is that of the median of the ratios by
order statistics (the binomial, exact for any distribution), and since the logarithm keeps order it
is the interval of the log ratio too. Standard library only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Ratio:
    """Ours over theirs, in the unit of a quotient; `confidence` is the coverage really reached."""

    value: float
    low: float
    high: float
    confidence: float
    n: int
    method: str


@dataclass(frozen=True)
class Row:
    """One line of the table: a metric of both programs, round by round, and their ratio.

    ours, theirs: shape (rounds,), in `unit`. bound: what the ratio is held to, (low, high).
    """

    name: str
    unit: str
    ours: list[float]
    theirs: list[float]
    ratio: Ratio
    bound: tuple[float | None, float | None]

    @property
    def verdict(self) -> str:
        """`holds` when the median lies within the bound, `certain` when the interval does too."""
        if not within(self.ratio.value, self.bound):
            return "fails"
        inside = within(self.ratio.low, self.bound) and within(self.ratio.high, self.bound)
        return "holds, certain" if inside else "holds"


def within(value: float, bound: tuple[float | None, float | None]) -> bool:
    """Whether `value` lies in the closed range; None is no bound on that side."""
    low, high = bound
    return (low is None or value >= low) and (high is None or value <= high)


def interleave(
    alternatives: Mapping[str, Callable[[], float]],
    rounds: int,
    seed: int,
    progress: str = "",
) -> dict[str, list[float]]:
    """Runs every alternative once a round, in seeded random order.

    Returns the value of each alternative in the order of rounds, shape (rounds,) each. Whatever an
    alternative raises ends the comparison: a missing value is never filled in.
    """

    def show(number: int, latest: Mapping[str, float]) -> None:
        values = "  ".join(f"{name} {value:.4g}" for name, value in latest.items())
        print(f"{progress} round {number}/{rounds}: {values}", file=sys.stderr)

    return alternate(alternatives, rounds, seed, show)


def alternate(
    alternatives: Mapping[str, Callable[[], Result]],
    rounds: int,
    seed: int,
    show: Callable[[int, Mapping[str, Result]], None] = lambda number, latest: None,
) -> dict[str, list[Result]]:
    """As `interleave`, for results of any kind; show: called after each round."""
    order = random.Random(seed)
    results: dict[str, list[Result]] = {name: [] for name in alternatives}
    for number in range(rounds):
        names = list(alternatives)
        order.shuffle(names)
        for name in names:
            results[name].append(alternatives[name]())
        show(number + 1, {name: results[name][-1] for name in alternatives})
    return results


def paired_ratio(ours: Sequence[float], theirs: Sequence[float], confidence: float = 0.95) -> Ratio:
    """Median of the ratios of the rounds, with its order-statistic interval.

    ours, theirs: shape (rounds,), finite and > 0, paired by round. Raises ValueError for so few
    rounds that no such interval reaches the confidence: at 95 %, below six. Source: David and
    Nagaraja, Order Statistics, 7.1.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} values of ours against {len(theirs)} of theirs")
    return median_of((mine / other for mine, other in zip(ours, theirs, strict=True)), confidence)


def paired_difference(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """As `paired_ratio`, of the differences of the rounds, in the unit of the values."""
    differences = median_of(mine - other for mine, other in zip(ours, theirs, strict=True))
    return replace(differences, method=differences.method.replace("ratios", "differences"))


def median_of(values: Iterable[float], confidence: float = 0.95) -> Ratio:
    """Median with its order-statistic interval. ValueError below six values at 95 %."""
    ordered = sorted(values)
    n = len(ordered)
    below = 0.0
    rank = 0
    while rank < n // 2:
        step = math.comb(n, rank) / 2**n
        if 1 - 2 * (below + step) < confidence:
            break
        below += step
        rank += 1
    if rank == 0:
        raise ValueError(f"{n} rounds are too few for a {confidence:.0%} interval of the median")
    return Ratio(
        value=statistics.median(ordered),
        low=ordered[rank - 1],
        high=ordered[n - rank],
        confidence=1 - 2 * below,
        n=n,
        method=f"median of paired ratios, order statistics {rank} and {n - rank + 1} of {n}",
    )


def compare(
    name: str,
    unit: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    bound: tuple[float | None, float | None],
    rounds: int,
    seed: int,
) -> Row:
    """One row: both programs interleaved for `rounds` rounds, their ratio against `bound`."""
    values = interleave({"ours": ours, "theirs": theirs}, rounds, seed, name)
    ratio = paired_ratio(values["ours"], values["theirs"])
    return Row(name, unit, values["ours"], values["theirs"], ratio, bound)


def print_table(rows: Sequence[Row], theirs: str) -> None:
    """Prints the rows to standard output, under 80 columns."""
    print(f"{'what':<24}{'ours':>10} {theirs:>13}{'ratio':>8}{'interval':>16}  verdict")
    for row in rows:
        interval = f"{row.ratio.low:.3f}..{row.ratio.high:.3f}"
        ours, other = statistics.median(row.ours), statistics.median(row.theirs)
        line = f"{row.name:<24}{ours:>10.4g} {other:>13.4g}{row.ratio.value:>8.3f}"
        print(f"{line}{interval:>16}  {row.verdict}")
    for row in rows[:1]:
        print(f"n = {row.ratio.n} rounds, {row.ratio.confidence:.1%} confidence; medians shown")


def machine() -> dict[str, Any]:
    """What ran the comparison: processor, CPUs, memory, kernel, load before it."""
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "CPU implementer")):
            cpu = line.split(":", 1)[1].strip()
            break
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": pages * page_bytes,
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "load_average_1min": os.getloadavg()[0],
    }


def version(*command: str) -> str:
    """First line that `command` prints about its version."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "unknown"


def needed(tool: str, package: str) -> str:
    """Path of a tool, or exit code 4 with the command that installs it."""
    path = shutil.which(tool)
    if path is None:
        print(f"{tool} is missing: apt-get install {package}", file=sys.stderr)
        raise SystemExit(4)
    return path


def probe_path() -> str:
    """The probe: NEPHOSCOPE_PROBE, or the static one that `make probe` built."""
    built = f"src/nephoscope/_probe/{platform.machine()}-linux/nephoscope-probe"
    path = os.environ.get("NEPHOSCOPE_PROBE") or str(ROOT / built)
    if not os.access(path, os.X_OK):
        print(f"No probe at {path}: run `make probe`, or set NEPHOSCOPE_PROBE", file=sys.stderr)
        raise SystemExit(4)
    return path


def run_probe(benchmark: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One trial of our probe: its sample lines. RuntimeError carries its own sentence."""
    command = [probe_path(), "run", benchmark, "--params", json.dumps(params)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or not lines or "done" not in lines[-1]:
        raise RuntimeError(done.stderr.strip() or f"{benchmark} ended with {done.returncode}")
    return lines[:-1]


def one_value(samples: Sequence[Mapping[str, Any]], metric: str) -> float:
    """The only value of a scalar metric. LookupError when it is missing or not alone."""
    values = [sample["value"] for sample in samples if sample["metric"] == metric]
    if len(values) != 1:
        raise LookupError(f"{len(values)} values of {metric} where one was expected")
    return float(values[0])


def arguments(description: str, rounds: int = 15) -> argparse.ArgumentParser:
    """The options that every comparison has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds (at least 11)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order inside rounds")
    parser.add_argument(
        "--nice", type=int, default=0, help="niceness of both programs; -20 on a busy machine"
    )
    parser.add_argument(
        "--realtime", action="store_true", help="both programs under SCHED_FIFO (root)"
    )
    parser.add_argument("--write", action="store_true", help="store under benchmarks/results")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Reads the arguments and sets the priority; fewer than 11 rounds are a usage error."""
    args = parser.parse_args()
    if args.rounds < 11:
        parser.error("--rounds must be at least 11")
    if args.nice:
        os.setpriority(os.PRIO_PROCESS, 0, args.nice)  # inherited by everything started here
    if args.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return args


def finish(
    slug: str,
    rows: Sequence[Row],
    versions: Mapping[str, str],
    settings: Mapping[str, Any],
    facts: Mapping[str, Any],
    write: bool,
) -> int:
    """Stores results/<date>-<slug>.json when asked; 0, or 1 if a bound fails."""
    if write:
        record = {
            "machine": dict(facts),
            "versions": dict(versions),
            "settings": dict(settings),
            "rows": [{**asdict(row), "verdict": row.verdict} for row in rows],
        }
        write_result(slug, record)
    return 0 if all(row.verdict.startswith("holds") for row in rows) else 1


def write_result(slug: str, record: Mapping[str, Any]) -> None:
    """Stores a record, with the date, as results/<date>-<slug>.json."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = RESULTS / f"{date}-{slug}.json"
    path.write_text(json.dumps({"date": date, **record}, indent=1) + "\n", encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}")
