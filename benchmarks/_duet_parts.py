"""Commands of known work, a disturbance that comes and goes, and three designs in equal time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from _paired import one_value, run_probe

from nephoscope.core.model import Better
from nephoscope.stats import compare
from nephoscope.stats.compare import TwoSampleComparison

SOURCE = """
#include <stdlib.h>
int main(int count, char **words) {
    volatile unsigned long sum = 0;
    for (unsigned long left = count > 1 ? strtoul(words[1], 0, 10) : 0; left; left--) sum += left;
    return 0;
}
"""
"""Its time is its argument, but for the start of the program."""

LOOPS = 75_000_000
"""Some 30 ms of one CPU, of which the start of the program is one."""

MEMORY = """
import array, sys
held = array.array("q", bytes(16 << 20))
for _ in range(int(sys.argv[1])):
    held[1:] = held[:-1]
"""
"""Copies 16 MiB as often as its argument says."""


@contextlib.contextmanager
def work() -> Iterator[str]:
    """Yields the path of the program that counts down its argument."""
    with tempfile.TemporaryDirectory(prefix="nephoscope-") as name:
        source, program = Path(name) / "work.c", Path(name) / "work"
        source.write_text(SOURCE)
        subprocess.run(["cc", "-O1", "-o", str(program), str(source)], check=True)
        yield str(program)


def _disturb(cpu: int, seed: int, start_s: float, mean_s: float) -> None:
    """Keeps a CPU busy now and then; processes of one seed and start do so at the same moments."""
    os.sched_setaffinity(0, {cpu})
    draw, edge = random.Random(seed), start_s
    while True:
        edge += draw.uniform(0.2 * mean_s, 1.8 * mean_s)
        while time.monotonic() < edge:
            pass
        edge += draw.uniform(0.2 * mean_s, 1.8 * mean_s)
        time.sleep(max(0.0, edge - time.monotonic()))


@contextlib.contextmanager
def disturbance(seed: int, mean_s: float = 1.0) -> Iterator[None]:
    """A competitor on every CPU of this process, on and off at the same moments."""
    start_s, children = time.monotonic(), []
    for cpu in sorted(os.sched_getaffinity(0)):
        child = os.fork()
        if child == 0:
            try:
                _disturb(cpu, seed, start_s, mean_s)
            finally:
                os._exit(0)
        children.append(child)
    try:
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@dataclass(frozen=True)
class Outcome:
    """What a design found. half_width_ratio: of the interval, relative to the ratio."""

    ratio: float
    low: float
    high: float
    n: int
    half_width_ratio: float
    verdict: str
    seconds: float


def _outcome(comparison: TwoSampleComparison, seconds: float) -> Outcome:
    ratio = comparison.ratio
    assert ratio is not None
    if ratio.low is None or ratio.high is None:
        raise RuntimeError(f"{comparison.n_a} repetitions have no interval: give it more seconds")
    low, high = ratio.low, ratio.high
    half = (high - low) / 2 / ratio.value
    return Outcome(ratio.value, low, high, comparison.n_a, half, comparison.verdict.word, seconds)


def duet(
    first: Sequence[str],
    second: Sequence[str],
    seconds: float,
    most: int = 10_000,
    duration_s: float = 0.3,
) -> Outcome:
    """Both commands at the same time, for so long, or so many trials of `duration_s`."""
    ratios, begun = [], time.monotonic()
    params = {
        "argv": list(first),
        "second_argv": list(second),
        "duration_ns": round(duration_s * 1e9),
    }
    while time.monotonic() < begun + seconds and len(ratios) < most:
        ratios.append(one_value(run_probe("command.duet", params), "relative_time_ratio"))
    spent = time.monotonic() - begun
    ones = [1.0] * len(ratios)
    return _outcome(compare.paired(ones, ratios, better=Better.LOWER), spent)


def _wall(argv: Sequence[str]) -> float:
    return one_value(run_probe("command", {"argv": list(argv)}), "wall_ns")


def interleaved(first: Sequence[str], second: Sequence[str], seconds: float, seed: int) -> Outcome:
    """Alternately, in random order within each round, compared by round."""
    draw, begun = random.Random(seed), time.monotonic()
    values: dict[int, list[float]] = {0: [], 1: []}
    while time.monotonic() < begun + seconds:
        for side in draw.sample((0, 1), 2):
            values[side].append(_wall((first, second)[side]))
    spent = time.monotonic() - begun
    return _outcome(compare.paired(values[0], values[1], better=Better.LOWER), spent)


def sequential(first: Sequence[str], second: Sequence[str], seconds: float) -> Outcome:
    """One command after the other, each for half of the time."""
    values: list[list[float]] = []
    begun = time.monotonic()
    for side, argv in enumerate((first, second)):
        values.append([])
        while time.monotonic() < begun + (side + 1) * seconds / 2:
            values[side].append(_wall(argv))
    spent = time.monotonic() - begun
    return _outcome(compare.independent(*values, better=Better.LOWER), spent)


def show(name: str, outcome: Outcome) -> None:
    """Prints a line on stderr."""
    print(
        f"{name:<12} {outcome.ratio:.4f} [{outcome.low:.4f}, {outcome.high:.4f}] n = {outcome.n}, "
        f"half-width {100 * outcome.half_width_ratio:.2f} %, {outcome.verdict}, "
        f"{outcome.seconds:.1f} s, load {os.getloadavg()[0]:.1f}",
        file=sys.stderr,
    )
