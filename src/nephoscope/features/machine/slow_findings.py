"""Findings on trials that were slower than others of the same run, and whose doing that was."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.core import units
from nephoscope.core.model import Better, Estimate, Finding, MetricResult, Severity
from nephoscope.features.machine.measured_findings import modes
from nephoscope.stats import attribution
from nephoscope.stats.attribution import Attribution, Reading, SlowdownCause
from nephoscope.stats.statistics import ranks
from nephoscope.stats.target_evidence import TargetEvidence, limit_lines

_NOTABLE = 1.05  # modes are called so from 5 % on; a drift of less is the stopping rule's business
_FEWEST = 12  # a third of them has still an interval

_NEXT = {
    SlowdownCause.NEIGHBOUR: "Repeat at another hour; if it persists, request a dedicated host.",
    SlowdownCause.OWN_QUOTA: "Raise the quota, or accept these results as limited by it.",
    SlowdownCause.LOCAL_LOAD: (
        "Stop other programs on this machine, or include them in the measurement."
    ),
    SlowdownCause.UNEXPLAINED: (
        "Repeat in an hour; if it persists, check clock frequency, burst credits and placement."
    ),
}


@dataclass(frozen=True, slots=True)
class _Slow:
    """Slow trials of one line against its quick ones."""

    line: MetricResult
    what: str
    slowdown: Estimate
    quick: Sequence[Reading]
    slow: Sequence[Reading]


def slow_trials(case: TargetEvidence) -> Iterator[Finding]:
    """Trials in two groups or drifting apart: a sentence for each cause that the rule gives."""
    by_word: dict[SlowdownCause, list[tuple[_Slow, Attribution]]] = {}
    for line in case.metrics:
        slowest = _slow(case, line) if line.headline else None
        if slowest is not None:
            attributed = attribution.attribute(slowest.slowdown, slowest.quick, slowest.slow)
            if attributed.word not in (SlowdownCause.NO_SLOWDOWN, SlowdownCause.UNDECIDED):
                by_word.setdefault(attributed.word, []).append((slowest, attributed))
    for word, slow in by_word.items():
        slow.sort(key=lambda pair: -pair[0].slowdown.value)
        worst, attributed = slow[0]
        remaining = [f"also {slow.what}" for slow, _ in slow[1:]]
        yield Finding(
            "slow_trials",
            Severity.NOTICE if word is SlowdownCause.UNEXPLAINED else Severity.WARNING,
            f"{worst.what}; {_cause(word, attributed)}",
            (*limit_lines(attributed.evidence, 10), *limit_lines(remaining, 4)),
            _NEXT[word],
        )


def _cause(word: SlowdownCause, attributed: Attribution) -> str:
    """Returns the end of the sentence, on the cause."""
    if word is SlowdownCause.UNEXPLAINED:
        return f"{attributed.sentence[0].lower()}{attributed.sentence[1:]}"
    return f"cause: {word.value}. {attributed.sentence}"


def _slow(case: TargetEvidence, line: MetricResult) -> _Slow | None:
    """The slow trials of a line, if there is such a group."""
    values = line.trial_values
    if line.better is Better.NONE or len(values) != len(line.rounds) or min(values, default=0) <= 0:
        return None
    # Times: of a rate the inverse, so that more is slower.
    times = [1 / v if line.better is Better.HIGHER else v for v in values]
    split = modes(times)
    if split is not None:
        bound = max(split[0])
        slow = [at for at, time in enumerate(times) if time > bound]
        quick = [at for at in range(len(times)) if at not in slow]
        when = f"in {len(slow)} of {len(times)} trials"
    elif len(times) >= _FEWEST:
        third = len(times) // 3
        ends = [list(range(third)), list(range(len(times) - third, len(times)))]
        ends.sort(key=lambda end: float(np.median([times[at] for at in end])))
        quick, slow = ends
        when = f"in the {'last' if slow[0] > quick[0] else 'first'} third of the trials"
    else:
        return None
    slowdown = _slowdown([times[at] for at in quick], [times[at] for at in slow])
    if slowdown.low is None or slowdown.value < _NOTABLE:
        return None
    interval = units.format_interval(slowdown.value, slowdown.low, slowdown.high, "")
    what = f"{case.name_of(line)}: {interval} times as slow {when}"
    readings = [case.trials.reading(line, number) for number in line.rounds]
    return _Slow(line, what, slowdown, [readings[i] for i in quick], [readings[i] for i in slow])


def _slowdown(quick: Sequence[float], slow: Sequence[float]) -> Estimate:
    """Ratio of the times, by Hodges and Lehmann on their logarithms."""
    shift = ranks.hodges_lehmann(np.log(quick), np.log(slow), 0.95)
    low, high = (None if side is None else math.exp(side) for side in (shift.low, shift.high))
    n = len(quick) + len(slow)
    return Estimate(math.exp(shift.value), low, high, 0.95, n, "", "Hodges-Lehmann of logarithms")


RULES = (slow_trials,)
