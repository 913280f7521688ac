"""Rules of autoscalers by name, and their settings as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.stats import scaling_rules as rules
from nephoscope.stats.scaling_rules import METRICS, ScalingPolicy, ScalingRule

RULES: Mapping[str, Callable[..., ScalingRule]] = {
    "utilisation": partial(rules.Threshold, "utilisation"),
    "queue": partial(rules.Threshold, "queue", up_at=1.0, down_at=0.1),
    "response-time": rules.ResponseTime,
    "target-tracking": rules.TargetTracking,
    "step": rules.Step,
    "schedule": rules.Schedule,
    "predictive": rules.Predictive,
    "fixed": rules.Fixed,
}
"""Name of a rule to what makes it of its settings."""

_POLICY = tuple(field.name for field in fields(ScalingPolicy) if field.name != "rule")
_LARGEST_COUNT = 100_000
_MOST_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class _Kind:
    """How the text of a setting is read, and an example of one."""

    read: Callable[[str], Any]
    example: str


def _number(low: float, high: float, text: str) -> float:
    value = float(text)
    if not low <= value <= high:
        raise ValueError
    return value


def _count(low: int, text: str) -> int:
    value = int(text)
    if not low <= value <= _LARGEST_COUNT:
        raise ValueError
    return value


def _seconds(text: str) -> float:
    return units.parse_duration_ns(text) / 1e9 if text != "0" else 0.0


def _longer(text: str) -> float:
    seconds = _seconds(text)
    if seconds <= 0:
        raise ValueError
    return seconds


def _metric(text: str) -> str:
    name = text.replace("-", "_")
    if name not in METRICS:
        raise ValueError
    return name


def _entries(text: str, read: Callable[[str], Any]) -> tuple[Any, ...]:
    entries = tuple(read(part.strip()) for part in text.split(";"))
    if len(entries) > _MOST_ENTRIES:
        raise ValueError
    return entries


def _step(text: str) -> tuple[float, float]:
    bound, change = text.split(":")
    parsed = float(bound), _number(-_LARGEST_COUNT, _LARGEST_COUNT, change)
    if not 0 <= parsed[0] < float("inf") or parsed[1] == 0:
        raise ValueError
    return parsed


def _scheduled(text: str) -> tuple[float, int]:
    parts = re.fullmatch(r"(\d{1,2}):(\d{2}) +(\d{1,6})", text)
    if parts is None:
        raise ValueError
    hour, minute, count = map(int, parts.groups())
    if hour > 23 or minute > 59 or count > _LARGEST_COUNT:
        raise ValueError
    return 3600.0 * hour + 60.0 * minute, count


def _truth(text: str) -> bool:
    return {"yes": True, "true": True, "no": False, "false": False}[text]


_POSITIVE = _Kind(partial(_number, 1e-9, 1e12), "0.7")
_NOT_NEGATIVE = _Kind(partial(_number, 0.0, 1e12), "0.2")
_COUNT = _Kind(partial(_count, 0), "3")
_DELAY = _Kind(_seconds, "60s")
_LENGTH = _Kind(_longer, "60s")
_KINDS: Mapping[str, _Kind] = {
    "metric": _Kind(_metric, "queue"),
    "up_at": _POSITIVE,
    "down_at": _NOT_NEGATIVE,
    "target": _POSITIVE,
    "tolerance": _NOT_NEGATIVE,
    "steps": _Kind(partial(_entries, read=_step), "0.3:-1;0.7:1;0.9:3"),
    "percent": _Kind(_truth, "yes"),
    "target_s": _LENGTH,
    "proportional": _NOT_NEGATIVE,
    "integral": _NOT_NEGATIVE,
    "at": _Kind(partial(_entries, read=_scheduled), "00:00 2;08:00 10"),
    "period_s": _DELAY,
    "per_instance_per_s": _POSITIVE,
    "horizon_s": _DELAY,
    "window_s": _LENGTH,
    "count": _COUNT,
    "min_count": _COUNT,
    "max_count": _Kind(partial(_count, 1), "20"),
    "cooldown_out_s": _DELAY,
    "cooldown_in_s": _DELAY,
    "stabilisation_in_s": _DELAY,
}


def settings_of(rule: str) -> dict[str, str]:
    """Returns the settings of a rule and of its policy: name as users write it to its field.

    Durations state their unit in the value: cooldown_out=60s.
    """
    made = _maker(rule)
    cls = made.func if isinstance(made, partial) else made
    bound = ("metric",) if isinstance(made, partial) else ()
    names = [field.name for field in fields(cls) if field.name not in bound]  # type: ignore[arg-type]
    return {
        name if name == "per_instance_per_s" else name.removesuffix("_s"): name
        for name in (*names, *_POLICY)
    }


def policy_of(rule: str, settings: Mapping[str, str]) -> ScalingPolicy:
    """Returns a policy by the name of its rule and its settings as text.

    Raises UsageError for an unknown rule or setting, a wrong value, and bounds that exclude each
    other.
    """
    made = _maker(rule)
    known = settings_of(rule)
    values: dict[str, Any] = {}
    for written, text in settings.items():
        name = known.get(written.replace("-", "_"))
        if name is None:
            raise UsageError(
                f"The rule '{rule}' has no setting '{written:.40}'.",
                f"It has {', '.join(known)}.",
            )
        values[name] = _value(written, _KINDS[name], text)
    policy = ScalingPolicy(
        made(**{key: value for key, value in values.items() if key not in _POLICY}),
        **{key: value for key, value in values.items() if key in _POLICY},
    )
    _check(policy)
    return policy


def _maker(rule: str) -> Callable[..., ScalingRule]:
    if rule not in RULES:
        raise UsageError(f"There is no rule '{rule:.40}'.", f"Use {', '.join(RULES)}.")
    return RULES[rule]


def _value(name: str, kind: _Kind, text: str) -> Any:
    try:
        return kind.read(text.strip())
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from None
    except (ValueError, KeyError):
        raise UsageError(
            f"{name}: '{text:.40}' cannot be its value.",
            f"Use, for example, {name}={kind.example}.",
        ) from None


def _check(policy: ScalingPolicy) -> None:
    rule = policy.rule
    if policy.min_count > policy.max_count:
        raise UsageError(
            f"min_count {policy.min_count} is above max_count {policy.max_count}.",
            "Lower the first or raise the second.",
        )
    if isinstance(rule, rules.Threshold) and rule.down_at >= rule.up_at:
        raise UsageError(
            f"down_at {rule.down_at:g} is not below up_at {rule.up_at:g}.",
            "Lower the first or raise the second; at one value the number would never rest.",
        )
    if isinstance(rule, rules.Step):
        out = [bound for bound, change in rule.steps if change > 0]
        back = [bound for bound, change in rule.steps if change < 0]
        if out and back and max(back) >= min(out):
            raise UsageError(
                f"A step removes instances at {max(back):g} or below and another adds some from "
                f"{min(out):g} on.",
                "Leave a gap between both.",
            )
