"""The loads against the kernel's account of their CPU time, against each other, and to the word."""

from __future__ import annotations

import json
import subprocess
import time
from statistics import median
from typing import Any

import pytest
from channel import controlled
from cpu_truth import group, last_cpu
from tests.attempts import attempt
from tests.majorities import hold_in_most
from trials import Trial, command, needs_root, run, run_words

LOADS = ("load.cpu", "load.memory", "load.cache", "load.switches")
SMALL: dict[str, dict[str, Any]] = {
    "load.cpu": {},
    "load.memory": {"buffer_bytes": 4 << 20},
    "load.cache": {"buffer_bytes": 2 << 20},
    "load.switches": {},
}


def series(trial: Trial, metric: str) -> list[float]:
    return [float(s["value"]) for s in trial.samples if s["metric"] == metric]


def params(benchmark: str, **more: Any) -> dict[str, Any]:
    return {"threads": 1, "cpus": [last_cpu()], **SMALL[benchmark], **more}


@needs_root
@pytest.mark.parametrize("benchmark", LOADS)
@pytest.mark.parametrize("intensity", [0.1, pytest.param(0.5, marks=pytest.mark.slow), 0.9])
def test_the_kernel_accounts_the_share_that_was_set(benchmark: str, intensity: float) -> None:
    short, words = (
        command(benchmark, params(benchmark, intensity_ratio=intensity, duration_ns=duration_ns))
        for duration_ns in (100_000_000, 1_100_000_000)
    )

    def measure() -> tuple[str, bool]:
        # The difference of two lengths: the process's own start is in the kernel's figure too.
        brief, trial = (run_words(favoured.inside(each)) for each in (short, words))
        elapsed_ns = trial.done["elapsed_ns"] - brief.done["elapsed_ns"]
        share = (trial.cpu_s - brief.cpu_s) / (elapsed_ns / 1e9)
        told = trial.one("load_intensity_ratio")
        # Two points: what is promised.
        near = abs(share - intensity) <= 0.02 and abs(told - intensity) <= 0.02
        return f"kernel {share:.4f}, told {told:.4f} of {intensity}", near

    with group() as favoured:
        attempt(f"{benchmark} at {intensity}", measure)


@needs_root
def test_a_load_that_loses_the_cpu_says_when() -> None:
    """In the middle of the load something heavier takes its CPU for a while."""
    interval_ns = 100_000_000
    quiet, taken = 0.7, 0.6

    def measure() -> tuple[str, bool]:
        with controlled(
            "run", "load.cpu", params("load.cpu", duration_ns=0, interval_ns=interval_ns)
        ) as load:
            load.ready()
            load.say("go")
            time.sleep(quiet)
            began = time.time_ns()
            heavy = command("load.cpu", params("load.cpu", duration_ns=int(taken * 1e9)))
            subprocess.run(favoured.inside(heavy), check=True, capture_output=True)
            ended = time.time_ns()
            time.sleep(quiet)
            load.say("stop")
            trial = load.trial()
        start = trial.done["started_wall_ns"]
        inside, outside = [], []
        for sample in trial.samples:
            if sample["metric"] == "interval_intensity_ratio":
                end_ns = start + sample["at_ns"]
                if end_ns - interval_ns > began + 1e8 and end_ns < ended - 1e8:
                    inside.append(sample["value"])
                elif end_ns < began or end_ns - interval_ns > ended:
                    outside.append(sample["value"])
        # The group's weight is 256 times that of the load: hardly anything is left to it. Whatever
        # else this machine does takes from both times alike.
        told = f"inside {[round(v, 2) for v in inside]}, outside {[round(v, 2) for v in outside]}"
        enough = len(inside) >= 3 and len(outside) >= 6
        return told, enough and median(inside) < 0.3 * median(outside)

    with group() as favoured:
        attempt("a stolen CPU", measure, contends=True)


@pytest.mark.parametrize("benchmark", LOADS)
def test_stop_ends_it_in_order_with_all_its_samples(benchmark: str) -> None:
    with controlled("run", benchmark, params(benchmark, duration_ns=0)) as load:
        load.ready()
        load.say("go")
        time.sleep(1)
        load.say("stop")
        told = time.monotonic()
        trial = load.trial()
        # It looks around a hundred times a second; the rest is for a busy machine.
        assert time.monotonic() - told < 1
    values = series(trial, "interval_intensity_ratio")
    # Of 0.1 s each; a sleep of the test may end late.
    assert abs(len(values) - trial.done["elapsed_ns"] / 1e8) <= 2
    assert len([m for m in trial.metrics if m.startswith("load_")]) == 3


@pytest.mark.together
@pytest.mark.parametrize("benchmark", LOADS)
def test_a_load_that_loses_its_master_ends(benchmark: str) -> None:
    with controlled("run", benchmark, params(benchmark, duration_ns=0)) as load:
        load.ready()
        load.say("go")
        time.sleep(0.2)
        load.hang_up()
        assert load.error()[0] == 130


def test_the_counters_of_the_parts_make_the_whole() -> None:

    def measure() -> tuple[str, bool]:
        trial = run("load.cpu", {"intensity_ratio": 0.3, "interval_ns": 50_000_000})
        seen = {}
        for part, whole in (
            ("interval_intensity_ratio", "load_intensity_ratio"),
            ("interval_work_per_s", "load_work_per_s"),
        ):
            parts = [(s["at_ns"], s["value"]) for s in trial.samples if s["metric"] == part]
            ends = [0, *(at_ns for at_ns, _ in parts)]
            total = sum((at_ns - begun) * v for begun, (at_ns, v) in zip(ends, parts, strict=False))
            # The intervals cover the time but for a last piece that is too short for a rate.
            assert ends[-1] >= 0.97e9
            seen[part] = total / ends[-1] / trial.one(whole)
        text = ", ".join(f"{name} {ratio:.3f}" for name, ratio in seen.items())
        return f"{text} of the whole", all(abs(ratio - 1) <= 0.05 for ratio in seen.values())

    attempt("parts of a load", measure)


@needs_root
def test_half_the_time_moves_half_the_bytes() -> None:
    def rate(intensity: float) -> tuple[float, float]:
        short = {"intensity_ratio": intensity, "duration_ns": 500_000_000}
        words = command("load.memory", params("load.memory", **short))
        done = subprocess.run(favoured.inside(words), capture_output=True, text=True, check=True)
        trial = Trial(done.stdout)
        return trial.one("load_bytes_per_s"), trial.one("load_cpus")

    def measure() -> tuple[str, bool]:
        texts = []

        def near() -> tuple[bool, bool, bool]:
            half, full = rate(0.5), rate(1.0)
            bytes_ratio, time_ratio = half[0] / full[0], half[1] / full[1]
            texts.append(f"bytes {bytes_ratio:.3f}, time {time_ratio:.3f}")
            # Bytes follow the time that was got, whatever else takes of the full share; the clock
            # of a shared CPU and its caches move by more than that.
            each = bytes_ratio / time_ratio
            return time_ratio < 0.9, each >= 0.8, each <= 1.2

        held = hold_in_most(3, near)
        return "; ".join(texts), held

    with group() as favoured:
        attempt("half the time", measure)


@pytest.mark.parametrize("operation", ["update", "read", "write", "copy"])
def test_every_operation_moves_plausibly_many_bytes(operation: str) -> None:
    more = {"operation": operation, "duration_ns": 200_000_000, "buffer_bytes": 1 << 20}
    rate = run("load.memory", params("load.memory", **more)).one("load_bytes_per_s")
    # Slower than 10 MB/s is broken, faster than 10 TB/s does not exist: the units are right.
    assert 1e7 < rate < 1e13


@pytest.mark.together
@pytest.mark.parametrize(
    ("benchmark", "given", "code", "words"),
    [
        ("load.cpu", {"duration_ns": 0}, 2, "nobody can tell it"),
        ("load.cpu", {"intensity_ratio": -0.1}, 2, "must be a number from 0 to 1"),
        ("load.cpu", {"cpus": [1023]}, 2, "may not use CPU 1023"),
        ("load.memory", {"buffer_bytes": 1 << 40}, 4, "exceed"),
        ("load.cache", {"buffer_bytes": 1 << 36}, 4, "exceed"),
        ("load.cache", {"intensity_ratio": 2}, 2, "must be a number from 0 to 1"),
        ("load.switches", {"duration_ns": 0}, 2, "nobody can tell it"),
        ("load.switches", {"cpus": [1023]}, 2, "may not use CPU 1023"),
    ],
)
def test_bad_input_is_one_sentence(
    benchmark: str, given: dict[str, Any], code: int, words: str
) -> None:
    done = subprocess.run(command(benchmark, given), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert words in json.loads(done.stdout)["error"]["message"]


@pytest.mark.together
def test_more_threads_than_cpus_are_noted() -> None:
    with controlled(
        "run", "load.cpu", {"threads": 2, "cpus": [last_cpu()], "duration_ns": 50_000_000}
    ) as load:
        load.ready()
        load.say("go")
        assert "share 1 CPUs" in load.trial().notes
