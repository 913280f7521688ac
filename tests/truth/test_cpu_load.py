"""cpu.pi and cpu.hash: their rates follow the share of the CPU that the test sets."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from typing import Any

import pytest
from cpu_truth import group, last_cpu, needs_chrt, reserved
from tests.attempts import attempt
from tests.majorities import hold_in_most
from trials import command, needs_root
from trials import run_words as run

# Each long enough for 15 periods of the reservation: the part of a period that the end cuts off is
# at most 0.75 * 0.25 / 15 = 1.3 points.
LOADS: list[tuple[str, str, dict[str, Any]]] = [
    ("cpu.pi", "pi_digits_per_s", {"threads": 1, "digits": 3000, "repeats": 80}),
    ("cpu.hash", "hash_bytes_per_s", {"threads": 1, "duration_ns": 600_000_000}),
]


@needs_root
@needs_chrt
@pytest.mark.parametrize(("benchmark", "metric", "params"), LOADS, ids=["pi", "hash"])
def test_three_quarters_of_a_cpu_give_three_quarters_of_the_rate(
    benchmark: str, metric: str, params: dict[str, Any]
) -> None:
    def rate(runtime_ms: int) -> float:
        # The kernel gives a reservation back one period after its thread has ended; until then a
        # second one may not fit (EBUSY).
        time.sleep(0.1)
        return run(reserved(runtime_ms, 40, command(benchmark, params))).one(metric)

    def measure() -> tuple[str, bool]:
        # A reservation of nearly the whole CPU gives the undisturbed rate, before and after: the
        # other hardware thread of the core may be busy or not, and changes both.
        whole = [rate(38)]
        ratios: list[float] = []

        def near() -> tuple[bool, bool]:
            part = rate(30)
            whole.append(rate(38))
            ratios.append(part / ((whole[-2] + whole[-1]) / 2 / 0.95))
            # 3 points: the cut-off part of the period, and the clock of a shared CPU.
            return ratios[-1] >= 0.72, ratios[-1] <= 0.78

        held = hold_in_most(9, near)
        return f"of nine: {' '.join(f'{one:.4f}' for one in ratios)}", held

    attempt(f"{benchmark} under 30/40 ms", measure, contends=True)


@needs_root
def test_twice_the_digits_take_four_times_as_long() -> None:
    def time_ns(digits: int) -> float:
        params = {"threads": 1, "digits": digits}
        trial = run(favoured.inside(command("cpu.pi", {**params, "repeats": 5})))
        # The fastest of five: whatever disturbs makes it slower.
        return min(float(sample["value"]) for sample in trial.all("pi_time_ns"))

    def measure() -> tuple[str, bool]:
        ratios: list[float] = []

        def near() -> tuple[bool, bool]:
            ratios.append(time_ns(10_000) / time_ns(5_000))
            # Terms and limbs both double; what each term costs beside its limbs makes it a little
            # less.
            return ratios[-1] >= 3.7, ratios[-1] <= 4.2

        held = hold_in_most(3, near)
        return f"ratios {' '.join(f'{one:.3f}' for one in ratios)}", held

    with group() as favoured:
        attempt("square law of the digits", measure)


@pytest.mark.together
def test_every_repeat_of_every_thread_is_a_sample_with_its_cpu() -> None:
    trial = run(command("cpu.pi", {"threads": 2, "digits": 1000, "repeats": 3}))
    times = trial.all("pi_time_ns")
    assert sorted(sample["factors"]["thread"] for sample in times) == [0, 0, 0, 1, 1, 1]
    # All work is done between the first start and the last end.
    slowest = max(
        sum(s["value"] for s in times if s["factors"]["thread"] == thread) for thread in (0, 1)
    )
    assert trial.one("pi_digits_per_s") <= 2 * 3 * 1000 / (slowest / 1e9)


@pytest.mark.together
def test_the_sum_of_the_threads_is_at_least_the_rate_of_all() -> None:
    trial = run(command("cpu.hash", {"duration_ns": 50_000_000}))
    each = [sample["value"] for sample in trial.all("hash_thread_bytes_per_s")]
    assert 0 < trial.one("hash_bytes_per_s") <= sum(each) * (1 + 1e-9)


@needs_root
def test_hashing_is_within_reach_of_another_implementation() -> None:
    """Python's hashlib (OpenSSL) on the same block, alternated: the same order of magnitude."""
    block = bytes(16384)
    seconds = 0.3
    script = (
        "import hashlib, time\n"
        f"block, end, n = bytes({len(block)}), time.monotonic() + {seconds}, 0\n"
        "while time.monotonic() < end:\n"
        "    hashlib.sha256(block).digest(); n += 1\n"
        "print(n)\n"
    )
    assert len(hashlib.sha256(block).digest()) == 32
    params = {"threads": 1, "duration_ns": int(seconds * 1e9)}

    def measure() -> tuple[str, bool]:
        ratios: list[float] = []

        def near() -> tuple[bool, bool]:
            ours = run(favoured.inside(command("cpu.hash", params))).one("hash_bytes_per_s")
            words = favoured.inside(["python3", "-c", script])
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            ratios.append(ours * seconds / (int(done.stdout) * len(block)))
            # OpenSSL has vector code where the CPU lacks SHA instructions: up to 2.5 times as fast.
            return ratios[-1] >= 0.4, ratios[-1] <= 1.3

        # Who has the other hardware thread of the core slows one of both by a half, for a while.
        held = hold_in_most(3, near)
        return f"{' '.join(f'{one:.3f}' for one in ratios)} of OpenSSL's rate", held

    with group() as favoured:
        attempt("SHA-256 against OpenSSL", measure)


@pytest.mark.together
@pytest.mark.parametrize(
    ("benchmark", "params", "words"),
    [
        ("cpu.pi", {"digits": 1}, "digits must be a whole number from 50 to 200000"),
        ("cpu.pi", {"threads": 1025}, "threads must be a whole number from 0 to 1024"),
        ("cpu.hash", {"block_bytes": 0}, "block_bytes must be a whole number from 64"),
    ],
)
def test_bad_input_is_one_sentence(benchmark: str, params: dict[str, Any], words: str) -> None:
    done = subprocess.run(command(benchmark, params), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in json.loads(done.stdout)["error"]["message"]


@pytest.mark.together
def test_more_threads_than_cpus_are_noted() -> None:
    trial = run(command("cpu.hash", {"threads": last_cpu() + 2, "duration_ns": 5_000_000}))
    assert any("round robin" in note for note in trial.done["notes"])


@needs_root
@needs_chrt
def test_two_threads_under_a_reservation_lack_something() -> None:
    words = reserved(30, 40, command("cpu.hash", {"threads": 2}))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["name"] == "no_threads_under_deadline"
