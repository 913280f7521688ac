"""The simulator beside SimPy, salabim, NeXosim and CloudSim Plus: requests per second of CPU time.

All run in one session, in random order round by round, one after the other. A peer's CPU time is
that of its own simulation where it tells it (without the start of an interpreter or a virtual
machine), ours is that of the whole process: in the peers' favour. A peer counts only while its mean
response time is that of the formula, or ours where there is none.

Peers come from their registries into .setup/peers with --install; one that cannot be had is told
and left out. `--figures` measures what we hold ourselves to without a peer,
`--threads` replications on two threads beside one, and two processes of one thread each beside
one: what the machine itself gives to a second CPU.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
)
from _simulator_peers import cloudsim, install, nexosim, salabim, simpy

SERVERS, LOAD = 50, 0.8
SHARED_LOAD = 0.7
"""Of the machines that share their time: the load at which CloudSim Plus was measured before."""

NEAR = 0.06
"""How far a mean may lie from the truth: eight standard errors of 20,000 requests, the fewest here,
of exponential length (1 / sqrt(20,000) is 0.7 %), because neighbours in a queue are alike."""


@dataclass(frozen=True)
class Ran:
    """One run: requests, CPU seconds, mean response in services."""

    requests: int
    cpu_s: float
    mean: float

    @property
    def rate(self) -> float:
        """Requests per CPU second."""
        return self.requests / self.cpu_s


def spent(command: list[str], given: str = "") -> tuple[str, float, int]:
    """What a command printed, its CPU seconds, and its most memory in KiB. RuntimeError with its
    words."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=told, text=True)
        assert child.stdin is not None
        with child.stdin as words:
            words.write(given)
        # Not ru_maxrss: a child begins with its parent's, and this process is the larger one.
        ended, kib = 0, 0
        while not ended:
            kib = max(kib, most_kib(child.pid))
            time.sleep(0.02)
            ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        told.seek(0)
        if child.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: {told.read().strip()}")
        return out.read(), usage.ru_utime + usage.ru_stime, kib


def most_kib(pid: int) -> int:
    """The most memory of a running process so far, in KiB; 0 of one that has ended."""
    told = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", told, re.MULTILINE)
    return int(found[1]) if found else 0


def simulator() -> str:
    """Our program: NEPHOSCOPE_SIM, the package's, or the one built in the source tree."""
    places = [
        os.environ.get("NEPHOSCOPE_SIM", ""),
        *map(str, sorted((ROOT / "src" / "nephoscope" / "_probe").glob("*/nephoscope-sim"))),
        str(ROOT / "target" / "release" / "nephoscope-sim"),
    ]
    found = next((place for place in places if place and os.access(place, os.X_OK)), None)
    if found is None:
        print(
            "There is no nephoscope-sim: run `make survey`, or set NEPHOSCOPE_SIM", file=sys.stderr
        )
        raise SystemExit(4)
    return found


def simulated(benchmark: str, params: Mapping[str, Any], seed: int) -> tuple[list[Any], float, int]:
    """The sample lines of one replication, its CPU seconds, its most memory in KiB."""
    command = [simulator(), "run", benchmark, "--params", "@/dev/stdin", "--seed", str(seed)]
    out, cpu_s, kib = spent(command, json.dumps(dict(params)))
    lines = [json.loads(line) for line in out.splitlines()]
    return [line for line in lines if "metric" in line], cpu_s, kib


def scalar(samples: list[Any], metric: str) -> float:
    """The value of a metric without factors."""
    values = [s["value"] for s in samples if s["metric"] == metric and not s.get("factors")]
    if len(values) != 1:
        raise LookupError(f"{len(values)} values of {metric}")
    return float(values[0])


def our_queue(requests: int, seed: int) -> Ran:
    """M/M/c by sim.queue; a service takes a millisecond on the mean."""
    params = {
        "servers": SERVERS,
        "arrivals_per_s": LOAD * SERVERS * 1000,
        "service_ns": 1e6,
        "requests": requests,
    }
    samples, cpu_s, _ = simulated("sim.queue", params, seed)
    return Ran(requests, cpu_s, scalar(samples, "response_time_mean_ns") / 1e6)


def shared(instances: int, requests: int) -> dict[str, Any]:
    """Single requests of exponential work, a second on the mean, on machines that share time."""
    rate = SHARED_LOAD * instances
    steady = {"latency": 0, "bandwidth": 0, "users": 0}
    return {
        "version": 1,
        "duration_h": requests / rate / 3600,
        "warm_up_s": 0,
        "user_bases": {
            "all": {
                "region": "europe",
                "users": {"by_hour": [rate] * 24},
                "requests_per_user_h": 3600,
            }
        },
        "sites": {
            "one": {
                "region": "europe",
                "hosts": instances,
                "processors": 1,
                "speed": 1,
                "instances": instances,
            }
        },
        "latency": {"matrix": {"europe": {"europe": 0}}},
        "instructions": 1000,
        "instructions_spread": "exponential",
        "variation": steady,
        "balancer": "round_robin",
    }


def our_shared(instances: int, requests: int, seed: int) -> Ran:
    """The same as the peer's machines that share their time, by sim.geo; means in seconds."""
    params = {"scenario": json.dumps(shared(instances, requests))}
    samples, cpu_s, _ = simulated("sim.geo", params, seed)
    return Ran(
        int(scalar(samples, "requests")), cpu_s, scalar(samples, "response_time_mean_ns") / 1e9
    )


def peer(command: list[str], servers: int, load: float, requests: int, seed: int) -> Ran:
    """A peer's run; the last line of what it prints is JSON."""
    words = [*command, str(servers), str(load), str(requests), str(seed)]
    out, cpu_s, _ = spent(words)
    told = json.loads(out.strip().splitlines()[-1])
    return Ran(int(told["requests"]), float(told.get("cpu_s", cpu_s)), float(told["mean"]))


def exact_mean(servers: int, load: float) -> float:
    """Mean response of M/M/c in services, by Erlang's C (Kleinrock 1975, section 3.5)."""
    offered = servers * load
    terms = [math.exp(n * math.log(offered) - math.lgamma(n + 1)) for n in range(servers)]
    last = math.exp(servers * math.log(offered) - math.lgamma(servers + 1)) / (1 - load)
    waits = last / (sum(terms) + last)
    return 1 + waits / (servers - offered)


# What runs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A peer beside ours. requests: of one run; ours: the run that it is held against."""

    name: str
    command: list[str]
    servers: int
    load: float
    requests: int
    ours: str
    least: float | None


QUEUE, SHARED, MANY = "ours, queue", "ours, 50 machines", "ours, 2000 machines"


def peers() -> list[Peer]:
    """Those that are here; the others are told."""
    every = [
        Peer("SimPy", simpy(), SERVERS, LOAD, 50_000, QUEUE, 30),
        Peer("salabim", salabim(), SERVERS, LOAD, 5_000, QUEUE, 30),
        Peer("NeXosim", nexosim(), SERVERS, LOAD, 1_000_000, QUEUE, 1.5),
        Peer("CloudSim Plus", cloudsim(), SERVERS, SHARED_LOAD, 10_000, SHARED, 200),
    ]
    found = []
    for one in every:
        try:
            peer(one.command, one.servers, one.load, 2000, 1)
        except (OSError, RuntimeError, ValueError, LookupError) as error:
            reason = str(error).splitlines()[0][:200]
            print(f"{one.name} is left out: {reason}. Try --install.", file=sys.stderr)
        else:
            found.append(one)
    return found


class Runs:
    """Runs whose means are kept, each with a seed of its own."""

    def __init__(self) -> None:
        self.seed = 0
        self.means: dict[str, list[float]] = {}

    def rate(self, name: str, run: Callable[[int], Ran]) -> float:
        """Requests per CPU second of a run."""
        self.seed += 1
        ran = run(self.seed)
        self.means.setdefault(name, []).append(ran.mean)
        return ran.rate

    def mean(self, name: str) -> float:
        """Mean of the means."""
        return sum(self.means[name]) / len(self.means[name])


def compared(rounds: int, seed: int) -> tuple[list[Row], dict[str, float]]:
    """The rows, and the mean response of every program."""
    runs, found = Runs(), peers()
    alternatives: dict[str, Callable[[], float]] = {
        QUEUE: partial(runs.rate, QUEUE, partial(our_queue, 4_000_000)),
        SHARED: partial(runs.rate, SHARED, partial(our_shared, 50, 2_000_000)),
        MANY: partial(runs.rate, MANY, partial(our_shared, 2000, 2_000_000)),
    }
    for one in found:
        run = partial(peer, one.command, one.servers, one.load, one.requests)
        alternatives[one.name] = partial(runs.rate, one.name, run)
    values = interleave(alternatives, rounds, seed)
    rows = []
    for one in found:
        truth = exact_mean(SERVERS, LOAD) if one.ours == QUEUE else _from_empty(one.requests)
        off = runs.mean(one.name) / truth - 1
        if abs(off) > NEAR:
            told = f"{one.name}: its mean is {off:+.1%} off; its speed says nothing."
            print(told, file=sys.stderr)
        ours, theirs = values[one.ours], values[one.name]
        ratio = paired_ratio(ours, theirs)
        rows.append(Row(one.name, "requests/CPU-s", ours, theirs, ratio, (one.least, None)))
    cost = paired_ratio(values[SHARED], values[MANY])
    few, many, most = values[SHARED], values[MANY], (None, 2.0)
    rows.append(Row("50 over 2000 machines", "requests/CPU-s", few, many, cost, most))
    return rows, {name: runs.mean(name) for name in runs.means}


def _from_empty(requests: int) -> float:
    """Our mean of so few requests that the empty beginning counts, over seeds."""
    means = [our_shared(SERVERS, requests, seed).mean for seed in range(1, 31)]
    return sum(means) / len(means)


def main() -> int:
    """Prints the tables; 1 where a bound fails."""
    parser = arguments(__doc__.splitlines()[0], rounds=11)
    parser.add_argument("--install", action="store_true", help="fetch the peers first")
    args: argparse.Namespace = parse(parser)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if args.install:
        install()
    rows, means = compared(args.rounds, args.seed)
    print_table(rows, "theirs")
    for name, mean in means.items():
        print(f"mean response, {name}: {mean:.4f} services")
    print(f"exact, M/M/{SERVERS} at {LOAD}: {exact_mean(SERVERS, LOAD):.4f}")
    versions = {"simpy": "4.1.2", "salabim": "26.0.9", "nexosim": "1.0.0", "cloudsimplus": "8.5.7"}
    kept = {name: version for name, version in versions.items() if _has(name, rows)}
    return finish("simulators", rows, kept, {"means": means}, machine(), args.write)


def _has(name: str, rows: list[Row]) -> bool:
    return any(row.name.lower().replace(" ", "") == name for row in rows)


if __name__ == "__main__":
    sys.exit(main())
