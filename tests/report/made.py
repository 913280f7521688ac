"""A result of a whole survey, made up, with known figures; deterministic."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.results.made import run_data
from tests.store.factory import trial_record

from nephoscope.core.model import (
    Better,
    Consistency,
    ConsistencyWord,
    Estimate,
    InvalidTrial,
    MetricResult,
    Precision,
    RunResult,
    RunSummary,
    TrialCounts,
    TrialKey,
    TrialStatus,
    factors_key,
)
from nephoscope.features.scheduler.inference.verdict import SchedulerVerdicts
from nephoscope.results.execution import ExecutionSummary, analyse
from nephoscope.results.findings import findings
from nephoscope.results.machine_figures import Knee, MachineFigures, MemoryLevels, ThreadScaling
from nephoscope.stats.target_evidence import TargetTrials
from report.fingerprint import fingerprint

TRIALS = 12
Key = tuple[str, str, str, str]


def metric(
    benchmark: str,
    name: str,
    value: float,
    unit: str,
    *,
    factors: Mapping[str, Any] | None = None,
    better: Better = Better.HIGHER,
    headline: bool = False,
    noise: float = 0.01,
    target: str = "local",
    warnings: tuple[str, ...] = (),
    word: ConsistencyWord | None = None,
    n: int = TRIALS,
) -> MetricResult:
    """A line of a result whose interval and trials fit its value and noise."""
    rng = random.Random(f"{benchmark} {name} {factors}")
    values = tuple(value * (1 + rng.gauss(0, noise)) for _ in range(n))
    half = value * noise * 1.2
    return MetricResult(
        benchmark=benchmark,
        metric=name,
        target=target,
        factors=dict(factors or {}),
        better=better,
        estimate=Estimate(
            value, value - half, value + half, 0.95, n, unit, "median, order statistics"
        ),
        consistency=Consistency(
            noise,
            noise,
            noise / 2,
            noise / 2,
            noise * 2,
            word or ("steady" if noise <= 0.02 else "variable"),
        ),
        headline=headline,
        warnings=warnings,
        trial_values=values,
        rounds=tuple(range(1, n + 1)),
    )


def executed() -> ExecutionSummary:
    """A run with common starts, a load that died once, and a target that was given up."""
    record = trial_record(
        1,
        benchmark="cpu.pi",
        timeline={"prepare": (0, 10), "start": (10, 2_000_000), "measure": (2_000_000, 9_000_000)},
        skew_ns=12_000,
        loads=({"name": "noise", "benchmark": "load.cpu", "target": "b", "covered_ratio": 1.0},),
    )
    died = replace(
        record,
        key=TrialKey(2, 0, "local"),
        status=TrialStatus.INVALID,
        skew_ns=1_400_000,
        reasons=("the load 'noise' (load.cpu on b) ended by itself before it was stopped: gone.",),
    )
    lost = replace(
        record,
        key=TrialKey(3, 0, "c"),
        status=TrialStatus.FAILED,
        timeline={},
        loads=(),
        skew_ns=None,
        failure_name="target_lost",
        reasons=("not tried: c is gone: c hung up. Look for it.",),
    )
    found = analyse(
        run_data([record, died, lost], manifest={"lost": {"c": "c hung up. Look for it."}})
    )
    assert found is not None
    return found


def gaps() -> list[MetricResult]:
    out = [metric("cpu.gaps", "obtained_cpus", 1.931, "cpus", headline=True, noise=0.004)]
    for cpu, share in ((0, 0.981), (1, 0.950)):
        own = {"cpu": cpu, "process": 0}
        out += [
            metric("cpu.gaps", "cpu_share_ratio", share, "ratio", factors=own, headline=True,
                   noise=0.003),
            metric("cpu.gaps", "thread_cpu_ratio", share + 0.02, "ratio", factors=own),
            metric("cpu.gaps", "gap_longest_ns", 18.4e6, "ns", factors=own, better=Better.LOWER,
                   noise=0.3, word="erratic"),
            metric("cpu.gaps", "look_cost_ns", 26.1, "ns", factors=own, better=Better.LOWER,
                   headline=True),
        ]  # fmt: skip
    return out


def gap_series(trials: int = TRIALS) -> dict[Key, list[tuple[str, int, float]]]:
    rng = random.Random(7)
    out: dict[Key, list[tuple[str, int, float]]] = {}
    for trial in range(1, trials + 1):
        for cpu in (0, 1):
            for _ in range(40 + 30 * cpu):
                length = 100_000 * math.exp(abs(rng.gauss(0, 1.1)))
                cause = "preempted" if rng.random() < 0.5 else "unexplained"
                if rng.random() < 0.03:
                    length, cause = rng.uniform(8e6, 24e6), "stolen"
                text = factors_key({"cpu": cpu, "process": 0, "cause": cause})
                key = ("cpu.gaps", "gap_event_ns", "local", text)
                at_ns = int(rng.uniform(0, 1e9))
                out.setdefault(key, []).append((f"r{trial:04d}-s000-local", at_ns, length))
    return out


def histogram(
    median_ns: float, sigma: float, seed: int, count: int = 40_000
) -> tuple[list[float], list[int]]:
    """A log-normal distribution in buckets of 3 significant digits."""
    rng = random.Random(seed)
    buckets: dict[float, int] = {}
    for _ in range(count // 20):
        value = median_ns * math.exp(rng.gauss(0, sigma))
        digits = 2 - math.floor(math.log10(value))
        bucket = round(value, digits)
        buckets[bucket] = buckets.get(bucket, 0) + 20
    values = sorted(buckets)
    return values, [buckets[value] for value in values]


CACHE_STEPS = (("L1", 32 << 10, 180e9, 4.0), ("L2", 1 << 20, 70e9, 14.0),
               ("L3", 16 << 20, 24e9, 62.0), ("RAM", None, 10.5e9, 104.0))  # fmt: skip


def step(length: float, column: int) -> float:
    """Bandwidth (column 2) or latency (3) at a length, by the steps above."""
    for row in CACHE_STEPS:
        if row[1] is None or length <= row[1]:
            return float(row[column] or 0)
    raise AssertionError


def ladders() -> tuple[list[MetricResult], tuple[MemoryLevels, ...]]:
    lengths = [1024 << power for power in range(18)]
    metrics, levels = [], []
    for operation, part in (("read", 1.0), ("write", 0.6), ("modify", 0.5)):
        fixed = {"operation": operation}
        metrics += [
            metric("mem.cache", "cache_bytes_per_s", part * step(n, 2) * (1 - 0.3 / math.log2(n)),
                   "bytes_per_s", factors={**fixed, "vector_bytes": n}, noise=0.03)
            for n in lengths
        ]  # fmt: skip
        knees = tuple(
            Knee(str(row[0]), 1024, row[1] or lengths[-1], part * row[2]) for row in CACHE_STEPS
        )
        levels.append(MemoryLevels("mem.cache", "cache_bytes_per_s", "local", fixed, knees))
    for pages, cost in (("huge", 1.0), ("small", 1.35)):
        fixed = {"pages": pages}
        metrics += [
            metric("mem.latency", "load_latency_ns", step(n, 3) * (cost if n > 1 << 21 else 1.0),
                   "ns", factors={**fixed, "vector_bytes": n}, better=Better.LOWER, noise=0.02,
                   headline=n == lengths[-1])
            for n in lengths
        ]  # fmt: skip
        knees = tuple(Knee(str(row[0]), 1024, row[1] or lengths[-1], row[3]) for row in CACHE_STEPS)
        levels.append(MemoryLevels("mem.latency", "load_latency_ns", "local", fixed, knees))
    return metrics, tuple(levels)


def cpu_and_stream() -> list[MetricResult]:
    out = []
    for threads, gain in ((1, 1.0), (2, 1.28)):
        own = {"threads": threads}
        out += [
            metric("cpu.pi", "pi_digits_per_s", 112_300 * gain, "per_s", factors=own,
                   headline=True),
            metric("cpu.hash", "hash_bytes_per_s", 1.43e9 * gain, "bytes_per_s", factors=own,
                   headline=True),
        ]  # fmt: skip
    for kernel, rate in (("copy", 11.9e9), ("scale", 11.4e9), ("add", 12.6e9), ("triad", 12.5e9)):
        for kind in ("double", "int"):
            own = {"kernel": kernel, "type": kind, "threads": 2}
            out.append(metric("mem.stream", "stream_bytes_per_s", rate, "bytes_per_s",
                              factors=own, headline=True, noise=0.015))  # fmt: skip
    return out


def disk_and_net() -> tuple[list[MetricResult], dict[Key, tuple[list[float], list[int]]]]:
    metrics, histograms = [], {}
    settings = (("randread", 4096, 1, 4100.0, 0.24e6, 0.25), ("randread", 4096, 32, 14_800.0,
                2.1e6, 0.3), ("randwrite", 4096, 1, 2200.0, 0.45e6, 0.9),
                ("read", 1 << 20, 8, 131.0, 60e6, 0.2))  # fmt: skip
    for number, (operation, size, depth, rate, median_ns, sigma) in enumerate(settings):
        own = {"operation": operation, "record_bytes": size, "queue_depth": depth,
               "engine": "io_uring", "direct": True}  # fmt: skip
        metrics += [
            metric("disk.io", "disk_operations_per_s", rate, "per_s", factors=own, headline=True,
                   noise=0.05, word="variable"),
            metric("disk.io", "disk_bytes_per_s", rate * size, "bytes_per_s", factors=own,
                   headline=True, noise=0.05),
        ]  # fmt: skip
        histograms[("disk.io", "disk_latency_ns", "local", factors_key(own))] = histogram(
            median_ns, sigma, number
        )
        for name, factor in (("p50", 1.0), ("p99", math.exp(2.33 * sigma) * (4 if number == 2
                             else 1))):  # fmt: skip
            metrics.append(metric("disk.io", f"disk_latency_{name}_ns", median_ns * factor, "ns",
                                  factors=own, better=Better.LOWER, noise=0.04))  # fmt: skip
    metrics.append(metric("disk.sync", "sync_latency_p50_ns", 1.12e6, "ns", better=Better.LOWER,
                          headline=True, noise=0.06))  # fmt: skip
    histograms[("disk.sync", "sync_latency_ns", "local", "{}")] = histogram(1.12e6, 0.35, 9, 600)
    metrics += [
        metric("net.loopback", "loopback_bytes_per_s", 4.61e9, "bytes_per_s", headline=True,
               noise=0.02),
        metric("net.loopback", "loopback_round_trip_p50_ns", 17_400, "ns", better=Better.LOWER),
        metric("net.loopback", "loopback_round_trips_per_s", 55_200, "per_s", headline=True),
    ]  # fmt: skip
    histograms[("net.loopback", "loopback_round_trip_ns", "local", "{}")] = histogram(
        17_400, 0.15, 11
    )
    return metrics, histograms


def run_facts() -> RunSummary:
    return RunSummary(
        id="20260314-101500-survey-standard-9f3a",
        plan="survey-standard",
        seed=20260314,
        state="finished",
        started_at="2026-03-14T10:15:00Z",
        finished_at="2026-03-14T10:15:58Z",
        nephoscope="0.1.0",
        probe="0.1.0",
        targets=("local",),
        store="/home/someone/.local/share/nephoscope",
        path="/home/someone/.local/share/nephoscope/measure/runs/20260314-101500-survey-standard-9f3a",
        report=None,
        rounds=TRIALS,
        trials=TrialCounts(130, 3, 1, 11),
        precision=Precision(28, 4, 26, 27),
        budget_s=60,
        spent_s=58.2,
        converged=False,
        not_converged=("disk.io disk_operations_per_s (queue depth 32, random read)",),
        confidence=0.95,
        margin=0.03,
        question="What does this machine deliver, and how steadily?",
    )


def result() -> RunResult:
    """The whole survey."""
    ladder_metrics, levels = ladders()
    disk_metrics, histograms = disk_and_net()
    metrics = [
        metric("sys.fingerprint", "clock_read_ns", 21.4, "ns", better=Better.LOWER, headline=True),
        *gaps(), *cpu_and_stream(), *ladder_metrics, *disk_metrics,
    ]  # fmt: skip
    for cpu in (0, 1):
        key = factors_key({"cpu": cpu, "process": 0})
        histograms[("cpu.gaps", "gap_length_ns", "local", key)] = histogram(
            170_000, 0.8 + 0.5 * cpu, 20 + cpu, 8000
        )
    efficiency = Estimate(0.64, 0.62, 0.66, 0.95, TRIALS, "ratio", "median of paired rounds")
    scaling = tuple(
        ThreadScaling(name, rate, "local", {}, {2: efficiency})
        for name, rate in (("cpu.pi", "pi_digits_per_s"), ("cpu.hash", "hash_bytes_per_s"))
    )
    parts = (MachineFigures(levels, scaling), SchedulerVerdicts(()), executed())
    fingerprints = {"local": fingerprint()}
    series = gap_series()
    trials = TargetTrials(130, 3, 1, ({"steal_ratio": 0.03}, {"steal_ratio": 0.0}), {"io_error": 1})
    return RunResult(
        run=run_facts(),
        metrics=tuple(metrics),
        findings=findings(fingerprints, metrics, {"local": trials}, parts, series),
        invalid=invalid(),
        fingerprints=fingerprints,
        histograms=histograms,
        series=series,
        refused=(
            "disk.sync sync_latency_p999_ns: a two-sided interval of p99.9 needs 3688 operations; "
            "600 were counted.",
        ),
        parts=parts,
    )


def invalid() -> tuple[InvalidTrial, ...]:
    def one(number: int, status: TrialStatus, reason: str) -> InvalidTrial:
        return InvalidTrial(
            f"r{number:04d}-s003-local", "disk.io", "local", {"queue_depth": 32}, status, (reason,)
        )

    return (
        one(2, TrialStatus.INVALID, "The wall clock was stepped by 1.2 s during the trial."),
        one(5, TrialStatus.INVALID, "The wall clock was stepped by 1.2 s during the trial."),
        one(7, TrialStatus.INVALID, "Little's law is broken by 14 %."),
        one(9, TrialStatus.FAILED, "io_error: reading the scratch file failed."),
    )
