"""Ends alternatives once their comparison is decided, by an interval that allows for every look."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nephoscope.core.model import Better, Setting
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.alternatives import Alternative, Pair
from nephoscope.stats import compare
from nephoscope.stats.compare import LEAST_PAIRED
from nephoscope.stats.statistics.values import Refused

EVERY_ROUND_UNTIL = 50
"""Rounds up to which each one is followed by a look; from there on every `look_every`-th, since a
round then changes little and a look costs more."""
SHARE_OF_HEADLINES = 0.5
"""Part of the error rate that a report leaves to its headline results (`compare.over_report`)."""


def partners_of(plan: Plan, settings: Sequence[Setting]) -> dict[Pair, Pair]:
    """Returns what each alternative is compared with; empty of a plan that ends by its widths.

    That is the baseline, or without any the first target of the plan.
    """
    if plan.repeat.until != "decided":
        return {}
    if plan.design.baseline:
        return {
            (setting.index, name): (int(pair[0]), str(pair[1]))
            for setting in settings
            for name, pair in setting.baseline.items()
        }
    first, *others = (target.name for target in plan.targets)
    return {
        (setting.index, name): (setting.index, first)
        for setting in settings
        for name in others
        if {name, first} <= set(setting.targets)
    }


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides. comparisons: whose errors share the error rate of the run."""

    margin: float
    confidence: float
    comparisons: int

    @classmethod
    def of(cls, plan: Plan, pairs: int, metrics: int) -> Rules:
        """Returns the rules for so many pairs of alternatives with so many headline metrics."""
        return cls(plan.margin, plan.confidence, max(1, pairs * metrics))


def decide(alternative: Alternative, partner: Alternative, rules: Rules) -> str:
    """Returns why both need no further rounds; empty while a headline metric is undecided."""
    least = max(LEAST_PAIRED, alternative.repeat.min)
    n = min(alternative.valid, partner.valid)
    every = 1 if n <= EVERY_ROUND_UNTIL else alternative.repeat.look_every
    if n < least or n % every:
        return ""
    theirs = _series(partner)
    reasons = []
    for key, values in _series(alternative).items():
        reason = _decided(theirs.get(key, {}), values, rules)
        if not reason:
            return ""
        reasons.append(f"{key[0]}: {reason}")
    return reasons[0] if reasons else ""


def _series(alternative: Alternative) -> dict[tuple[str, str], Mapping[int, float]]:
    """Returns value by round of each headline series, by metric and factors of the samples alone:
    those of the setting tell the alternatives apart."""
    own = alternative.setting.factors
    series: dict[tuple[str, str], Mapping[int, float]] = {}
    for key, values in alternative.values.items():
        metric, text = key
        rest = {name: level for name, level in json.loads(text).items() if name not in own}
        rounds = alternative.value_rounds[key]
        series[metric, json.dumps(rest, sort_keys=True)] = dict(zip(rounds, values, strict=True))
    return series


def _decided(a: Mapping[int, float], b: Mapping[int, float], rules: Rules) -> str:
    """Returns the verdict on one series in a sentence; empty for none."""
    sides = compare.common_rounds(a, b)
    if sides[0].size < LEAST_PAIRED:
        return ""
    try:
        # Whichever direction is good: what ends the measurement is that one of them is certain.
        comparison = compare.paired(
            *sides,
            better=Better.LOWER,
            margin=rules.margin,
            confidence=rules.confidence,
            is_anytime=True,
        )
    except Refused:
        return ""
    word = comparison.verdict.word
    alpha = (1 - rules.confidence) * SHARE_OF_HEADLINES / rules.comparisons
    if word == "inconclusive" or (word in ("better", "worse") and (comparison.p or 0) > alpha):
        return ""
    what = "differ by more than the margin" if word in ("better", "worse") else "are equivalent"
    return f"the sides {what} after {sides[0].size} rounds"
