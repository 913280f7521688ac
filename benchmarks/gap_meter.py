"""What gap meters cost the work on the other core: nothing measurable, or they may not run there.

The victim computes digits of pi on CPU 1. Two meters are switched on and off around it, quiet,
noisy, quiet: `cpu.gaps`, which looks at the clock all the time on CPU 0, and the meter that runs
beside every trial, which sleeps (docs/decisions/0016-gap-meter.md). The factor of a round is
the noisy time over the geometric mean of the quiet ones right before and after it, so that drift
cancels. Last, both meters watch CPU 0 while a program keeps it busy: what each of them sees.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

import _paired

VICTIM_CPU, METER_CPU = 1, 0
BOUND = (0.99, 1.01)
"""Half a width of 1 %: what may be called nothing."""

DIGITS = 10_000


def victim_ns(cpus: str, meter: bool = False) -> float:
    """Time of one computation in ns, on the first of these CPUs; the meter takes the last."""
    params = json.dumps({"threads": 1, "digits": DIGITS})
    command = ["taskset", "-c", cpus, _paired.probe_path(), "run", "cpu.pi", "--params", params]
    options = ["--gap-meter"] if meter else []
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if meter and lines[-1]["done"]["counters"]["spare_cpu"] is None:
        raise RuntimeError(lines[-1]["done"]["counters"]["spare_missing"])
    return _paired.one_value(lines[:-1], "pi_time_ns")


@contextlib.contextmanager
def looking() -> Iterator[Callable[[bool], None]]:
    """`cpu.gaps` on its CPU; the function lets it look, or stops it."""
    params = json.dumps({"cpus": [METER_CPU], "duration_ns": 1_800_000_000_000, "events_max": 0})
    command = [_paired.probe_path(), "run", "cpu.gaps", "--deadline", "1900", "--params", params]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as meter:
        try:
            yield lambda on: os.kill(meter.pid, signal.SIGCONT if on else signal.SIGSTOP)
        finally:
            meter.kill()
            meter.wait()


def around(
    quiet: Callable[[], float], noisy: Callable[[], float], rounds: int
) -> list[list[float]]:
    """Noisy times, and the geometric means of the quiet ones around each; shape (2, rounds)."""
    before, out = quiet(), [[], []]
    for _ in range(rounds):
        during, after = noisy(), quiet()
        out[0].append(during)
        out[1].append((before * after) ** 0.5)
        before = after
    return out


def row(name: str, times: list[list[float]]) -> _paired.Row:
    """One line of the table: noisy over quiet."""
    ratio = _paired.paired_ratio(times[0], times[1])
    return _paired.Row(name, "ns", times[0], times[1], ratio, BOUND)


def costs_nothing(one: _paired.Row) -> bool:
    """Whether the interval of the factor contains 1 and is at most 1 % to either side."""
    width = one.ratio.high - one.ratio.low
    return one.ratio.low <= 1 <= one.ratio.high and width <= 0.02


def spinning(rounds: int) -> _paired.Row:
    """The victim while `cpu.gaps` looks on the other core."""
    with looking() as look:

        def timed(on: bool) -> float:
            look(on)
            return victim_ns(str(VICTIM_CPU))

        return row("cpu.gaps", around(lambda: timed(False), lambda: timed(True), rounds))


def sleeping(rounds: int) -> _paired.Row:
    """The victim while the meter beside the trial watches the other core."""
    both = f"{METER_CPU},{VICTIM_CPU}"
    return row("beside", around(lambda: victim_ns(both), lambda: victim_ns(both, True), rounds))


def seen(rounds: int) -> dict[str, list[float]]:
    """What each meter sees of a CPU that another program keeps busy; shares of time lost."""
    hog = ["taskset", "-c", "1", _paired.probe_path(), "run", "load.cpu", "--deadline", "900"]
    found: dict[str, list[float]] = {"cpu.gaps": [], "beside": []}
    load = subprocess.Popen(
        [*hog, "--params", json.dumps({"duration_ns": 0, "threads": 1}), "--control"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert load.stdin is not None
    try:
        load.stdin.write(b"go\n")
        load.stdin.flush()
        for _ in range(rounds):
            share = _paired.run_probe("cpu.gaps", {"cpus": [1], "duration_ns": 500_000_000})
            found["cpu.gaps"].append(1 - _paired.one_value(share, "cpu_share_ratio"))
            params = json.dumps({"cpus": [0], "duration_ns": 500_000_000})
            command = [_paired.probe_path(), "run", "cpu.gaps", "--params", params, "--gap-meter"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            beside = json.loads(done.stdout.splitlines()[-1])["done"]["counters"]
            found["beside"].append(beside["spare_gap_ratio"])
    finally:
        load.kill()
        load.wait()
    return found


def main() -> int:
    args = _paired.parse(_paired.arguments(__doc__ or "", rounds=300))
    facts = _paired.machine()
    rows = [spinning(args.rounds), sleeping(args.rounds)]
    _paired.print_table(rows, "without")
    watched = seen(5)
    for name, shares in watched.items():
        print(f"{name} sees {statistics.median(shares):.1%} of a busy CPU as gaps, n = 5")
    if args.write:
        _paired.write_result(
            "gap-meter",
            {
                "machine": facts,
                "versions": {"probe": _paired.version(_paired.probe_path(), "version")},
                "settings": {"digits": DIGITS, "rounds": args.rounds},
                "rows": [
                    {
                        "name": one.name,
                        "factor": asdict(one.ratio),
                        "contains_1": one.ratio.low <= 1 <= one.ratio.high,
                        "half_width": (one.ratio.high - one.ratio.low) / 2,
                    }
                    for one in rows
                ],
                "seen_of_a_busy_cpu": watched,
            },
        )
    return 0 if all(costs_nothing(one) for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
