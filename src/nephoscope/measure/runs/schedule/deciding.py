"""Ends alternatives once their comparison is decided, by an interval that allows for every look."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Setting, factors_key
from nephoscope.core.records import dataclass
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.alternatives import Alternative, Pair
from nephoscope.stats import compare
from nephoscope.stats.compare import LEAST_PAIRED
from nephoscope.stats.statistics.values import Array, Refused
from nephoscope.stats.verdicts import Band, equivalence_confidence, margin_bounds

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
    a, b = (target.name for target in plan.targets)
    partners = {}
    for own in group_by(settings, lambda setting: setting.benchmark).values():
        places = {
            _place(setting, own, (a, b)): setting.index for setting in own if a in setting.targets
        }
        for setting in own:
            place = _place(setting, own, (a, b))
            if b in setting.targets and place in places:
                partners[setting.index, b] = (places[place], a)
    return partners


def _place(setting: Setting, settings: Sequence[Setting], targets: tuple[str, str]) -> str:
    """Returns the factors of a setting, but for those that tell the two sides apart: the targets
    have no level of them in common."""
    levels = [
        {
            (name, str(level))
            for known in settings
            if target in known.targets
            for name, level in known.factors.items()
        }
        for target in targets
    ]
    shared = {name for name, _ in levels[0] & levels[1]}
    return factors_key({name: level for name, level in setting.factors.items() if name in shared})


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides. error: probability that alike sides of one comparison are told to differ."""

    margin: float
    confidence: float
    error: float

    @classmethod
    def of(cls, plan: Plan, pairs: int, metrics: int) -> Rules:
        """Returns the rules for so many pairs of alternatives with so many headline metrics.

        The report corrects for all of them, so that each has its part of the error rate.
        """
        error = (1 - plan.confidence) * SHARE_OF_HEADLINES / max(1, pairs * metrics)
        return cls(plan.margin, plan.confidence, error)


def decide(alternative: Alternative, partner: Alternative, rules: Rules) -> str:
    """Returns why both need no further rounds; empty while a headline metric is undecided."""
    least = max(LEAST_PAIRED, alternative.repeat.min)
    n = min(alternative.valid, partner.valid)
    every = 1 if n <= EVERY_ROUND_UNTIL else alternative.repeat.look_every
    if n < least or n % every:
        return ""
    series_of_partner = _series(partner)
    reasons = []
    for key, values in _series(alternative).items():
        reason = _decided(series_of_partner.get(key, {}), values, rules)
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
    lower, upper = margin_bounds(rules.margin)
    try:
        differs = _band(sides, 1 - rules.error)
        alike = _band(sides, equivalence_confidence(rules.confidence))
    except Refused:
        return ""
    # Whichever direction is good: what ends the measurement is that one of them is certain.
    if differs.low > upper or differs.high < lower:
        return f"the sides differ by more than the margin after {sides[0].size} rounds"
    if alike.within(rules.margin):
        return f"the sides are equivalent after {sides[0].size} rounds"
    return ""


def _band(sides: tuple[Array, Array], confidence: float) -> Band:
    return compare.ratio_interval(*sides, paired=True, confidence=confidence, is_anytime=True)[1]
