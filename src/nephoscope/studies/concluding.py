"""What a study concluded from several of its figures, held against all of ours together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.studies.comparing import Outcome
from nephoscope.studies.records import Conclusion, Study
from nephoscope.studies.rules import Mark


@dataclass(frozen=True, slots=True)
class Concluded:
    """A conclusion: mark, sentence, and the comparisons that it rests on (None: not measured)."""

    id: str
    claim: str
    mark: Mark
    sentence: str
    evidence: tuple[tuple[str, Outcome | None], ...]

    def to_json(self) -> dict[str, Any]:
        """The object of `study show --json`."""
        return {
            "id": self.id,
            "claim": self.claim,
            "mark": self.mark.value,
            "sentence": self.sentence,
            "evidence": [
                {"comparison": name, "mark": outcome.mark.value if outcome else None}
                for name, outcome in self.evidence
            ],
        }


def conclude(study: Study, outcomes: Sequence[Outcome]) -> list[Concluded]:
    """Every conclusion of which something was measured."""
    known = {f"{one.part}/{one.id}": one for one in outcomes}
    return [_concluded(one, known) for one in study.conclusions if known.keys() & set(one.of)]


def _concluded(conclusion: Conclusion, known: Mapping[str, Outcome]) -> Concluded:
    evidence = tuple((name, known.get(name)) for name in conclusion.of)
    marks = [outcome.mark if outcome else None for _, outcome in evidence]
    against = [name for name, one in evidence if one and one.mark is Mark.CONTRADICTED]
    unknown = [name for name, one in evidence if one is None or one.mark is Mark.NOT_COMPARABLE]
    if against:
        mark = Mark.CONTRADICTED
        reason = f"{len(against)} of {len(marks)} figures contradict it: {', '.join(against)}"
    elif unknown:
        mark = Mark.NOT_COMPARABLE
        reason = f"{len(unknown)} of {len(marks)} figures say nothing: {', '.join(unknown)}"
    else:
        mark, reason = Mark.IN_KIND, f"all {len(marks)} figures that it rests on are reproduced"
    sentence = f"{reason[0].upper()}{reason[1:]}. {conclusion.why}"
    return Concluded(conclusion.id, conclusion.claim, mark, sentence, evidence)
