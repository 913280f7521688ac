"""Knees, scaling and laws, on ladders and rates that the test made up."""

from __future__ import annotations

import pytest
from tests.results.made import run_data

from nephoscope.core.model import Better, Consistency, MetricResult
from nephoscope.features.machine.result import analyse, little
from nephoscope.stats import facts
from nephoscope.stats.statistics import estimates

STEADY = Consistency(0.01, 0.01, 0.01, 0.005, 0.02, "steady")


def made(
    benchmark: str,
    metric: str,
    factors: dict[str, object],
    values: list[float],
    *,
    unit: str = "per_s",
    better: Better = Better.HIGHER,
) -> MetricResult:
    return MetricResult(
        benchmark=benchmark,
        metric=metric,
        target="local",
        factors=factors,
        better=better,
        estimate=estimates.median(values, unit=unit),
        consistency=STEADY,
        trial_values=tuple(values),
        rounds=tuple(range(1, len(values) + 1)),
    )


def ladder(size_bytes: int) -> float:
    """40 GB/s up to 32 KiB, 20 up to 1 MiB, 10 up to 32 MiB, 5 beyond."""
    for limit, rate in ((32 << 10, 40e9), (1 << 20, 20e9), (32 << 20, 10e9)):
        if size_bytes <= limit:
            return rate
    return 5e9


def test_the_knees_of_a_ladder_lie_where_the_caches_end() -> None:
    lines = [
        made(
            "mem.cache",
            "cache_bytes_per_s",
            {"length_bytes": 1 << power, "operation": "read"},
            [ladder(1 << power)] * 10,
            unit="bytes_per_s",
        )
        for power in range(10, 28)
    ]
    caches = {
        "by_sysfs": [
            {"level": 1, "kind": "data", "size_bytes": 32 << 10},
            {"level": 1, "kind": "instruction", "size_bytes": 64 << 10},
            {"level": 2, "kind": "unified", "size_bytes": 1 << 20},
            {"level": 3, "kind": "unified", "size_bytes": 32 << 20},
        ]
    }
    found = analyse(run_data((), lines, fingerprints={"local": {"caches": caches}}))
    key = ("mem.cache", "cache_bytes_per_s", "local", '{"operation":"read"}')
    assert len(found.memory_levels) == 1
    knees = found.knees(key)
    told = [(knee.level, knee.last_length_bytes) for knee in knees]
    assert told == [("L1", 32 << 10), ("L2", 1 << 20), ("L3", 32 << 20), ("RAM", 1 << 27)]
    values = [knee.plateau_value for knee in knees]
    assert values == pytest.approx([40e9, 20e9, 10e9, 5e9])


def test_a_machine_that_hides_its_caches_still_has_knees() -> None:
    assert facts.cache_sizes(None) == {}
    assert facts.cache_sizes({"caches": {"by_sysfs": None, "by_cpuid": None}}) == {}


def test_scaling_is_paired_by_round() -> None:
    # The machine slows down from round to round; two threads always give 1.6 times one thread.
    one = [100.0, 90.0, 110.0, 80.0, 105.0, 95.0, 85.0, 102.0, 98.0, 93.0]
    two = [1.6 * rate for rate in one]
    lines = [
        made("cpu.hash", "hash_bytes_per_s", {"threads": 1}, one),
        made("cpu.hash", "hash_bytes_per_s", {"threads": 2}, two),
    ]
    found = analyse(run_data((), lines))
    estimate = found.efficiency(("cpu.hash", "hash_bytes_per_s", "local", "{}"))[2]
    assert estimate.value == pytest.approx(0.8)
    assert estimate.low == pytest.approx(0.8)
    assert (estimate.n, estimate.unit) == (10, "ratio")


def test_a_rate_per_thread_is_no_rate_of_all_threads() -> None:
    # Each of two threads is as fast as one alone: perfect scaling, of which half is no part.
    lines = [
        made("cpu.hash", metric, {"threads": threads}, [rate] * 10)
        for threads in (1, 2)
        for metric, rate in (
            ("hash_bytes_per_s", 100.0 * threads),
            ("hash_thread_bytes_per_s", 100.0),
        )
    ]
    found = analyse(run_data((), lines)).scaling
    assert [curve.metric for curve in found] == ["hash_bytes_per_s"]
    assert found[0].efficiency[2].value == 1.0


def test_one_level_of_threads_has_no_scaling() -> None:
    lines = [made("cpu.hash", "hash_bytes_per_s", {"threads": 1}, [1.0] * 10)]
    assert analyse(run_data((), lines)).scaling == ()


@pytest.mark.parametrize(("latency_ns", "broken"), [(20_000.0, False), (30_000.0, True)])
def test_littles_law_is_asked_of_every_closed_loop(latency_ns: float, broken: bool) -> None:
    # 50 000 round trips a second of 20 µs each are one in flight; of 30 µs they would be 1.5.
    lines = [made("net.loopback", "loopback_round_trips_per_s", {}, [50_000.0] * 10)]
    merged = {("net.loopback", "loopback_round_trip_ns", "local", "{}"): ([latency_ns], [500])}
    laws = analyse(run_data((), lines, histograms=merged)).broken_laws
    assert bool(laws) is broken
    if broken:
        assert laws[0].startswith("net.loopback round trips: Little's law")


def test_little_on_published_tables() -> None:
    # Caldwell 2011: 100 clients at 78.9 ms cannot make 2361.6 /s; 300 at 46.93 ms make 6392 /s.
    assert "Little's law is broken" in (little(100, 2361.6, 0.0789) or "")
    assert little(300, 6293.5, 0.04693) is None
    assert little(100, 6293.5, 0.04693)
