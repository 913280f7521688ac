"""Builds the section on findings, the most severe first."""

from __future__ import annotations

from dataclasses import replace

from nephoscope.core.model import Finding, RunResult, gravest_first
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Item, Items, Section, Sentence


def build(result: RunResult) -> Section:
    """Each finding with its evidence and next step."""
    if not result.findings:
        return Section("findings", "Findings", (Sentence("No anomalies found."),))
    every = ordered(result)
    intro = "Each finding lists its evidence. A cause is stated only where a counter shows it."
    grave = tuple(_item(finding) for finding in every if finding.is_grave)
    minor = tuple(_item(finding) for finding in every if not finding.is_grave)
    title = f"{wording.plural(len(minor), 'finding')} for information" if grave else ""
    lists = [Items(grave)] if grave else []
    lists += [Items(minor, folded=title)] if minor else []
    return Section("findings", "Findings", (Sentence(intro), *lists))


def ordered(result: RunResult) -> list[Finding]:
    """Returns the findings, the gravest first, one of several targets once."""
    return gravest_first(merged(result))


def merged(result: RunResult) -> list[Finding]:
    """Returns the findings in their order, one of several targets once, with all their names."""
    targets = selection.target_names(result)
    if len(targets) < 2:
        return list(result.findings)
    known = set(targets)
    with_colon = [target for target in targets if ": " in target]
    groups: dict[Finding, list[str]] = {}
    for finding in result.findings:
        first = finding.sentence.partition(": ")[0]
        candidates = [first] if first in known else with_colon
        name = next(
            (target for target in candidates if finding.sentence.startswith(f"{target}: ")), ""
        )
        sentence = finding.sentence.removeprefix(f"{name}: ") if name else finding.sentence
        groups.setdefault(replace(finding, sentence=sentence), []).append(name)
    return [
        replace(finding, sentence=f"{wording.named(names)}: {finding.sentence}")
        if names[0]
        else finding
        for finding, names in groups.items()
    ]


def _item(finding: Finding) -> Item:
    return Item(
        wording.clean(finding.sentence),
        finding.severity.value,
        tuple(wording.clean(line) for line in finding.evidence),
        wording.clean(finding.next_step),
    )
