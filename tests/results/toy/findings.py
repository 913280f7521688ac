"""The findings of the toy capability."""

from __future__ import annotations

from collections.abc import Iterator

from toy.records import Extremes

from nephoscope.core.model import Finding, Severity
from nephoscope.stats.target_evidence import TargetEvidence


def spread(case: TargetEvidence) -> Iterator[Finding]:
    """Yields a finding where values differ."""
    found = case.part(Extremes)
    if found is not None and found.span:
        yield Finding("toy", Severity.INFO, "The values differ.", (f"span: {found.span:g}",))


RULES = (spread,)
