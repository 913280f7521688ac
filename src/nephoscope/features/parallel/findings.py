"""Findings on parallel work: one rank that all others wait for."""

from __future__ import annotations

from nephoscope.core.model import Finding, Severity
from nephoscope.features.parallel.records import ParallelWork
from nephoscope.report import wording
from nephoscope.stats.target_evidence import Answers, TargetEvidence

STRAGGLER_SHARE = 0.5
"""A rank that has the longest work in more steps than all others together is the straggler; of two
ranks each has half of the steps already."""


def straggler(case: TargetEvidence) -> Answers:
    """Ranks that decide most steps."""
    work = case.part(ParallelWork)
    for line in work.ranks if work else ():
        share = line.slowest_share
        least = max(STRAGGLER_SHARE, 1.5 / line.ranks)
        if line.target != case.target or share.low is None or share.low <= least:
            continue
        setting = wording.factors_text(line.factors)
        yield Finding(
            "straggler",
            Severity.WARNING,
            f"Rank {line.rank} of {line.ranks} had the longest work in "
            f"{wording.percent(share.value)} of the steps{f' ({setting})' if setting else ''}: "
            "the others wait for it.",
            (f"{share.n} trials; its work takes {wording.estimate_text(line.work)} per step",),
            "Give its host more CPU time or less work, or leave it out.",
        )


RULES = (straggler,)
