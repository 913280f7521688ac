"""What a user waits for besides the measurement: whole commands, with peers and another version.

Each command runs as a user types it, alternated with the peer that does the same (hyperfine, wrk)
and with `--against COMMAND`, the `nephoscope` of another version. Printed are wall time, CPU time
with that of all children, and the memory of the largest process, medians of the rounds, then the
sizes of two pages: of `bench null` and of `survey --quick`, which is also the run that is shown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from _paired import (
    alternate,
    arguments,
    machine,
    needed,
    paired_ratio,
    parse,
    version,
    write_result,
)
from http_load_vs_wrk import PARTS, nginx

OURS = str(Path(__file__).resolve().parents[1] / ".venv" / "bin" / "nephoscope")
SCENARIO = "cloudanalyst-default"
GOALS = {
    "bench --command": ("cpu_s", 0.25),
    "load -d 5s": ("wall_s", 5.8),
    "simulate geo": ("cpu_s", 0.3),
    "show of a survey": ("cpu_s", 0.5),
    "--help": ("wall_s", 0.3),
}
"""Case -> the quantity that has a goal, and the goal."""

PAGES = {"page of bench null": 300_000, "page of survey --quick": 1_000_000}
"""Bytes at most."""


@dataclass(frozen=True)
class Cost:
    """One command from its start to its end. memory_bytes: of its largest process."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


def cost(words: Sequence[str], store: str) -> Cost:
    """Runs a command in a store of its own; RuntimeError where it fails."""
    environment = {**os.environ, "NEPHOSCOPE_STORE": store}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # no user has it
    with Path(os.devnull).open("r+b") as nowhere:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere.fileno(), end) for end in (0, 1, 2)]
        began = time.perf_counter()
        child = os.posix_spawnp(words[0], list(words), environment, file_actions=actions)
        _, status, usage = os.wait4(child, 0)
    wall_s = time.perf_counter() - began
    if status:
        raise RuntimeError(f"{' '.join(words)} ended with status {status}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def cases(run: str, address: str) -> dict[str, tuple[list[str], list[str]]]:
    """Case -> words after `nephoscope`, and the command of the peer, empty where there is none."""
    hyperfine = ["hyperfine", "--shell=none", "--runs=10", "--style=none", "true"]
    wrk = ["wrk", "-t1", "-c10", "-d5s", address]
    return {
        "--help": (["--help"], []),
        "bench --command": (["bench", "--command", "true", "--runs", "10"], hyperfine),
        "simulate geo": (["simulate", "geo", SCENARIO], []),
        "show of a survey": (["show", run], []),
        "load -d 5s": (["load", address, "-d", "5s"], wrk),
    }


@contextmanager
def survey(against: str | None) -> Iterator[tuple[dict[str, str], str]]:
    """Yields a store for each version, with the same survey in both, and the name of that run."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-") as folder:
        stores = {name: f"{folder}/{name}" for name in ("ours", *(["against"] if against else []))}
        cost([OURS, "survey", "--quick"], stores["ours"])
        (run,) = os.listdir(f"{stores['ours']}/runs")
        for store in list(stores.values())[1:]:
            subprocess.run(["cp", "-a", stores["ours"], store], check=True)
        yield stores, run


def page_bytes(words: Sequence[str], run: str | None) -> int:
    """Size of the page of a run, made anew where it has to be."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-") as store:
        cost([OURS, *words], store)
        name = run or os.listdir(f"{store}/runs")[0]
        return Path(store, "runs", name, "report", "report.html").stat().st_size


def measure(against: str | None, rounds: int, seed: int) -> Mapping[str, object]:
    """Measures and prints every case; returns the record."""
    record: dict[str, object] = {}
    held = True
    with survey(against) as (stores, run), nginx(0, PARTS["http1"]) as address:
        shown = Path(stores["ours"], "runs", run, "report", "report.html").stat().st_size
        for case, (words, peer) in cases(run, address).items():
            programs = {"ours": [OURS, *words]}
            if against:
                programs["against"] = [against, *words]
            if peer:
                programs["peer"] = peer
            for name, command in programs.items():  # the first start compiles bytecode
                cost(command, stores.get(name, stores["ours"]))
            results = alternate(
                {
                    name: lambda c=command, n=name: cost(c, stores.get(n, stores["ours"]))
                    for name, command in programs.items()
                },
                rounds,
                seed,
            )
            record[case] = {name: [vars(one) for one in own] for name, own in results.items()}
            held &= print_case(case, results)
    sizes = {
        "page of bench null": page_bytes(["bench", "null", "--repetitions", "10"], None),
        "page of survey --quick": shown,
    }
    for page, size in sizes.items():
        held &= size <= PAGES[page]
        print(f"{page}: {size / 1000:.0f} kB, goal {PAGES[page] / 1000:.0f} kB")
    print(f"goals {'hold' if held else 'do not all hold'}; load {os.getloadavg()[0]:.1f}")
    return {"cases": record, "page_bytes": sizes, "held": held}


def print_case(case: str, results: Mapping[str, Sequence[Cost]]) -> bool:
    """Prints the medians of a case and its ratios; returns whether its goal holds."""
    middle = {}
    for name, own in results.items():
        middle[name] = {
            quantity: sorted(getattr(one, quantity) for one in own)[len(own) // 2]
            for quantity in ("wall_s", "cpu_s", "memory_bytes")
        }
        print(
            f"{case:18s} {name:8s} {middle[name]['wall_s']:6.3f} s, "
            f"{middle[name]['cpu_s']:6.3f} s of CPU, {middle[name]['memory_bytes'] >> 20} MiB"
        )
    for name in results.keys() - {"ours"}:
        for quantity in ("wall_s", "cpu_s"):
            ratio = paired_ratio(
                [getattr(one, quantity) for one in results["ours"]],
                [getattr(one, quantity) for one in results[name]],
            )
            print(
                f"  {quantity} over {name}: {ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
            )
    quantity, goal = GOALS[case]
    holds = middle["ours"][quantity] <= goal
    print(f"  goal {quantity} {goal:g}: {'holds' if holds else 'does not hold'}")
    return holds


def main() -> int:
    parser = arguments(__doc__.splitlines()[0], rounds=11)
    parser.add_argument("--against", metavar="COMMAND", help="`nephoscope` of another version")
    args = parse(parser)
    for tool in ("hyperfine", "wrk", "nginx"):
        needed(tool, tool)
    facts = machine()
    record = measure(args.against, args.rounds, args.seed)
    if args.write:
        versions = {"nephoscope": version(OURS, "--version"), "wrk": version("wrk", "-v")}
        versions["hyperfine"] = version("hyperfine", "--version")
        if args.against:
            versions["against"] = version(args.against, "--version")
        write_result("fixed-costs", {"machine": facts, "versions": versions, **record})
    return 0 if record["held"] else 1


if __name__ == "__main__":
    sys.exit(main())
