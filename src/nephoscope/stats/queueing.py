"""Response times of queues with several workers and one line (M/M/c, in order of arrival).

Rates are per second, times in seconds. Sources: Kleinrock, Queueing Systems I (1975), section 3.5;
Harchol-Balter, Performance Modeling and Design of Computer Systems (2013), chapter 14.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from nephoscope.stats.statistics.values import Array

_HALVINGS = 60
_POINTS = 32_769
"""Utilisations between which the probability of a wait is interpolated, to 1e-6 or better."""
_NEAR_SATURATION = 1 - 1e-9
_APART = 1e-6
"""Relative difference of two rates below which the law of their sum is computed at this one."""


def erlang_c(workers: int, load: Array) -> Array:
    """Returns the probability that an arrival waits at an offered load (rate times service time).

    1 at saturation and above, where every arrival waits in the end.
    """
    load = np.asarray(load, dtype=np.float64)
    stable = np.minimum(load, workers * _NEAR_SATURATION)
    blocked = np.ones_like(stable)
    # Erlang's B by its recursion, which neither overflows nor loses digits.
    for busy in range(1, workers + 1):
        blocked = stable * blocked / (busy + stable * blocked)
    waiting = workers * blocked / (workers - stable * (1 - blocked))
    return np.where(load >= workers, 1.0, waiting)


@lru_cache(maxsize=16)
def _waiting(workers: int) -> tuple[Array, Array]:
    """Returns utilisations and the probability of a wait at each, for interpolation."""
    utilisation = np.linspace(0, 1, _POINTS)
    return utilisation, erlang_c(workers, utilisation * workers)


def share_beyond(workers: int, services_per_s: Array, rate_per_s: Array, limit_s: Array) -> Array:
    """Returns the share of requests whose response time exceeds a limit; arrays are broadcast.

    services_per_s: of one worker. 1 where the queue grows without end. A limit below 0 counts as 0.
    """
    services, rate = np.asarray(services_per_s), np.asarray(rate_per_s)
    limit = np.maximum(limit_s, 0.0)
    spare = workers * services - rate  # rate at which the line drains
    if workers == 1:
        return np.where(spare <= 0, 1.0, np.exp(-np.maximum(spare, 0.0) * limit))
    waits = np.interp(rate / services / workers, *_waiting(workers))
    served = np.exp(-services * limit)
    # A request that waits has an exponential wait and an exponential service. Where their rates are
    # equal the quotient is 0 / 0, and its neighbours give the limit.
    gap = spare - services
    gap = np.where(np.abs(gap) < _APART * services, _APART * services, gap)
    drained = np.exp(-np.maximum(services + gap, 0.0) * limit)
    waited = (served * (services + gap) - services * drained) / gap
    beyond = (1 - waits) * served + waits * waited
    return np.where(spare <= 0, 1.0, np.clip(beyond, 0.0, 1.0))


def services_at(workers: int, rate_per_s: Array, beyond: float, limit_s: float) -> Array:
    """Returns the services per second of a worker at which this share of requests exceeds a limit.

    rate_per_s: of all workers together, as a search for the capacity under an objective gives it.
    """
    rate = np.asarray(rate_per_s, dtype=np.float64)
    needed = math.log(1 / beyond) / limit_s
    if workers == 1:
        return rate + needed
    low, high = rate / workers, rate / workers + needed
    while np.any(share_beyond(workers, high, rate, np.array(limit_s)) > beyond):
        high = high + (high - low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_slow = share_beyond(workers, middle, rate, np.array(limit_s)) > beyond
        low, high = np.where(is_slow, middle, low), np.where(is_slow, high, middle)
    return high
