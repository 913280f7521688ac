"""A simulated service under a scaling rule: against hand-computed areas and a played queue."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace

import numpy as np
import pytest

from nephoscope.autoscalers import rules
from nephoscope.autoscalers.rules import Scaler, ScalingRule
from nephoscope.stats.elasticity import StepFunction, clairvoyant_billed_s, measures
from nephoscope.stats.instance_demand import ScaledService, demand_of
from nephoscope.stats.queueing import ResponseObjective, fewest_workers
from nephoscope.stats.scaled_service import simulate
from nephoscope.stats.statistics.values import Refused

FIXED = ScalingRule(policy=rules.FIXED, maximum=99)
SERVICE = ScaledService(
    services_per_s=10.0,
    objective=ResponseObjective(0.5, 0.95),
    boot_s=40.0,
    warm_up_s=20.0,
    lag_s=10.0,
    window_s=30.0,
    interval_s=30.0,
)
RATE = StepFunction((0.0, 100.0), (8.0, 32.0))
END_S = 400.0


def test_areas_are_those_computed_by_hand() -> None:
    # p95 < 0.5 s: M/M/4 at 3.2 Erlangs has C = 0.5964, and (1 - C) e^-5 + C (5 e^-4 - 4 e^-5) is
    # 4.1 %; three instances cannot serve 32/s.
    needed = [fewest_workers(10.0, rate, SERVICE.objective) for rate in (8.0, 32.0)]
    assert demand_of(SERVICE, RATE).counts == tuple(map(float, needed))
    assert needed == [2, 4]
    run = simulate(ScalingRule(target=0.5, maximum=99), SERVICE, RATE, END_S)
    # Utilisation with 2 instances is 0.4 until 100 s: the target over 0.8, ceil(2 * 0.8) = 2. At
    # 120 s the window is 80 to 110 s: 2/3 of 0.4 and 1/3 of 1 are 0.6, ceil(2 * 1.2) = 3. At 150 s
    # it is 1: ceil(2 * 2) = 4, all of which serve 60 s later.
    at_120, at_150 = run.decisions[3], run.decisions[4]
    assert at_120.observation.value == pytest.approx(0.6)
    assert (at_120.decision.desired, at_150.decision.desired) == (3, 4)
    assert run.supply.changes(0, 211) == [(180.0, 1.0), (210.0, 1.0)]
    # The backlog is 12 * 80 + 2 * 30 = 1020 at 210 s, 780 at 240 s, and is gone at 267.9 s. Until
    # then all are busy: twice the ready ones are requested at 180 s (3), 210 s (4) and 240 s (6).
    assert [each.decision.desired for each in run.decisions[5:8]] == [6, 8, 12]
    assert run.supply.changes(211, 301) == [(240.0, 2.0), (270.0, 2.0), (300.0, 4.0)]
    # From 260 to 290 s, 6 are busy for 7.857 s and 3.2 of 6 to 270 s, 3.2 of 8 from there.
    used = (6 * 7.857 + 3.2 * 22.143) / (6 * 10 + 8 * 20)
    assert run.decisions[9].observation.value == pytest.approx(used, abs=1e-4)
    until = measures(run.supply, demand_of(SERVICE, RATE), 0, 300, sampling_s=10)
    # 2 missing from 100 to 180 s, 1 to 210 s; 2 too many from 240 s, 4 from 270 s.
    assert until.under_provisioned == pytest.approx((2 * 80 + 30) / 300)
    assert until.over_provisioned == pytest.approx((2 * 30 + 4 * 30) / 300)
    assert until.under_time_ratio == pytest.approx(110 / 300)


def test_instances_that_exist_are_billed_and_the_minimum_is_the_demands() -> None:
    run = simulate(FIXED, replace(SERVICE, start_count=4), RATE, 3600.0)
    assert run.billed_h(0) == pytest.approx(4.0)
    least = clairvoyant_billed_s(demand_of(SERVICE, RATE), 0, 3600)
    assert least == pytest.approx(2 * 100 + 4 * 3500)


def test_a_backlog_grows_and_drains_as_flows_do() -> None:
    rate = StepFunction((0.0, 10.0, 30.0), (0.0, 20.0, 4.0))
    service = replace(SERVICE, start_count=1)
    run = simulate(FIXED, service, rate, 200.0)
    # 10/s more than one instance serves for 20 s: 200 wait, which drain at 6/s by 63.3 s. The limit
    # of p95 is passed at a wait of 0.5 - ln(20) / 10 s, which is 2 requests, from 10.2 s on.
    waiting = 10 * (0.5 - math.log(20) / 10)
    assert run.violated_s == pytest.approx(30 - 10 - waiting / 10 + (200 - waiting) / 6, abs=0.01)
    assert run.requests == pytest.approx(20 * 20 + 4 * 170)
    queued = simulate(replace(FIXED, metric=rules.QUEUE), service, rate, 200.0)
    # At 60 s the window is 20 to 50 s: one request is served all the time, and 100 to 200 and then
    # 200 to 80 wait.
    waiting = (150 * 10 + 140 * 20) / 30
    assert queued.decisions[1].observation.value == pytest.approx(1 + waiting)


def test_steady_response_times_are_those_of_the_queue() -> None:
    rate = StepFunction((0.0,), (30.0,))
    service = replace(SERVICE, start_count=4)
    run = simulate(FIXED, service, rate, 600.0)
    seen = {
        metric: simulate(replace(FIXED, metric=metric), service, rate, 600.0).decisions[-1]
        for metric in rules.METRICS
    }
    # M/M/4 at 3 Erlangs: C = 0.5094 (published tables of Erlang C).
    time_s = seen[rules.RESPONSE_TIME].observation.value
    assert time_s is not None
    assert time_s == pytest.approx(0.1 + 0.5094 / 10, rel=1e-3)
    assert seen[rules.QUEUE].observation.value == pytest.approx(30 * time_s / 4)
    assert seen[rules.CPU].observation.value == pytest.approx(0.75)
    assert seen[rules.RATE].observation.value == pytest.approx(7.5)
    assert run.slow_ratio < 0.05


def test_refused_connections_reach_the_client_and_not_the_queue() -> None:
    rate = StepFunction((0.0,), (15.0,))
    service = replace(SERVICE, backlog=5.0, start_count=1)
    queue, client_s = (
        simulate(ScalingRule(metric, rules.FIXED), service, rate, 300.0)
        .decisions[-1]
        .observation.value
        for metric in (rules.QUEUE, rules.RESPONSE_TIME)
    )
    assert queue == pytest.approx(1 + 5)
    # The server's own time is 0.6 s; a third of the attempts waits 1 s · d / (1 - 2 d).
    assert client_s == pytest.approx(0.5 + 0.1 + (1 / 3) / (1 - 2 / 3), rel=1e-6)


def test_a_run_is_replayed_by_its_observations() -> None:
    rule = ScalingRule(
        policy=rules.STEP, up_at=0.8, down_at=0.4, maximum=9, cooldown_out_s=60, cooldown_in_s=90
    )
    times = np.arange(0.0, 7200.0, 60.0)
    rate = StepFunction(tuple(times), tuple(30 + 25 * np.sin(times / 700)))
    run = simulate(rule, SERVICE, rate, 7200.0, np.random.default_rng(3))
    scaler = Scaler(rule)
    counts = [scaler.decide(each.observation).desired for each in run.decisions]
    assert counts == [each.decision.desired for each in run.decisions]
    assert len(set(counts)) > 3


ARRIVAL, DEPARTURE, SAMPLE, DECISION, READY = range(5)


class _Played:
    """A queue that is played request by request, with a target tracking of its own."""

    def __init__(self, target: float, seed: int) -> None:
        self.target, self.rng = target, np.random.default_rng(seed)
        self.ready = self.desired = 3
        self.busy = self.waiting = 0
        self.events: list[tuple[float, int]] = []
        self.starting: list[float] = []
        self.sampled = [(0.0, 0.0), (0.0, 0.0)]

    def supply(self, rate: StepFunction, end_s: float) -> StepFunction:
        ends = (*rate.times_s[1:], end_s)
        for start, end, each in zip(rate.times_s, ends, rate.counts, strict=True):
            times = self.rng.uniform(start, end, int(self.rng.poisson(each * (end - start))))
            self.events += [(float(at), ARRIVAL) for at in times]
        decisions = range(1, int(end_s / SERVICE.interval_s))
        self.events += [(SERVICE.interval_s * k, DECISION) for k in decisions]
        self.events += [(SERVICE.interval_s * k - SERVICE.lag_s, SAMPLE) for k in decisions]
        heapq.heapify(self.events)
        now, used, present = 0.0, 0.0, 0.0
        supply = {0.0: 3}
        while self.events:
            time, kind = heapq.heappop(self.events)
            used += min(self.busy, self.ready) * (time - now)
            present += self.ready * (time - now)
            now = time
            if kind == SAMPLE:
                self.sampled = [self.sampled[1], (used, present)]
            self._handle(kind, now)
            supply[round(now, 6)] = self.ready
            while self.waiting and self.busy < self.ready:
                self.waiting, self.busy = self.waiting - 1, self.busy + 1
                done = now + float(self.rng.exponential(1 / SERVICE.services_per_s))
                if done < end_s:
                    heapq.heappush(self.events, (done, DEPARTURE))
        return StepFunction(tuple(supply), tuple(map(float, supply.values())))

    def _handle(self, kind: int, now: float) -> None:
        if kind == ARRIVAL:
            self.waiting += 1
        elif kind == DEPARTURE:
            self.busy -= 1
        elif kind == DECISION:
            self._decide(now)
        elif kind == READY and now in self.starting:
            self.starting.remove(now)
            self.ready += 1

    def _decide(self, now: float) -> None:
        (busy_before, before), (busy_after, after) = self.sampled
        ratio = (busy_after - busy_before) / (after - before) / self.target
        needed = self.desired
        if abs(ratio - 1) > 0.1:
            needed = max(1, math.ceil(self.ready * ratio))
        for number in range(needed - self.desired):
            # Apart by a nanosecond, so that each can be cancelled; before a decision at that time.
            delay_s = SERVICE.boot_s + SERVICE.warm_up_s - 1e-9 * (number + 1)
            self.starting.append(now + delay_s)
            heapq.heappush(self.events, (self.starting[-1], READY))
        for _ in range(self.desired - needed):
            if self.starting:
                self.starting.pop()
            else:
                self.ready -= 1
        self.desired = needed


def _areas(counts: tuple[float, ...], target: float, played: int) -> tuple[np.ndarray, np.ndarray]:
    """Missing and unneeded instances of simulated and of played replications."""
    rate, end_s = StepFunction((0.0, 300.0, 900.0, 1500.0), counts), 2100.0
    service, rule = replace(SERVICE, start_count=3), ScalingRule(target=target, maximum=999)
    demand = demand_of(service, rate)
    supplies = [
        [
            simulate(rule, service, rate, end_s, np.random.default_rng(seed)).supply
            for seed in range(20)
        ],
        [_Played(target, seed).supply(rate, end_s) for seed in range(played)],
    ]
    return tuple(  # type: ignore[return-value]
        np.array(
            [
                (each.under_provisioned, each.over_provisioned)
                for each in (measures(supply, demand, 0, end_s) for supply in group)
            ]
        )
        for group in supplies
    )


def test_areas_are_within_a_tenth_of_those_of_a_played_queue() -> None:
    simulated, played = _areas((20.0, 44.0, 73.0, 25.0), 0.55, 2)
    assert simulated.mean(axis=0) == pytest.approx(played.mean(axis=0), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "target"),
    [
        ((20.0, 50.0, 90.0, 30.0), 0.6),
        ((20.0, 120.0, 200.0, 60.0), 0.6),
        ((20.0, 60.0, 100.0, 40.0), 0.5),
        ((20.0, 30.0, 45.0, 15.0), 0.7),
    ],
)
def test_areas_of_many_replications(counts: tuple[float, ...], target: float) -> None:
    simulated, played = _areas(counts, target, 10)
    # A tenth, and the error of both means.
    errors = [group.std(axis=0, ddof=1) / np.sqrt(len(group)) for group in (simulated, played)]
    apart = np.abs(simulated.mean(axis=0) - played.mean(axis=0))
    assert (apart <= 0.1 * played.mean(axis=0) + 3 * np.hypot(*errors)).all()


def test_sampling_errors_vary_decisions_and_a_seed_repeats_them() -> None:
    times = np.arange(0.0, 3600.0, 60.0)
    rate = StepFunction(tuple(times), tuple(20 + 15 * np.sin(times / 400)))
    rule = ScalingRule(target=0.6, tolerance_ratio=0.0, maximum=99)
    runs = [
        simulate(rule, SERVICE, rate, 3600.0, np.random.default_rng(seed)).supply
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("rule", "service", "words"),
    [
        (ScalingRule(minimum=0), SERVICE, "at least 1"),
        (FIXED, replace(SERVICE, interval_s=1e-5), "too many"),
        (
            FIXED,
            replace(SERVICE, objective=ResponseObjective(0.05, 0.95)),
            "No number of instances",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    rule: ScalingRule, service: ScaledService, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        simulate(rule, service, RATE, END_S)


def test_regular_arrivals_are_counted_in_whole_requests() -> None:
    service = replace(SERVICE, arrivals_cv=0.0, service_cv=0.0, window_s=1.0)
    rate = StepFunction((0.0,), (5.5,))
    run = simulate(
        replace(FIXED, metric=rules.RATE), service, rate, 3600.0, np.random.default_rng(1)
    )
    values = [each.observation.value for each in run.decisions]
    assert set(np.round(np.array(values, dtype=float), 6)) == {5.0, 6.0}


@pytest.mark.parametrize("shared", [True, False])
def test_a_queue_stays_with_its_instance_or_is_shared(shared: bool) -> None:
    service = replace(
        SERVICE,
        boot_s=0.0,
        warm_up_s=0.0,
        lag_s=0.0,
        window_s=10.0,
        interval_s=10.0,
        start_count=1,
        shared_queue=shared,
    )
    rate = StepFunction((0.0, 10.0), (20.0, 4.0))
    rule = ScalingRule(rules.QUEUE, rules.SCHEDULE, schedule=((0.0, 1), (10.0, 2)), maximum=2)
    seen = simulate(rule, service, rate, 40.0).decisions[1].observation
    # 100 wait at 10 s. Two instances serve 16/s of them, until 16.25 s; from then on M/M/2 has 0.4
    # in service and 0.0167 waiting. One serves 10/s of them, until 20 s, while the other is M/M/1.
    shared_area = 100 * 6.25 / 2 + 2 * 6.25 + (0.4 + 0.0167) * 3.75
    own_area = 100 * 10 / 2 + (1 + 0.4 + 0.2667) * 10
    expected = (shared_area if shared else own_area) / 10 / 2
    assert seen.value == pytest.approx(expected, rel=1e-4)


def test_a_queue_of_few_instances_joins_where_the_others_have_longer_ones() -> None:
    service = replace(
        SERVICE, boot_s=0.0, warm_up_s=0.0, lag_s=0.0, window_s=10.0, interval_s=10.0, start_count=1
    )
    service = replace(service, shared_queue=False)
    # 100 wait at 10 s; 30/s go to the second instance, whose queue grows by 20/s while the first
    # one's falls by 10/s: at 13.33 s both have 66.7, and from then on they share 10/s more.
    rate = StepFunction((0.0, 10.0), (20.0, 30.0))
    rule = ScalingRule(rules.QUEUE, rules.SCHEDULE, schedule=((0.0, 1), (10.0, 2)), maximum=2)
    seen = simulate(rule, service, rate, 40.0).decisions[1].observation
    # All in all 10/s more from 100 on: 150 in the mean, and both busy.
    assert seen.value == pytest.approx((150 + 2) / 2)


TIMED = replace(
    SERVICE,
    services_per_s=100.0,
    lag_s=0.0,
    window_s=4.0,
    interval_s=10.0,
    first_decision_s=5.0,
    start_count=1,
)
"""Decides at 5, 15, 25 s, by windows of 4 s."""


def test_windows_of_a_metric_have_a_clock_of_their_own() -> None:
    """Decisions at 5, 15 and 25 s; windows of 4 s that end at 3, 7, … 23 s miss a step at 24 s."""
    rate = StepFunction((0.0, 24.0), (8.0, 80.0))
    rule = replace(FIXED, metric=rules.RATE)

    def seen(service: ScaledService) -> list[float | None]:
        return [each.observation.value for each in simulate(rule, service, rate, 30.0).decisions]

    assert seen(TIMED) == pytest.approx([8.0, 8.0, (3 * 8 + 80) / 4])
    assert seen(replace(TIMED, first_value_s=3.0)) == pytest.approx([8.0, 8.0, 8.0])
    # With a lag of 2.5 s the window that ended at 3 s is visible at 5.5 s: at 5 s none is.
    assert seen(replace(TIMED, first_value_s=3.0, lag_s=2.5))[0] is None


def test_instances_that_use_cpu_time_beyond_their_requests_show_it() -> None:
    rule = replace(FIXED, metric=rules.CPU)

    def seen(cpu_ratio: float, rate_per_s: float) -> float | None:
        rate = StepFunction((0.0,), (rate_per_s,))
        own = replace(TIMED, cpu_ratio=cpu_ratio)
        return simulate(rule, own, rate, 20.0).decisions[0].observation.value

    assert seen(1.0, 40.0) == pytest.approx(0.4)
    assert seen(1.05, 40.0) == pytest.approx(0.42)
    assert seen(1.05, 99.0) == 1.0
