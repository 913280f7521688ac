"""Builds the section on findings, the most severe first."""

from __future__ import annotations

from nephoscope.model import Finding, RunResult, Severity
from nephoscope.report import wording
from nephoscope.report.blocks import Item, Items, Section, Sentence

_RANK = {Severity.WARNING: 0, Severity.NOTICE: 1, Severity.INFO: 2}


def build(result: RunResult) -> Section:
    """Each finding with its evidence and next step."""
    if not result.findings:
        text = "No anomalies found."
        return Section("findings", "Findings", (Sentence(text),))
    ordered = sorted(result.findings, key=lambda finding: _RANK[finding.severity])
    intro = "Each finding lists its evidence. A cause is stated only where a counter shows it."
    items = Items(tuple(_item(finding) for finding in ordered))
    return Section("findings", "Findings", (Sentence(intro), items))


def _item(finding: Finding) -> Item:
    return Item(
        wording.clean(finding.sentence),
        finding.severity.value,
        tuple(wording.clean(line) for line in finding.evidence),
        wording.clean(finding.next_step),
    )
