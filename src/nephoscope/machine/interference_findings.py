"""Findings on interference: time that the machine took from a program, and who says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median

from nephoscope import units
from nephoscope.analysis import facts
from nephoscope.analysis.case import Case, Unchecked, capped, surely_above, surely_below, told
from nephoscope.model import Finding, MetricResult, Severity

Answers = Iterator[Finding | Unchecked]

_FULL_SHARE = 0.99  # a tick, an interrupt and housekeeping take less than 1 % of a free CPU
_POOR_SHARE = 0.90
_LONG_GAP_NS = 10e6  # a gap that a person at a terminal or a request with a deadline can feel
_NOTABLE_RATIO = 0.01


def cpu_share(case: Case) -> Answers:
    """A busy thread got less than its CPU."""
    poor = [
        metric
        for metric in case.of("cpu.gaps", "cpu_share_ratio")
        if surely_below(metric.estimate, _FULL_SHARE)
    ]
    if not poor:
        return
    worst = min(poor, key=lambda metric: metric.estimate.value)
    very = surely_below(worst.estimate, _POOR_SHARE)
    evidence = [f"{_place(metric)}: {told(metric.estimate)}" for metric in poor]
    yield Finding(
        "cpu_share",
        Severity.WARNING if very else Severity.NOTICE,
        f"A thread that never waits got {told(worst.estimate)} of {_place(worst)}.",
        (*capped(evidence), *_causes(case), *_kernel_account(case, worst)),
        "See the causes: a quota is yours to raise, preemption is other programs of this machine, "
        "steal is the hypervisor's own report; without a cause, compare with another machine.",
    )


def _place(metric: MetricResult) -> str:
    cpu = metric.factors.get("cpu")
    return f"CPU {cpu}" if isinstance(cpu, int) else "its CPU"


def _gaps(case: Case) -> list[tuple[float, str]]:
    """Length and cause of the gaps that were kept one by one."""
    out = []
    for (benchmark, metric, _, key), events in case.series.items():
        if benchmark == "cpu.gaps" and metric == "gap_event_ns":
            cause = str(json.loads(key).get("cause", "unexplained")) if key else "unexplained"
            out += [(float(length), cause) for _, _, length in events]
    return out


def _causes(case: Case) -> list[str]:
    """The time lost, split by the cause that the kernel's counters name."""
    lost: dict[str, float] = {}
    for length, cause in _gaps(case):
        lost[cause] = lost.get(cause, 0.0) + length
    total = sum(lost.values())
    if not total:
        return ["the causes are not known: no gap was kept one by one"]
    parts = sorted(lost.items(), key=lambda item: -item[1])
    split = ", ".join(
        f"{cause} {units.format_value(ns / total, 'ratio', 2)}" for cause, ns in parts
    )
    return [f"causes, by time lost in the gaps that were kept: {split}"]


def _kernel_account(case: Case, share: MetricResult) -> list[str]:
    """Whether the kernel believes that it gave the time that was missing."""
    for metric in case.of("cpu.gaps", "thread_cpu_ratio"):
        if metric.factors == share.factors:
            gap = metric.estimate.value - share.estimate.value
            if gap > _NOTABLE_RATIO:
                return [
                    f"the kernel believes that it gave {told(metric.estimate)}: the rest went "
                    "missing below it"
                ]
    return []


def long_gaps(case: Case) -> Answers:
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
            f"{times} a busy thread got nothing for more than 10 ms; the longest gap was "
            f"{units.format_value(longest, 'ns')} ({cause}).",
            tuple(evidence),
            "Expect such pauses in the latency of what runs here; the timeline shows when.",
        )
        return
    for metric in case.of("cpu.gaps", "gap_longest_ns"):
        if surely_above(metric.estimate, _LONG_GAP_NS):
            yield Finding(
                "long_gaps",
                Severity.NOTICE,
                f"In a typical trial the longest gap on {_place(metric)} was "
                f"{told(metric.estimate)}.",
                ("its causes were not kept",),
                "Expect such pauses in the latency of what runs here.",
            )


def steal(case: Case) -> Answers:
    """The hypervisor itself says that it held CPU time back: for others, or by a cap."""
    readings = case.trials.readings("steal_ratio")
    notable = [reading for reading in readings if reading > _NOTABLE_RATIO]
    boot = facts.number(case.fingerprint, "counters.steal_since_boot_ratio")
    if not notable and not (boot is not None and boot > _NOTABLE_RATIO):
        return
    if notable:
        sentence = (
            f"The hypervisor reported more than 1 % steal in {len(notable)} of {len(readings)} "
            f"trials, up to {units.format_value(max(notable), 'ratio', 2)}: CPU time that this "
            "machine could have used and was not given."
        )
    else:
        sentence = "The hypervisor reported more than 1 % steal since boot, though not meanwhile."
    evidence = [] if not readings else [
        f"median over the trials: {units.format_value(median(readings), 'ratio', 2)}, "
        f"n = {len(readings)}"
    ]  # fmt: skip
    if boot is not None:
        evidence.append(f"since boot: {units.format_value(boot, 'ratio', 2)}, as the kernel counts")
    yield Finding(
        "steal",
        Severity.WARNING if notable else Severity.NOTICE,
        sentence,
        tuple(evidence),
        "Repeat at another hour; if it stays, ask for another host or a type with dedicated CPUs.",
    )


def throttling(case: Case) -> Answers:
    """The kernel stopped the control group for its quota."""
    readings = case.trials.readings("throttled_ratio")
    notable = [reading for reading in readings if reading > _NOTABLE_RATIO]
    if notable:
        yield Finding(
            "throttled",
            Severity.WARNING,
            f"The CPU quota stopped this control group in {len(notable)} of {len(readings)} "
            "trials.",
            (
                "most time stopped, summed over CPUs: "
                f"{units.format_value(max(notable), 'ratio', 2)} of a trial",
            ),
            "The figures are those of the quota and not of the hardware; raise it to see the rest.",
        )


def swapping(case: Case) -> Answers:
    """Pages went to or came from swap during trials."""
    moved = [
        max(values)
        for reading in case.trials.beside
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
            (f"most pages moved in one trial: {max(moved)}",),
            "Free memory and run again: what swaps measures the disk.",
        )
