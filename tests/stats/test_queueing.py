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
