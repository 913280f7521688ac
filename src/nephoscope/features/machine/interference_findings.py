"""Findings on interference: time that the machine took from a program, and who says why."""

from __future__ import annotations

import json

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import BUSY_MACHINE, Finding, MetricResult, Severity
from nephoscope.stats import facts
from nephoscope.stats.target_evidence import (
    Answers,
    TargetEvidence,
    is_above,
    is_below,
    limit_lines,
)

_FULL_SHARE = 0.99  # a tick, an interrupt and housekeeping take less than 1 % of a free CPU
_POOR_SHARE = 0.90
_LONG_GAP_NS = 10e6  # a gap that a person at a terminal or a request with a deadline can feel
_NOTABLE_RATIO = 0.01
_BUSY_CPUS = 0.1  # on an idle machine the other programs take 0.01 to 0.05 CPUs


def busy_machine(case: TargetEvidence) -> Answers:
    """Other programs of this machine ran during the trials: its results are what they left."""
    used = case.trials.over_time("others_busy_cpus", "cpus")
    if used is not None and used.low is not None and used.low > _BUSY_CPUS:
        yield Finding(
            BUSY_MACHINE,
            Severity.WARNING,
            f"Measured on a busy machine: other programs used {estimate_text(used)} during the "
            "trials, so these results show what they left of it.",
            ("CPU time of other programs over the duration of the trials that show it, n trials",),
            "Stop the other programs (`nephoscope scheduler` names them) and repeat the run, or "
            "read the results as those of a machine in use.",
        )


def cpu_share(case: TargetEvidence) -> Answers:
    """A busy thread got less than its CPU."""
    poor = [
        metric
        for metric in case.of(instruments.CPU_GAPS, "cpu_share_ratio")
        if is_below(metric.estimate, _FULL_SHARE)
    ]
    if not poor:
        return
    worst = min(poor, key=lambda metric: metric.estimate.value)
    very = is_below(worst.estimate, _POOR_SHARE)
    evidence = [f"{_place(metric)}: {estimate_text(metric.estimate)}" for metric in poor]
    yield Finding(
        "cpu_share",
        Severity.WARNING if very else Severity.NOTICE,
        f"A busy thread obtained {estimate_text(worst.estimate)} of {_place(worst)}.",
        (*limit_lines(evidence), *_causes(case), *_kernel_account(case, worst)),
        "Check the causes: raise a quota; stop other programs (preemption); ask the "
        "provider about steal time. Without a cause, compare with another machine.",
    )


def _place(metric: MetricResult) -> str:
    cpu = metric.factors.get("cpu")
    return f"CPU {cpu}" if isinstance(cpu, int) else "its CPU"


def _gaps(case: TargetEvidence) -> list[tuple[float, str]]:
    """Length and cause of the gaps that were kept one by one."""
    out = []
    for (benchmark, metric, _, key), events in case.series.items():
        if benchmark == instruments.CPU_GAPS and metric == "gap_event_ns":
            cause = str(json.loads(key).get("cause", "unexplained")) if key else "unexplained"
            out += [(float(length), cause) for _, _, length in events]
    return out


def _causes(case: TargetEvidence) -> list[str]:
    """The time lost, split by the cause that the kernel's counters name."""
    lost: dict[str, float] = {}
    for length, cause in _gaps(case):
        lost[cause] = lost.get(cause, 0.0) + length
    total = sum(lost.values())
    if not total:
        return ["causes unknown: no single gaps were recorded"]
    parts = sorted(lost.items(), key=lambda item: -item[1])
    split = ", ".join(
        f"{cause} {units.format_value(ns / total, 'ratio', 2)}" for cause, ns in parts
    )
    return [f"causes by lost time, in recorded gaps: {split}"]


def _kernel_account(case: TargetEvidence, share: MetricResult) -> list[str]:
    """Returns whether the kernel believes that it gave the time that was missing."""
    for metric in case.of(instruments.CPU_GAPS, "thread_cpu_ratio"):
        if metric.factors == share.factors:
            gap = metric.estimate.value - share.estimate.value
            if gap > _NOTABLE_RATIO:
                return [
                    f"the kernel accounted {estimate_text(metric.estimate)} to the thread; the "
                    "rest was lost below the kernel"
                ]
    return []


def long_gaps(case: TargetEvidence) -> Answers:
    """Moments in which a busy thread got nothing for longer than 10 ms."""
    gaps = [(length, cause) for length, cause in _gaps(case) if length > _LONG_GAP_NS]
    if gaps:
        longest, cause = max(gaps)
        by_cause = {name: [ns for ns, why in gaps if why == name] for name in {c for _, c in gaps}}
        evidence = [
            f"{name}: {len(own)}, the longest {units.format_value(max(own), 'ns')}"
            for name, own in sorted(by_cause.items(), key=lambda item: -len(item[1]))
        ]
        times = "Once" if len(gaps) == 1 else f"{len(gaps)} times"
        yield Finding(
            "long_gaps",
            Severity.NOTICE,
            f"{times.capitalize()}, a busy thread lost its CPU for more than 10 ms; the longest "
            f"gap was {units.format_value(longest, 'ns')} ({cause}).",
            tuple(evidence),
            "Expect pauses of this length in the latency of your programs; the timeline shows "
            "when they occurred.",
        )
        return
    for metric in case.of(instruments.CPU_GAPS, "gap_longest_ns"):
        if is_above(metric.estimate, _LONG_GAP_NS):
            yield Finding(
                "long_gaps",
                Severity.NOTICE,
                f"In a typical trial the longest scheduling gap on {_place(metric)} was "
                f"{estimate_text(metric.estimate)}.",
                ("causes not recorded",),
                "Expect pauses of this length in the latency of your programs.",
            )


def steal(case: TargetEvidence) -> Answers:
    """The hypervisor itself says that it held CPU time back: for others, or by a cap."""
    during = case.trials.over_time("steal_ratio", "ratio")
    boot = facts.number(case.fingerprint, "counters.steal_since_boot_ratio")
    notable = during is not None and during.low is not None and during.low > _NOTABLE_RATIO
    if not notable and not (boot is not None and boot > _NOTABLE_RATIO):
        return
    observed = "unknown" if during is None else estimate_text(during)
    if notable:
        sentence = f"The hypervisor reported {observed} steal time over all trials of the run."
    else:
        since = units.format_value(boot or 0.0, "ratio", 2)
        sentence = (
            f"The hypervisor reported {since} steal time since boot; during the run: {observed}."
        )
    evidence = [] if boot is None else [
        f"since boot: {units.format_value(boot, 'ratio', 2)} (/proc/stat)"
    ]  # fmt: skip
    yield Finding(
        "steal",
        Severity.WARNING if notable else Severity.NOTICE,
        sentence,
        ("steal time of all trials over their duration", *evidence),
        "Repeat at another hour; if it persists, request another host or an instance type "
        "with dedicated CPUs.",
    )


def throttling(case: TargetEvidence) -> Answers:
    """The kernel stopped the control group for its quota."""
    readings = case.trials.readings("throttled_ratio")
    throttled = [
        reading for reading in readings if reading > 0
    ]  # as measure/runs/trials/validity.py
    if throttled:
        yield Finding(
            "throttled",
            Severity.WARNING,
            f"The cgroup CPU quota throttled {len(throttled)} of {len(readings)} trials.",
            (
                (
                    "maximum throttled time, summed over CPUs: "
                    f"{units.format_value(max(throttled), 'ratio', 2)} of a trial"
                ),
            ),
            "These results show the quota, not the hardware; raise the quota to measure the "
            "hardware.",
        )


def swapping(case: TargetEvidence) -> Answers:
    """Pages went to or came from swap during trials."""
    moved = [
        max(values)
        for reading in case.trials.counters
        if (
            values := [
                count
                for name in ("swap_in_count", "swap_out_count")
                if isinstance(count := reading.get(name), int) and count > 0
            ]
        )
    ]
    if moved:
        yield Finding(
            "swapping",
            Severity.WARNING,
            f"The machine swapped during {len(moved)} of {case.trials.total} trials.",
            (f"maximum pages swapped in one trial: {max(moved)}",),
            "Free memory and repeat the run; trials that swap measure the disk.",
        )


RULES = (busy_machine, cpu_share, long_gaps, steal, throttling, swapping)
