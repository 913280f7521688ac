"""Findings on interference name a cause only where a counter names it."""

from __future__ import annotations

from typing import Any

from analysis.judging import GOOD, judge, line
from nephoscope.analysis.target_evidence import Trials
from nephoscope.model import (
    MetricResult,
    Severity,
    factors_key,
)


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
    return Trials(valid=3, beside=({}, dict.fromkeys(counters), counters))


def test_steal_throttling_and_swapping_come_from_the_counters() -> None:
    found = judge(GOOD, trials=beside(steal_ratio=0.12))["steal"]
    assert found.severity is Severity.WARNING
    assert "The hypervisor reported more than 1 % steal time in 1 of 1 trials" in found.sentence
    assert "12 %" in found.sentence
    assert judge(GOOD, trials=beside(steal_ratio=0.009)) == {}
    assert set(judge(GOOD, trials=beside(throttled_ratio=0.4))) == {"throttled"}
    assert judge(GOOD, trials=beside(throttled_ratio=0.0)) == {}
    assert set(judge(GOOD, trials=beside(swap_in_count=3, swap_out_count=0))) == {"swapping"}
