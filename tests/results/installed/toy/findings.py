"""The findings of the toy feature."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core.model import Finding, Severity
from nephoscope.stats.target_evidence import TargetEvidence
from toy.records import Extremes


def spread(case: TargetEvidence) -> Iterator[Finding]:
    """Yields a finding where values differ."""
    found = case.part(Extremes)
    if found is not None and found.span:
        yield Finding("toy", Severity.INFO, "The values differ.", (f"span: {found.span:g}",))


RULES = (spread,)
