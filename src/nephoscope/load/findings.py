"""Findings on servers under load: a server that does not keep up with the offered rate."""

from __future__ import annotations

from nephoscope.analysis.target_evidence import Answers, TargetEvidence
from nephoscope.load import sentences
from nephoscope.load.result import Load
from nephoscope.model import Finding, Severity, line_label
from nephoscope.report import wording


def overloaded_servers(case: TargetEvidence) -> Answers:
    """Settings at which requests waited in a queue that grew."""
    load = case.part(Load)
    for line in load.lines if load is not None else ():
        sentence = sentences.overload(line) if line.target == case.target else ""
        if sentence:
            label = line_label(line.benchmark, "", line.factors).strip()
            yield Finding(
                "overloaded_server",
                Severity.WARNING,
                sentence,
                (
                    f"{label}: {wording.plural(line.overloaded_trials, 'trial')} of {line.trials}",
                    sentences.became(line),
                ),
                "Offer a lower rate; `nephoscope capacity` finds the highest one.",
            )


RULES = (overloaded_servers,)
