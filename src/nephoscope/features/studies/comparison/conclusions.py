"""Judges a study's conclusions, each of which rests on several comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.core.records import dataclass
from nephoscope.features.studies.comparison.rules import Mark
from nephoscope.features.studies.comparison.side_by_side import ComparisonOutcome
from nephoscope.features.studies.definition.study import Conclusion, Study


@dataclass(frozen=True, slots=True)
class ConclusionOutcome:
    """A conclusion with its mark. evidence: comparison -> its mark (None: not measured)."""

    id: str
    claim: str
    mark: Mark
    sentence: str
    evidence: Mapping[str, Mark | None]


def conclude(study: Study, outcomes: Sequence[ComparisonOutcome]) -> list[ConclusionOutcome]:
    """Returns every conclusion of which at least one comparison was measured."""
    marks = {outcome.name: outcome.mark for outcome in outcomes}
    return [
        _judge(conclusion, marks)
        for conclusion in study.conclusions
        if marks.keys() & set(conclusion.comparisons)
    ]


def _judge(conclusion: Conclusion, marks: Mapping[str, Mark]) -> ConclusionOutcome:
    evidence = {name: marks.get(name) for name in conclusion.comparisons}
    against = [name for name, mark in evidence.items() if mark is Mark.CONTRADICTED]
    unknown = [name for name, mark in evidence.items() if mark in (None, Mark.NOT_COMPARABLE)]
    circular = [name for name, mark in evidence.items() if mark in (Mark.FITTED, Mark.SET)]
    n = len(evidence)
    if against:
        mark = Mark.CONTRADICTED
        reason = f"{len(against)} of {n} figures contradict it: {', '.join(against)}"
    elif unknown:
        mark = Mark.NOT_COMPARABLE
        reason = f"{len(unknown)} of {n} figures are not comparable: {', '.join(unknown)}"
    elif circular:
        mark = Mark.NOT_COMPARABLE
        reason = f"{len(circular)} of {n} figures are fitted or set here: {', '.join(circular)}"
    else:
        mark, reason = Mark.IN_KIND, f"All {n} figures on which it rests are reproduced"
    return ConclusionOutcome(
        conclusion.id, conclusion.claim, mark, f"{reason}. {conclusion.why}", evidence
    )
