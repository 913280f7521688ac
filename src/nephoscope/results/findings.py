"""Judges a run: claims in plain sentences, each with its evidence and a next step.

Pure: fingerprints, metrics, trials and the records of features in, findings out. Every rule is
a small function of its feature. A fact that is missing makes no claim: the rule says
that it could not check, and all such checks are stated together in one finding. Nobody is accused
without evidence: only the rule of attribution.py blames a neighbour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nephoscope.core.grouping import group_by
from nephoscope.core.model import (
    Finding,
    MetricResult,
    Severity,
    TrialRecord,
    TrialStatus,
    gravest_first,
)
from nephoscope.results.feature import contributing, load
from nephoscope.stats import facts
from nephoscope.stats.target_evidence import Series, TargetEvidence, TargetTrials, Unchecked

Rule = Callable[[TargetEvidence], Iterable[Finding | Unchecked]]


def summarise(records: Iterable[TrialRecord]) -> dict[str, TargetTrials]:
    """Target -> the facts on its trials that rules use, without warm-up rounds (0 and below)."""
    counted = (record for record in records if record.key.round > 0)
    by_target = group_by(counted, lambda record: record.key.target)
    return {target: _trials(own) for target, own in by_target.items()}


def _trials(records: Sequence[TrialRecord]) -> TargetTrials:
    valid = [record for record in records if record.status is TrialStatus.VALID]
    failed = [record for record in records if record.status is TrialStatus.FAILED]
    by_place = group_by(valid, lambda record: (record.benchmark, record.key.round))
    return TargetTrials(
        valid=len(valid),
        invalid=sum(record.status is TrialStatus.INVALID for record in records),
        failed=len(failed),
        # Invalid trials too: what made them invalid is what the reader should hear of.
        counters=tuple(dict(record.counters) for record in records),
        failures=Counter(record.failure_name or "unnamed failure" for record in failed),
        placed={
            place: [(dict(record.factors), dict(record.counters)) for record in own]
            for place, own in by_place.items()
        },
    )


def findings(
    fingerprints: Mapping[str, Any],
    metrics: Sequence[MetricResult],
    trials: Mapping[str, TargetTrials] | None = None,
    parts: tuple[Any, ...] = (),
    series: Series | None = None,
) -> tuple[Finding, ...]:
    """All findings, the gravest first.

    fingerprints: target -> document of sys.fingerprint. trials: see `summarise`. parts:
    RunResult.parts. series: RunResult.series (single gaps with their causes).
    """
    trials = trials or {}
    names = [metric.target for metric in metrics] + list(fingerprints) + list(trials)
    targets = list(dict.fromkeys(names))
    rules = rules_of(parts)
    out: list[Finding] = []
    for target in targets:
        known = fingerprints.get(target)
        own = trials.get(target, TargetTrials())
        case = TargetEvidence(
            target=target,
            # What a simulated machine does not show is no riddle, and what a machine is concerns
            # nobody before anything was measured on it.
            fingerprint=known if facts.is_machine(known) and not _has_failed(own) else None,
            metrics=tuple(metric for metric in metrics if metric.target == target),
            trials=own,
            parts=parts,
            series={key: value for key, value in (series or {}).items() if key[2] == target},
        )
        judged = _judge(case, rules)
        if len(targets) > 1:
            judged = [
                replace(finding, sentence=f"{target}: {finding.sentence}") for finding in judged
            ]
        out += judged
    return tuple(gravest_first(out))


def _has_failed(trials: TargetTrials) -> bool:
    """Returns whether a target has trials, of which none counts."""
    return not trials.valid and trials.invalid + trials.failed > 0


def rules_of(parts: tuple[Any, ...]) -> list[Rule]:
    """Returns the rules of the features of these records, in the order of findings of the same
    severity."""
    groups = [group for entry, _ in contributing(parts) for group in entry.findings]
    return [rule for group in groups for rule in load(group)]


def _judge(case: TargetEvidence, rules: Sequence[Rule]) -> list[Finding]:
    answers = [answer for rule in rules for answer in rule(case)]
    out = [answer for answer in answers if isinstance(answer, Finding)]
    unchecked = [answer for answer in answers if isinstance(answer, Unchecked)]
    if unchecked and not _has_failed(case.trials):
        what = "One check was" if len(unchecked) == 1 else f"{len(unchecked)} checks were"
        sentence = f"{what} skipped: the required counters are unavailable on this host."
        reasons = tuple(
            f"{unchecked_value.what}: {unchecked_value.reason}" for unchecked_value in unchecked
        )
        out.append(Finding("unchecked", Severity.INFO, sentence, reasons))
    return out
