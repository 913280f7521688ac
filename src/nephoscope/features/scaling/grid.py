"""Rules with lists of values for their settings: the grid of a search."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from nephoscope.autoscalers.rules import ScalingRule
from nephoscope.core.errors import UsageError
from nephoscope.features.scaling.traces import ScalerRecording
from nephoscope.stats.scaling_settings import axes_of, rule_of

LARGEST = 5000
"""Candidates of a search."""


@dataclass(frozen=True, slots=True)
class RuleCandidate:
    """One rule with one value for each setting, as written. recordings: trials that it decided."""

    policy: str
    settings: Mapping[str, str]
    rule: ScalingRule
    recordings: tuple[ScalerRecording, ...] = ()

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


def recorded(rule: ScalingRule, recordings: tuple[ScalerRecording, ...]) -> RuleCandidate:
    """Returns the rule of a recorded run, with its settings apart from defaults."""
    settings = {
        field.name: f"{value}"
        for field in fields(rule)
        if (value := getattr(rule, field.name)) != getattr(ScalingRule(), field.name)
        and field.name != "policy"
    }
    return RuleCandidate(rule.policy, settings, rule, recordings)


def candidates(texts: Sequence[str]) -> list[RuleCandidate]:
    """Returns every combination of `RULE:NAME=VALUE|VALUE,NAME=VALUE`, each once, in order.

    Raises UsageError for a wrong rule or setting, and for more than `LARGEST` combinations.
    """
    made: dict[str, RuleCandidate] = {}
    for text in texts:
        policy, axes = axes_of(text)
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
