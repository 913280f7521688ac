"""Rules of autoscalers: pure functions of an observation to a number of instances.

The simulator and the autoscaler of the lab call `decide` and nothing else: a recorded run is
replayed by feeding its observations again. Sources: Kubernetes, Horizontal Pod Autoscaling (target
tracking with a tolerance); Amazon EC2 Auto Scaling, Step and simple scaling policies; Kamra, Misra,
Nahum, Yaksha, IWQoS 2004 (proportional-integral control of the response time); Olshefski, Nieh,
Agrawal, SIGMETRICS 2002 (the response time of clients, estimated at the server).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

Metric = Literal["utilisation", "queue", "response_time", "rate"]
"""Mean utilisation of an instance (ratio), waiting requests per instance, response time of clients
(s), requests per second and instance."""
METRICS: tuple[str, ...] = get_args(Metric)

_HAIR = 1e-9
"""Keeps a quotient that is whole but for rounding from being rounded up."""
_DAY_S = 86_400.0
_ERROR_LIMIT = 2.0
"""Of the relative error of a response time: a service that is down does not ask for everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Input of one decision; metrics are means over the observation window, None where missing.

    time_s: of the decision; a schedule's day begins at 0. desired_count: instances that were
    requested last. ready_count: instances that serve. queue_length: waiting requests of all
    instances. response_time_s: of clients, with their waits for refused connections.
    """

    time_s: float
    desired_count: int
    ready_count: int
    utilisation_ratio: float | None = None
    queue_length: float | None = None
    response_time_s: float | None = None
    rate_per_s: float | None = None

    def metric(self, name: Metric) -> float | None:
        """Returns a metric of METRICS; None where it is missing."""
        ready = max(1, self.ready_count)
        if name == "utilisation":
            return self.utilisation_ratio
        if name == "response_time":
            return self.response_time_s
        total = self.queue_length if name == "queue" else self.rate_per_s
        return None if total is None else total / ready


@dataclass(frozen=True, slots=True)
class ScalingMemory:
    """State of an autoscaler between two decisions; the first decision begins with an empty one.

    recommendations: time and number before cooldowns. rates: time and requests per second, for
    forecasts. level, error: number before rounding and relative error of the last decision.
    """

    last_out_s: float = -math.inf
    last_change_s: float = -math.inf
    recommendations: tuple[tuple[float, int], ...] = ()
    rates: tuple[tuple[float, float], ...] = ()
    level: float | None = None
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Number of instances that a rule asks for, and why."""

    count: int
    reason: str
    memory: ScalingMemory


class ScalingRule(ABC):
    """A rule; its fields are its settings."""

    __slots__ = ()

    @abstractmethod
    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the number of instances before bounds and cooldowns."""


def _hold(seen: Observation, memory: ScalingMemory, reason: str) -> Recommendation:
    return Recommendation(seen.desired_count, reason, memory)


@dataclass(frozen=True, slots=True)
class Fixed(ScalingRule):
    """Keeps a number of instances, by default the present one."""

    count: int = 0

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns that number."""
        return Recommendation(self.count or seen.desired_count, "fixed", memory)


@dataclass(frozen=True, slots=True)
class Threshold(ScalingRule):
    """Adds the instances that lower a metric to `up_at`; removes one below `down_at`."""

    metric: Metric = "utilisation"
    up_at: float = 0.8
    down_at: float = 0.4

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the number; a metric between both bounds changes nothing."""
        value = seen.metric(self.metric)
        if value is None:
            return _hold(seen, memory, f"{self.metric} is missing")
        if value > self.up_at:
            needed = math.ceil(seen.ready_count * value / self.up_at - _HAIR)
            reason = f"{self.metric} {value:.4g} above {self.up_at:g}"
            return Recommendation(max(seen.desired_count, needed), reason, memory)
        if value < self.down_at and seen.desired_count <= seen.ready_count:
            reason = f"{self.metric} {value:.4g} below {self.down_at:g}"
            return Recommendation(seen.desired_count - 1, reason, memory)
        return _hold(seen, memory, f"{self.metric} {value:.4g} within bounds")


@dataclass(frozen=True, slots=True)
class TargetTracking(ScalingRule):
    """Asks for ready instances times metric over target, rounded up (Kubernetes).

    tolerance: relative difference from the target that changes nothing.
    """

    metric: Metric = "utilisation"
    target: float = 0.6
    tolerance: float = 0.1

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the number; starting instances are never cancelled by a metric above target."""
        value = seen.metric(self.metric)
        if value is None:
            return _hold(seen, memory, f"{self.metric} is missing")
        ratio = value / self.target
        reason = f"{self.metric} {value:.4g} is {ratio:.3g} times the target"
        if abs(ratio - 1) <= self.tolerance + _HAIR:
            return _hold(seen, memory, reason)
        needed = math.ceil(seen.ready_count * ratio - _HAIR)
        return Recommendation(
            max(needed, seen.desired_count) if ratio > 1 else needed, reason, memory
        )


@dataclass(frozen=True, slots=True)
class Step(ScalingRule):
    """Changes the number by the step whose bound the metric has passed furthest.

    steps: bound and change; a positive change applies at or above its bound, a negative one at or
    below. Changes are instances, or with `percent` hundredths of the ready ones, rounded away
    from 0.
    """

    metric: Metric = "utilisation"
    steps: tuple[tuple[float, float], ...] = ((0.3, -1.0), (0.7, 1.0), (0.9, 3.0))
    percent: bool = False

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the number; instances that start already count towards the step."""
        value = seen.metric(self.metric)
        if value is None:
            return _hold(seen, memory, f"{self.metric} is missing")
        rising = [step for step in self.steps if step[1] > 0 and value >= step[0]]
        falling = [step for step in self.steps if step[1] < 0 and value <= step[0]]
        if not rising and not falling:
            return _hold(seen, memory, f"{self.metric} {value:.4g} within bounds")
        bound, change = max(rising) if rising else min(falling)
        if self.percent:
            change = change / 100 * seen.ready_count
        reason = f"{self.metric} {value:.4g} passed {bound:g}"
        if change > 0:
            count = seen.ready_count + math.ceil(change - _HAIR)
            return Recommendation(max(seen.desired_count, count), reason, memory)
        if seen.desired_count > seen.ready_count:
            return _hold(seen, memory, "instances are starting")
        return Recommendation(seen.desired_count + math.floor(change + _HAIR), reason, memory)


@dataclass(frozen=True, slots=True)
class ResponseTime(ScalingRule):
    """Controls the response time of clients by a proportional-integral controller.

    The relative error (time over target, minus 1, at most 2) changes the number by
    `proportional` times its change and `integral` times itself, both relative to the number.
    """

    target_s: float = 0.2
    proportional: float = 0.2
    integral: float = 0.1

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the controller's level, rounded."""
        if seen.response_time_s is None:
            return _hold(seen, memory, "response_time is missing")
        error = min(_ERROR_LIMIT, seen.response_time_s / self.target_s - 1)
        level = memory.level
        if level is None or round(level) != seen.desired_count:
            # Bounds and cooldowns have refused the last level: it must not wind up.
            level = float(seen.desired_count)
        change = self.proportional * (error - memory.error) + self.integral * error
        level = max(0.0, level + change * max(1.0, level))
        after = replace(memory, level=level, error=error)
        reason = f"response time {seen.response_time_s:.4g} s, target {self.target_s:g} s"
        return Recommendation(round(level), reason, after)


@dataclass(frozen=True, slots=True)
class Schedule(ScalingRule):
    """Numbers by time of day: each entry holds from its time, in seconds, to the next one's."""

    at: tuple[tuple[float, int], ...] = ((0.0, 1),)
    period_s: float = _DAY_S

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the number of the last entry; before the first one of a day, the last one's."""
        now_s = seen.time_s % self.period_s
        start_s, count = max(
            (entry for entry in self.at if entry[0] <= now_s + _HAIR), default=max(self.at)
        )
        return Recommendation(count, f"schedule of {start_s:g} s", memory)


@dataclass(frozen=True, slots=True)
class Predictive(ScalingRule):
    """Serves the rate that is forecast `horizon_s` ahead with `per_instance_per_s` each.

    The forecast is the larger of the least-squares line through the last `window_s` and the rate at
    that time one `period_s` before (0: no season).
    """

    per_instance_per_s: float = 10.0
    horizon_s: float = 300.0
    window_s: float = 900.0
    period_s: float = _DAY_S

    def recommend(self, seen: Observation, memory: ScalingMemory) -> Recommendation:
        """Returns the number for the forecast; the memory has the rates that it needs."""
        if seen.rate_per_s is None:
            return _hold(seen, memory, "rate is missing")
        oldest_s = seen.time_s - max(self.window_s, self.period_s)
        old = memory.rates[1:] if memory.rates and memory.rates[0][0] < oldest_s else memory.rates
        rates = (*old, (seen.time_s, seen.rate_per_s))
        forecast = max(0.0, self._trend(rates, seen.time_s), self._season(rates, seen.time_s))
        count = math.ceil(forecast / self.per_instance_per_s - _HAIR)
        reason = f"forecast {forecast:.4g}/s in {self.horizon_s:g} s"
        return Recommendation(count, reason, replace(memory, rates=rates))

    def _trend(self, rates: tuple[tuple[float, float], ...], now_s: float) -> float:
        times, values = np.array(
            [(at_s - now_s, rate) for at_s, rate in rates if at_s > now_s - self.window_s]
        ).T
        spread = times - times.mean()
        total = float(spread @ spread)
        slope = float(spread @ values) / total if total > 0 else 0.0
        return float(values.mean() + slope * (self.horizon_s - times.mean()))

    def _season(self, rates: tuple[tuple[float, float], ...], now_s: float) -> float:
        at_s = now_s + self.horizon_s - self.period_s
        if self.period_s <= 0 or rates[0][0] > at_s:
            return 0.0
        return rates[bisect_right(rates, (at_s, math.inf)) - 1][1]


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """A rule with its bounds and delays.

    cooldown_out_s: least time between two scale-outs. cooldown_in_s: least time from any change to
    a scale-in. stabilisation_in_s: a scale-in goes no lower than the largest recommendation of
    this window (Kubernetes).
    """

    rule: ScalingRule = field(default_factory=TargetTracking)
    min_count: int = 1
    max_count: int = 100
    cooldown_out_s: float = 0.0
    cooldown_in_s: float = 0.0
    stabilisation_in_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """Number of instances to have from now on, the reason, and the state for the next decision."""

    desired_count: int
    reason: str
    memory: ScalingMemory


def decide(policy: ScalingPolicy, seen: Observation, memory: ScalingMemory) -> ScalingDecision:
    """Returns the decision of a policy on one observation."""
    wanted = policy.rule.recommend(seen, memory)
    count = min(policy.max_count, max(policy.min_count, wanted.count))
    reason = wanted.reason
    if count != wanted.count:
        reason += f"; bounded to {count}"
    now_s, present = seen.time_s, seen.desired_count
    window = (
        *(
            entry
            for entry in wanted.memory.recommendations
            if entry[0] > now_s - policy.stabilisation_in_s
        ),
        (now_s, count),
    )
    after = replace(wanted.memory, recommendations=window)
    if count < present:
        count = min(present, max(entry[1] for entry in window))
        if count == present:
            reason += "; stabilised"
        elif now_s < memory.last_change_s + policy.cooldown_in_s - _HAIR:
            count, reason = present, f"{reason}; cooldown"
    elif count > present and now_s < memory.last_out_s + policy.cooldown_out_s - _HAIR:
        count, reason = present, f"{reason}; cooldown"
    if count > present:
        after = replace(after, last_out_s=now_s)
    if count != present:
        after = replace(after, last_change_s=now_s)
    return ScalingDecision(count, reason, after)
