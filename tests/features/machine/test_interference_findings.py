"""Findings on interference name a cause only where a counter names it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nephoscope.core.model import (
    BUSY_MACHINE,
    MetricResult,
    Severity,
    factors_key,
)
from nephoscope.stats.target_evidence import Trials
from stats.judging import GOOD, changed, judge, line


def share(value: float, cpu: int = 0, half: float = 0.001) -> MetricResult:
    return line(
        "cpu.gaps", "cpu_share_ratio", value, "ratio", half=half, factors={"cpu": cpu, "process": 0}
    )


def gaps(**lengths_by_cause: list[float]) -> dict[Any, list[tuple[str, int, float]]]:
    return {
        ("cpu.gaps", "gap_event_ns", "local", factors_key({"cpu": 0, "cause": cause})): [
            ("r0001-s000-local", index, length) for index, length in enumerate(lengths)
        ]
        for cause, lengths in lengths_by_cause.items()
    }


def test_a_lost_share_is_told_with_its_causes_and_accuses_no_neighbour() -> None:
    series = gaps(throttled=[6e6, 2e6], unexplained=[2e6])
    found = judge(GOOD, (share(0.95), share(0.999, 1)), series=series)["cpu_share"]
    assert found.severity is Severity.NOTICE
    assert "95.00 % [94.90, 95.09] (n = 12) of CPU 0" in found.sentence
    assert any("throttled 80 %, unexplained 20 %" in one for one in found.evidence)
    words = (found.sentence + " ".join(found.evidence)).lower()
    assert "neighbour" not in words
    assert "hypervisor" not in words
    assert judge(GOOD, (share(0.5),), series=series)["cpu_share"].severity is Severity.WARNING


def test_a_share_that_may_be_whole_is_no_finding() -> None:
    assert judge(GOOD, (share(0.985, half=0.01),)) == {}


def test_time_that_the_kernel_believes_to_have_given_is_evidence() -> None:
    kernel = line("cpu.gaps", "thread_cpu_ratio", 0.999, "ratio", factors={"cpu": 0, "process": 0})
    evidence = judge(GOOD, (share(0.9), kernel))["cpu_share"].evidence
    assert any("accounted" in one for one in evidence)
    same = line("cpu.gaps", "thread_cpu_ratio", 0.9, "ratio", factors={"cpu": 0, "process": 0})
    evidence = judge(GOOD, (share(0.9), same))["cpu_share"].evidence
    assert not any("accounted" in one for one in evidence)


def test_gaps_over_10_ms_are_counted_by_cause() -> None:
    found = judge(GOOD, series=gaps(preempted=[11e6, 34e6], stolen=[9e6]))["long_gaps"]
    assert "2 times" in found.sentence
    assert "34.0 ms (preempted)" in found.sentence
    assert found.evidence == ("preempted: 2, the longest 34.0 ms",)
    assert judge(GOOD, series=gaps(preempted=[9.9e6])) == {}
    longest = line("cpu.gaps", "gap_longest_ns", 20e6, factors={"cpu": 1})
    assert "CPU 1" in judge(GOOD, (longest,))["long_gaps"].sentence


def beside(**counters: Any) -> Trials:
    return Trials(valid=3, counters=({}, dict.fromkeys(counters), counters))


def stolen(*ratios: float, elapsed_ns: int = 100_000_000) -> Trials:
    readings = tuple({"steal_ratio": ratio, "elapsed_ns": elapsed_ns} for ratio in ratios)
    return Trials(valid=len(ratios), counters=readings)


def test_single_ticks_in_short_trials_are_no_steal() -> None:
    # One tick of 10 ms in 12 trials of 100 ms out of 130: 10 % each, and 0.9 % of the run.
    assert judge(GOOD, trials=stolen(*[0.1] * 12, *[0.0] * 118)) == {}


def test_steal_is_pooled_by_the_duration_of_the_trials() -> None:
    trials = replace(
        stolen(*[0.10, 0.14] * 10),
        counters=(
            *stolen(*[0.10, 0.14] * 10).counters,
            {"steal_ratio": 0.12, "elapsed_ns": 10**10},
        ),
    )
    found = trials.over_time("steal_ratio", "ratio")
    assert found is not None
    assert found.value == pytest.approx(0.12)
    assert found.n == 21
    assert stolen().over_time("steal_ratio", "ratio") is None
    assert stolen(0.3).over_time("steal_ratio", "ratio").low is None  # type: ignore[union-attr]


def test_steal_throttling_and_swapping_come_from_the_counters() -> None:
    found = judge(GOOD, trials=stolen(*[0.10, 0.14] * 10))["steal"]
    assert found.severity is Severity.WARNING
    assert "The hypervisor reported 12.0 % [11.0, 13.0] (n = 20) steal time" in found.sentence
    assert judge(GOOD, trials=stolen(*[0.008, 0.01] * 10)) == {}
    since_boot = changed(counters__steal_since_boot_ratio=0.2)
    told = judge(since_boot, trials=stolen(*[0.0] * 10))["steal"]
    assert told.severity is Severity.NOTICE
    assert "20 % steal time since boot; during the run: 0 % [0, 0] (n = 10)" in told.sentence
    assert set(judge(GOOD, trials=beside(throttled_ratio=0.4))) == {"throttled"}
    assert judge(GOOD, trials=beside(throttled_ratio=0.0)) == {}
    # The rule that excludes a throttled trial has no lower bound, so neither has this count.
    assert "1 of 1" in judge(GOOD, trials=beside(throttled_ratio=0.004))["throttled"].sentence
    assert set(judge(GOOD, trials=beside(swap_in_count=3, swap_out_count=0))) == {"swapping"}


def busy(*cpus: float) -> Trials:
    return Trials(
        valid=len(cpus),
        counters=tuple({"others_busy_cpus": used, "elapsed_ns": 10**8} for used in cpus),
    )


def test_other_programs_make_a_busy_machine() -> None:
    found = judge(GOOD, trials=busy(*[0.4, 0.6] * 10))
    (sentence,) = [one.sentence for one in found.values() if one.id == BUSY_MACHINE]
    assert sentence.startswith("Measured on a busy machine: other programs used 0.500 CPUs [")
    assert judge(GOOD, trials=busy(*[0.0, 0.05] * 10)) == {}
    assert judge(GOOD, trials=busy(3.0)) == {}, "one trial is no evidence"
