"""The findings of the toy feature."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core.model import Finding, Severity
from nephoscope.stats.target_evidence import TargetEvidence
from toy.records import Extremes


def spread(case: TargetEvidence) -> Iterator[Finding]:
    """Yields a finding where values differ."""
    record = case.part(Extremes)
    if record is not None and record.span:
        yield Finding("toy", Severity.INFO, "The values differ.", (f"span: {record.span:g}",))


RULES = (spread,)
