"""Findings on duets: commands that slow each other, by threads of one core or in another way."""

from __future__ import annotations

from nephoscope.core.model import Finding, Severity
from nephoscope.features.duet.result import Duets
from nephoscope.features.duet.section import slowdown_text
from nephoscope.stats.target_evidence import Answers, TargetEvidence

LEAST_SLOWDOWN = 1.1
"""A slowdown below it moves a difference between the commands by less than a tenth of it."""


def slowed(case: TargetEvidence) -> Answers:
    """Commands that are slower beside their partner than alone."""
    part = case.part(Duets)
    for duet in part.duets if part else ():
        slowdown = duet.slowdown
        if duet.target != case.target or slowdown is None or slowdown.low is None:
            continue
        if slowdown.low > LEAST_SLOWDOWN:
            yield Finding(
                "duet_slowdown",
                Severity.WARNING,
                f"The commands of the duet slow each other: {slowdown_text(slowdown)}. One that "
                "takes more of what they share, such as memory bandwidth, slows its partner more "
                "than itself, which moves the ratio.",
                (),
                "Confirm the result with the commands alternated: --command instead of --duet.",
            )


def shared_cores(case: TargetEvidence) -> Answers:
    """Commands on threads of the same cores."""
    part = case.part(Duets)
    if any(
        duet.share_cores and duet.target == case.target for duet in (part.duets if part else ())
    ):
        yield Finding(
            "duet_shared_cores",
            Severity.NOTICE,
            "The commands of the duet ran on two threads of each core, because no two whole cores "
            "of one kind were available: they share all parts of the core.",
            (),
            "Let the process use two cores, to compare the commands without that.",
        )


RULES = (slowed, shared_cores)
