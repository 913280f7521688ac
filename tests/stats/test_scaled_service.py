"""A simulated service under a scaling policy: against hand-computed areas and a played queue."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace

import numpy as np
import pytest

from nephoscope.stats.elasticity import StepFunction, clairvoyant_billed_s, measures
from nephoscope.stats.queueing import ResponseObjective, fewest_workers
from nephoscope.stats.scaled_service import ScaledService, demand_of, simulate
from nephoscope.stats.scaling_rules import (
    Fixed,
    ResponseTime,
    ScalingMemory,
    ScalingPolicy,
    TargetTracking,
    Threshold,
    decide,
)
from nephoscope.stats.statistics.values import Refused

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
    run = simulate(ScalingPolicy(TargetTracking(target=0.5)), SERVICE, RATE, END_S)
    # Utilisation with 2 instances is 0.4 until 100 s: the target over 0.8, ceil(2 * 0.8) = 2. At
    # 120 s the window is 80 to 110 s: 2/3 of 0.4 and 1/3 of 1 are 0.6, ceil(2 * 1.2) = 3. At 150 s
    # it is 1: ceil(2 * 2) = 4, all of which serve 60 s later.
    at_120, at_150 = run.decisions[3], run.decisions[4]
    assert at_120.observation.utilisation_ratio == pytest.approx(0.6)
    assert (at_120.desired_count, at_150.desired_count) == (3, 4)
    assert run.supply.changes(0, 211) == [(180.0, 1.0), (210.0, 1.0)]
    # The backlog is 12 * 80 + 2 * 30 = 1020 at 210 s, 780 at 240 s, and is gone at 267.9 s. Until
    # then all are busy: twice the ready ones are requested at 180 s (3), 210 s (4) and 240 s (6).
    assert [each.desired_count for each in run.decisions[5:8]] == [6, 8, 12]
    assert run.supply.changes(211, 301) == [(240.0, 2.0), (270.0, 2.0), (300.0, 4.0)]
    # From 260 to 290 s, 6 are busy for 7.857 s and 3.2 of 6 to 270 s, 3.2 of 8 from there.
    used = (6 * 7.857 + 3.2 * 22.143) / (6 * 10 + 8 * 20)
    assert run.decisions[9].observation.utilisation_ratio == pytest.approx(used, abs=1e-4)
    until = measures(run.supply, demand_of(SERVICE, RATE), 0, 300, sampling_s=10)
    # 2 missing from 100 to 180 s, 1 to 210 s; 2 too many from 240 s, 4 from 270 s.
    assert until.under_provisioned == pytest.approx((2 * 80 + 30) / 300)
    assert until.over_provisioned == pytest.approx((2 * 30 + 4 * 30) / 300)
    assert until.under_time_ratio == pytest.approx(110 / 300)


def test_instances_that_exist_are_billed_and_the_minimum_is_the_demands() -> None:
    run = simulate(ScalingPolicy(Fixed(4)), replace(SERVICE, start_count=4), RATE, 3600.0)
    assert run.billed_h(0) == pytest.approx(4.0)
    least = clairvoyant_billed_s(demand_of(SERVICE, RATE), 0, 3600)
    assert least == pytest.approx(2 * 100 + 4 * 3500)


def test_a_backlog_grows_and_drains_as_flows_do() -> None:
    rate = StepFunction((0.0, 10.0, 30.0), (0.0, 20.0, 4.0))
    service = replace(SERVICE, start_count=1)
    run = simulate(ScalingPolicy(Fixed(1)), service, rate, 200.0)
    # 10/s more than one instance serves for 20 s: 200 wait, which drain at 6/s by 63.3 s. The limit
    # of p95 is passed at a wait of 0.5 - ln(20) / 10 s, which is 2 requests, from 10.2 s on.
    waiting = 10 * (0.5 - math.log(20) / 10)
    assert run.violated_s == pytest.approx(30 - 10 - waiting / 10 + (200 - waiting) / 6, abs=0.01)
    assert run.requests == pytest.approx(20 * 20 + 4 * 170)
    # At 60 s the window is 20 to 50 s, at 90 s it is 50 to 80 s.
    queues = [each.observation.queue_length for each in run.decisions]
    assert queues[1] == pytest.approx((150 * 10 + 140 * 20) / 30)


def test_steady_response_times_are_those_of_the_queue() -> None:
    rate = StepFunction((0.0,), (30.0,))
    run = simulate(ScalingPolicy(Fixed(4)), replace(SERVICE, start_count=4), rate, 600.0)
    seen = run.decisions[-1].observation
    # M/M/4 at 3 Erlangs: C = 0.5094 (published tables of Erlang C).
    assert seen.response_time_s == pytest.approx(0.1 + 0.5094 / 10, rel=1e-3)
    assert seen.queue_length == pytest.approx(30 * 0.5094 / 10, rel=1e-3)
    assert seen.utilisation_ratio == pytest.approx(0.75)
    assert run.slow_ratio < 0.05


def test_refused_connections_reach_the_client_and_not_the_queue() -> None:
    rate = StepFunction((0.0,), (15.0,))
    policy = ScalingPolicy(ResponseTime(), max_count=1)
    bounded = simulate(policy, replace(SERVICE, backlog=5.0, start_count=1), rate, 300.0)
    seen = bounded.decisions[-1].observation
    assert seen.queue_length == pytest.approx(5.0)
    # The server's own time is 0.6 s; a third of the attempts waits 1 s · d / (1 - 2 d).
    assert seen.response_time_s == pytest.approx(0.5 + 0.1 + (1 / 3) / (1 - 2 / 3), rel=1e-6)


def test_a_run_is_replayed_by_its_observations() -> None:
    policy = ScalingPolicy(Threshold(), max_count=9, cooldown_out_s=60, cooldown_in_s=90)
    times = np.arange(0.0, 7200.0, 60.0)
    rate = StepFunction(tuple(times), tuple(30 + 25 * np.sin(times / 700)))
    run = simulate(policy, SERVICE, rate, 7200.0, np.random.default_rng(3))
    memory, counts = ScalingMemory(), []
    for each in run.decisions:
        decision = decide(policy, each.observation, memory)
        counts.append(decision.desired_count)
        memory = decision.memory
    assert counts == [each.desired_count for each in run.decisions]
    assert len(set(counts)) > 3


ARRIVAL, DEPARTURE, SAMPLE, DECISION, READY = range(5)


def _played(rate: StepFunction, end_s: float, target: float, seed: int) -> StepFunction:
    """The supply of a queue that is played request by request, with its own target tracking."""
    rng = np.random.default_rng(seed)
    ends = (*rate.times_s[1:], end_s)
    events: list[tuple[float, int]] = []
    for start, end, each in zip(rate.times_s, ends, rate.counts, strict=True):
        count = int(rng.poisson(each * (end - start)))
        events += [(float(at), ARRIVAL) for at in rng.uniform(start, end, count)]
    decisions = range(1, int(end_s / SERVICE.interval_s))
    events += [(SERVICE.interval_s * k, DECISION) for k in decisions]
    events += [(SERVICE.interval_s * k - SERVICE.lag_s, SAMPLE) for k in decisions]
    heapq.heapify(events)
    ready, desired, busy, waiting, now = 3, 3, 0, 0, 0.0
    cancelled: set[float] = set()
    starting: list[float] = []
    used = [0.0, 0.0]
    sampled = [(0.0, 0.0), (0.0, 0.0)]
    supply = {0.0: 3}
    while events:
        time, kind = heapq.heappop(events)
        used = [used[0] + min(busy, ready) * (time - now), used[1] + ready * (time - now)]
        now = time
        if kind == ARRIVAL:
            waiting += 1
        elif kind == DEPARTURE:
            busy -= 1
        elif kind == SAMPLE:
            sampled = [sampled[1], (used[0], used[1])]
        elif kind == READY:
            if now in cancelled:
                continue
            ready, starting = ready + 1, sorted(starting)[1:]
        else:
            (busy_before, ready_before), (busy_after, ready_after) = sampled
            ratio = (busy_after - busy_before) / (ready_after - ready_before) / target
            needed = max(1, math.ceil(ready * ratio))
            if ratio > 1:
                needed = max(needed, desired)
            if abs(ratio - 1) <= 0.1:
                needed = desired
            for number in range(needed - desired):
                # Apart by a nanosecond, so that each can be cancelled.
                starting.append(now + SERVICE.boot_s + SERVICE.warm_up_s + 1e-9 * number)
                heapq.heappush(events, (starting[-1], READY))
            for _ in range(desired - needed):
                if starting:
                    cancelled.add(starting.pop())
                else:
                    ready -= 1
            desired = needed
        supply[round(now, 6)] = ready
        while waiting and busy < ready:
            waiting, busy = waiting - 1, busy + 1
            done = now + float(rng.exponential(1 / SERVICE.services_per_s))
            if done < end_s:
                heapq.heappush(events, (done, DEPARTURE))
    return StepFunction(tuple(supply), tuple(map(float, supply.values())))


def test_areas_are_within_a_tenth_of_those_of_a_played_queue() -> None:
    rate = StepFunction((0.0, 300.0, 900.0, 1500.0), (20.0, 44.0, 73.0, 25.0))
    end_s = 2100.0
    service = replace(SERVICE, start_count=3)
    policy = ScalingPolicy(TargetTracking(target=0.55))
    demand = demand_of(service, rate)
    model = measures(simulate(policy, service, rate, end_s).supply, demand, 0, end_s)
    played = [measures(_played(rate, end_s, 0.55, seed), demand, 0, end_s) for seed in (0, 1)]
    for name in ("under_provisioned", "over_provisioned"):
        expected = float(np.mean([getattr(each, name) for each in played]))
        assert getattr(model, name) == pytest.approx(expected, rel=0.1), name


def test_sampling_errors_vary_decisions_and_a_seed_repeats_them() -> None:
    times = np.arange(0.0, 3600.0, 60.0)
    rate = StepFunction(tuple(times), tuple(20 + 15 * np.sin(times / 400)))
    policy = ScalingPolicy(TargetTracking(target=0.6, tolerance=0.0))
    runs = [
        simulate(policy, SERVICE, rate, 3600.0, np.random.default_rng(seed)).supply
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("policy", "service", "words"),
    [
        (ScalingPolicy(Fixed(), min_count=0), SERVICE, "at least 1"),
        (ScalingPolicy(), replace(SERVICE, interval_s=1e-5), "too many"),
        (
            ScalingPolicy(),
            replace(SERVICE, objective=ResponseObjective(0.05, 0.95)),
            "No number of instances",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    policy: ScalingPolicy, service: ScaledService, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        simulate(policy, service, RATE, END_S)
