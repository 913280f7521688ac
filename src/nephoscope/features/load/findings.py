"""Findings on servers under load: a server that does not keep up with the offered rate."""

from __future__ import annotations

from nephoscope.core.model import Finding, Severity
from nephoscope.core.naming import factors_text, plural
from nephoscope.features.load import sentences
from nephoscope.features.load.result import LoadAnalysis
from nephoscope.stats.target_evidence import Answers, TargetEvidence


def overloaded_servers(case: TargetEvidence) -> Answers:
    """Settings at which requests waited in a queue that grew."""
    load = case.part(LoadAnalysis)
    for line in load.lines if load is not None else ():
        sentence = sentences.overload(line) if line.target == case.target else ""
        if sentence:
            levels = f" ({factors_text(line.factors)})" if line.factors else ""
            late = f"{plural(line.overloaded_trials, 'trial')} of {line.trials}"
            yield Finding(
                "overloaded_server",
                Severity.WARNING,
                sentence,
                (f"{line.benchmark}{levels}: {late}", sentences.became(line)),
                "Offer a lower rate; `nephoscope capacity` finds the highest one.",
            )


RULES = (overloaded_servers,)
