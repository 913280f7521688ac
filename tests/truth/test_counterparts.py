"""Rates and latencies against the same innermost loops in C (counterparts.c), on the same CPU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cpu_truth import Group, group, last_cpu
from tests.attempts import attempt
from tests.majorities import hold_in_most
from trials import Trial, command, needs_root
from trials import run_words as run

pytestmark = needs_root

SOURCE = Path(__file__).with_name("counterparts.c")
Counterpart = Callable[..., list[float]]
FAVOURED: list[Group] = []


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counterpart]:
    """Runs one of the loops; it and the probe go before other programs meanwhile."""
    program = tmp_path_factory.mktemp("counterparts") / "counterparts"
    words = ["cc", "-O2", "-march=native", "-o", str(program), str(SOURCE)]
    subprocess.run(words, check=True)

    def figures(*arguments: object) -> list[float]:
        words = pinned([str(program), *map(str, arguments)])
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [float(word) for word in done.stdout.split()]

    with group() as favoured:
        FAVOURED[:] = [favoured]
        yield figures
        FAVOURED.clear()


def pinned(words: list[str]) -> list[str]:
    return FAVOURED[0].inside(["taskset", "-c", str(last_cpu()), *words])


def trial_of(benchmark: str, params: dict[str, Any]) -> Trial:
    return run(pinned(command(benchmark, params)))


def compared(name: str, pairs: Callable[[], dict[str, tuple[float, float]]]) -> None:
    """Holds values to those of the loops in C; both take turns on one CPU."""

    def measure() -> tuple[str, bool]:
        texts = []

        def near() -> list[bool]:
            ratios = {key: own / other for key, (own, other) in pairs().items()}
            texts.append(", ".join(f"{key} {ratio:.2f}" for key, ratio in ratios.items()))
            # Two compilers' loops of a few instructions. An error of the unit, or of what is
            # counted as one operation, is a factor of two at least.
            return [held for ratio in ratios.values() for held in (ratio >= 0.65, ratio <= 1.5)]

        # Who has the other hardware thread of the core slows one of both by a half, for a while.
        held = hold_in_most(3, near)
        return f"{'; '.join(texts)} of C", held

    attempt(name, measure)


@pytest.mark.truth("sys.fingerprint", "clock_read_ns")
@pytest.mark.truth("cpu.gaps", "look_cost_ns", "look_min_ns", "look_floor_ns")
def test_a_look_at_the_clock(in_c: Counterpart) -> None:
    def pairs() -> dict[str, tuple[float, float]]:
        mean_ns, least_ns, p999_ns = in_c("clock")
        facts = trial_of("sys.fingerprint", {})
        looks = trial_of("cpu.gaps", {"clock": "monotonic", "duration_ns": 200_000_000})
        return {
            "read": (facts.one("clock_read_ns"), mean_ns),
            "look": (looks.one("look_cost_ns"), mean_ns),
            "least": (looks.one("look_min_ns"), least_ns),
            "p99.9": (looks.one("look_floor_ns"), p999_ns),
        }

    compared("looks at the clock", pairs)


@pytest.mark.truth("load.cpu", "load_work_per_s", "interval_work_per_s")
def test_a_step_of_the_load_of_a_cpu(in_c: Counterpart) -> None:
    def pairs() -> dict[str, tuple[float, float]]:
        trial = trial_of("load.cpu", {"duration_ns": 300_000_000, "interval_ns": 50_000_000})
        (steps_per_s,) = in_c("steps")
        inner = trial.series("interval_work_per_s")[1:-1]
        return {
            "steps": (trial.one("load_work_per_s"), steps_per_s),
            "steps by interval": (sum(inner) / len(inner), steps_per_s),
        }

    compared("steps of a chain", pairs)


NEAR, SECOND, FAR = 16 << 10, 256 << 10, 64 << 20


def per_cpu(trial: Trial, metric: str, part: str) -> tuple[float, float]:
    """The rate of a load, in all and by its inner intervals, over the CPUs that it got."""
    rates, levels = trial.series(part)[1:-1], trial.series("interval_intensity_ratio")[1:-1]
    return trial.one(metric) / trial.one("load_cpus"), sum(rates) / sum(levels)


@pytest.mark.truth("mem.cache", "cache_bytes_per_s")
@pytest.mark.truth("load.memory", "load_bytes_per_s", "interval_bytes_per_s")
def test_a_byte_that_is_read(in_c: Counterpart) -> None:
    def pairs() -> dict[str, tuple[float, float]]:
        cache = {"operations": ["read"], "lengths": [NEAR, SECOND], "time_per_point_ns": 20_000_000}
        rates = trial_of("mem.cache", cache).by("cache_bytes_per_s", "vector_bytes")
        memory = {"operation": "read", "buffer_bytes": FAR, "duration_ns": 400_000_000}
        load = trial_of("load.memory", {**memory, "interval_ns": 50_000_000})
        whole, parts = per_cpu(load, "load_bytes_per_s", "interval_bytes_per_s")
        near, second, far = (in_c("read", length)[0] for length in (NEAR, SECOND, FAR))
        return {
            "first cache": (rates[NEAR], near),
            "second cache": (rates[SECOND], second),
            "load": (whole, far),
            "load by interval": (parts, far),
        }

    compared("bytes that are read", pairs)


@pytest.mark.truth("mem.latency", "load_latency_ns")
@pytest.mark.truth("load.cache", "load_touches_per_s", "interval_touches_per_s")
@pytest.mark.truth("load.cache", "working_set_bytes")
def test_a_load_that_follows_a_pointer(in_c: Counterpart) -> None:
    def pairs() -> dict[str, tuple[float, float]]:
        ladder = {"lengths": [NEAR, FAR], "pages": ["huge"], "time_per_point_ns": 20_000_000}
        times = trial_of("mem.latency", ladder).by("load_latency_ns", "vector_bytes")
        touches = {"buffer_bytes": FAR, "duration_ns": 400_000_000, "interval_ns": 50_000_000}
        load = trial_of("load.cache", touches)
        assert load.one("working_set_bytes") == FAR
        whole, parts = per_cpu(load, "load_touches_per_s", "interval_touches_per_s")
        near_ns, far_ns = (in_c("chase", length)[0] for length in (NEAR, FAR))
        (touches_per_s,) = in_c("touch", FAR)
        return {
            "first cache": (times[NEAR], near_ns),
            "memory": (times[FAR], far_ns),
            "touches": (whole, touches_per_s),
            "touches by interval": (parts, touches_per_s),
        }

    compared("pointers that are followed", pairs)


@pytest.mark.truth("sys.calls", "call_ns")
def test_a_system_call_and_a_program_of_known_length(in_c: Counterpart, tmp_path: Path) -> None:
    program = tmp_path / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 0.05\n")
    program.chmod(0o755)

    def pairs() -> dict[str, tuple[float, float]]:
        calls = {"calls": ["getpid", "exec"], "program": str(program)}
        times = trial_of("sys.calls", calls).by("call_ns", "call")
        # Two programs start before the sleep.
        assert times["exec"] >= 50e6
        (call_ns,) = in_c("getpid")
        return {"getpid": (times["getpid"], call_ns), "exec": (times["exec"], 52e6)}

    compared("calls", pairs)
