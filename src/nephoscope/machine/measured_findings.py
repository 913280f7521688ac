"""Findings that the measurements carry: what the machine does, seen from its trials."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import fmean, median, stdev

from nephoscope import units
from nephoscope.analysis import facts
from nephoscope.analysis.case import (
    Case,
    Unchecked,
    capped,
    line_name,
    surely_below,
    told,
)
from nephoscope.model import Estimate, Finding, Severity

Answers = Iterator[Finding | Unchecked]

_POOR_EFFICIENCY = 0.9
_LONG_TAIL = 10.0
_MANY_INVALID = 0.05
_SMALL_CACHE = 0.5  # lengths double from step to step, so that one step less is no finding


def disk_cached(case: Case) -> Answers:
    """Disk figures that tell of memory, because direct I/O does not work."""
    refused = {name: n for name, n in case.trials.failures.items() if "direct" in name}
    if refused:
        count = sum(refused.values())
        yield Finding(
            "no_direct_io",
            Severity.NOTICE,
            f"Direct I/O does not work here: {count} disk trials could not tell the disk from "
            "memory.",
            tuple(f"{name}: {n} trials" for name, n in sorted(refused.items())),
            "Point the parameter `directory` at a file system on a disk; those in memory "
            "and some overlays refuse.",
        )
    elif any(metric.metric.startswith("cached_") for metric in case.of("disk.io")):
        yield Finding(
            "disk_cached",
            Severity.INFO,
            "Some disk figures tell of the page cache; they are named cached_….",
            ("the file fits into memory, and direct I/O was not asked for",),
            "Set direct, or a file twice as large as memory, to measure the disk.",
        )


def disk_tail(case: Case) -> Answers:
    """The slow hundredth of a disk's operations takes ten times as long as the typical one."""
    lines = [metric for metric in case.metrics if metric.benchmark.startswith("disk.")]
    middles = {
        (m.benchmark, m.metric.replace("_p50_ns", ""), line_name(m).partition(" (")[2]): m
        for m in lines
        if m.metric.endswith("_p50_ns")
    }
    tails = []
    for metric in lines:
        if metric.metric.endswith("_p99_ns"):
            stem = metric.metric.replace("_p99_ns", "")
            middle = middles.get((metric.benchmark, stem, line_name(metric).partition(" (")[2]))
            if middle and metric.estimate.value > _LONG_TAIL * middle.estimate.value > 0:
                tails.append((metric.estimate.value / middle.estimate.value, metric, middle))
    if tails:
        tails.sort(key=lambda tail: -tail[0])
        evidence = [
            f"{line_name(slow)}: {told(slow.estimate)}; p50: {told(middle.estimate)}"
            for _, slow, middle in tails
        ]
        yield Finding(
            "disk_tail",
            Severity.NOTICE,
            "One disk operation in a hundred takes more than ten times as long as the typical one.",
            capped(evidence, 5),
            "Size timeouts by the p99; look for a limit of the volume or a shared disk.",
        )


def io_uring(case: Case) -> Answers:
    """The disk was driven by the fallback, since io_uring is not to be had."""
    fell_back = [m for m in case.of("disk.io") if m.factors.get("engine") == "sync"]
    works = facts.fact(case.fingerprint, "abilities.io_uring")
    if works is not False and not (fell_back and works is None):
        return
    used = " The disk benchmark used ordinary reads and writes in threads." if fell_back else ""
    yield Finding(
        "no_io_uring",
        Severity.NOTICE if fell_back else Severity.INFO,
        f"io_uring is not available here.{used}",
        (facts.reason(case.fingerprint, "abilities.io_uring_entries"),),
        "Many operations in flight cost more CPU time here than where the kernel or the sandbox "
        "allows io_uring.",
    )


def scaling(case: Case) -> Answers:
    """N threads do less than 0.9 N times the work of one."""
    poor: list[tuple[str, int, Estimate]] = []
    for key, by_threads in dict(case.derived.get("scaling") or {}).items():
        if key[2] == case.target:
            poor += [
                (key[0], int(threads), efficiency)
                for threads, efficiency in by_threads.items()
                if surely_below(efficiency, _POOR_EFFICIENCY)
            ]
    if not poor:
        return
    name, threads, efficiency = min(poor, key=lambda item: item[2].value)
    smt = facts.number(case.fingerprint, "topology.threads_per_core")
    evidence = [
        f"{one} on {n} threads: {told(share)}"
        for one, n, share in sorted(poor, key=lambda item: item[:2])
    ]
    why = ["CPUs that are threads of one core share it"] if smt is not None and smt > 1 else []
    yield Finding(
        "scaling",
        Severity.NOTICE,
        f"{threads} threads of {name} do {told(efficiency)} of {threads} times one thread's work.",
        (*capped(evidence), *why),
        "Count on the measured rate and not on the number of CPUs.",
    )


def _levels(key: str) -> str:
    """The factors of a key in words."""
    return ", ".join(f"{name}={level}" for name, level in json.loads(key).items()) or "its defaults"


def small_cache(case: Case) -> Answers:
    """The last-level cache serves less than half of what it is announced to hold."""
    announced = facts.cache_sizes(case.fingerprint)
    for key, knees in dict(case.derived.get("knees") or {}).items():
        if key[0] != "mem.latency" or key[2] != case.target:
            continue
        for knee in knees:
            size = announced.get(knee.level) if knee.level == "L3" else None
            if size and knee.last_length_bytes and knee.last_length_bytes < _SMALL_CACHE * size:
                yield Finding(
                    "small_cache",
                    Severity.NOTICE,
                    f"The {knee.level} cache is announced as {units.format_value(size, 'bytes')}, "
                    "but latency rises beyond "
                    f"{units.format_value(knee.last_length_bytes, 'bytes')}.",
                    (
                        f"measured by mem.latency with {_levels(key[3])}",
                        "it may be shared with others or partitioned",
                    ),
                    "Size working sets by the measured knee.",
                )
                return


def erratic(case: Case) -> Answers:
    """Headline metrics that vary too much from trial to trial to be planned with."""
    headline = [metric for metric in case.metrics if metric.headline]
    wild = [metric for metric in headline if metric.consistency.word == "erratic"]
    if wild:
        wild.sort(key=lambda metric: -(metric.consistency.robust_cv or 0))
        evidence = [
            f"{line_name(m)}: robust CV {units.format_value(m.consistency.robust_cv or 0, 'ratio')}"
            f", n = {m.estimate.n}"
            for m in wild
        ]
        yield Finding(
            "erratic",
            Severity.NOTICE,
            f"{len(wild)} of {len(headline)} headline figures are erratic: they change from trial "
            "to trial.",
            capped(evidence),
            "Plan with the low end of their intervals, and repeat the run at other hours.",
        )


def two_modes(case: Case) -> Answers:
    """Trials that fall into two groups far apart: a hint at two states of the machine."""
    found = []
    for metric in case.metrics:
        split = modes(metric.trial_values) if metric.headline else None
        if split is not None:
            low, high = split
            unit = metric.estimate.unit
            found.append(
                f"{line_name(metric)}: {len(low)} trials around "
                f"{units.format_value(median(low), unit)}, {len(high)} around "
                f"{units.format_value(median(high), unit)}"
            )
    if found:
        yield Finding(
            "two_modes",
            Severity.NOTICE,
            f"The trials of {len(found)} headline figure{'s' if len(found) > 1 else ''} fall into "
            "two groups, as if the machine had two states.",
            capped(found),
            "Look at the trials in order: alternating states hint at placement (CPU, memory node), "
            "one change hints at clock frequency or a burst allowance. Whose doing it was is only "
            "said where counters moved with it.",
        )


def modes(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """The two groups of values on either side of their widest gap, if they lie far apart.

    Far apart: Ashman's D of at least 5 + 50 / n, centres at least 5 % apart, and at least a fifth
    of the values and 3 in each group. At least 10 values. The bound is from simulation: of 8000
    samples with one mode (uniform, normal, log-normal; n from 10 to 30) at most 0.2 % reach it.
    Source of D: Ashman, Bird and Zepf, Astronomical Journal 108 (1994), equation 5.
    """
    ordered = sorted(values)
    fewest = max(3, len(ordered) // 5)
    if len(ordered) < 10:
        return None
    cuts = range(fewest, len(ordered) - fewest + 1)
    cut = max(cuts, key=lambda at: ordered[at] - ordered[at - 1])
    low, high = ordered[:cut], ordered[cut:]
    distance = fmean(high) - fmean(low)
    spread = (stdev(low) ** 2 + stdev(high) ** 2) ** 0.5
    if distance <= 0.05 * abs(median(ordered)):
        return None
    bound = 5 + 50 / len(ordered)
    return (low, high) if 2**0.5 * distance >= bound * spread else None


def not_converged(case: Case) -> Answers:
    """Figures whose interval stayed wider than was asked for."""
    named = [
        line_name(metric)
        for metric in case.metrics
        if any(text.lower().startswith("not converged") for text in metric.warnings)
    ]
    names = named or list(case.not_converged)
    if names:
        yield Finding(
            "not_converged",
            Severity.NOTICE,
            f"{len(names)} figure{'s' if len(names) > 1 else ''} did not become as precise as the "
            "plan asked for before time or repetitions ran out.",
            capped(names),
            "Their intervals are true but wide; give the run a larger budget.",
        )


def many_invalid(case: Case) -> Answers:
    """More than one trial in twenty does not count."""
    trials = case.trials
    lost = trials.invalid + trials.failed
    if trials.total and lost / trials.total > _MANY_INVALID:
        yield Finding(
            "many_invalid",
            Severity.WARNING if lost / trials.total > 0.2 else Severity.NOTICE,
            f"{lost} of {trials.total} trials do not count.",
            (f"invalid {trials.invalid}, failed {trials.failed}",),
            "Their reasons are listed; what disturbs trials will disturb your programs.",
        )
