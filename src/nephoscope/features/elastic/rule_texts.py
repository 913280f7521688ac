"""Rules of the reference autoscaler as a user writes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from nephoscope.autoscalers import rules
from nephoscope.core import units
from nephoscope.core.errors import UsageError

EXAMPLES = (
    "cpu=0.6, rate=40, queue=2, response-time=50ms (target tracking), queue=1..4 (steps), "
    "predictive=40, schedule=0s:1;60s:3"
)


@dataclasses.dataclass(frozen=True, slots=True)
class RuleLimits:
    """Settings that all rules of an experiment share; times in seconds."""

    minimum: int = 1
    maximum: int = 5
    step: int = 1
    cooldown_out_s: float = 0.0
    cooldown_in_s: float = 0.0
    history_s: float = 10.0
    horizon_s: float = 0.0


def rule_of(text: str, limits: RuleLimits) -> dict[str, Any]:
    """Returns the JSON object of a rule: 'cpu=0.6', 'queue=1..4', 'schedule=0s:1;60s:3'.

    Raises UsageError for anything else.
    """
    name, mark, value = (part.strip() for part in text.partition("="))
    own: dict[str, Any] = {
        "minimum": limits.minimum,
        "maximum": limits.maximum,
        "cooldown_out_s": limits.cooldown_out_s,
        "cooldown_in_s": limits.cooldown_in_s,
    }
    if mark and name == rules.SCHEDULE:
        return {
            **own,
            "metric": rules.RATE,
            "policy": rules.SCHEDULE,
            "schedule": _steps(text, value),
        }
    if mark and name == rules.PREDICTIVE:
        times = {"history_s": limits.history_s, "horizon_s": limits.horizon_s}
        policy = {
            "metric": rules.RATE,
            "policy": rules.PREDICTIVE,
            "target": _number(text, name, value),
        }
        return {**own, **policy, **times}
    if not mark or name not in rules.METRICS:
        raise UsageError(f"'{text}' is no rule.", f"Write, for example, {EXAMPLES}.")
    low, dots, high = value.partition("..")
    if not dots:
        target = _number(text, name, value)
        return {**own, "metric": name, "policy": rules.TRACKING, "target": target}
    down_at, up_at = _number(text, name, low), _number(text, name, high)
    if down_at >= up_at:
        raise UsageError(f"'{text}' has its bounds in the wrong order.", "Write queue=1..4.")
    bounds = {"down_at": down_at, "up_at": up_at, "step": limits.step}
    return {**own, "metric": name, "policy": rules.STEP, **bounds}


def _number(text: str, name: str, value: str) -> float:
    hint = f"Write, for example, {EXAMPLES}."
    try:
        if name == rules.RESPONSE_TIME:
            number = units.parse_duration_ns(value, likely=("ms", "s")) / 1e9
        else:
            number = float(value)
    except (ValueError, UsageError):
        raise UsageError(f"'{text}' has no value that can be read.", hint) from None
    if not 0 < number < 1e7 or (name == rules.CPU and number > 1):
        raise UsageError(f"'{text}' is out of range.", hint)
    return number


def _steps(text: str, value: str) -> list[tuple[float, int]]:
    hint = "Write times and numbers, such as schedule=0s:1;60s:3."
    steps: list[tuple[float, int]] = []
    for part in value.split(";"):
        at, mark, count = (word.strip() for word in part.partition(":"))
        try:
            at_s = 0.0 if at == "0" else units.parse_duration_ns(at, likely=("s", "min")) / 1e9
        except UsageError:
            raise UsageError(f"'{text}' has no time in '{part}'.", hint) from None
        if not mark or not count.isdecimal() or len(count) > 4 or (steps and at_s <= steps[-1][0]):
            raise UsageError(f"'{text}' is no schedule: '{part}'.", hint)
        steps.append((at_s, int(count)))
    return steps
