"""The rules of the reference autoscaler: from what it observes to the number of instances it wants.

Pure: the same observations give the same decisions. Target tracking is the formula of the
Kubernetes HPA (desired = ceil(current * value / target), within a tolerance); the response time is
estimated at the server by Little's law, after Certes (Olshefski, Nieh, Agrawal, SIGMETRICS 2002)
and Kamra, Misra, Nahum (IWQoS 2004), who control it there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CPU, QUEUE, RESPONSE_TIME, RATE = "cpu", "queue", "response-time", "rate"
METRICS = (CPU, QUEUE, RESPONSE_TIME, RATE)
"""CPU: mean utilisation of the instances, 0 to 1. Queue: requests in the system per instance.
Response time: in seconds, at the balancer. Rate: requests per second and instance."""

TRACKING, STEP, PREDICTIVE, SCHEDULE = "tracking", "step", "predictive", "schedule"
POLICIES = (TRACKING, STEP, PREDICTIVE, SCHEDULE)


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """Settings of a rule. Times are in seconds.

    target: of tracking, in the metric's unit; of predictive, requests per second and instance.
    tolerance_ratio: deviation from the target that changes nothing. up_at, down_at, step: bounds
    and size of the steps. history_s, horizon_s: of predictive, the line through the rates of the
    history is followed for so long. schedule: seconds since the start, and number from then on.
    """

    metric: str = CPU
    policy: str = TRACKING
    target: float = 0.0
    tolerance_ratio: float = 0.1
    up_at: float = 0.0
    down_at: float = 0.0
    step: int = 1
    history_s: float = 0.0
    horizon_s: float = 0.0
    schedule: Sequence[tuple[float, int]] = ()
    minimum: int = 1
    maximum: int = 1
    cooldown_out_s: float = 0.0
    cooldown_in_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ScalingObservation:
    """What a rule sees at a time since the start.

    present: instances that were started and not removed. ready: those that serve. value: the newest
    visible value of the metric; None before the first. rates: time and requests per second of all
    instances together, as they became visible.
    """

    at_s: float
    present: int
    ready: int
    value: float | None
    rates: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """wanted: by the rule alone. desired: within the limits and cooldowns. reason: what changed
    `wanted`: '', maximum, minimum, cooldown."""

    wanted: int
    desired: int
    reason: str = ""


def wanted_of(rule: ScalingRule, observation: ScalingObservation) -> int:
    """Returns the number of instances that the rule wants, without limits and cooldowns."""
    present, value = observation.present, observation.value
    if rule.policy == SCHEDULE:
        due = [count for at_s, count in rule.schedule if at_s <= observation.at_s]
        return due[-1] if due else present
    if rule.policy == PREDICTIVE:
        rate = _forecast(rule, observation)
        return present if rate is None else math.ceil(rate / rule.target - 1e-9)
    if value is None:
        return present
    if rule.policy == STEP:
        if value > rule.up_at:
            return present + rule.step
        return present - rule.step if value < rule.down_at else present
    ratio = value / rule.target
    if abs(ratio - 1) <= rule.tolerance_ratio:
        return present
    return math.ceil(max(observation.ready, 1) * ratio - 1e-9)


def _forecast(rule: ScalingRule, observation: ScalingObservation) -> float | None:
    """The rate at the horizon by least squares, and at least the newest one; None without any."""
    if not observation.rates:
        return None
    last_s, newest = observation.rates[-1]
    recent = [(at_s, rate) for at_s, rate in observation.rates if at_s >= last_s - rule.history_s]
    mean_s = sum(at_s for at_s, _ in recent) / len(recent)
    mean = sum(rate for _, rate in recent) / len(recent)
    spread = sum((at_s - mean_s) ** 2 for at_s, _ in recent)
    slope = sum((at_s - mean_s) * (rate - mean) for at_s, rate in recent) / spread if spread else 0
    return max(newest, mean + slope * (observation.at_s + rule.horizon_s - mean_s))


@dataclass(slots=True)
class Scaler:
    """A rule with the memory of its last changes."""

    rule: ScalingRule
    last_out_s: float = field(default=-math.inf)
    last_change_s: float = field(default=-math.inf)

    def decide(self, observation: ScalingObservation) -> ScalingDecision:
        """Returns the decision, and remembers a change for the cooldowns.

        A scale-out waits for the end of its cooldown after another scale-out, a scale-in after any
        change.
        """
        rule, present = self.rule, observation.present
        wanted = wanted_of(rule, observation)
        desired = min(max(wanted, rule.minimum), rule.maximum)
        reason = "maximum" if desired < wanted else "minimum" if desired > wanted else ""
        if desired > present and observation.at_s < self.last_out_s + rule.cooldown_out_s:
            return ScalingDecision(wanted, present, "cooldown")
        if desired < present and observation.at_s < self.last_change_s + rule.cooldown_in_s:
            return ScalingDecision(wanted, present, "cooldown")
        if desired != present:
            self.last_change_s = observation.at_s
            if desired > present:
                self.last_out_s = observation.at_s
        return ScalingDecision(wanted, desired, reason)


def rule_of(values: dict[str, Any]) -> ScalingRule:
    """Returns the rule of its JSON object."""
    schedule = tuple((float(at_s), int(count)) for at_s, count in values.pop("schedule", ()))
    return ScalingRule(schedule=schedule, **values)
