"""The reference autoscaler: a rule, a balancer, and machines that boot and warm up.

`python3 -m nephoscope.autoscalers.reference JSON`. Settings: `address` and `service_port` of the
balancer, `port` (GET /instances prints the number in rotation), `machines` (name -> control and
service, each address:port), `rule` (see rules.ScalingRule), `metric_interval_s`, `metric_lag_s`,
`decision_interval_s`, `boot_s`, `warm_up_s` with `delay_cv_ratio` and `seed`, `initial`.

From the first request on, values and decisions follow a phase that `seed` draws: when programs
started decides nothing, and autoscalers with one seed meet a load at the same moments.

Each machine passes the same states; each change is an event with the number in each state.
"""

from __future__ import annotations

import json
import math
import random
import socket
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections import deque
from dataclasses import dataclass
from typing import Any

from nephoscope.autoscalers import log, rules
from nephoscope.autoscalers.balancer import Balancer, BalancerCounters

_POLL_S = 0.02
_DRAIN_S = 10.0
_CONTROL_S = 5.0
OFF, CREATED, BOOTED, IN_ROTATION, DRAINING = "off", "created", "booted", "in_rotation", "draining"


@dataclass(slots=True)
class MachineView:
    """A machine as the autoscaler sees it. before: its responses when it came into rotation."""

    name: str
    control: str
    service: tuple[str, int]
    state: str = OFF
    since_s: float = 0.0
    before: int = -1

    def call(self, method: str, path: str) -> tuple[int, str]:
        """Calls the control; status 0 where it does not answer."""
        request = urllib.request.Request(f"http://{self.control}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=_CONTROL_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError:
            return 0, ""

    def accepts(self) -> bool:
        """States whether the service accepts connections."""
        try:
            with socket.create_connection(self.service, timeout=0.2):
                return True
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A value of the metric, and when the rule may see it."""

    visible_s: float
    value: float
    rate: float


class Autoscaler:
    """The loop of the autoscaler."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._rule = rules.rule_of(dict(settings["rule"]))
        self._scaler = rules.Scaler(self._rule)
        self._random = random.Random(settings["seed"])
        self._phases = self._random.random(), self._random.random()
        self._machines = [
            MachineView(
                name, control, (service.rpartition(":")[0], int(service.rpartition(":")[2]))
            )
            for name, (control, service) in settings["machines"].items()
        ]
        services = {name: service for name, (_, service) in settings["machines"].items()}
        address, port = settings["address"], settings["service_port"]
        self._balancer = Balancer(address, port, services, settings["timeout_s"])
        self._hidden: deque[MetricValue] = deque()
        self._value: float | None = None
        remembered_s = max(self._rule.history_s, self._rule.period_s)
        length = math.ceil(remembered_s / settings["metric_interval_s"]) + 2
        self._rates: deque[tuple[float, float]] = deque(maxlen=length)
        self._start_s = time.monotonic()
        self._first_request_s: float | None = None
        self._window: list[tuple[float, int]] = []
        self._last: BalancerCounters | None = None
        self._cpu_s: dict[str, tuple[float, float]] = {}
        self._is_capped = False

    def run(self) -> None:
        """Starts the initial machines, then scales until SIGTERM."""
        self._await_controls()
        for machine in self._machines[: self._settings["initial"]]:
            self._start(machine, 0.0, 0.0)
        while self._in(CREATED, BOOTED) and not log.ended.is_set():
            self._advance(self._balancer.counters())
            time.sleep(_POLL_S)
        if len(self._in(IN_ROTATION)) < self._settings["initial"]:
            raise SystemExit("A machine that was to run from the beginning did not start.")
        self._start_s = time.monotonic()
        count = len(self._in(IN_ROTATION))
        log.event("begins", present=count, in_rotation=count, billed=count)
        log.serve(self._settings["address"], int(self._settings["port"]), self._answer)
        next_metric_s = next_decision_s = 0.0
        while not log.ended.is_set():
            now_s = time.monotonic() - self._start_s
            counters = self._balancer.counters()
            if self._first_request_s is None and counters.arrived:
                self._first_request_s = now_s
                metric_phase, decision_phase = self._phases
                next_metric_s = now_s + metric_phase * self._settings["metric_interval_s"]
                next_decision_s = now_s + decision_phase * self._settings["decision_interval_s"]
            self._window.append((counters.at_s, counters.in_system))
            self._advance(counters)
            if now_s >= next_metric_s:
                next_metric_s = _next(next_metric_s, self._settings["metric_interval_s"], now_s)
                self._measure(counters, now_s)
            self._reveal(now_s)
            if now_s >= next_decision_s:
                next_decision_s = _next(
                    next_decision_s, self._settings["decision_interval_s"], now_s
                )
                self._decide(now_s)
            log.ended.wait(_POLL_S)
        self._balancer.end()
        log.event("ended")

    def _await_controls(self) -> None:
        until_s = time.monotonic() + 20
        for machine in self._machines:
            while machine.call("GET", "/state")[0] != 200:
                if time.monotonic() > until_s:
                    raise SystemExit(f"The control of {machine.name} does not answer.")
                time.sleep(_POLL_S)

    def _answer(self, method: str, path: str) -> tuple[int, str]:
        if path == "/instances":
            return 200, f"{len(self._in(IN_ROTATION))}\n"
        return 404, ""

    def _in(self, *states: str) -> list[MachineView]:
        return [machine for machine in self._machines if machine.state in states]

    def _enter(self, machine: MachineView, state: str, step: str, **values: object) -> None:
        """Puts a machine into a state, and states the number of machines in each."""
        machine.state, machine.since_s = state, time.monotonic()
        log.event(
            step,
            instance=machine.name,
            present=len(self._in(CREATED, BOOTED, IN_ROTATION)),
            in_rotation=len(self._in(IN_ROTATION)),
            billed=len(self._in(CREATED, BOOTED, IN_ROTATION, DRAINING)),
            **values,
        )

    def _start(self, machine: MachineView, boot_s: float, warm_up_s: float) -> None:
        self._enter(machine, CREATED, "created", boot_s=boot_s, warm_up_s=warm_up_s)
        status, _ = machine.call("POST", f"/start?boot={boot_s}&warm_up={warm_up_s}")
        if status != 202:
            self._enter(machine, OFF, "failed")

    def _advance(self, counters: BalancerCounters) -> None:
        """Lets each machine pass to its next state, where it is observed there."""
        for machine in self._machines:
            if machine.state == CREATED:
                if machine.accepts():
                    self._enter(machine, BOOTED, "booted")
                else:
                    self._check(machine)
            if machine.state == BOOTED and machine.call("GET", "/health")[0] == 200:
                log.event("ready", instance=machine.name)
                machine.before = counters.responses[machine.name]
                self._balancer.admit(machine.name)
                self._enter(machine, IN_ROTATION, "in_rotation")
            elif machine.state == IN_ROTATION and machine.before >= 0:
                if counters.responses[machine.name] > machine.before:
                    machine.before = -1
                    log.event("served", instance=machine.name)
            elif machine.state == DRAINING:
                drained_s = time.monotonic() - machine.since_s
                if not counters.sessions[machine.name] or drained_s > _DRAIN_S:
                    self._balancer.remove([machine.name])
                    machine.call("POST", "/stop")
                    self._enter(machine, OFF, "removed")

    def _check(self, machine: MachineView) -> None:
        """Gives up a machine whose service has ended by itself."""
        status, text = machine.call("GET", "/state")
        if status == 200 and json.loads(text)["died"]:
            self._balancer.remove([machine.name])
            machine.call("POST", "/stop")
            self._enter(machine, OFF, "died")

    def _measure(self, counters: BalancerCounters, now_s: float) -> None:
        """Ends an interval of the metric: its value is visible after the lag."""
        for machine in self._in(IN_ROTATION):
            self._check(machine)
        last, window = self._last, self._window
        self._last, self._window = counters, []
        ready = max(1, len(self._in(IN_ROTATION)))
        used = self._used_cpus() if self._rule.metric == rules.CPU else 0.0
        if last is None or counters.at_s <= last.at_s:
            return
        length_s = counters.at_s - last.at_s
        in_system = sum(count for _, count in window) / len(window)
        completed = counters.completed - last.completed
        rate = (counters.arrived - last.arrived) / length_s
        value = {
            rules.CPU: used / ready / self._settings["cpus"],
            rules.QUEUE: in_system / ready,
            # Little's law: the mean number in the system over the rate at which requests leave it.
            # Where none left, the oldest waited at least as long as the interval.
            rules.RESPONSE_TIME: in_system * length_s / max(completed, 1),
            rules.RATE: rate / ready,
        }[self._rule.metric]
        self._hidden.append(MetricValue(now_s + self._settings["metric_lag_s"], value, rate))

    def _used_cpus(self) -> float:
        """Returns the CPUs that all machines in rotation used since the last call."""
        total = 0.0
        for machine in self._in(IN_ROTATION):
            status, text = machine.call("GET", "/state")
            if status != 200:
                continue
            state, at_s = json.loads(text), time.monotonic()
            last_s, last_cpu_s = self._cpu_s.get(machine.name, (at_s, state["cpu_s"]))
            self._cpu_s[machine.name] = at_s, state["cpu_s"]
            if at_s > last_s and state["cpu_s"] >= last_cpu_s:
                total += (state["cpu_s"] - last_cpu_s) / (at_s - last_s)
        return total

    def _observation(self, now_s: float) -> rules.ScalingObservation:
        present = len(self._in(CREATED, BOOTED, IN_ROTATION))
        ready = len(self._in(IN_ROTATION))
        if self._rule.policy == rules.SCHEDULE:
            # A schedule is of the load, which begins some seconds later than this program.
            first_s = self._first_request_s
            now_s = 0.0 if first_s is None else now_s - first_s
        return rules.ScalingObservation(now_s, present, ready, self._value, tuple(self._rates))

    def _reveal(self, now_s: float) -> None:
        """Lets the rule see what has become visible."""
        while self._hidden and self._hidden[0].visible_s <= now_s:
            measured = self._hidden.popleft()
            self._value = measured.value
            self._rates.append((measured.visible_s, measured.rate))
            wanted = rules.wanted_of(self._rule, self._observation(now_s))
            log.event("metric", value=measured.value, rate=measured.rate, wanted=wanted)

    def _decide(self, now_s: float) -> None:
        observation = self._observation(now_s)
        decision = self._scaler.decide(observation)
        log.event(
            "decision",
            value=-1.0 if observation.value is None else observation.value,
            present=observation.present,
            ready=observation.ready,
            wanted=decision.wanted,
            desired=decision.desired,
            reason=decision.reason,
        )
        missing = decision.desired - observation.present
        for machine in self._in(OFF)[: max(0, missing)]:
            self._start(machine, self._delay("boot_s"), self._delay("warm_up_s"))
        # The youngest leave first: those that serve nobody yet, then by their time in rotation.
        young = sorted(
            self._in(CREATED, BOOTED, IN_ROTATION),
            key=lambda machine: (machine.state == IN_ROTATION, -machine.since_s),
        )
        for machine in young[: max(0, -missing)]:
            if machine.state == IN_ROTATION:
                self._balancer.drain(machine.name)
                self._enter(machine, DRAINING, "out_of_rotation")
            else:
                machine.call("POST", "/stop")
                self._enter(machine, OFF, "removed")

    def _delay(self, name: str) -> float:
        """Draws a log-normal time with the mean and coefficient of variation of the settings."""
        mean, cv = float(self._settings[name]), float(self._settings["delay_cv_ratio"])
        if not mean or not cv:
            return mean
        sigma = math.sqrt(math.log1p(cv * cv))
        return self._random.lognormvariate(math.log(mean) - sigma * sigma / 2, sigma)


def _next(due_s: float, interval_s: float, now_s: float) -> float:
    """Returns the next time of a schedule, without making up for those that were missed."""
    return max(due_s + interval_s, now_s)


def main(settings: dict[str, Any]) -> None:
    """Scales until SIGTERM."""
    log.begin()
    try:
        Autoscaler(settings).run()
    except Exception as error:
        # The last line of the output is what a failed trial states.
        log.event(
            "crashed", error=repr(error), line=traceback.extract_tb(error.__traceback__)[-1].line
        )
        raise


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
