"""What is odd about the machine: the findings, the gravest first."""

from __future__ import annotations

from nephoscope.model import Finding, RunResult, Severity
from nephoscope.report import wording
from nephoscope.report.blocks import Item, Items, Section, Sentence

_RANK = {Severity.WARNING: 0, Severity.NOTICE: 1, Severity.INFO: 2}


def build(result: RunResult) -> Section:
    """Each finding with its evidence and next step."""
    if not result.findings:
        text = "Nothing odd was found among the things that were checked."
        return Section("odd", "What is odd about it", (Sentence(text),))
    ordered = sorted(result.findings, key=lambda finding: _RANK[finding.severity])
    intro = "Each claim with its evidence. A cause is named only where a counter names it."
    items = Items(tuple(_item(finding) for finding in ordered))
    return Section("odd", "What is odd about it", (Sentence(intro), items))


def _item(finding: Finding) -> Item:
    return Item(
        wording.clean(finding.sentence),
        finding.severity.value,
        tuple(wording.clean(line) for line in finding.evidence),
        wording.clean(finding.next_step),
    )
