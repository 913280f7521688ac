"""`command.duet` against programs of known work, also under a planted disturbance."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from trials import command, refused, run

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import _duet_parts

BENCHMARK = "command.duet"
MS = 1e6
ALLOWED = sorted(os.sched_getaffinity(0))

pytestmark = hardware.needs(Feature.CPUS, len(ALLOWED) > 1)


@pytest.fixture(scope="module")
def work() -> Iterator[str]:
    with _duet_parts.work() as program:
        yield program


def pair(first: list[str], second: list[str], **params: Any) -> dict[str, Any]:
    return {"argv": first, "second_argv": second, "duration_ns": 0, **params}


@pytest.mark.truth(
    BENCHMARK, "wall_ns", "wall_mean_ns", "shell_ns", "executions", "relative_time_ratio"
)
def test_sleeps_take_the_times_that_they_sleep(tmp_path: Path) -> None:
    """40 and 60 ms, in a shell that itself takes 30 ms to start."""
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\nsleep 0.03\nexec sh "$@"\n')
    shell.chmod(0o755)
    params = pair(["sleep 0.04"], ["sleep 0.06"], shell=[str(shell)], label="a", second_label="b")

    def measure() -> tuple[str, bool]:
        trial = run(BENCHMARK, params)
        off = {"ratio": (trial.one("relative_time_ratio") - 1.5) * 40}
        for label, ms in (("a", 40), ("b", 60)):
            for metric, wanted in (("wall_ns", ms), ("wall_mean_ns", ms), ("shell_ns", 30)):
                off[f"{label} {metric}"] = trial.by(metric, "label")[label] / MS - wanted
            document = trial.document("executions")[label]
            # Once on each set of CPUs: those that keep the partner company are not counted.
            assert document["exit_codes"] == [0, 0]
            off[f"{label} executions"] = max(ns / MS - ms for ns in document["wall_ns"])
        text = ", ".join(f"{name} {ms:+.1f} ms" for name, ms in off.items())
        return text, all(-4 <= ms <= 10 for ms in off.values())

    attempt("sleeps of a duet", measure)


USES = """
import os, resource, sys
usage = lambda: resource.getrusage(resource.RUSAGE_SELF)
wanted_s = float(sys.argv[1])
held, zero = bytearray(b"x") * (96 << 20), open("/dev/zero", "rb", buffering=0)
block = bytearray(1 << 20)
while usage().ru_stime < wanted_s: zero.readinto(block)
while usage().ru_utime < wanted_s: sum(range(10_000))
seen = usage()
os.write(1, f"{seen.ru_utime} {seen.ru_stime} {seen.ru_maxrss}".encode())
os._exit(0)
"""


@pytest.mark.truth(BENCHMARK, "cpu_ns", "user_ns", "system_ns", "max_rss_bytes")
def test_the_use_of_each_is_what_the_program_itself_saw(tmp_path: Path) -> None:
    files = {"A": tmp_path / "a", "B": tmp_path / "b"}
    argv = [sys.executable, "-S", "-c", USES]
    outputs = {"output": str(files["A"]), "second_output": str(files["B"])}

    def measure() -> tuple[str, bool]:
        trial = run(BENCHMARK, pair([*argv, "0.15"], [*argv, "0.25"], **outputs))
        texts, held = [], True
        for label, file in files.items():
            own_s, system_s, peak = map(float, file.read_text().split())
            user, system, cpu = (
                trial.by(f"{name}_ns", "label")[label] / 1e9 - seconds
                for name, seconds in (
                    ("user", own_s),
                    ("system", system_s),
                    ("cpu", own_s + system_s),
                )
            )
            # Loading the program, taking its memory back, and two ticks of the clock by which the
            # kernel splits CPU time; the file is of the last execution.
            held &= abs(user) <= 0.05 and -0.05 <= system <= 0.08 and -0.02 <= cpu <= 0.1
            texts.append(f"{label}: {user:+.3f} s own, {system:+.3f} s system, {cpu:+.3f} s")
            peaks = trial.by("max_rss_bytes", "label")
            assert peaks[label] == pytest.approx(peak * 1024, rel=0.05)
        return "; ".join(texts), held

    attempt("CPU time of both", measure)


CPUS_SEEN = """
import os, sys
with open(sys.argv[1], "a") as file: print(*sorted(os.sched_getaffinity(0)), file=file)
"""


@pytest.mark.together
@pytest.mark.truth(BENCHMARK, "cpus")
def test_the_programs_exchange_equal_sets_of_cpus(tmp_path: Path) -> None:
    words = [sys.executable, "-S", "-c", CPUS_SEEN]
    files = [tmp_path / "a", tmp_path / "b"]
    trial = run(BENCHMARK, pair(*([*words, str(file)] for file in files)))
    document = trial.document("cpus")
    sets = document["sets"]
    assert sorted([*sets[0], *sets[1], *document["unused"]]) == ALLOWED
    assert len(sets[0]) == len(sets[1]) > 0
    for file in files:
        seen = {tuple(map(int, line.split())) for line in file.read_text().splitlines()}
        assert seen == {tuple(sorted(one)) for one in sets}


@pytest.mark.truth(BENCHMARK, "slowdown_ratio")
def test_two_programs_on_one_cpu_slow_each_other_by_two(work: str) -> None:
    argv = ["taskset", "-c", str(ALLOWED[-1]), work, str(2 * _duet_parts.LOOPS)]

    def measure() -> tuple[str, bool]:
        found = run(BENCHMARK, pair(argv, argv, minimum_runs=2))
        if "slowdown_ratio" not in found.metrics:
            return "too little alone", False
        slowdown = found.one("slowdown_ratio")
        return f"slowdown {slowdown:.2f}", 1.7 <= slowdown <= 2.4

    attempt("two on one CPU", measure, contends=True)


@pytest.mark.slow
def test_equal_work_has_a_ratio_of_one_and_a_tenth_more_of_a_tenth_more(work: str) -> None:
    """Under a competitor that comes and goes on all CPUs, which makes executions twice as long."""
    equal = [work, str(_duet_parts.LOOPS)]
    longer = [work, str(_duet_parts.LOOPS * 11 // 10)]

    def measure() -> tuple[str, bool]:
        with _duet_parts.disturbance(seed=3, mean_s=0.3):
            same = _duet_parts.duet(equal, equal, 60, most=15, duration_s=1.0)
            more = _duet_parts.duet(equal, longer, 60, most=15, duration_s=1.0)
        held = same.low <= 1 <= same.high and more.low <= 1.1 <= more.high
        narrow = max(same.half_width_ratio, more.half_width_ratio) <= 0.1
        text = ", ".join(f"{one.ratio:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in (same, more))
        return text, held and narrow and more.low > 1

    attempt("a tenth more work", measure, contends=True)


@pytest.mark.together
@pytest.mark.parametrize(
    ("params", "error", "sentence"),
    [
        (pair(["true"], ["no-such-program"]), (4, "no_program"), "no program 'no-such-program'"),
        (pair(["true"], ["false"]), (3, "command_failed"), "B: 'false' ended with exit code 1"),
        (pair(["sleep", "60"], ["false"], prepare=["false"]), (3, "command_failed"), "A: The prep"),
        (pair(["true"], ["true"], output="./x"), (2, "usage"), "write to './x' at the same time"),
        (pair(["true"], ["true"], label="B"), (2, "usage"), "Both commands are named 'B'"),
    ],
)
def test_what_cannot_be_paired_is_refused(
    params: dict[str, Any], error: tuple[int, str], sentence: str, tmp_path: Path
) -> None:
    begun = time.monotonic()
    assert refused(BENCHMARK, {**params, "working_directory": str(tmp_path)}) == error
    assert time.monotonic() - begun < 40, "the partner of a failed command was waited for"
    words = command(BENCHMARK, {**params, "working_directory": str(tmp_path)})
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert sentence in done.stdout


@pytest.mark.together
def test_a_single_cpu_is_refused() -> None:
    def one_cpu() -> None:
        os.sched_setaffinity(0, {ALLOWED[0]})

    params = pair(["true"], ["true"])
    assert refused(BENCHMARK, params, inside=one_cpu) == (4, "no_two_cpus")


@pytest.mark.together
def test_a_cancelled_duet_ends_both_programs_with_all_that_they_started(tmp_path: Path) -> None:
    script = "echo $$ >> pids; sleep 300 & echo $! >> pids; wait"
    words = ["sh", "-c", script]
    params = pair(words, words, working_directory=str(tmp_path))
    with subprocess.Popen(command(BENCHMARK, params), stdout=subprocess.PIPE, text=True) as probe:
        file = tmp_path / "pids"
        until = time.monotonic() + 120
        while not (file.exists() and len(file.read_text().split()) == 4):
            assert time.monotonic() < until
            time.sleep(0.02)
        probe.terminate()
        out, _ = probe.communicate(timeout=120)
    assert "cancelled" in out
    assert probe.returncode == 130
    for pid in file.read_text().split():
        until = time.monotonic() + 60
        while _runs(int(pid)):
            assert time.monotonic() < until, f"process {pid} was left behind"
            time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_duet_is_five_times_as_narrow_as_commands_one_after_the_other(work: str) -> None:
    """In equal time, under a competitor that comes and goes on all CPUs."""
    first, second = [work, str(_duet_parts.LOOPS)], [work, str(_duet_parts.LOOPS * 11 // 10)]

    def measure() -> tuple[str, bool]:
        with _duet_parts.disturbance(seed=1):
            together = _duet_parts.duet(first, second, 12)
            apart = _duet_parts.sequential(first, second, 12)
        ratio = apart.half_width_ratio / together.half_width_ratio
        return f"{ratio:.1f} times as narrow", ratio >= 5

    attempt("half-widths", measure, contends=True)
