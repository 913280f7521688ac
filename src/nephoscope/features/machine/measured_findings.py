"""Findings that the measurements carry: what the machine does, seen from its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median, stdev

from nephoscope.catalog import SIMULATED, instruments
from nephoscope.core import units
from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import Consistency, Estimate, Finding, Severity, factors_key
from nephoscope.core.naming import factors_text, full_name, plural
from nephoscope.results import names
from nephoscope.results.machine_figures import MachineFigures, ThreadScaling
from nephoscope.stats import facts
from nephoscope.stats.target_evidence import (
    Answers,
    TargetEvidence,
    is_below,
    limit_lines,
)

_POOR_EFFICIENCY = 0.9
_QUOTA_PERIOD_NS = 100e6
_CPU_BOUND = ("cpu.", "mem.")
_LONG_TAIL = 10.0
_MANY_INVALID = 0.05
_SMALL_CACHE = 0.5  # lengths double from step to step, so that one step less is no finding


def disk_cached(case: TargetEvidence) -> Answers:
    """Disk figures that tell of memory, because direct I/O does not work."""
    refused = {name: n for name, n in case.trials.failures.items() if "direct" in name}
    if refused:
        count = sum(refused.values())
        yield Finding(
            "no_direct_io",
            Severity.NOTICE,
            f"Direct I/O is unsupported here; {count} disk trials could not separate disk from "
            "page cache.",
            tuple(f"{name}: {n} trials" for name, n in sorted(refused.items())),
            "Set the parameter `directory` to a file system on a disk; tmpfs and some overlays "
            "do not support direct I/O.",
        )
    elif any(metric.metric.startswith("cached_") for metric in case.of(instruments.DISK_IO)):
        yield Finding(
            "disk_cached",
            Severity.INFO,
            "Some disk results measure the page cache; their names begin with cached_.",
            ("the file fits into memory, and direct I/O was not requested",),
            "Set `direct`, or use a file twice the size of memory, to measure the disk.",
        )


def disk_tail(case: TargetEvidence) -> Answers:
    """The slow hundredth of a disk's operations takes ten times as long as the typical one."""
    lines = [metric for metric in case.metrics if metric.benchmark.startswith("disk.")]
    middles = {
        (m.benchmark, m.metric.replace("_p50_ns", ""), factors_key(m.factors)): m
        for m in lines
        if m.metric.endswith("_p50_ns")
    }
    tails = []
    for metric in lines:
        if metric.metric.endswith("_p99_ns"):
            stem = metric.metric.replace("_p99_ns", "")
            middle = middles.get((metric.benchmark, stem, factors_key(metric.factors)))
            if middle and metric.estimate.value > _LONG_TAIL * middle.estimate.value > 0:
                tails.append((metric.estimate.value / middle.estimate.value, metric, middle))
    if tails:
        tails.sort(key=lambda tail: -tail[0])
        evidence = [
            f"{case.name_of(slow)}: {estimate_text(slow.estimate)}; "
            f"p50: {estimate_text(middle.estimate)}"
            for _, slow, middle in tails
        ]
        yield Finding(
            "disk_tail",
            Severity.NOTICE,
            "Disk latency has a long tail: p99 is more than ten times the median.",
            limit_lines(evidence, 5),
            "Size timeouts by the p99; check for a volume limit or a shared disk.",
        )


def io_uring(case: TargetEvidence) -> Answers:
    """The disk was driven by the fallback, since io_uring is not to be had."""
    fell_back = [m for m in case.of(instruments.DISK_IO) if m.factors.get("engine") == "sync"]
    works = facts.fact(case.fingerprint, "abilities.io_uring")
    if works is not False and not (fell_back and works is None):
        return
    used = " The disk benchmark used blocking reads and writes in threads." if fell_back else ""
    yield Finding(
        "no_io_uring",
        Severity.NOTICE if fell_back else Severity.INFO,
        f"io_uring is unavailable.{used}",
        (facts.reason(case.fingerprint, "abilities.io_uring_entries"),),
        "Concurrent I/O costs more CPU time than with io_uring; enable it in the kernel or "
        "the sandbox.",
    )


def scaling(case: TargetEvidence) -> Answers:
    """N threads do less than 0.9 N times the work of one."""
    poor: list[tuple[ThreadScaling, int, Estimate]] = []
    for curve in _figures(case).scaling:
        if curve.target == case.target:
            poor += [
                (curve, threads, efficiency)
                for threads, efficiency in curve.efficiency.items()
                if is_below(efficiency, _POOR_EFFICIENCY)
            ]
    if not poor:
        return
    worst, threads, _ = min(poor, key=lambda item: item[2].value)
    smt = facts.number(case.fingerprint, "topology.threads_per_core")
    evidence = [
        f"{curve.name} on {n} threads: {estimate_text(share)}"
        for curve, n, share in sorted(poor, key=lambda item: (item[0].name, item[1]))
    ]
    why = ["hardware threads of one core share its units"] if smt is not None and smt > 1 else []
    yield Finding(
        "scaling",
        Severity.NOTICE,
        worst.sentence(threads),
        (*limit_lines(evidence), *why),
        "Plan capacity with the measured rate, not with the number of CPUs.",
    )


def _figures(case: TargetEvidence) -> MachineFigures:
    return case.part(MachineFigures) or MachineFigures()


def short_trials(case: TargetEvidence) -> Answers:
    """Trials under a CPU quota that end before the quota's period does."""
    quota = facts.number(case.fingerprint, "limits.cpu_quota_cpus")
    allowed = facts.items(case.fingerprint, "topology.allowed_cpus")
    if quota is None or (allowed is not None and quota >= len(allowed)):
        return
    durations: dict[str, list[float]] = {}
    for (benchmark, _), trials in case.trials.placed.items():
        if benchmark.startswith(_CPU_BOUND):
            durations.setdefault(benchmark, []).extend(
                float(reading["elapsed_ns"]) for _, reading in trials if reading.get("elapsed_ns")
            )
    brief = [
        f"{benchmark}: {units.format_value(median(known), 'ns')} (median of {len(known)} trials)"
        for benchmark, known in durations.items()
        if known and median(known) < _QUOTA_PERIOD_NS
    ]
    if brief:
        yield Finding(
            "short_trials",
            Severity.WARNING,
            f"Trials of {len(brief)} benchmark{'s' if len(brief) > 1 else ''} are shorter than the "
            "100 ms after which a CPU quota is refilled by default, so their rates are not the "
            "quota's: a trial that the quota did not stop runs at full speed.",
            limit_lines(brief),
            "Give the benchmark more work per trial with `--set`, so that a trial lasts seconds.",
        )


def small_cache(case: TargetEvidence) -> Answers:
    """The last-level cache serves less than half of what it is announced to hold."""
    announced = facts.cache_sizes(case.fingerprint)
    for ladder in _figures(case).memory_levels:
        if ladder.benchmark != instruments.MEM_LATENCY or ladder.target != case.target:
            continue
        levels = factors_text(ladder.factors)
        for knee in ladder.knees:
            size = announced.get(knee.level) if knee.level == "L3" else None
            if size and knee.last_length_bytes and knee.last_length_bytes < _SMALL_CACHE * size:
                yield Finding(
                    "small_cache",
                    Severity.NOTICE,
                    f"The machine reports {units.format_value(size, 'bytes')} of {knee.level} "
                    "cache, but latency rises beyond "
                    f"{units.format_value(knee.last_length_bytes, 'bytes')}.",
                    (
                        f"measured by mem.latency with {levels or 'its defaults'}",
                        "the cache may be shared or partitioned",
                    ),
                    "Size working sets by the measured capacity.",
                )
                return


def erratic(case: TargetEvidence) -> Answers:
    """Headline metrics that vary too much from trial to trial to be planned with."""
    headline = [metric for metric in case.metrics if metric.headline]
    wild = [metric for metric in headline if _is_erratic(metric.consistency)]
    if wild:
        wild.sort(key=lambda metric: -(metric.consistency.robust_cv or 0))
        evidence = [
            f"{case.name_of(m)}: robust CV "
            f"{units.format_value(m.consistency.robust_cv or 0, 'ratio')}, n = {m.estimate.n}"
            for m in wild
        ]
        yield Finding(
            "erratic",
            Severity.NOTICE,
            f"{len(wild)} of {len(headline)} headline results are erratic (coefficient of "
            "variation above 10 %).",
            limit_lines(evidence),
            "Plan with the lower end of their intervals, and repeat the run at other hours.",
        )


def _is_erratic(consistency: Consistency) -> bool:
    return consistency.word == "erratic" and consistency.certain


def two_modes(case: TargetEvidence) -> Answers:
    """Trials that fall into two groups far apart: a hint at two states of the machine."""
    bimodal = []
    for metric in case.metrics:
        split = modes(metric.trial_values) if metric.headline else None
        if split is not None:
            low, high = split
            unit = metric.estimate.unit
            bimodal.append(
                f"{case.name_of(metric)}: {len(low)} trials around "
                f"{units.format_value(median(low), unit)}, {len(high)} around "
                f"{units.format_value(median(high), unit)}"
            )
    if bimodal:
        yield Finding(
            "two_modes",
            Severity.NOTICE,
            f"{len(bimodal)} headline result{('s have' if len(bimodal) > 1 else ' has')} a bimodal "
            "distribution over trials, as if the machine had two states.",
            limit_lines(bimodal),
            "Inspect the trials in order: alternating values suggest placement (CPU, NUMA "
            "node), a single change suggests clock frequency or burst credits.",
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


def not_converged(case: TargetEvidence) -> Answers:
    """Reports headline metrics that did not reach the precision that the plan asked for."""
    settings = Counter(
        (metric.benchmark, metric.metric) for metric in case.metrics if metric.headline
    )
    wide = Counter(
        (metric.benchmark, metric.metric)
        for metric in case.metrics
        if metric.headline and any(text.startswith(names.NOT_CONVERGED) for text in metric.warnings)
    )
    if not wide:
        return
    yield Finding(
        "not_converged",
        Severity.INFO,
        f"{wide.total()} of {plural(settings.total(), 'headline result')} missed the requested "
        "precision.",
        limit_lines(
            [
                full_name(benchmark, name) + (f": {count} of {of} settings" if of > 1 else "")
                for (benchmark, name), count in wide.items()
                if (of := settings[benchmark, name])
            ]
        ),
        "For narrower intervals, increase "
        f"`{'--replications' if all(map(_is_simulated, wide)) else '--budget'}`.",
    )


def _is_simulated(line: tuple[str, str]) -> bool:
    benchmark, _ = line
    return benchmark.startswith(SIMULATED)


def many_invalid(case: TargetEvidence) -> Answers:
    """More than one trial in twenty does not count."""
    trials = case.trials
    lost = trials.invalid + trials.failed
    if trials.total and lost / trials.total > _MANY_INVALID:
        yield Finding(
            "many_invalid",
            Severity.WARNING if lost / trials.total > 0.2 else Severity.NOTICE,
            f"{lost} of {plural(trials.total, 'trial')} {'was' if lost == 1 else 'were'} excluded.",
            (f"invalid {trials.invalid}, failed {trials.failed}",),
            "See the reasons under Excluded trials; the same disturbances will affect your "
            "programs.",
        )


RULES = (
    disk_cached,
    disk_tail,
    io_uring,
    scaling,
    short_trials,
    small_cache,
    erratic,
    two_modes,
    not_converged,
    many_invalid,
)
