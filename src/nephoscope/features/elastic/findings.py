"""Findings on autoscalers: oscillation, caps, and experiments that judge none."""

from __future__ import annotations

from nephoscope.core.model import Finding, Severity
from nephoscope.features.elastic.records import AutoscalerSummary, Elasticity
from nephoscope.report import wording
from nephoscope.stats.target_evidence import Answers, TargetEvidence


def _elasticity(case: TargetEvidence) -> Elasticity | None:
    """The record, for the target that states what concerns the whole run."""
    elastic = case.part(Elasticity)
    return elastic if elastic is not None and elastic.client == case.target else None


def _autoscalers(case: TargetEvidence) -> tuple[AutoscalerSummary, ...]:
    elastic = _elasticity(case)
    return () if elastic is None else elastic.autoscalers


def not_judged(case: TargetEvidence) -> Answers:
    """Experiments that tell nothing about the autoscaler."""
    for summary in _autoscalers(case):
        if summary.problems:
            yield Finding(
                "autoscaler_not_judged",
                Severity.WARNING,
                f"{summary.autoscaler} cannot be judged by this experiment.",
                summary.problems,
                "Mend the cause, and measure again.",
            )


def oscillation(case: TargetEvidence) -> Answers:
    """Autoscalers that go to and fro while the demand does not."""
    elastic = _elasticity(case)
    for summary in _autoscalers(case):
        if not summary.oscillating_rounds or elastic is None:
            continue
        first = next(
            each
            for trial in elastic.trials
            if trial.autoscaler == summary.autoscaler
            for each in trial.oscillations
        )
        yield Finding(
            "autoscaler_oscillates",
            Severity.WARNING,
            f"{summary.autoscaler} oscillates: it changes the number of instances to and fro "
            "without a change of the demand.",
            (
                f"in {summary.oscillating_rounds} of "
                f"{wording.plural(summary.rounds, 'round')}, with a period of "
                f"{first.period_s:.3g} s and {first.reversals} reversals in a row",
            ),
            "Move the bounds of the rule apart, or lengthen its cooldowns.",
        )


def cap(case: TargetEvidence) -> Answers:
    """Autoscalers that wanted more instances than they may have."""
    for summary in _autoscalers(case):
        capped = tuple(note for note in summary.notes if note.startswith("The cap"))
        if capped:
            yield Finding(
                "autoscaler_capped",
                Severity.NOTICE,
                f"{summary.autoscaler} reached its largest number of instances.",
                capped,
                "Raise --max, or take the missing instances for the price of the cap.",
            )


RULES = (not_judged, oscillation, cap)
