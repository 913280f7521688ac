"""Findings from measurements: whole intervals, named causes, no accusation without evidence."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.profiles import by_profile

from nephoscope.core.model import (
    Estimate,
    MetricResult,
    Severity,
)
from nephoscope.features.machine import measured_findings
from nephoscope.results.machine_figures import Knee, MachineFigures, MemoryLevels, ThreadScaling
from nephoscope.stats.target_evidence import TargetTrials
from stats.judging import GOOD, changed, judge, line


def test_direct_io_that_fails_or_was_not_asked_for() -> None:
    refused = judge(GOOD, trials=TargetTrials(valid=30, failed=1, failures={"no_direct_io": 1}))
    assert refused["no_direct_io"].severity is Severity.NOTICE
    cached = line("disk.io", "cached_operations_per_s", 1e5, "per_s")
    assert judge(GOOD, (cached,))["disk_cached"].severity is Severity.INFO


def test_the_fallback_of_io_uring_is_told() -> None:
    fallback = line("disk.io", "disk_operations_per_s", 1e4, "per_s", factors={"engine": "sync"})
    found = judge(changed(abilities__io_uring=False), (fallback,))["no_io_uring"]
    assert found.severity is Severity.NOTICE
    assert judge(GOOD, (fallback,)) == {}, "sync was asked for where io_uring works"


def test_a_long_tail_compares_equal_settings_only() -> None:
    def pair(p50: float, p99: float, depth: int, depth_99: int) -> tuple[MetricResult, ...]:
        return (
            line("disk.io", "disk_latency_p50_ns", p50, factors={"queue_depth": depth}),
            line("disk.io", "disk_latency_p99_ns", p99, factors={"queue_depth": depth_99}),
        )

    assert set(judge(GOOD, pair(1e5, 2e6, 1, 1))) == {"disk_tail"}
    assert judge(GOOD, pair(1e5, 9e5, 1, 1)) == {}
    assert judge(GOOD, pair(1e5, 2e6, 1, 32)) == {}


def test_poor_scaling_needs_its_interval_below_the_bound() -> None:
    def figures(value: float, half: float) -> tuple[MachineFigures]:
        efficiency = Estimate(value, value - half, value + half, 0.95, 12, "ratio", "median")
        curve = ThreadScaling("cpu.pi", "pi_digits_per_s", "local", {}, {2: efficiency})
        return (MachineFigures(scaling=(curve,)),)

    found = judge(GOOD, parts=figures(0.6, 0.02))["scaling"]
    assert "cpu.pi: 2 threads reach 60.0 % [58.0, 62.0] (n = 12) of twice" in found.sentence
    assert judge(GOOD, parts=figures(0.88, 0.05)) == {}
    siblings = judge(changed(topology__threads_per_core=2.0), parts=figures(0.6, 0.02))
    assert any("share" in one for one in siblings["scaling"].evidence)


def test_trials_shorter_than_the_period_of_a_quota_say_so() -> None:
    capped = changed(limits__cpu_quota_cpus=0.5)

    def trials(elapsed_ns: int) -> TargetTrials:
        placed = {("cpu.pi", n): [({}, {"elapsed_ns": elapsed_ns})] for n in range(1, 11)}
        return TargetTrials(valid=10, placed=placed)

    found = judge(capped, trials=trials(61_000_000))["short_trials"]
    assert found.evidence == ("cpu.pi: 61.0 ms (median of 10 trials)",)
    assert "short_trials" not in judge(capped, trials=trials(2_000_000_000))
    assert "short_trials" not in judge(GOOD, trials=trials(61_000_000))


def test_a_last_level_cache_smaller_than_announced() -> None:
    def figures(length: int) -> tuple[MachineFigures]:
        knees = (Knee("L1", 1024, 32768, 1.0), Knee("L3", 65536, length, 20.0))
        ladder = MemoryLevels("mem.latency", "load_latency_ns", "local", {"pages": "huge"}, knees)
        return (MachineFigures((ladder,)),)

    found = judge(GOOD, parts=figures(4 << 20))["small_cache"]
    assert "32.0 MiB" in found.sentence
    assert "4.00 MiB" in found.sentence
    assert judge(GOOD, parts=figures(16 << 20)) == {}, "the next length would not have fitted"


def test_erratic_and_unconverged_headlines_are_named() -> None:
    wild = line("cpu.pi", "pi_digits_per_s", 1e5, "per_s", word="erratic", headline=True)
    found = judge(GOOD, (wild,))
    assert "1 of 1 headline results are erratic" in found["erratic"].sentence
    late = replace(wild, warnings=("Not converged: wide.",))
    told = judge(GOOD, (late, replace(wild, factors={"threads": 1})))["not_converged"]
    assert told.sentence.startswith("1 of 2 headline results missed the requested precision")
    assert told.evidence == ("cpu.pi digits: 1 of 2 settings",)


def test_two_modes_are_a_hint_and_one_mode_is_none() -> None:
    two = tuple(100.0 + 0.1 * i for i in range(6)) + tuple(130.0 + 0.1 * i for i in range(6))
    metric = line("cpu.pi", "pi_time_ns", 101, headline=True, values=two)
    found = judge(GOOD, (metric,))["two_modes"]
    assert "6 trials around 100 ns, 6 around 130 ns" in found.evidence[0]
    assert measured_findings.modes(two[:9]) is None, "too few values"
    assert measured_findings.modes((100.0,) * 11 + (130.0,)) is None, "an outlier is no mode"
    assert measured_findings.modes((0.0,) * 12) is None


@pytest.mark.parametrize("count", [10, 12, 30])
@pytest.mark.parametrize("kind", ["normal", "lognormal", "uniform"])
def test_one_mode_is_rarely_taken_for_two(kind: str, count: int) -> None:
    rng = random.Random(f"{kind} {count}")
    draw = {
        "normal": lambda: 100 + 10 * rng.gauss(0, 1),
        "lognormal": lambda: 100 * rng.lognormvariate(0, 0.3),
        "uniform": lambda: rng.uniform(80, 120),
    }[kind]
    # The true rate is at most 0.2 %: more hits than these have a chance of 1 in 3000.
    draws, most = by_profile(quick=(400, 5), whole=(2000, 12))
    hits = sum(
        measured_findings.modes([draw() for _ in range(count)]) is not None for _ in range(draws)
    )
    assert hits <= most


def test_many_trials_that_do_not_count() -> None:
    assert judge(GOOD, trials=TargetTrials(valid=19, invalid=1)) == {}
    assert judge(GOOD, trials=TargetTrials(valid=18, invalid=2))["many_invalid"].severity is (
        Severity.NOTICE
    )
    assert judge(GOOD, trials=TargetTrials(valid=7, failed=3))["many_invalid"].severity is (
        Severity.WARNING
    )
