from __future__ import annotations

from typing import Any

import pytest

from nephoscope import catalog
from nephoscope.core.model import Sample
from nephoscope.measure.runs.trials import validity

NULL = catalog.load().benchmark("null")
DISK = catalog.load().benchmark("disk.io")


def codes(elapsed_ns: int = 10**9, **beside: Any) -> list[str]:
    return [reason.code for reason in validity.reasons(NULL, {}, [], beside, elapsed_ns)]


@pytest.mark.parametrize(
    ("step_ns", "elapsed_ns", "invalid"),
    [
        (1_000_000, 10**6, False),
        (1_000_001, 10**6, True),
        (-1_000_001, 10**6, True),
        # 500 ppm is what a clock may be slewed by: over 10 s that is 5 ms, and no step.
        (5_000_000, 10**10, False),
        (10_000_001, 10**10, True),
        (None, 10**9, False),
    ],
)
def test_a_stepped_clock(step_ns: int | None, elapsed_ns: int, invalid: bool) -> None:
    assert codes(elapsed_ns, clock_step_ns=step_ns) == (["clock_step"] if invalid else [])


def test_a_throttled_trial() -> None:
    assert codes(throttled_ratio=0.0) == []
    assert codes(throttled_ratio=None) == []
    assert codes(throttled_ratio=0.001) == ["throttled"]


def test_a_swapped_probe() -> None:
    assert codes(swapped_bytes=0, major_faults_count=9, swap_in_count=0) == []
    assert codes(swapped_bytes=None, major_faults_count=0, swap_in_count=50) == []
    assert codes(swapped_bytes=4096) == ["swapped"]
    assert codes(major_faults_count=3, swap_in_count=50) == ["swapped"]


def test_hidden_counters_prove_nothing() -> None:
    assert codes() == []
    assert codes(throttled_ratio="x", clock_step_ns=True, swapped_bytes=[]) == []


def test_sentences_carry_the_figures() -> None:
    (reason,) = validity.reasons(NULL, {}, [], {"throttled_ratio": 0.5}, 1)
    assert "50.0 %" in reason.sentence


def disk(rate: float, latencies: list[tuple[float, int]], **params: Any) -> list[str]:
    samples = [Sample("disk_operations_per_s", rate)]
    samples += [Sample("disk_latency_ns", value, count) for value, count in latencies]
    return [r.code for r in validity.reasons(DISK, params, samples, {}, 10**9)]


def test_littles_law_on_a_closed_loop() -> None:
    # Mean latency (1 ms * 3 + 5 ms) / 4 = 2 ms; at depth 32 that is 16 000 operations a second.
    # 400,000 of them take 25 s, beside which an operation cut off at an end is nothing.
    latencies = [(1e6, 300_000), (5e6, 100_000)]
    assert disk(16_000, latencies, queue_depth=32) == []
    assert disk(16_000 * 0.91, latencies, queue_depth=32) == []
    assert disk(16_000 * 0.89, latencies, queue_depth=32) == ["load_identity"]
    assert disk(16_000 * 1.11, latencies, queue_depth=32) == ["load_identity"]
    # The depth is 1 where the plan says nothing.
    assert disk(500, latencies) == []
    assert disk(16_000, latencies) == ["load_identity"]
    assert disk(16_000, []) == []


def test_an_operation_cut_off_at_an_end_of_the_window_is_no_fault() -> None:
    # 1,600 operations of 2 ms and one of 30 ms at depth 32: a window of 100 ms. Where the long one
    # began before the window its 30 ms stand in the sum, but not in the time.
    latencies = [(2e6, 1_600), (30e6, 1)]
    assert disk(16_010, latencies, queue_depth=32) == []
    assert disk(16_010 * 0.75, latencies, queue_depth=32) == []
    assert disk(16_010 * 0.55, latencies, queue_depth=32) == ["load_identity"]


def late(*ratios: float) -> list[str]:
    samples = [Sample("late_sends_ratio", ratio) for ratio in ratios]
    spec = catalog.load().benchmark("net.rtt")
    return [reason.code for reason in validity.reasons(spec, {}, samples, {}, 10**9)]


def test_a_sender_behind_its_schedule() -> None:
    assert late() == []
    assert late(0.0, 0.01) == []
    assert late(0.0, 0.0101) == ["late_sends"]


@pytest.mark.parametrize(("sent", "late_count", "codes"), [(10, 1, []), (10, 2, ["late_sends"])])
def test_a_single_late_one_says_nothing_about_one_percent(
    sent: int, late_count: int, codes: list[str]
) -> None:
    samples = [Sample("late_sends_ratio", late_count / sent), Sample("sent_count", sent)]
    spec = catalog.load().benchmark("net.query")
    assert [r.code for r in validity.reasons(spec, {}, samples, {}, 10**9)] == codes


def round_trips(late_count: int, lateness_ns: float) -> list[str]:
    """100 round trips of 5 ms and a little, of which so many left that late."""
    samples = [Sample("late_sends_ratio", late_count / 100)]
    for number in range(100):
        sent_ns = 5e6 + 1000 * number
        due_ns = sent_ns + (lateness_ns if number < late_count else 0)
        samples += [Sample("rtt_sent_ns", sent_ns), Sample("rtt_ns", due_ns)]
    return [
        reason.code
        for reason in validity.reasons(catalog.load().benchmark("net.rtt"), {}, samples, {}, 10**9)
    ]


def test_late_sends_invalidate_a_trial_only_if_they_move_its_median() -> None:
    assert round_trips(2, 3e6) == [], "2 late packets of 100 leave the median where it is"
    assert round_trips(40, 3e6) == []
    assert round_trips(60, 3e6) == ["late_sends"], "the median itself is a late one"


def test_the_share_of_late_sends_is_a_metric() -> None:
    for benchmark in ("net.rtt", "net.throughput"):
        assert catalog.load().benchmark(benchmark).metric(validity.LATE_SENDS).unit == "ratio"
