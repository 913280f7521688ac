"""Derives findings on a machine: claims in plain sentences with evidence and next step.

Pure: a fingerprint, metrics and what is known of the trials in, findings out. Every rule is a
small function in the table RULES. A fact that is missing makes no claim: the rule says that it
could not check, and all such checks are reported in one finding. Nobody is accused without
evidence: what is a neighbour's doing is said by the rule of attribution.py and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope.analysis import facts
from nephoscope.analysis.case import Case, Series, Trials, Unchecked
from nephoscope.isolation import findings as isolation
from nephoscope.machine import findings as machine
from nephoscope.machine import interference_findings as interference
from nephoscope.machine import measured_findings as measured
from nephoscope.machine import slow_findings as slow
from nephoscope.model import Finding, MetricResult, Severity, TrialRecord, TrialStatus
from nephoscope.simulation import findings as simulation

Rule = Callable[[Case], Iterable[Finding | Unchecked]]

RULES: tuple[Rule, ...] = (
    machine.cpu_names_disagree,
    machine.cpu_models_differ,
    machine.slow_ports,
    machine.cpu_quota,
    machine.cpu_set,
    machine.memory_limit,
    interference.cpu_share,
    interference.long_gaps,
    interference.steal,
    interference.throttling,
    interference.swapping,
    isolation.taken,
    isolation.not_back,
    isolation.false_alarms,
    isolation.kept_apart,
    simulation.unserved,
    simulation.too_busy,
    simulation.beyond_objective,
    simulation.better_than_each,
    simulation.choices,
    simulation.no_saving,
    slow.slow_trials,
    machine.swap_in_use,
    machine.steal_hidden,
    machine.pressure_hidden,
    machine.clock_source,
    machine.clock_cost,
    measured.disk_cached,
    measured.disk_tail,
    measured.io_uring,
    measured.scaling,
    measured.small_cache,
    measured.erratic,
    measured.two_modes,
    measured.not_converged,
    measured.many_invalid,
    machine.vulnerable,
    machine.huge_pages_off,
    machine.siblings,
    machine.microcode_hidden,
    machine.virtualised,
)
"""The order of findings of the same severity."""

_RANK = {Severity.WARNING: 0, Severity.NOTICE: 1, Severity.INFO: 2}


@dataclass(frozen=True, slots=True)
class RecordsSummary:
    """Facts on the trials that the rules use; see `summarise`.

    by_target: target -> its trials. not_converged: names of metrics, as the run lists them.
    """

    by_target: Mapping[str, Trials] = field(default_factory=dict)
    not_converged: tuple[str, ...] = ()


def summarise(records: Iterable[TrialRecord], not_converged: Sequence[str] = ()) -> RecordsSummary:
    """The summary of a run's records. Warm-up rounds (0 and below) do not count."""
    counted: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.key.round > 0:
            counted.setdefault(record.key.target, []).append(record)
    return RecordsSummary(
        {target: _trials(own) for target, own in counted.items()}, tuple(not_converged)
    )


def _trials(records: Sequence[TrialRecord]) -> Trials:
    valid = [record for record in records if record.status is TrialStatus.VALID]
    failures: dict[str, int] = {}
    for record in records:
        if record.status is TrialStatus.FAILED:
            name = record.failure_name or "unnamed failure"
            failures[name] = failures.get(name, 0) + 1
    placed: dict[tuple[str, int], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for record in valid:
        place = (record.benchmark, record.key.round)
        placed.setdefault(place, []).append((dict(record.factors), dict(record.beside)))
    return Trials(
        valid=len(valid),
        invalid=sum(record.status is TrialStatus.INVALID for record in records),
        failed=sum(record.status is TrialStatus.FAILED for record in records),
        # Invalid trials too: what made them invalid is what the reader should hear of.
        beside=tuple(dict(record.beside) for record in records),
        failures=failures,
        placed=placed,
    )


def findings(
    fingerprints: Mapping[str, Any],
    metrics: Sequence[MetricResult],
    records: RecordsSummary | None = None,
    derived: Mapping[str, Any] | None = None,
    series: Series | None = None,
) -> tuple[Finding, ...]:
    """All findings, the gravest first.

    fingerprints: target -> document of sys.fingerprint. records: see `summarise`. derived:
    RunResult.derived (knees, scaling). series: RunResult.series (single gaps with their causes).
    """
    records = records or RecordsSummary()
    names = [metric.target for metric in metrics] + list(fingerprints) + list(records.by_target)
    targets = list(dict.fromkeys(names))
    out: list[Finding] = []
    for target in targets:
        known = fingerprints.get(target)
        case = Case(
            target=target,
            # What a simulated machine does not show is no riddle.
            fingerprint=None if facts.is_simulated(known) else known,
            metrics=tuple(metric for metric in metrics if metric.target == target),
            trials=records.by_target.get(target, Trials()),
            not_converged=records.not_converged,
            derived=derived or {},
            series={key: value for key, value in (series or {}).items() if key[2] == target},
        )
        found = _judge(case)
        if len(targets) > 1:
            found = [replace(one, sentence=f"{target}: {one.sentence}") for one in found]
        out += found
    return tuple(sorted(out, key=lambda finding: _RANK[finding.severity]))


def _judge(case: Case) -> list[Finding]:
    answers = [answer for rule in RULES for answer in rule(case)]
    out = [answer for answer in answers if isinstance(answer, Finding)]
    unchecked = [answer for answer in answers if isinstance(answer, Unchecked)]
    if unchecked:
        out.append(_told_unchecked(unchecked))
    return out


def _told_unchecked(unchecked: Sequence[Unchecked]) -> Finding:
    count = len(unchecked)
    what = "One check was" if count == 1 else f"{count} checks were"
    return Finding(
        "unchecked",
        Severity.INFO,
        f"{what} skipped: the required counters are unavailable on this host.",
        tuple(f"{one.what}: {one.reason}" for one in unchecked),
    )
