"""Rates against the time that the whole trial took: known work over a rate is a time, and all of
them together fill the trial."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from cpu_truth import group, last_cpu
from tests.attempts import attempt
from tests.majorities import hold_in_most
from trials import Trial, command, needs_root, real_time
from trials import run as run_here
from trials import run_words as run

MS = 1e6


def fills(name: str, words: list[str], seconds_of: Any, least: float) -> None:
    """Holds the sum of the times to the elapsed time: never more, and at least this share."""

    def measure() -> tuple[str, bool]:
        # Ahead of other programs, which would take their part of either time.
        with real_time(inherited=True):
            trial = run(words)
        share = sum(seconds_of(trial)) / (trial.done["elapsed_ns"] / 1e9)
        return f"{share:.3f} of the elapsed time", least <= share <= 1.001

    attempt(name, measure)


@needs_root
@pytest.mark.truth("cpu.pi", "pi_digits_per_s", "pi_time_ns")
def test_all_digits_take_the_whole_trial() -> None:
    digits, repeats = 4000, 12
    params = {"threads": 1, "digits": digits, "repeats": repeats}

    def seconds(trial: Trial) -> list[float]:
        times = trial.series("pi_time_ns")
        assert len(times) == repeats
        by_rate = digits * repeats / trial.one("pi_digits_per_s")
        assert sum(times) / 1e9 == pytest.approx(by_rate, rel=0.01)
        return [by_rate]

    # Checking the digits is outside of the measurement, and takes as long as one computation.
    fills("digits of π", command("cpu.pi", params), seconds, 0.75)


@pytest.mark.truth("mem.stream", "stream_bytes_per_s", "best_bytes_per_s", "array_bytes")
def test_all_passes_take_the_whole_trial() -> None:
    bytes_, passes, laps = 2 << 20, 20, 40
    params = {
        "bytes_per_array": bytes_,
        "threads": 1,
        "types": ["double"],
        "passes": passes,
        "laps": laps,
    }
    moved = {"copy": 2, "scale": 2, "add": 3, "triad": 3}

    def seconds(trial: Trial) -> list[float]:
        assert trial.one("array_bytes") == bytes_
        times = []
        for kernel, arrays in moved.items():
            rates = trial.series("stream_bytes_per_s", kernel=kernel)
            assert len(rates) == passes
            assert trial.series("best_bytes_per_s", kernel=kernel) == [max(rates)]
            times += [arrays * bytes_ * laps / rate for rate in rates]
        # The warm-up is a pass like the others.
        return [sum(times) * (passes + 1) / passes]

    fills("passes of STREAM", command("mem.stream", params), seconds, 0.75)


RATES = ("compress_bytes_per_s", "decompress_bytes_per_s", "thread_compress_bytes_per_s")


@pytest.mark.truth("app.lzma", *RATES)
def test_one_round_of_compressing_takes_the_whole_trial() -> None:
    bytes_ = 2_000_000
    params = {"corpus_bytes": bytes_, "preset": 2, "threads": 1, "duration_ns": 0}

    def seconds(trial: Trial) -> list[float]:
        rate = trial.one("compress_bytes_per_s")
        assert trial.one("thread_compress_bytes_per_s") == pytest.approx(rate, rel=0.01)
        return [bytes_ / rate, bytes_ / trial.one("decompress_bytes_per_s")]

    # Decompressing takes about a tenth of the time, so that it is seen in the sum. Copying and
    # comparing the texts takes a hundredth: a third of a preset that compresses faster.
    fills("a round of LZMA", command("app.lzma", params), seconds, 0.95)


@needs_root
@pytest.mark.truth("cpu.hash", "hash_bytes_per_s", "hash_thread_bytes_per_s")
@pytest.mark.truth("cpu.hash", "hashes_per_s", "hash_thread_per_s")
@pytest.mark.filterwarnings("ignore:'crypt' is deprecated")
def test_hashes_are_as_fast_as_those_of_a_library() -> None:
    """SHA-256 of OpenSSL and MD5-crypt of the C library, alternated with those of the probe."""
    script = (
        "import sys, time, hashlib, crypt\n"
        "def rate(work, seconds=0.3):\n"
        "    began, count = time.monotonic(), 0\n"
        "    while time.monotonic() < began + seconds: work(); count += 1\n"
        "    return count / (time.monotonic() - began)\n"
        "block = bytes(16384)\n"
        "print(16384 * rate(lambda: hashlib.sha256(block).digest()))\n"
        "print(rate(lambda: crypt.crypt('password', '$1$nephosco$')))\n"
    )
    params = {"threads": 1, "duration_ns": 300_000_000}

    texts: list[str] = []

    def near() -> list[bool]:
        words = favoured.inside(["python3", "-W", "ignore", "-c", script])
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        sha256, md5_crypt = map(float, done.stdout.split())
        bytes_ = run(favoured.inside(command("cpu.hash", params)))
        hashes = run(favoured.inside(command("cpu.hash", {**params, "algorithm": "md5-crypt"})))
        seen = {
            "bytes": bytes_.one("hash_bytes_per_s") / sha256,
            "bytes of the thread": bytes_.one("hash_thread_bytes_per_s") / sha256,
            "hashes": hashes.one("hashes_per_s") / md5_crypt,
            "hashes of the thread": hashes.one("hash_thread_per_s") / md5_crypt,
        }
        # Other compilers and other instructions: less than a factor of two.
        texts.append(", ".join(f"{name} {ratio:.2f}" for name, ratio in seen.items()))
        return [held for ratio in seen.values() for held in (ratio >= 0.6, ratio <= 1.6)]

    def measure() -> tuple[str, bool]:
        texts.clear()
        # Who has the other hardware thread of the core slows one of both by a half, for a while.
        held = hold_in_most(3, near)
        return f"{'; '.join(texts)} of the library's", held

    with group() as favoured:
        attempt("hashes of a library", measure)


DISK = ("disk_operations_per_s", "disk_bytes_per_s", "disk_latency_ns")
CACHED = ("cached_operations_per_s", "cached_bytes_per_s", "cached_latency_ns")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("disk", marks=pytest.mark.truth("disk.io", *DISK)),
        pytest.param("cached", marks=pytest.mark.truth("disk.io", *CACHED)),
    ],
)
def test_operations_one_at_a_time_fill_the_time(disk: Path, kind: str) -> None:
    seconds, record = 0.3, 16384
    params = {
        "directory": str(disk),
        "file_bytes": 16 << 20,
        "record_bytes": record,
        "duration_ns": int(seconds * 1e9),
        "direct": kind == "disk",
    }

    def measure() -> tuple[str, bool]:
        trial = run_here("disk.io", params)
        count, mean_ns = trial.histogram(f"{kind}_latency_ns")
        rate = trial.one(f"{kind}_operations_per_s")
        assert trial.one(f"{kind}_bytes_per_s") == pytest.approx(rate * record)
        seen = {"counted": rate * seconds / count, "latencies": count * mean_ns / 1e9 / seconds}
        text = ", ".join(f"{name} {ratio:.3f}" for name, ratio in seen.items())
        # Between two operations in the cache passes about as much time as in them.
        held = abs(seen["counted"] - 1) <= 0.05
        return text, held and (0.55 if kind == "cached" else 0.9) <= seen["latencies"] <= 1.05

    attempt(f"{kind} operations", measure)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("disk", marks=pytest.mark.truth("disk.records", *DISK, "disk_operation_ns")),
        pytest.param(
            "cached", marks=pytest.mark.truth("disk.records", *CACHED, "cached_operation_ns")
        ),
    ],
)
def test_all_records_take_the_whole_trial(disk: Path, kind: str) -> None:
    record, records = 64 << 10, 128 if kind == "disk" else 512
    params = {
        "directory": str(disk),
        "file_bytes": record * records,
        "record_bytes": [record],
        "operations": ["read", "reread", "randread"],
        "direct": kind == "disk",
    }

    def measure() -> tuple[str, bool]:
        with real_time(inherited=True):
            trial = run_here("disk.records", params)
        total_s, latencies_s = 0.0, 0.0
        for operation in params["operations"]:
            (rate,) = trial.series(f"{kind}_operations_per_s", operation=operation)
            (bytes_per_s,) = trial.series(f"{kind}_bytes_per_s", operation=operation)
            (each_ns,) = trial.series(f"{kind}_operation_ns", operation=operation)
            count, mean_ns = trial.histogram(f"{kind}_latency_ns", operation=operation)
            assert count == records
            assert bytes_per_s == pytest.approx(rate * record)
            assert each_ns == pytest.approx(1e9 / rate)
            total_s += records / rate
            latencies_s += count * mean_ns / 1e9
        share = total_s / (trial.done["elapsed_ns"] / 1e9)
        text = f"{share:.3f} of the elapsed time, {latencies_s / total_s:.3f} of it in records"
        # Filling the file is no part of it; what lies between two passes is, which is long beside
        # records from memory. The histogram has three digits.
        least = 0.55 if kind == "disk" else 0.15
        return text, least <= share <= 1.001 and 0.8 <= latencies_s / total_s <= 1.01

    attempt(f"{kind} records", measure)


@pytest.mark.truth("command", "wall_ns", "wall_mean_ns", "execution_ns", "runs_count", "executions")
@pytest.mark.truth("command", "shell_ns", "failures_count")
def test_executions_take_the_times_that_their_program_sleeps(tmp_path: Path) -> None:
    """Sleeps of 20, 40, 90 ms, in a shell that itself takes 30 ms to start."""
    times = (0.02, 0.04, 0.09)
    (tmp_path / "times").write_text("".join(f"{time_s}\n" for time_s in times))
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\nsleep 0.03\nexec sh "$@"\n')
    shell.chmod(0o755)
    line = "read t < times; tail -n +2 times > rest; mv rest times; sleep $t; test $t != 0.09"
    params = {
        "argv": [line],
        "shell": [str(shell)],
        "working_directory": str(tmp_path),
        "exit_codes": [],
        "minimum_runs": 3,
        "maximum_runs": 3,
    }

    # Programs that nobody started yet come from the disk, which no counter of disturbances shows.
    subprocess.run([shell, "-c", line], cwd=tmp_path, check=True)

    def measure() -> tuple[str, bool]:
        (tmp_path / "times").write_text("".join(f"{time_s}\n" for time_s in times))
        with real_time(inherited=True):
            trial = run_here("command", params)
        assert trial.one("runs_count") == 3
        assert trial.one("failures_count") == 1
        document = trial.document("executions")
        assert document["exit_codes"] == [0, 0, 1]
        off = {
            "median": trial.one("wall_ns") / MS - 40,
            "mean": trial.one("wall_mean_ns") / MS - 50,
            "histogram": trial.histogram("execution_ns")[1] / MS - 50,
            "shell": trial.one("shell_ns") / MS - 30,
            **{
                f"run {number}": ns / MS - 1e3 * times[number]
                for number, ns in enumerate(document["wall_ns"])
            },
        }
        text = ", ".join(f"{name} {ms:+.1f} ms" for name, ms in off.items())
        # Three programs start in a line, and one in the shell: a millisecond each.
        return text, all(-3 <= ms <= 10 for ms in off.values())

    attempt("sleeps in a slow shell", measure)


@pytest.mark.truth("command", "system_ns", "user_ns", "cpu_ns", "max_rss_bytes")
def test_time_in_the_kernel_is_what_the_program_itself_saw(tmp_path: Path) -> None:
    """Half of its CPU time it works itself, and half of it the kernel does; it holds 96 MiB."""
    script = (
        "import os, resource\n"
        "usage = lambda: resource.getrusage(resource.RUSAGE_SELF)\n"
        "held, zero = bytearray(b'x') * (96 << 20), open('/dev/zero', 'rb', buffering=0)\n"
        "block = bytearray(1 << 20)\n"
        "while usage().ru_stime < 0.25: zero.readinto(block)\n"
        "while usage().ru_utime < 0.25: sum(range(10_000))\n"
        "seen = usage()\n"
        "os.write(1, f'{seen.ru_utime} {seen.ru_stime} {seen.ru_maxrss}'.encode())\n"
        "os._exit(0)\n"
    )
    output = tmp_path / "used"
    argv = [sys.executable, "-S", "-c", script]
    once = {"argv": argv, "minimum_runs": 1, "maximum_runs": 1, "output": str(output)}

    def measure() -> tuple[str, bool]:
        trial = run_here("command", once)
        user_s, system_s, peak = map(float, output.read_text().split())
        assert trial.one("max_rss_bytes") == pytest.approx(peak * 1024, rel=0.05)
        seen = {"user": user_s, "system": system_s, "cpu": user_s + system_s}
        user, system, cpu = (
            trial.one(f"{name}_ns") / 1e9 - seconds for name, seconds in seen.items()
        )
        # Loading the program and taking its memory back, and two ticks of the clock by which the
        # kernel splits CPU time.
        held = abs(user) <= 0.03 and -0.03 <= system <= 0.06 and 0 <= cpu <= 0.06
        return f"{user:+.3f} s own, {system:+.3f} s system, {cpu:+.3f} s", held

    attempt("time in the kernel", measure)


PARTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "load.cpu": ({}, {"interval_work_per_s": "load_work_per_s"}),
    "load.memory": ({"buffer_bytes": 4 << 20}, {"interval_bytes_per_s": "load_bytes_per_s"}),
    "load.cache": ({"buffer_bytes": 2 << 20}, {"interval_touches_per_s": "load_touches_per_s"}),
    "load.switches": ({}, {"interval_switches_per_s": "load_switches_per_s"}),
}
LEVELS = ("load_cpus", "load_intensity_ratio", "interval_intensity_ratio")


@needs_root
@pytest.mark.parametrize("benchmark", PARTS)
@pytest.mark.truth("load.cpu", *LEVELS)
@pytest.mark.truth("load.memory", *LEVELS)
@pytest.mark.truth("load.cache", *LEVELS)
@pytest.mark.truth("load.switches", *LEVELS, "load_switches_per_s", "interval_switches_per_s")
def test_a_level_is_that_of_the_cpus_and_of_every_interval(benchmark: str) -> None:
    """Forty percent of a CPU by the kernel's account, and by that of each interval."""
    level, seconds = 0.4, 0.7
    more, wholes = PARTS[benchmark]
    params = {"threads": 1, "cpus": [last_cpu()], "intensity_ratio": level, **more}

    def measure() -> tuple[str, bool]:
        words = command(benchmark, {**params, "duration_ns": int(seconds * 1e9)})
        trial = run(favoured.inside(words))
        inner = trial.series("interval_intensity_ratio")[1:-1]
        seen = {
            "level": trial.one("load_intensity_ratio"),
            "CPUs": trial.one("load_cpus"),
            "intervals": median(inner),
        }
        text = ", ".join(f"{name} {value:.3f}" for name, value in seen.items())
        for part, whole in wholes.items():
            parts = [(s["at_ns"], s["value"]) for s in trial.all(part)]
            ends = [0, *(at_ns for at_ns, _ in parts)]
            total = sum((b - a) * v for (a, b), (_, v) in zip(pairwise(ends), parts, strict=True))
            # The intervals cover the time but for a last piece that is too short for a rate.
            assert total / ends[-1] == pytest.approx(trial.one(whole), rel=0.06)
        # Preparing takes CPU time too, of memory most.
        account = trial.cpu_s / seconds
        held = all(abs(value - level) <= 0.02 for value in seen.values())
        return f"{text}, {account:.3f} by the kernel", held and account >= 0.95 * level

    with group() as favoured:
        attempt(f"{benchmark} at {level}", measure)
