"""Findings on stored objects: lost, damaged and unreachable ones, and those that came back."""

from __future__ import annotations

from nephoscope.core.model import Finding, Severity
from nephoscope.core.naming import plural
from nephoscope.features.durability.result import Durability, ObjectSet
from nephoscope.features.durability.section import loss_text, set_name
from nephoscope.stats.target_evidence import Answers, TargetEvidence


def lost_objects(case: TargetEvidence) -> Answers:
    """Objects of which the store answers that they do not exist."""
    for entry in _sets(case):
        if entry.lost:
            yield Finding(
                "objects_lost",
                Severity.WARNING,
                f"{_of_all(entry.lost, entry)} of {set_name(entry)} {_are(entry.lost)} lost: the "
                "store answers that they do not exist.",
                _evidence(entry),
                "The notes of the trial name them. See what else may remove objects there "
                "(lifecycle rules, other programs) before you claim a loss.",
            )


def damaged_objects(case: TargetEvidence) -> Answers:
    """Objects that the store returns with other bytes than were written."""
    for entry in _sets(case):
        if entry.damaged:
            yield Finding(
                "objects_damaged",
                Severity.WARNING,
                f"{_of_all(entry.damaged, entry)} of {set_name(entry)} {_are(entry.damaged)} "
                "damaged: the store returns other bytes than were written.",
                _evidence(entry),
                "The notes of the trial name them. Compare a copy with the hash of the ledger; "
                "check the disk, or report it to the provider.",
            )


def unreachable_objects(case: TargetEvidence) -> Answers:
    """Objects without an answer, which says nothing about their durability."""
    for entry in _sets(case):
        if entry.unreachable:
            yield Finding(
                "objects_unreachable",
                Severity.WARNING,
                f"{_of_all(entry.unreachable, entry)} of {set_name(entry)} could not be asked for: "
                "the store gave no answer about them. None of them counts as lost.",
                _evidence(entry),
                "The notes of the trial have the reason. This is a matter of availability; the "
                "next check asks again.",
            )


def returned_objects(case: TargetEvidence) -> Answers:
    """Objects that were lost or damaged in an earlier check."""
    for entry in _sets(case):
        if entry.returned:
            yield Finding(
                "objects_returned",
                Severity.NOTICE,
                f"{plural(entry.returned, 'object')} of {set_name(entry)} that had been lost or "
                f"damaged {_are(entry.returned)} intact again.",
                _evidence(entry),
                "A store that answers so is not consistent in time, or was restored; losses that "
                "return are not counted.",
            )


def _sets(case: TargetEvidence) -> list[ObjectSet]:
    part = case.part(Durability)
    return [entry for entry in part.sets if entry.target == case.target] if part else []


def _of_all(number: int, entry: ObjectSet) -> str:
    return f"{number} of {plural(max(number, entry.objects), 'object')}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _evidence(entry: ObjectSet) -> tuple[str, ...]:
    counts = (
        f"intact {entry.intact}, lost {entry.lost}, damaged {entry.damaged}, "
        f"unreachable {entry.unreachable}"
    )
    return (counts, loss_text(entry))


RULES = (lost_objects, damaged_objects, unreachable_objects, returned_objects)
