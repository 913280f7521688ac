"""A service whose number of instances follows a scaling rule, simulated for a curve of load.

Between two events (a change of the rate, a decision, an instance that becomes ready) requests flow
at constant rates. While a backlog grows or drains, a request waits for the requests before it;
without a backlog the response time is that of M/M/c in equilibrium. The rules are those of the
reference autoscaler. Sources: Newell, Applications of Queueing Theory (1982), chapter 2 (fluid
approximation); Green, Kolesar, The pointwise stationary approximation for queues with
nonstationary arrivals, Management Science 37(1), 1991.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import Scaler, ScalingObservation, ScalingRule
from nephoscope.stats.elasticity import StepFunction, billed_s, lives
from nephoscope.stats.instance_demand import ScaledService, equilibrium, fewest_instances
from nephoscope.stats.queueing import retry_wait_s
from nephoscope.stats.statistics.values import Array, Refused

_MOST_DROPPED = 0.45
"""Share of dropped attempts above which the estimated wait is no longer raised: it has no bound."""
_INITIAL_TIMEOUT_S = 1.0
"""Of a SYN (RFC 6298)."""
_MOST_EVENTS = 4_000_000
_HAIR = 1e-7
"""Seconds between two times that are one; below it, a queue is empty."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision and what it was made of."""

    observation: ScalingObservation
    decision: rules.ScalingDecision


@dataclass(frozen=True, slots=True)
class ScaledRun:
    """Outcome of a simulation from start_s to end_s.

    supply: instances that serve. desired: instances that exist. requests and slow_requests: all,
    and those beyond the limit of the objective (of a mean: those that arrive while it is exceeded).
    violated_s: time at which the objective is not met.
    """

    supply: StepFunction
    desired: StepFunction
    decisions: tuple[Decided, ...]
    requests: float
    slow_requests: float
    violated_s: float
    start_s: float
    end_s: float

    @property
    def slow_ratio(self) -> float:
        """Share of the requests beyond the limit; 0 without requests."""
        return self.slow_requests / self.requests if self.requests else 0.0

    def billed_h(self, unit_s: float) -> float:
        """Returns the instance-hours that are billed in units of this length."""
        return billed_s(lives(self.desired, self.start_s, self.end_s), unit_s) / 3600


def simulate(
    rule: ScalingRule,
    service: ScaledService,
    rate: StepFunction,
    end_s: float,
    rng: np.random.Generator | None = None,
) -> ScaledRun:
    """Simulates a service from the first time of its rates (requests per second) to end_s.

    rng: draws the sampling error of observed metrics; without it they are exact. Raises Refused for
    a time without length, more events than are simulated, and an objective that no number meets.
    """
    return _Simulation(rule, service, rate, end_s, rng).run()


class _FlowTotals:
    """Integrals from the start to each event: arrivals, busy and ready instances, waiting requests,
    waits of refused requests."""

    def __init__(self, start_s: float) -> None:
        self.times = [start_s]
        self.rows: list[tuple[float, ...]] = [(0.0,) * 5]

    def add(self, time_s: float, *more: float) -> None:
        """Adds the integrals since the last event."""
        self.times.append(time_s)
        self.rows.append(tuple(a + b for a, b in zip(self.rows[-1], more, strict=True)))

    def between(self, start_s: float, end_s: float) -> Array:
        """Returns the integrals over a window whose ends are events."""
        first, last = (bisect_left(self.times, at_s - _HAIR) for at_s in (start_s, end_s))
        return np.subtract(self.rows[last], self.rows[first])

    @property
    def arrivals(self) -> float:
        """Requests so far."""
        return self.rows[-1][0]


class _Simulation:
    def __init__(
        self,
        rule: ScalingRule,
        service: ScaledService,
        rate: StepFunction,
        end_s: float,
        rng: np.random.Generator | None,
    ) -> None:
        self.rule, self.service, self.rate, self.rng = rule, service, rate, rng
        self.start_s, self.end_s = rate.times_s[0], end_s
        if not self.start_s < end_s:
            raise Refused("The load has no duration.")
        if rule.minimum < 1:
            raise Refused("The minimum is 0; a simulated service needs at least 1 instance.")
        count = service.start_count
        if count is None:
            count = fewest_instances(service, rate.counts[0])
        count = min(rule.maximum, max(rule.minimum, count))
        self.ready, self.desired = count, count
        self.starting: list[float] = []  # when each becomes ready, a heap
        self.queue = 0.0
        # Requests that wait in the queues of instances which were ready before others came.
        self.held, self.held_by = 0.0, 0
        self.place = 0  # of the present rate
        self.totals = _FlowTotals(self.start_s)
        self.slow = self.violated_s = 0.0
        self.scaler = Scaler(rule)
        self.rates: list[tuple[float, float]] = []
        self.decisions: list[Decided] = []
        self.supply, self.wanted = [(self.start_s, count)], [(self.start_s, count)]

    def run(self) -> ScaledRun:
        decisions, events = self._events()
        place, now_s = 0, self.start_s
        for event_s in events:
            while self.starting and self.starting[0] <= event_s + _HAIR:
                ready_s = heapq.heappop(self.starting)
                now_s = self._flow(now_s, max(now_s, ready_s))
                self._hold()
                self.ready += 1
                self._note(self.supply, ready_s, self.ready)
            now_s = self._flow(now_s, event_s)
            if place < len(decisions) and decisions[place] <= event_s + _HAIR:
                self._decide(decisions[place])
                place += 1
        return ScaledRun(
            _steps(self.supply),
            _steps(self.wanted),
            tuple(self.decisions),
            self.totals.arrivals,
            self.slow,
            self.violated_s,
            self.start_s,
            self.end_s,
        )

    def _events(self) -> tuple[list[float], list[float]]:
        """Returns the times of decisions, and those at which flows change or a window begins."""
        service = self.service
        count = math.ceil((self.end_s - self.start_s) / service.interval_s - _HAIR)
        if 3 * count + len(self.rate.times_s) > _MOST_EVENTS:
            raise Refused(
                f"{count:,} decisions and {len(self.rate.times_s):,} rates are too many to "
                "simulate; use a longer interval or a shorter trace."
            )
        first_s = service.interval_s
        if service.first_decision_s is not None:
            first_s = service.first_decision_s
        places = np.arange(count, dtype=np.float64)
        decisions: Array = self.start_s + first_s + service.interval_s * places
        decisions = decisions[decisions < self.end_s - _HAIR]
        ends = self._window_ends(decisions)
        times = np.concatenate(
            (decisions, ends, ends - service.window_s, self.rate.times_s, [self.end_s])
        )
        times = np.unique(times)
        times = times[(times > self.start_s) & (times <= self.end_s)]
        return decisions.tolist(), times.tolist()

    def _window_ends(self, decisions_s: Array) -> Array:
        """Returns the end of the newest window that is visible at each decision."""
        ends, first_s = decisions_s - self.service.lag_s, self.service.first_value_s
        if first_s is None:
            return ends
        first_s, window_s = self.start_s + first_s, self.service.window_s
        return first_s + window_s * np.floor((ends - first_s + _HAIR) / window_s)

    def _flow(self, from_s: float, until_s: float) -> float:
        """Advances to a time between which rate and ready instances are constant; returns it."""
        if until_s <= from_s:
            return from_s
        rate = self.rate.counts[self._place_of(from_s)]
        while self.held > 0 and from_s < until_s:
            end_s = min(until_s, from_s + self._until_joined_s(rate))
            self._serve(from_s, end_s, rate)
            if self.held <= _HAIR or end_s < until_s:
                self._join()
            from_s = end_s
        if from_s < until_s:
            self._serve(from_s, until_s, rate)
        return until_s

    def _until_joined_s(self, rate: float) -> float:
        """Time until the held requests are served, or no instance has a shorter queue than another.

        Until then all arrivals go to the instances that came later.
        """
        times = [self.held / (self.held_by * self.service.services_per_s)]
        if rate > 0:
            free = self.ready - self.held_by
            times.append(max(0.0, self.held / self.held_by * free - self.queue) / rate)
        return min(times)

    def _hold(self) -> None:
        """Leaves the queue to the present instances, before another one becomes ready."""
        if not self.service.shared_queue and self.queue > 0 and not self.held:
            self.held, self.held_by, self.queue = self.queue, self.ready, 0.0

    def _join(self) -> None:
        self.queue, self.held, self.held_by = self.queue + self.held, 0.0, 0
        if self.queue <= _HAIR:
            self.queue = 0.0

    def _serve(self, from_s: float, until_s: float, rate: float) -> None:
        """Serves arrivals by the instances that hold no queue of their own."""
        spare = (self.ready - self.held_by) * self.service.services_per_s - rate
        if self.queue > 0 and spare > 0:
            empty_s = from_s + self.queue / spare
            if empty_s < until_s - _HAIR:
                self._backlogged(from_s, empty_s, rate, 0.0)
                from_s = empty_s
        if self.queue > 0 or spare <= 0:
            after = max(0.0, self.queue - spare * (until_s - from_s))
            self._backlogged(from_s, until_s, rate, after)
        else:
            self._steady(from_s, until_s, rate)

    def _add(
        self, until_s: float, length_s: float, rate: float, flows: tuple[float, float, float]
    ) -> None:
        """Adds a part in which rate and flows are constant, and serves the held requests.

        flows: busy instances, waiting requests, wait of a refused request until it is accepted.
        """
        busy, waiting, retry_s = flows
        if self.held_by:
            served = min(self.held, self.held_by * self.service.services_per_s * length_s)
            busy, waiting = busy + self.held_by, waiting + self.held - served / 2
            self.held -= served
        parts = (rate, busy, self.ready, waiting, rate * retry_s)
        self.totals.add(until_s, *(part * length_s for part in parts))

    def _place_of(self, time_s: float) -> int:
        times = self.rate.times_s
        while self.place + 1 < len(times) and times[self.place + 1] <= time_s + _HAIR:
            self.place += 1
        return self.place

    def _steady(self, from_s: float, until_s: float, rate: float) -> None:
        """M/M/c in equilibrium."""
        service, length_s = self.service, until_s - from_s
        mean_s, beyond = equilibrium(service, self.ready - self.held_by, rate)
        load = rate / service.services_per_s
        waiting = rate * (mean_s - 1 / service.services_per_s)
        is_met = service.objective.is_met(mean_s, beyond)
        if service.objective.share is None:
            beyond = 0.0 if is_met else 1.0
        self.slow += rate * length_s * beyond
        self.violated_s += 0.0 if is_met else length_s
        self._add(until_s, length_s, rate, (load, waiting, 0.0))

    def _backlogged(self, from_s: float, until_s: float, rate: float, after: float) -> None:
        """All instances are busy, and the queue changes from its length to another one."""
        service, length_s = self.service, until_s - from_s
        busy = self.ready - self.held_by
        drained = busy * service.services_per_s
        waits = self.queue / drained, after / drained
        slow, violated = _beyond_while_waiting(service, *waits)
        self.slow += rate * length_s * slow
        self.violated_s += violated * length_s
        waiting = (self.queue + after) / 2
        accepted = min(waiting, service.backlog)
        retry_s = 0.0
        if waiting > service.backlog and rate > drained:
            dropped = min(_MOST_DROPPED, 1 - drained / rate)
            retry_s = retry_wait_s(dropped, _INITIAL_TIMEOUT_S)
        self.queue = after if after > _HAIR else 0.0
        self._add(until_s, length_s, rate, (float(busy), accepted, retry_s))

    def _decide(self, now_s: float) -> None:
        seen = self._observed(now_s)
        decision = self.scaler.decide(seen)
        self.decisions.append(Decided(seen, decision))
        change = decision.desired - self.desired
        for _ in range(change):
            heapq.heappush(self.starting, now_s + self.service.boot_s + self.service.warm_up_s)
        for _ in range(-change):
            if self.starting:
                self.starting.remove(max(self.starting))
                heapq.heapify(self.starting)
            else:
                self.ready -= 1
                if self.ready <= self.held_by:
                    self._join()
        self.desired = decision.desired
        self._note(self.supply, now_s, self.ready)
        self._note(self.wanted, now_s, self.desired)

    def _observed(self, now_s: float) -> ScalingObservation:
        end_s = float(self._window_ends(np.array([now_s]))[0])
        from_s = max(self.start_s, end_s - self.service.window_s)
        if end_s <= from_s + _HAIR:
            return ScalingObservation(now_s, self.desired, self.ready, None)
        arrivals, busy, ready, waiting, retry_s = self.totals.between(from_s, end_s).tolist()
        utilisation = busy / ready
        response_s = None
        if arrivals > 0 and busy > 0:
            # Little's law, as a server can estimate it, and the wait of refused connections.
            served = busy * self.service.services_per_s
            response_s = (busy + waiting) / served + retry_s / arrivals
        rate, worked, timed = self._sampling_errors(arrivals, utilisation)
        if utilisation < 1:
            busy = min(ready, busy * worked)
        if self.rule.policy == rules.PREDICTIVE:
            oldest_s = now_s - max(self.rule.history_s, self.rule.period_s)
            while self.rates and self.rates[0][0] < oldest_s - self.service.interval_s:
                del self.rates[0]
            # As the reference autoscaler does: a rate has the time at which it became visible.
            self.rates.append((now_s, arrivals * rate / (end_s - from_s)))
        values = {
            rules.CPU: min(1.0, busy / ready * self.service.cpu_ratio),
            rules.QUEUE: busy / ready + waiting / ready * timed,
            rules.RESPONSE_TIME: response_s and response_s * timed,
            rules.RATE: arrivals * rate / ready,
        }
        value = values[self.rule.metric]
        return ScalingObservation(now_s, self.desired, self.ready, value, tuple(self.rates))

    def _sampling_errors(self, arrivals: float, utilisation: float) -> tuple[float, float, float]:
        """Returns factors of the rate, the work and the response time of one window.

        Arrivals are Poisson, their work a sum of exponential times. Response times are independent
        only between busy periods, of which M/M/1 has 1 - utilisation for each request.
        """
        if self.rng is None or arrivals <= 0:
            return 1.0, 1.0, 1.0
        service = self.service
        count = int(self.rng.poisson(arrivals))
        # Whole requests are counted, also where arrivals are regular.
        counted = math.floor(arrivals + float(self.rng.random())) / arrivals - 1
        arrived = service.arrivals_cv * (count / arrivals - 1) + counted
        worked = service.service_cv * (float(self.rng.gamma(arrivals)) / arrivals - 1)
        periods = max(1.0, count * (1 - utilisation))
        timed = math.sqrt(service.wait_ratio) * (float(self.rng.gamma(periods)) / periods - 1)
        return tuple(max(0.0, 1 + error) for error in (arrived, arrived + worked, timed))  # type: ignore[return-value]

    def _note(self, steps: list[tuple[float, int]], time_s: float, count: int) -> None:
        if steps[-1][0] >= time_s - _HAIR:
            steps[-1] = (steps[-1][0], count)
            if len(steps) > 1 and steps[-2][1] == count:
                steps.pop()
        elif steps[-1][1] != count:
            steps.append((time_s, count))


def _steps(steps: list[tuple[float, int]]) -> StepFunction:
    return StepFunction(tuple(at for at, _ in steps), tuple(float(count) for _, count in steps))


def _beyond_while_waiting(
    service: ScaledService, first_s: float, last_s: float
) -> tuple[float, float]:
    """Returns the share of requests beyond the limit, and of the time at which it is not met.

    The wait changes evenly from first_s to last_s; the service after it is exponential.
    """
    limit_s, rate = service.objective.limit_s, service.services_per_s
    share = service.objective.share
    if share is None:
        violated = _part_above(limit_s - 1 / rate, first_s, last_s)
        return violated, violated
    low, high = sorted((first_s, last_s))
    if high - low < _HAIR:
        slow = min(1.0, math.exp(-rate * (limit_s - high)) if high < limit_s else 1.0)
    else:
        slow = (_slow_area(rate, limit_s, high) - _slow_area(rate, limit_s, low)) / (high - low)
    return slow, _part_above(limit_s + math.log(1 - share) / rate, low, high)


def _slow_area(rate: float, limit_s: float, wait_s: float) -> float:
    """Integral over waits up to wait_s of the share beyond the limit."""
    below = math.exp(-rate * max(0.0, limit_s - wait_s)) / rate
    return below + max(0.0, wait_s - limit_s)


def _part_above(bound: float, first: float, last: float) -> float:
    low, high = min(first, last), max(first, last)
    if high - low < _HAIR:
        return 1.0 if high > bound else 0.0
    return min(1.0, max(0.0, (high - bound) / (high - low)))
