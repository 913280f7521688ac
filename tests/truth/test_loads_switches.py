"""cpu.switch and load.switches against the switches that the kernel accounts."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from cpu_truth import group, last_cpu
from tests.attempts import attempt
from tests.hardware import Feature, lacking
from trials import Trial, command, needs_root, refused, run, run_words

METHODS = ["pipe", "futex"]


def switches_of(trial: Trial) -> int:
    """All context switches that the kernel accounts to its process."""
    return trial.usage.ru_nvcsw + trial.usage.ru_nivcsw


@needs_root
@pytest.mark.truth("cpu.switch", "handovers_count", "voluntary_switches_count")
@pytest.mark.truth("cpu.switch", "switches_per_s")
@pytest.mark.parametrize("method", METHODS)
def test_each_handover_on_one_cpu_is_a_switch(method: str) -> None:
    params = {"method": method, "cpus": [last_cpu()]}

    def measure() -> tuple[str, bool]:
        trial = run_words(favoured.inside(command("cpu.switch", params)))
        all_switches = switches_of(trial)
        handovers = trial.one("handovers_count")
        told = trial.one("voluntary_switches_count") + trial.one("involuntary_switches_count")
        # Its own start and end, and what others take of the CPU, come on top: 1 %.
        near = all(1.0 <= seen / handovers <= 1.01 for seen in (told + 2, all_switches))
        # Half a second, and a tenth of it before.
        near &= abs(0.55 * trial.one("switches_per_s") / handovers - 1) <= 0.1
        return f"{handovers:.0f} handovers, {told:.0f} told, {all_switches} in all", near

    with group() as favoured:
        attempt(f"switches by {method}", measure)


@needs_root
@pytest.mark.truth("cpu.switch", "switches_per_s", "switch_latency_ns")
@pytest.mark.parametrize("place", ["one_cpu", "two_cpus"])
@pytest.mark.parametrize("method", METHODS)
def test_the_rate_times_the_mean_latency_is_one(method: str, place: str) -> None:
    if place == "two_cpus" and len(os.sched_getaffinity(0)) < 2:
        lacking(Feature.CPUS)
    trial = run("cpu.switch", {"method": method, "place": place, "duration_ns": 200_000_000})
    count, mean_ns = trial.histogram("switch_latency_ns")
    # The histogram keeps three digits, and half of an odd nanosecond is cut.
    assert trial.one("switches_per_s") * mean_ns / 1e9 == pytest.approx(1, rel=0.005)
    assert count <= trial.one("handovers_count") / 2


@pytest.mark.together
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"cpus": [1023]}, (2, "usage")),
        ({"place": "two_cpus", "cpus": [0]}, (2, "usage")),
        ({"method": "letter"}, (2, "usage")),
    ],
)
def test_bad_input_of_cpu_switch_is_one_sentence(
    given: dict[str, Any], wanted: tuple[int, str]
) -> None:
    assert refused("cpu.switch", given) == wanted


@pytest.mark.together
def test_across_two_cpus_needs_two() -> None:
    def one_cpu() -> None:
        os.sched_setaffinity(0, {last_cpu()})

    assert refused("cpu.switch", {"place": "two_cpus"}, one_cpu) == (4, "one_cpu_only")


@needs_root
@pytest.mark.truth("cpu.switch", "involuntary_switches_count")
def test_a_busy_program_on_the_same_cpu_takes_it_from_the_threads() -> None:
    rival = command("load.cpu", {"threads": 1, "cpus": [last_cpu()], "duration_ns": 20_000_000_000})

    def measure() -> tuple[str, bool]:
        with subprocess.Popen(favoured.inside(rival), stdout=subprocess.DEVNULL) as busy:
            try:
                trial = run_words(favoured.inside(command("cpu.switch", {"cpus": [last_cpu()]})))
            finally:
                busy.kill()
        told, accounted = trial.one("involuntary_switches_count"), trial.usage.ru_nivcsw
        # The start of the program has some of its own.
        return f"{told:.0f} told, {accounted} accounted", (
            told >= 20 and told <= accounted <= 1.2 * told + 10
        )

    with group() as favoured:
        attempt("involuntary switches", measure, contends=True)


@needs_root
@pytest.mark.truth("load.switches", "load_switches_per_s")
@pytest.mark.parametrize("method", METHODS)
def test_a_load_s_switches_are_those_that_the_kernel_accounts(method: str) -> None:
    params = {"method": method, "threads": 1, "cpus": [last_cpu()]}

    def measure() -> tuple[str, bool]:
        trial = run_words(favoured.inside(command("load.switches", params)))
        all_switches = switches_of(trial)
        counted = trial.one("load_switches_per_s")
        # The counting thread and the process's own start are in the kernel's figure: 2 %.
        near = 1.0 <= all_switches / counted <= 1.02
        return f"{counted:.0f} counted in 1 s, {all_switches} accounted", near

    with group() as favoured:
        attempt(f"a load's switches by {method}", measure)


@needs_root
@pytest.mark.truth("load.switches", "load_switches_per_s", "load_intensity_ratio")
@pytest.mark.parametrize("rate", [500, 20_000])
def test_a_set_rate_is_kept(rate: int) -> None:
    params = {
        "threads": 1,
        "cpus": [last_cpu()],
        "switches_per_s": rate,
        "intensity_ratio": 0.5,
        "duration_ns": 2_000_000_000,
    }

    def measure() -> tuple[str, bool]:
        trial = run_words(favoured.inside(command("load.switches", params)))
        seen, told = trial.one("load_switches_per_s"), trial.one("load_intensity_ratio")
        # Two per cent: what is promised.
        near = abs(seen / (rate / 2) - 1) <= 0.02 and abs(told - 0.5) <= 0.01
        return f"{seen:.1f} of {rate / 2}, intensity {told:.4f}", near

    with group() as favoured:
        attempt(f"{rate} switches a second", measure)


def test_intensity_zero_waits() -> None:
    trial = run("load.switches", {"intensity_ratio": 0, "duration_ns": 300_000_000})
    assert trial.one("load_switches_per_s") == 0
    assert trial.one("load_cpus") < 0.05
