"""What cpu.gaps says of the kernel's counters: planted counters, and readings of the test's own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median

import pytest
import trials
from channel import controlled
from cpu_truth import group, last_cpu
from planted_files import seeing
from tests.attempts import attempt
from tests.majorities import hold_in_most
from trials import command, filter_calls, needs_root
from trials import run_words as run

BENCHMARK = "cpu.gaps"


@needs_root
@pytest.mark.truth(BENCHMARK, "steal_ratio", "psi_cpu_some_ratio")
def test_steal_and_pressure_are_those_of_the_counters(tmp_path: Path) -> None:
    """The counters that the probe sees are files of the test, which move them during the trial."""
    stat, pressure = tmp_path / "stat", tmp_path / "pressure"

    def write(user: int, idle: int, steal: int, waited_us: int) -> None:
        times = f"{user} 0 0 {idle} 0 0 0 {steal} 0 0"
        stat.write_text(f"cpu  {times}\ncpu0 {times}\nctxt 5\nbtime 1\n")
        average = "avg10=0.00 avg60=0.00 avg300=0.00 total="
        pressure.write_text(f"some {average}{waited_us}\nfull {average}0\n")

    def measure() -> tuple[str, bool]:
        write(1000, 2000, 50, 1_000_000)
        before = seeing({"/proc/stat": stat, "/proc/pressure/cpu": pressure})
        params = {"duration_ns": 400_000_000, "cpus": [last_cpu()]}
        with controlled("run", BENCHMARK, params, before=before) as probe:
            probe.ready()
            probe.say("go")
            time.sleep(0.2)
            # 30 of 100 ticks, and 0.1 s of the time between two readings.
            write(1050, 2020, 80, 1_100_000)
            trial = probe.trial()
        assert trial.one("steal_ratio") == pytest.approx(0.3)  # fails where the sleep ends late
        ratio = trial.one("psi_cpu_some_ratio")
        expected = 0.1 / (trial.done["counters"]["elapsed_ns"] / 1e9)
        # The trial's own counters are read up to 4 ms around those of the meter.
        return f"{ratio:.4f}, expected {expected:.4f}", abs(ratio / expected - 1) <= 0.01

    attempt("the planted pressure", measure)


@needs_root
@pytest.mark.truth(BENCHMARK, "throttled_ratio", "thread_cpu_ratio", "cpu_share_ratio")
@pytest.mark.truth(BENCHMARK, "gap_length_ns", "run_length_ns", "gap_period_ns", "gaps_per_s")
def test_a_quota_throttles_for_as_long_as_its_own_counter_says() -> None:
    params = {"duration_ns": 2_000_000_000, "cpus": [last_cpu()]}

    def measure() -> tuple[str, bool]:
        with group() as limited:
            limited.limit(30_000, 100_000)
            trial = run(limited.inside(command(BENCHMARK, params)))
            stat = dict(
                line.split() for line in (limited.path / "cpu.stat").read_text().splitlines()
            )
        throttled_s = (
            float(stat["throttled_usec"]) / 1e6 if limited.v2 else int(stat["throttled_time"]) / 1e9
        )
        told = trial.one("throttled_ratio")
        share, cpu = trial.one("cpu_share_ratio"), trial.one("thread_cpu_ratio")
        # The start of the program is throttled too; the window of 20 periods cuts one at its ends.
        elapsed_s = trial.done["counters"]["elapsed_ns"] / 1e9
        held = abs(told / (throttled_s / elapsed_s) - 1) <= 0.1
        held &= abs(share - 0.3) <= 0.03 and abs(cpu - 0.3) <= 0.03
        # 70 of each 100 ms are a gap; between the first and the last start of one lie 18 or 19
        # periods of 20.
        gaps_s, runs_s, periods_s = (
            count * mean_ns / 1e9
            for count, mean_ns in map(
                trial.histogram, ("gap_length_ns", "run_length_ns", "gap_period_ns")
            )
        )
        held &= abs(gaps_s / 1.4 - 1) <= 0.08 and 1.7 <= periods_s <= 2.0
        held &= abs(runs_s / (0.3 * periods_s) - 1) <= 0.12
        held &= trial.one("gaps_per_s") * 2 == pytest.approx(trial.histogram("gap_length_ns")[0])
        text = f"{told:.3f} of {throttled_s / elapsed_s:.3f}, {share:.3f} and {cpu:.3f} CPUs, "
        return f"{text}gaps {gaps_s:.3f} s, runs {runs_s:.3f} s, periods {periods_s:.3f} s", held

    attempt("a quota of 30 ms", measure, contends=True)


@needs_root
@pytest.mark.truth(BENCHMARK, "involuntary_switches_per_s")
def test_the_kernel_accounts_the_switches_of_two_loops() -> None:
    seconds = 1.0
    params = {"duration_ns": int(seconds * 1e9), "cpus": [last_cpu()], "processes_per_cpu": 2}

    def measure() -> tuple[str, bool]:
        words = favoured.inside(command(BENCHMARK, params))
        trial = run(words)
        told = sum(trial.series("involuntary_switches_per_s")) * seconds
        # With those of the loops, which the probe has waited for.
        accounted = trial.usage.ru_nivcsw
        # Before and after the window a few more.
        return f"{told:.0f} told, {accounted} accounted", (
            told >= 20 and told <= accounted <= 1.15 * told + 15
        )

    with group() as favoured:
        attempt("switches of two loops", measure, contends=True)


def slow_calls() -> None:
    """Puts filters before every system call, which let all pass and take microseconds."""
    load, add, allow = (0x20, 0, 0, 0), (0x04, 0, 0, 1), (0x06, 0, 0, 0x7FFF0000)
    for _ in range(7):
        filter_calls([load, *[add] * 4000, allow])


def call_ns() -> float:
    """Time of a system call that does nothing, with what Python adds to it."""
    times = []
    for _ in range(60):
        began = time.perf_counter_ns()
        for _ in range(100):
            os.getppid()
        times.append((time.perf_counter_ns() - began) / 100)
    return median(times)


def slowed_by_ns() -> float:
    """What the filters add to a system call, as a process of its own sees it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        plain = call_ns()
        slow_calls()
        os.write(writer, str(call_ns() - plain).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return float(text)


@pytest.mark.truth(BENCHMARK, "asking_ratio")
def test_asking_takes_as_long_as_the_system_call_that_asks() -> None:
    """One system call for each short gap, made slow by filters; the test times one on its own."""
    params = {"duration_ns": 500_000_000, "cpus": [last_cpu()], "threshold_ns": 1_000}

    texts: list[str] = []

    def near() -> tuple[bool, bool, bool]:
        # No other program makes gaps that are long enough for further questions.
        with trials.real_time(inherited=True):
            added_ns = slowed_by_ns()
            trial = trials.run(BENCHMARK, params, inside=slow_calls)
        gaps = trial.one("gaps_per_s")
        each_ns = trial.one("asking_ratio") * 1e9 / gaps
        texts.append(f"{each_ns:.0f} ns for each of {gaps:.0f} gaps/s, {added_ns:.0f} ns added")
        # The call itself and the reading of the clock come on top of what was added: some hundred
        # nanoseconds. Gaps of a millisecond and more are asked about with a few calls.
        return added_ns > 3000, each_ns >= 0.85 * added_ns, each_ns <= 1.6 * added_ns

    def measure() -> tuple[str, bool]:
        texts.clear()
        # Who has the other hardware thread of the core slows one of both by a half, for a while.
        held = hold_in_most(3, near)
        return "; ".join(texts), held

    attempt("a slow question", measure)
