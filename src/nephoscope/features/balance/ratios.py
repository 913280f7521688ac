"""Which balancer delivers more: throughputs of two alternatives in the same rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, TrialRecord, TrialStatus
from nephoscope.features.balance.plan import DIRECT
from nephoscope.features.balance.records import ThroughputRatio
from nephoscope.features.balance.trials import BalancedTrial
from nephoscope.stats import compare, facts

_WORDS = {
    "better": "more requests per second than",
    "worse": "fewer requests per second than",
    "equivalent": "as many requests per second as",
    "different but negligible": "as many requests per second as",
}

BUSY_CPUS = 0.2
"""CPUs that other programs used on average from which a note says so."""


def throughput_ratios(
    trials: Sequence[BalancedTrial], confidence: float
) -> tuple[ThroughputRatio, ...]:
    """Returns every two alternatives at each load, corrected over all comparisons (Holm)."""
    ratios = list(_ratios(trials, confidence))
    corrected = compare.over_report([ratio.comparison for ratio in ratios], confidence=confidence)
    return tuple(
        replace(ratio, comparison=comparison)
        for ratio, comparison in zip(ratios, corrected, strict=True)
    )


def _ratios(trials: Sequence[BalancedTrial], confidence: float) -> Iterator[ThroughputRatio]:
    closed = group_by(
        (trial for trial in trials if trial.is_closed),
        lambda trial: (trial.generators, trial.connections),
    )
    for (generators, connections), own in sorted(closed.items()):
        by_name = group_by(own, lambda trial: trial.balancer)
        for reference, name in combinations(sorted(by_name, key=lambda n: (n != DIRECT, n)), 2):
            first, second = (
                {trial.round: trial.sum("requests_per_s") for trial in by_name[name]}
                for name in (reference, name)
            )
            sides = compare.common_rounds(first, second)
            if not sides[0].size:
                continue
            comparison = compare.paired(
                *sides,
                better=Better.HIGHER,
                unit="per_s",
                confidence=confidence,
                names=(reference, name),
            )
            yield ThroughputRatio(name, reference, generators, connections, comparison)


def verdicts(ratios: Sequence[ThroughputRatio]) -> list[str]:
    """Returns a sentence for each two alternatives: at which loads which one delivers more."""
    pairs = group_by(ratios, lambda ratio: (ratio.balancer, ratio.reference))
    return [_verdict(name, reference, own) for (name, reference), own in pairs.items()]


def _verdict(name: str, reference: str, ratios: Sequence[ThroughputRatio]) -> str:
    by_word = group_by(ratios, lambda ratio: _WORDS.get(ratio.comparison.verdict.word, ""))
    undecided = by_word.pop("", [])
    if not by_word:
        return (
            f"Whether {name} delivers more than {reference} is undecided at "
            f"{_loads(undecided)}; more rounds decide."
        )
    parts = [f"{words} {reference} at {_loads(own)}" for words, own in by_word.items()]
    rest = f"; undecided at {_loads(undecided)}" if undecided else ""
    return f"{name} delivers {', and '.join(parts)}{rest}."


def _loads(ratios: Sequence[ThroughputRatio]) -> str:
    numbers = sorted({ratio.connections for ratio in ratios})
    listed = ", ".join(map(str, numbers[:-1]))
    joined_numbers = f"{listed} and {numbers[-1]}" if listed else str(numbers[-1])
    return f"{joined_numbers} connections"


def busy_notes(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    """Returns the sentence that other programs used the CPUs while trials became invalid."""
    excluded = [r for r in records if r.status is TrialStatus.INVALID and r.key.round > 0]
    known = [
        cpus
        for record in excluded
        if (cpus := facts.number(record.counters, "others_busy_cpus")) is not None
    ]
    if not known or sum(known) / len(known) < BUSY_CPUS:
        return ()
    return (
        f"During the {len(excluded)} excluded trials other programs of this machine used "
        f"{sum(known) / len(known):.2g} CPUs on average: repeat when they have ended.",
    )
