"""Rules with lists of values for their settings: the grid of a search."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import ScalingRule
from nephoscope.core.errors import UsageError
from nephoscope.stats.scaling_settings import rule_of

LARGEST = 5000
"""Candidates of a search."""


@dataclass(frozen=True, slots=True)
class RuleCandidate:
    """One rule with one value for each setting, as written."""

    policy: str
    settings: Mapping[str, str]
    rule: ScalingRule

    def __str__(self) -> str:
        return " ".join(
            (self.policy, *(f"{name}={value}" for name, value in self.settings.items()))
        )


def defaults(services_per_s: float, limit_s: float) -> tuple[str, ...]:
    """Returns the grid that is searched where none is stated."""
    times = "|".join(f"{1e3 * limit_s * part:g}ms" for part in (0.25, 0.5))
    rates = "|".join(f"{services_per_s * part:g}" for part in (0.5, 0.6, 0.7, 0.8))
    return (
        "tracking:target=0.5|0.6|0.7|0.8,stabilisation_in=0s|5min",
        "tracking:metric=queue,target=0.7|1|2,stabilisation_in=0s|5min",
        f"control:target={times},gain=0.2|0.5,cooldown_in=0s|5min",
        "step:up_at=0.7|0.8,down_at=0.3|0.5",
        f"predictive:target={rates},horizon=5min|10min",
    )


def recorded(rule: ScalingRule) -> RuleCandidate:
    """Returns the rule of a recorded run, with its settings apart from defaults."""
    settings = {
        field.name: f"{value}"
        for field in fields(rule)
        if (value := getattr(rule, field.name)) != getattr(ScalingRule(), field.name)
        and field.name != "policy"
    }
    return RuleCandidate(rule.policy, settings, rule)


def candidates(texts: Sequence[str]) -> list[RuleCandidate]:
    """Returns every combination of `RULE:NAME=VALUE|VALUE,NAME=VALUE`, each once, in order.

    Raises UsageError for a wrong rule or setting, and for more than `LARGEST` combinations.
    """
    made: dict[str, RuleCandidate] = {}
    for text in texts:
        policy, axes = _axes(text)
        count = 1
        for values in axes.values():
            count *= len(values)
        if count + len(made) > LARGEST:
            raise UsageError(
                f"--rule: more than {LARGEST:,} combinations of settings.", "Use fewer values."
            )
        for combination in itertools.product(*axes.values()):
            settings = dict(zip(axes, combination, strict=True))
            candidate = RuleCandidate(policy, settings, rule_of(policy, settings))
            made.setdefault(str(candidate), candidate)
    return list(made.values())


def _axes(text: str) -> tuple[str, dict[str, list[str]]]:
    """Returns the policy and the values of its settings, of either form of a rule.

    `rate=40`, `queue=1..4`, `predictive=40` and `schedule=…` are those of `nephoscope elastic`.
    """
    head, _, rest = text.strip().partition(",")
    policy, colon, first = head.partition(":")
    axes: dict[str, list[str]] = {}
    if "=" in policy:
        (policy, axes), parts = _short_form(text, head), rest.split(",") if rest else []
    else:
        parts = [part for part in (first, *rest.split(",")) if part or colon]
    for part in filter(None, parts):
        name, equals, values = part.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or name in axes:
            raise UsageError(
                f"--rule '{text:.60}': '{part:.40}' is no setting, or there twice.",
                "Write, e.g., rate=40 or tracking:metric=rate,target=30|40,cooldown_in=5min.",
            )
        axes[name] = [value.strip() for value in values.split("|")]
    return policy, axes


def _short_form(text: str, head: str) -> tuple[str, dict[str, list[str]]]:
    name, _, values = head.partition("=")
    levels = [value.strip() for value in values.split("|")]
    if name == rules.PREDICTIVE:
        return name, {"target": levels}
    if name == rules.SCHEDULE:
        return name, {"schedule": levels}
    if name not in rules.METRICS:
        raise UsageError(
            f"--rule '{text:.60}': there is no metric '{name:.40}'.",
            f"Metrics: {', '.join(rules.METRICS)}.",
        )
    if ".." not in values:
        return rules.TRACKING, {"metric": [name], "target": levels}
    if len(levels) > 1:
        raise UsageError(
            f"--rule '{text:.60}': bounds have one value each here.",
            f"Write step:metric={name},up_at=…|…,down_at=…|….",
        )
    low, _, high = values.partition("..")
    return rules.STEP, {"metric": [name], "down_at": [low.strip()], "up_at": [high.strip()]}
