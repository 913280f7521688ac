"""The rules of the reference autoscaler: from what it observes to the number of instances it wants.

Pure: the same observations give the same decisions. Target tracking is the formula of the
Kubernetes HPA (desired = ceil(current * value / target), within a tolerance); the response time is
estimated at the server by Little's law, after Certes (Olshefski, Nieh, Agrawal, SIGMETRICS 2002)
and Kamra, Misra, Nahum (IWQoS 2004), who control it there.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CPU, QUEUE, RESPONSE_TIME, RATE = "cpu", "queue", "response-time", "rate"
METRICS = (CPU, QUEUE, RESPONSE_TIME, RATE)
"""CPU: mean utilisation of the instances, 0 to 1. Queue: requests in the system per instance.
Response time: in seconds, at the balancer. Rate: requests per second and instance."""

TRACKING, STEP, PREDICTIVE, SCHEDULE = "tracking", "step", "predictive", "schedule"
CONTROL, FIXED = "control", "fixed"
POLICIES = (TRACKING, STEP, PREDICTIVE, SCHEDULE, CONTROL, FIXED)
_ERROR_LIMIT = 2.0
"""Of the relative error of a controller: a service that is down does not ask for everything."""


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """Settings of a rule. Times are in seconds.

    target: of tracking, in the metric's unit; of predictive, requests per second and instance.
    tolerance_ratio: deviation from the target that changes nothing. up_at, down_at, step: bounds
    and size of the steps. history_s, horizon_s: of predictive, the line through the rates of the
    history is followed for so long; with period_s, also the rate one period before that time
    counts. schedule: seconds since the first request, and number from then on; with period_s it
    begins again. steps: bound and change, instead of one step; a change above 0 applies above its
    bound, one below 0 below it, and of several the one with the furthest bound. gain: of control,
    change of the number relative to itself for a metric that is twice its target; the number
    itself is the integral of the controller. stabilisation_in_s: a scale-in goes no lower than the
    largest number wanted in this time (Kubernetes).
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
    period_s: float = 0.0
    steps: Sequence[tuple[float, float]] = ()
    gain: float = 0.5
    stabilisation_in_s: float = 0.0


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
    `wanted`: '', maximum, minimum, cooldown, stabilisation."""

    wanted: int
    desired: int
    reason: str = ""


def wanted_of(rule: ScalingRule, observation: ScalingObservation) -> int:
    """Returns the number of instances that the rule wants, without limits and cooldowns."""
    present, value = observation.present, observation.value
    if rule.policy == SCHEDULE:
        return _scheduled(rule, observation)
    if rule.policy == FIXED:
        return present
    if rule.policy == PREDICTIVE:
        rate = _forecast(rule, observation)
        return present if rate is None else math.ceil(rate / rule.target - 1e-9)
    if value is None:
        return present
    if rule.policy == STEP:
        return present + _step(rule, value)
    ratio = value / rule.target
    if abs(ratio - 1) <= rule.tolerance_ratio:
        return present
    if rule.policy == CONTROL:
        return _controlled(rule, observation, ratio - 1)
    return math.ceil(max(observation.ready, 1) * ratio - 1e-9)


def _scheduled(rule: ScalingRule, observation: ScalingObservation) -> int:
    """The number of the last entry that is due; before the first of a period, the last one's."""
    now_s = observation.at_s % rule.period_s if rule.period_s else observation.at_s
    due = [count for at_s, count in rule.schedule if at_s <= now_s]
    if not due and rule.period_s:
        due = [count for _, count in rule.schedule]
    return due[-1] if due else observation.present


def _step(rule: ScalingRule, value: float) -> int:
    """The change of the number: by the furthest bound that the value has passed."""
    steps = rule.steps or ((rule.up_at, rule.step), (rule.down_at, -rule.step))
    out = [entry for entry in steps if entry[1] > 0 and value > entry[0]]
    back = [entry for entry in steps if entry[1] < 0 and value < entry[0]]
    return int(max(out)[1] if out else min(back)[1] if back else 0)


def _controlled(rule: ScalingRule, observation: ScalingObservation, error: float) -> int:
    """The number changed in proportion to the error; a scale-in waits for what is starting."""
    present, ready = observation.present, max(observation.ready, 1)
    if error > 0:
        change = math.ceil(rule.gain * min(error, _ERROR_LIMIT) * ready - 1e-9)
        return max(present, ready + change)
    if present > ready:
        return present
    return present - max(1, math.floor(-rule.gain * error * ready + 1e-9))


def _forecast(rule: ScalingRule, observation: ScalingObservation) -> float | None:
    """The rate at the horizon by least squares, and at least the newest one; None without any."""
    if not observation.rates:
        return None
    last_s, newest = observation.rates[-1]
    first = bisect_left(observation.rates, (last_s - rule.history_s, -math.inf))
    recent = observation.rates[first:]
    mean_s = sum(at_s for at_s, _ in recent) / len(recent)
    mean = sum(rate for _, rate in recent) / len(recent)
    spread = sum((at_s - mean_s) ** 2 for at_s, _ in recent)
    slope = sum((at_s - mean_s) * (rate - mean) for at_s, rate in recent) / spread if spread else 0
    trend = mean + slope * (observation.at_s + rule.horizon_s - mean_s)
    before_s = observation.at_s + rule.horizon_s - rule.period_s
    passed = bisect_right(observation.rates, (before_s, math.inf)) if rule.period_s else 0
    return max(newest, trend, observation.rates[passed - 1][1] if passed else 0.0)


@dataclass(slots=True)
class Scaler:
    """A rule with the memory of its last changes."""

    rule: ScalingRule
    last_out_s: float = field(default=-math.inf)
    last_change_s: float = field(default=-math.inf)
    wanted_before: list[tuple[float, int]] = field(default_factory=list)

    def decide(self, observation: ScalingObservation) -> ScalingDecision:
        """Returns the decision, and remembers a change for the cooldowns.

        A scale-out waits for the end of its cooldown after another scale-out, a scale-in after any
        change.
        """
        rule, present = self.rule, observation.present
        wanted = wanted_of(rule, observation)
        desired = min(max(wanted, rule.minimum), rule.maximum)
        reason = "maximum" if desired < wanted else "minimum" if desired > wanted else ""
        stable = self._stabilised(observation.at_s, desired)
        if desired < present and stable > desired:
            desired, reason = min(present, stable), "stabilisation"
        if desired > present and observation.at_s < self.last_out_s + rule.cooldown_out_s:
            return ScalingDecision(wanted, present, "cooldown")
        if desired < present and observation.at_s < self.last_change_s + rule.cooldown_in_s:
            return ScalingDecision(wanted, present, "cooldown")
        if desired != present:
            self.last_change_s = observation.at_s
            if desired > present:
                self.last_out_s = observation.at_s
        return ScalingDecision(wanted, desired, reason)

    def _stabilised(self, at_s: float, desired: int) -> int:
        """Returns the largest number of the stabilisation window, which this one joins."""
        since_s = at_s - self.rule.stabilisation_in_s
        recent = [entry for entry in self.wanted_before if entry[0] > since_s]
        self.wanted_before = [*recent, (at_s, desired)]
        return max(count for _, count in self.wanted_before)


def rule_of(values: dict[str, Any]) -> ScalingRule:
    """Returns the rule of its JSON object."""
    schedule = tuple((float(at_s), int(count)) for at_s, count in values.pop("schedule", ()))
    steps = tuple((float(bound), float(change)) for bound, change in values.pop("steps", ()))
    return ScalingRule(schedule=schedule, steps=steps, **values)
