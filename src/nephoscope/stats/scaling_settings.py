"""Settings of the rules of an autoscaler as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import ScalingRule
from nephoscope.core import units
from nephoscope.core.errors import UsageError

_BOUNDS = ("minimum", "maximum", "cooldown_out_s", "cooldown_in_s", "stabilisation_in_s")
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    rules.TRACKING: ("metric", "target", "tolerance_ratio"),
    rules.CONTROL: ("metric", "target", "tolerance_ratio", "gain"),
    rules.STEP: ("metric", "up_at", "down_at", "step", "steps"),
    rules.PREDICTIVE: ("target", "history_s", "horizon_s", "period_s"),
    rules.SCHEDULE: ("schedule", "period_s"),
    rules.FIXED: (),
}
"""Fields of `ScalingRule` that a policy uses."""
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    rules.TRACKING: {"target": 0.6},
    rules.CONTROL: {"metric": rules.RESPONSE_TIME},
    rules.STEP: {"up_at": 0.8, "down_at": 0.4},
    rules.PREDICTIVE: {"history_s": 900.0, "horizon_s": 300.0},
    rules.SCHEDULE: {"period_s": 86_400.0},
    rules.FIXED: {},
}
NO_DEFAULTS: Mapping[str, Any] = {}
_LARGEST_COUNT = 100_000
_DEFAULT_MAXIMUM = 1000
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
    if text not in rules.METRICS:
        raise ValueError
    return text


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
    """Reads '08:30 10', a time of day, or '90s:10', a time since the start."""
    clock = re.fullmatch(r"(\d{1,2}):(\d{2}) +(\d{1,6})", text)
    since = re.fullmatch(r"([^:]+): *(\d{1,6})", text)
    if clock is not None:
        hour, minute, count = map(int, clock.groups())
        if hour > 23 or minute > 59:
            raise ValueError
        return 3600.0 * hour + 60.0 * minute, count
    if since is None:
        raise ValueError
    return _seconds(since[1]), int(since[2])


_POSITIVE = _Kind(partial(_number, 1e-9, 1e12), "0.7")
_NOT_NEGATIVE = _Kind(partial(_number, 0.0, 1e12), "0.2")
_COUNT = _Kind(partial(_count, 1), "3")
_DELAY = _Kind(_seconds, "60s")
_LENGTH = _Kind(_longer, "60s")
_KINDS: Mapping[str, _Kind] = {
    "metric": _Kind(_metric, "queue"),
    "target": _POSITIVE,
    "tolerance_ratio": _NOT_NEGATIVE,
    "gain": _POSITIVE,
    "up_at": _POSITIVE,
    "down_at": _NOT_NEGATIVE,
    "step": _COUNT,
    "steps": _Kind(partial(_entries, read=_step), "0.3:-1;0.7:1;0.9:3"),
    "history_s": _LENGTH,
    "horizon_s": _DELAY,
    "period_s": _DELAY,
    "schedule": _Kind(partial(_entries, read=_scheduled), "00:00 2;08:00 10"),
    "minimum": _COUNT,
    "maximum": _COUNT,
    "cooldown_out_s": _DELAY,
    "cooldown_in_s": _DELAY,
    "stabilisation_in_s": _DELAY,
}


def settings_of(policy: str) -> dict[str, str]:
    """Returns the settings of a policy: name as users write it to the field of `ScalingRule`.

    Durations state their unit in the value: cooldown_out=60s.
    """
    if policy not in _SETTINGS:
        raise UsageError(f"There is no rule '{policy:.40}'.", f"Use {', '.join(_SETTINGS)}.")
    return {
        name.removesuffix("_s").removesuffix("_ratio"): name
        for name in (*_SETTINGS[policy], *_BOUNDS)
    }


def rule_of_text(text: str, defaults: Mapping[str, Any]) -> ScalingRule:
    """Returns the rule of a text such as `cpu=0.6,cooldown_in=5min` or `control:target=50ms`.

    defaults: fields of `ScalingRule` that the text need not state. Raises UsageError for anything
    else, also for several values of a setting.
    """
    policy, axes = axes_of(text)
    several = [name for name, values in axes.items() if len(values) > 1]
    if several:
        raise UsageError(
            f"--rule '{text:.60}': {several[0]} has several values.", "Repeat --rule for each."
        )
    return rule_of(policy, {name: values[0] for name, values in axes.items()}, defaults)


def rule_of(
    policy: str, settings: Mapping[str, str], defaults: Mapping[str, Any] = NO_DEFAULTS
) -> ScalingRule:
    """Returns a rule by the name of its policy and its settings as text.

    defaults: fields of the rule that the settings need not state, as far as the policy has them.
    The target of a response time is a duration. Raises UsageError for an unknown policy or setting,
    a wrong value, a target that is missing, and bounds that exclude each other.
    """
    known = settings_of(policy)
    values: dict[str, Any] = {"maximum": _DEFAULT_MAXIMUM, **_DEFAULTS[policy]}
    values |= {name: value for name, value in defaults.items() if name in known.values()}
    for written, text in settings.items():
        name = known.get(written.replace("-", "_"))
        if name is None:
            raise UsageError(
                f"The rule '{policy}' has no setting '{written:.40}'.",
                f"It has {', '.join(known)}.",
            )
        metric = settings.get("metric", values.get("metric"))
        is_time = metric == rules.RESPONSE_TIME and name in ("target", "up_at", "down_at")
        values[name] = _value(written, _LENGTH if is_time else _KINDS[name], text)
    rule = ScalingRule(policy=policy, **values)
    _check(rule)
    return rule


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


def _check(rule: ScalingRule) -> None:
    if rule.minimum > rule.maximum:
        raise UsageError(
            f"minimum {rule.minimum} is above maximum {rule.maximum}.",
            "Lower the first or raise the second.",
        )
    if "target" in _SETTINGS[rule.policy] and not rule.target:
        raise UsageError(
            f"The rule '{rule.policy}' has no target.",
            "Set it, e.g. target=200ms of the response time, or target=40 requests/s and instance.",
        )
    if rule.policy == rules.SCHEDULE and not rule.schedule:
        raise UsageError("The rule 'schedule' has no schedule.", "Use schedule=00:00 2;08:00 10.")
    if any(after <= before for (before, _), (after, _) in pairwise(rule.schedule)):
        raise UsageError("The times of the schedule do not ascend.", "Sort them, each once.")
    largest = max(rule.target, rule.up_at, *(bound for bound, _ in rule.steps), 0.0)
    if rule.metric == rules.CPU and "metric" in _SETTINGS[rule.policy] and largest > 1:
        raise UsageError(
            f"{largest:g} is no CPU utilisation.", "Use a share from 0 to 1, such as cpu=0.6."
        )
    steps = rule.steps or ((rule.up_at, rule.step), (rule.down_at, -rule.step))
    out = [bound for bound, change in steps if change > 0]
    back = [bound for bound, change in steps if change < 0]
    if rule.policy == rules.STEP and out and back and max(back) >= min(out):
        raise UsageError(
            f"A step removes instances below {max(back):g}, and another adds some above "
            f"{min(out):g}.",
            "Leave a gap between both.",
        )


def axes_of(text: str) -> tuple[str, dict[str, list[str]]]:
    """Returns the policy and the values of its settings, of either form of a rule.

    `rate=40`, `queue=1..4`, `predictive=40` and `schedule=…` are short for `RULE:NAME=VALUE,…`;
    both have further settings after commas. Values that `|` separates are several.
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
