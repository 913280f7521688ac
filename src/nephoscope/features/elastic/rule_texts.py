"""Rules of the reference autoscaler as a user writes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import ScalingRule
from nephoscope.core.errors import UsageError
from nephoscope.stats.scaling_settings import rule_of_text


@dataclasses.dataclass(frozen=True, slots=True)
class RuleLimits:
    """Settings that all rules of an experiment share, unless their texts have others; times in
    seconds. maximum: also the number of machines of the lab."""

    minimum: int = 1
    maximum: int = 5
    step: int = 1
    cooldown_out_s: float = 0.0
    cooldown_in_s: float = 0.0
    history_s: float = 10.0
    horizon_s: float = 0.0


def rule_of(text: str, limits: RuleLimits) -> dict[str, Any]:
    """Returns the JSON object of a rule, without fields that have their default.

    Rules and their settings are those of `simulate elastic`. Raises UsageError for anything else.
    """
    # A trial is shorter than a day, so that a schedule does not begin again.
    rule = rule_of_text(text, {**dataclasses.asdict(limits), "period_s": 0.0})
    if rule.maximum > limits.maximum:
        raise UsageError(
            f"--rule '{text:.60}' wants up to {rule.maximum} instances, and the lab has "
            f"{limits.maximum}.",
            f"Use --max {rule.maximum}.",
        )
    if rule.policy in (rules.PREDICTIVE, rules.SCHEDULE, rules.FIXED):
        rule = dataclasses.replace(rule, metric=rules.RATE)
    values = dataclasses.asdict(rule)
    plain = dataclasses.asdict(ScalingRule())
    always = ("metric", "policy", "minimum", "maximum")
    return {name: value for name, value in values.items() if name in always or value != plain[name]}
