"""Rules with lists of values for their settings: the grid of a search."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nephoscope.autoscalers.rules import Rule
from nephoscope.core.errors import UsageError
from nephoscope.stats.scaling_settings import rule_of

LARGEST = 5000
"""Candidates of a search."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One rule with one value for each setting, as written."""

    policy: str
    settings: Mapping[str, str]
    rule: Rule

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


def candidates(texts: Sequence[str]) -> list[Candidate]:
    """Returns every combination of `RULE:NAME=VALUE|VALUE,NAME=VALUE`, each once, in order.

    Raises UsageError for a wrong rule or setting, and for more than `LARGEST` combinations.
    """
    made: dict[str, Candidate] = {}
    for text in texts:
        policy, _, rest = text.strip().partition(":")
        axes = _axes(text, rest)
        count = 1
        for values in axes.values():
            count *= len(values)
        if count + len(made) > LARGEST:
            raise UsageError(
                f"--rule: more than {LARGEST:,} combinations of settings.", "Use fewer values."
            )
        for combination in itertools.product(*axes.values()):
            settings = dict(zip(axes, combination, strict=True))
            candidate = Candidate(policy, settings, rule_of(policy, settings))
            made.setdefault(str(candidate), candidate)
    return list(made.values())


def _axes(text: str, settings: str) -> dict[str, list[str]]:
    axes: dict[str, list[str]] = {}
    for part in settings.split(",") if settings else ():
        name, equals, values = part.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name or name in axes:
            raise UsageError(
                f"--rule '{text:.60}': '{part:.40}' is no setting, or there twice.",
                "Write RULE:NAME=VALUE,NAME=VALUE, e.g. tracking:target=0.5|0.7,cooldown_in=5min.",
            )
        axes[name] = [value.strip() for value in values.split("|")]
    return axes
