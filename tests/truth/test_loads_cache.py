"""load.cache and load.memory: whose lines are pushed out, and what crosses the memory bus."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import pytest
from channel import controlled
from cpu_truth import last_cpu
from tests import hardware
from tests.attempts import PAUSES_S, Undecided, attempt
from tests.hardware import Feature
from trials import Trial, command, run

LINE_BYTES = 64
MEMORY_BYTES = 256 << 20
"""Of a chain that no last-level cache holds."""


def pinned(benchmark: str, **more: Any) -> Trial:
    given = {"threads": 1, "cpus": [last_cpu()], "duration_ns": 300_000_000, **more}
    return run(benchmark, given)


@contextmanager
def beside(benchmark: str, **params: Any) -> Iterator[None]:
    """The load on the last CPU, for a while."""
    given = {"threads": 1, "cpus": [last_cpu()], "duration_ns": 0, **params}
    with controlled("run", benchmark, given) as load:
        load.ready()
        load.say("go")
        yield
        load.say("stop")
        load.trial()


def chased_ns(cpu: int, *lengths: int) -> list[float]:
    """Time of one load (ns) in a chain through each of ascending lengths, in one process."""
    params = {"lengths": lengths, "time_per_point_ns": 20_000_000, "cpu": cpu, "pages": ["huge"]}
    words = ["taskset", "-c", str(cpu), *command("mem.latency", params)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    values = [float(s["value"]) for s in lines if s.get("metric") == "load_latency_ns"]
    assert len(values) == len(lengths)
    return values


def cache_is_taken(bytes_: int) -> str:
    """Names the last-level cache as disturbed where a chain of loads through so many bytes takes
    more than half the time that it takes in memory; no other counter of a guest shows neighbours
    on the chip."""
    near_ns, memory_ns = chased_ns(last_cpu(), bytes_, MEMORY_BYTES)
    ratio = near_ns / memory_ns
    return f"a last-level cache at {ratio:.0%} of the memory's latency" if ratio > 0.5 else ""


def test_its_own_set_lies_in_the_cache_and_a_larger_one_does_not() -> None:
    chosen = [0]

    def rate(trial: Trial) -> float:
        # Touches over the CPU time that was got: others of this machine take from both.
        return trial.one("load_touches_per_s") / trial.one("load_cpus")

    def measure() -> tuple[str, bool]:
        trial = pinned("load.cache")
        chosen[0] = int(trial.one("working_set_bytes"))
        own, large = [rate(trial)], []
        # In turn, and the best of each: neighbours on the chip make both slower, never faster. It
        # chooses once, for which it measures several sizes.
        for _ in range(3):
            large.append(rate(pinned("load.cache", buffer_bytes=max(8 * chosen[0], 256 << 20))))
            own.append(rate(pinned("load.cache", buffer_bytes=chosen[0])))
        told = f"{chosen[0] >> 10} KiB: {max(own):.3g} a second, large: {max(large):.3g}"
        # Half the time of memory was the rule by which the size was chosen; neighbours come and go.
        return told, max(own) >= 1.5 * max(large)

    attempt("the set it chose", measure, witness=lambda: cache_is_taken(chosen[0]))


def test_it_moves_much_less_than_a_load_of_the_memory() -> None:
    """Even if each of its touches were a miss."""

    def measure() -> tuple[str, bool]:
        touches = pinned("load.cache", buffer_bytes=256 << 20)
        moved = pinned("load.memory")
        per_cpu_s = touches.one("load_touches_per_s") * LINE_BYTES / touches.one("load_cpus")
        bytes_per_cpu_s = moved.one("load_bytes_per_s") / moved.one("load_cpus")
        told = f"{per_cpu_s / 1e9:.2f} GB/s beside {bytes_per_cpu_s / 1e9:.2f} GB/s"
        return told, per_cpu_s < 0.5 * bytes_per_cpu_s

    attempt("bandwidth", measure)


LOADS = ("load.memory", "load.cache", "load.cpu")
ROUNDS = 5


def slowed(cpu: int, sizes: list[int], set_bytes: int, memory_ns: float) -> list[float]:
    """Largest factor of the chases beside each of LOADS; not a number where neighbours on the chip
    left the victim no cache to lose. set_bytes: what load.cache chose."""
    factors = []
    before = chased_ns(cpu, *sizes)
    if min(before) > memory_ns / 2:
        return [math.nan] * len(LOADS)  # there is nothing to lose, whatever the loads do
    for benchmark in LOADS:
        chosen = {"buffer_bytes": set_bytes} if benchmark == "load.cache" else {}
        with beside(benchmark, **chosen):
            loaded = chased_ns(cpu, *sizes)
        after = chased_ns(cpu, *sizes)
        # Only a victim that lies in the cache before and after lost it to the load.
        lost = [
            2 * during / (first + last)
            for first, during, last in zip(before, loaded, after, strict=True)
            if max(first, last) <= memory_ns / 2
        ]
        factors.append(max(lost, default=math.nan))
        before = after
    return factors


def text_of(rounds: list[list[float]]) -> str:
    return "; ".join(
        ", ".join(f"{name} {factor:.2f}" for name, factor in zip(LOADS, factors, strict=True))
        for factors in rounds
    )


def pauses_unless_mostly(occupied: list[bool]) -> Iterator[float]:
    """Who fills the chip's cache does so for minutes; that leaves the test undecided."""
    yield from PAUSES_S[:3]
    if 2 * sum(occupied) <= len(occupied):
        yield from PAUSES_S[3:]


def undecided_if_mostly(occupied: list[bool], error: BaseException) -> None:
    if 2 * sum(occupied) > len(occupied):
        raise Undecided(f"neighbours on the chip left no cache to lose in most attempts: {error}")


@pytest.mark.slow
@hardware.needs(Feature.SHARED_CACHE, len(os.sched_getaffinity(0)) >= 2)
def test_it_pushes_out_what_a_neighbour_holds_and_a_busy_loop_does_not() -> None:
    """Working sets of mem.latency, each chased with and without the loads beside it, in turn."""
    cpu = min(os.sched_getaffinity(0))
    bytes_ = int(pinned("load.cache").one("working_set_bytes"))
    sizes = [int(bytes_ * part) for part in (0.375, 0.5, 0.625, 0.75)]
    most = ROUNDS // 2 + 1
    valid: list[list[float]] = []

    def measure() -> tuple[str, bool]:
        valid.clear()
        (memory_ns,) = chased_ns(cpu, MEMORY_BYTES)
        # A fifth: a quarter of the set's lines fetched from memory at four times the time is most
        # of a doubling; noise of neighbours on the same chip moves single chases by a tenth.
        for _ in range(ROUNDS):
            factors = slowed(cpu, sizes, bytes_, memory_ns)
            if not any(map(math.isnan, factors)):
                valid.append(factors)
            taken = sum(cache > 1.2 * loop for _, cache, loop in valid)
            # Most of all rounds: those that are left would change nothing.
            if taken >= most:
                return text_of(valid), True
        streamed = sum(stream > 1.2 * loop for stream, _, loop in valid)
        if len(valid) >= most and streamed < most:
            hardware.lacking(
                Feature.SHARED_CACHE,
                "not even a stream through all of memory on one pushes out what the other holds: "
                + text_of(valid),
            )
        return text_of(valid), False

    occupied: list[bool] = []

    def no_cache_to_lose() -> str:
        occupied.append(len(valid) < most)
        return "a victim outside the cache in most rounds" if occupied[-1] else ""

    pauses_s = pauses_unless_mostly(occupied)
    try:
        attempt("a neighbour's lines", measure, witness=no_cache_to_lose, pauses_s=pauses_s)
    except pytest.fail.Exception as error:
        undecided_if_mostly(occupied, error)
        raise


@pytest.mark.slow
def test_memory_is_what_a_load_of_the_memory_loads() -> None:
    """Beyond the caches the size does not matter; inside it does."""

    def rate(trial: Trial) -> float:
        return trial.one("load_bytes_per_s") / trial.one("load_cpus") / 1e9

    def measure() -> tuple[str, bool]:
        # Its own choice is four times the last-level cache. Neighbours on the chip take a part of
        # the memory's rate that no counter shows, for a while: medians of sizes in turn.
        sizes = ({"buffer_bytes": 1 << 20}, {}, {"buffer_bytes": 512 << 20})
        rows = [[rate(pinned("load.memory", **size)) for size in sizes] for _ in range(5)]
        rates = [median(column) for column in zip(*rows, strict=True)]
        told = f"GB/s: {rates[0]:.2f} in the cache, {rates[1]:.2f} own, {rates[2]:.2f} large"
        # A tenth: page tables and neighbours.
        return told, rates[0] > 1.5 * rates[1] and abs(rates[1] / rates[2] - 1) <= 0.1

    attempt("the buffer's size", measure)
