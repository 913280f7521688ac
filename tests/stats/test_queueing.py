"""Response times of queues against closed forms, and against a queue that is played."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from nephoscope.stats import queueing


def test_erlang_c_has_its_special_cases() -> None:
    # Two workers: C = 2 rho^2 / (1 + rho). One worker: C = rho.
    assert queueing.erlang_c(2, np.array(1.6)) == pytest.approx(2 * 0.64 / 1.8)
    assert queueing.erlang_c(1, np.array([0.3, 1.0, 2.0])) == pytest.approx([0.3, 1, 1])


def test_one_worker_has_an_exponential_response_time() -> None:
    beyond = queueing.share_beyond(1, np.array(100.0), np.array(80.0), np.array(0.05))
    assert beyond == pytest.approx(math.exp(-20 * 0.05))
    assert queueing.share_beyond(1, np.array(100.0), np.array(100.0), np.array(9.0)) == 1
    # The general form has the special one as its limit.
    few = queueing.share_beyond(2, np.array(100.0), np.array(1e-6), np.array(0.05))
    assert few == pytest.approx(math.exp(-100 * 0.05), rel=1e-6)


def test_equal_rates_of_wait_and_service_are_no_gap() -> None:
    at, near = (
        float(queueing.share_beyond(3, np.array(1.0), np.array(rate), np.array(2.0)))
        for rate in (2.0, 2.0001)
    )
    assert at == pytest.approx(near, rel=1e-3)


def test_a_played_queue_has_the_shares() -> None:
    rng = np.random.default_rng(5)
    workers, rate, service, count = 4, 320.0, 0.01, 200_000
    arrivals = np.cumsum(rng.exponential(1 / rate, count))
    services = rng.exponential(service, count)
    free = [0.0] * workers
    times = np.empty(count)
    for place, (at, needed) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
        end = max(at, heapq.heappop(free)) + needed
        heapq.heappush(free, end)
        times[place] = end - at
    for limit in (0.01, 0.03, 0.06):
        expected = float(
            queueing.share_beyond(workers, np.array(1 / service), np.array(rate), np.array(limit))
        )
        # Response times depend on those before: 200,000 are worth about 10,000 independent ones.
        error = math.sqrt(expected * (1 - expected) / 10_000)
        assert abs(np.mean(times > limit) - expected) < 4 * error, limit


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_services_are_those_at_which_the_capacity_was_reached(workers: int) -> None:
    rates = np.array([10.0, 500.0, 4000.0])
    services = queueing.services_at(workers, rates, 0.01, 0.05)
    beyond = queueing.share_beyond(workers, services, rates, np.array(0.05))
    assert beyond == pytest.approx(0.01, rel=1e-6)


def test_erlang_c_agrees_with_published_tables() -> None:
    # 10 Erlangs (200 calls/h of 3 min): probabilities of waiting, and shares answered within 20 s,
    # in per cent, as tables for call centres print them.
    for agents, waiting, in_20_s in ((11, 68.2, 38.9), (12, 44.9, 64.0), (13, 28.5, 79.6)):
        seen = float(queueing.erlang_c(agents, np.array(10.0)))
        assert 100 * seen == pytest.approx(waiting, abs=0.06)
        answered = 1 - seen * math.exp(-(agents - 10) * 20 / 180)
        assert 100 * answered == pytest.approx(in_20_s, abs=0.1)
    # M/M/3 at two thirds: exactly 4/9.
    assert float(queueing.erlang_c(3, np.array(2.0))) == pytest.approx(4 / 9)


def test_fewest_workers_meet_and_one_fewer_does_not() -> None:
    mean = queueing.ResponseObjective(0.15)
    # M/M/2: W = 1 / (mu (1 - rho^2)): 0.15 s is met up to rho^2 = 1/3, that is 11.547/s.
    assert queueing.fewest_workers(10.0, 11.54, mean) == 2
    assert queueing.fewest_workers(10.0, 11.56, mean) == 3
    # M/M/1: the share beyond t is exp(-(mu - lambda) t).
    tail = queueing.ResponseObjective(0.2, 0.95)
    edge = 50 - math.log(20) / 0.2
    assert queueing.fewest_workers(50.0, edge - 1e-6, tail) == 1
    assert queueing.fewest_workers(50.0, edge + 1e-6, tail) == 2
    assert queueing.fewest_workers(50.0, 0.0, tail) == 0
    for rate in (90.0, 400.0, 4000.0):
        count = queueing.fewest_workers(50.0, rate, tail)
        arrays = [
            float(queueing.share_beyond(each, np.array(50.0), np.array(rate), np.array(0.2)))
            for each in (count, count - 1)
        ]
        assert arrays[0] <= 0.05 < arrays[1]
        mean_s, beyond = queueing.response(count, 50.0, rate, 0.2)
        assert beyond == pytest.approx(arrays[0], abs=1e-6)
        wait = float(queueing.erlang_c(count, np.array(rate / 50))) / (count * 50 - rate)
        assert mean_s == pytest.approx(1 / 50 + wait)


def test_an_objective_that_no_number_meets_is_refused() -> None:
    with pytest.raises(queueing.Refused, match="No number of instances"):
        queueing.fewest_workers(10.0, 1.0, queueing.ResponseObjective(0.05))
    with pytest.raises(queueing.Refused, match="more than 5"):
        queueing.fewest_workers(10.0, 100.0, queueing.ResponseObjective(0.2), most=5)
