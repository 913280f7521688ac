"""What the simulator is held to without a peer: CPU time, memory, and what a second CPU gives.

Each figure is taken `--rounds` times, all in turn, so that each meets the machine in all its moods.
What else runs on a machine can only add to CPU time and never take from it: the best round is what
the program needs, and is what is held to the bound; the median says what the machine gave.

`--threads`: replications on two threads beside one, and two processes of one thread each beside
one, which is what the machine gives to a second CPU at all.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from _paired import (
    ROOT,
    Row,
    arguments,
    finish,
    interleave,
    machine,
    paired_ratio,
    parse,
    print_table,
    write_result,
)
from simulators import our_queue, scalar, simulated, simulator, spent

REPLICATIONS = 16
"""Of two million requests each: a thread waits for the other for one of sixteen at most."""

POLICIES = (
    "credit",
    "credit, capped",
    "sedf",
    "bvt",
    "linux, weights",
    "linux, quotas",
    "linux, reservations",
)
"""As the example program calls them."""

Figure = tuple[str, list[float], float, bool]
"""Name, values of the rounds, bound, whether it is a least one."""


def figures(rounds: int, seed: int) -> list[Figure]:
    """The values of all rounds, and most memory of a whole day of single requests."""
    told, _, _ = spent([simulator(), "scenarios"])
    day = json.loads(told)["sim.geo"]["twitter-2008-as-printed-two"]
    single = {**day, "grouping": {"users": 1, "requests": 1}}
    numbers = iter(range(1, 100 * rounds))

    def grouped() -> float:
        return simulated("sim.geo", {"scenario": json.dumps(day)}, next(numbers))[1]

    def alone(hours: float) -> tuple[float, float]:
        scenario = json.dumps({**single, "duration_h": hours})
        samples, cpu_s, kib = simulated("sim.geo", {"scenario": scenario}, next(numbers))
        return scalar(samples, "requests") / cpu_s, kib / 1024

    programs: dict[str, Callable[[], float]] = {
        "Twitter's day, grouped, CPU-s": grouped,
        "single requests per CPU-s, an hour": lambda: alone(1.0)[0],
        "M/M/50 requests per CPU-s": lambda: our_queue(4_000_000, next(numbers)).rate,
    }
    bounds = [(0.16, False), (2e6, True), (4e6, True)] + [(3e6, True)] * len(POLICIES)
    scheduling = example("scheduling")
    for policy in POLICIES:
        programs[f"events per CPU-s, {policy}"] = partial(events_per_s, scheduling, policy)
    values = interleave(programs, rounds, seed)
    found = [(name, values[name], *bound) for name, bound in zip(programs, bounds, strict=True)]
    rate, mib = alone(24.0)
    return [
        *found,
        ("single requests per CPU-s, a day", [rate], 2e6, True),
        ("most memory of that day, MiB", [mib], 64.0, False),
    ]


def events_per_s(program: str, policy: str) -> float:
    """Scheduling events per CPU second of a policy."""
    command = [program, "400", policy]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    (rate,) = re.findall(r", ([\d.]+) M a CPU-s$", told, re.MULTILINE)
    return 1e6 * float(rate)


def example(name: str) -> str:
    """One of the simulator's example programs, built."""
    words = ["cargo", "build", "--release", "--locked", "-q", "-p", "nephoscope-sim"]
    subprocess.run([*words, "--example", name], cwd=ROOT, check=True)
    return str(ROOT / "target" / "release" / "examples" / name)


def replicating(program: str, threads: int, processes: int = 1) -> float:
    """Replications a second of wall time, each process with so many threads. RuntimeError with the
    words of one that failed."""
    command = [program, str(REPLICATIONS), str(threads)]
    began = time.monotonic()
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for child in running:
        told = child.communicate()[1]
        if child.returncode != 0:
            raise RuntimeError(f"{program} ended with {child.returncode}: {told.strip()}")
    return processes * REPLICATIONS / (time.monotonic() - began)


def threads(rounds: int, seed: int) -> list[Row]:
    """Two threads beside one, two processes beside one, in random order round by round."""
    program = example("replications")
    alternatives: dict[str, Callable[[], float]] = {
        "one": partial(replicating, program, 1),
        "two threads": partial(replicating, program, 2),
        "two processes": partial(replicating, program, 1, 2),
    }
    values = interleave(alternatives, rounds, seed)
    one, unit = values["one"], "replications/s"
    bounds = {"two threads": (1.8, None), "two processes": (None, None)}
    rows = [
        Row(f"{name} over one", unit, values[name], one, paired_ratio(values[name], one), bound)
        for name, bound in bounds.items()
    ]
    both = (values["two threads"], values["two processes"])
    return [*rows, Row("threads over processes", unit, *both, paired_ratio(*both), (None, None))]


def main() -> int:
    """Prints the table; 1 where a bound fails."""
    parser = arguments(__doc__.splitlines()[0], rounds=11)
    parser.add_argument("--threads", action="store_true", help="only replications on two threads")
    args = parse(parser)
    if args.threads:
        rows = threads(args.rounds, args.seed)
        print_table(rows, "theirs")
        return finish("simulator-threads", rows, {}, {}, machine(), args.write)
    record, every = [], True
    print(f"{'what':<38}{'best':>14}{'median':>14}{'n':>4}  bound")
    for name, values, bound, is_least in figures(args.rounds, args.seed):
        best, median = (max if is_least else min)(values), statistics.median(values)
        holds = best >= bound if is_least else best <= bound
        every = every and holds
        words = (
            f"{'at least' if is_least else 'at most'} {bound:,g}: {'holds' if holds else 'fails'}"
        )
        print(f"{name:<38}{best:>14,.4g}{median:>14,.4g}{len(values):>4}  {words}")
        record.append({"name": name, "values": values, "bound": words, "holds": holds})
    if args.write:
        write_result("simulator-figures", {"machine": machine(), "figures": record})
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
