"""Response times of queues with several workers and one line (M/M/c, in order of arrival).

Rates are per second, times in seconds. Sources: Kleinrock, Queueing Systems I (1975), section 3.5;
Harchol-Balter, Performance Modeling and Design of Computer Systems (2013), chapter 14; of refused
connections Olshefski, Nieh, Agrawal, SIGMETRICS 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.stats.statistics.values import Array, Refused

_HALVINGS = 60
_POINTS = 32_769
"""Utilisations between which the probability of a wait is interpolated, to 1e-6 or better."""
_NEAR_SATURATION = 1 - 1e-9
_APART = 1e-6
"""Relative difference of two rates below which the law of their sum is computed at this one."""
_ROUNDING = 1e-12


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
    beyond = _beyond(waits, services, spare, limit)
    return np.where(spare <= 0, 1.0, np.clip(beyond, 0.0, 1.0))


def _beyond(waits: Array, services: Array, spare: Array, limit: Array) -> Array:
    """Returns the share beyond a limit, where a share `waits` of the requests waits."""
    served = np.exp(-services * limit)
    # A request that waits has an exponential wait and an exponential service. Where their rates are
    # equal the quotient is 0 / 0, and its neighbours give the limit.
    gap = spare - services
    gap = np.where(np.abs(gap) < _APART * services, _APART * services, gap)
    drained = np.exp(-np.maximum(services + gap, 0.0) * limit)
    waited = (served * (services + gap) - services * drained) / gap
    return np.asarray((1 - waits) * served + waits * waited)


@dataclass(frozen=True, slots=True)
class ResponseObjective:
    """A limit of the response time: of this share of the requests, or without one of their mean."""

    limit_s: float
    share: float | None = None

    def is_met(self, mean_s: float, beyond: float) -> bool:
        """Returns whether a mean, or a share of requests beyond the limit, meets it."""
        return (
            mean_s <= self.limit_s if self.share is None else beyond <= 1 - self.share + _ROUNDING
        )


def response(
    workers: int, services_per_s: float, rate_per_s: float, limit_s: float
) -> tuple[float, float]:
    """Returns the mean response time in seconds, and the share of requests beyond a limit.

    Infinite and 1 where the queue grows without end.
    """
    load = rate_per_s / services_per_s
    if load >= workers:
        return math.inf, 1.0
    blocked = 1.0
    for busy in range(1, workers + 1):
        blocked = load * blocked / (busy + load * blocked)
    return _response(workers, blocked, services_per_s, rate_per_s, limit_s)


def _response(
    workers: int, blocked: float, services_per_s: float, rate_per_s: float, limit_s: float
) -> tuple[float, float]:
    """Returns what `response` does; blocked: Erlang's B."""
    load = rate_per_s / services_per_s
    waits = workers * blocked / (workers - load * (1 - blocked))
    spare = workers * services_per_s - rate_per_s
    shares = _beyond(*map(np.asarray, (waits, services_per_s, spare, limit_s)))
    return 1 / services_per_s + waits / spare, min(1.0, max(0.0, float(shares)))


def fewest_workers(
    services_per_s: float, rate_per_s: float, objective: ResponseObjective, most: int = 100_000
) -> int:
    """Returns the minimum number of workers with which an objective is met; 0 without requests.

    Raises Refused where a worker without a queue does not meet it, or more than `most` would have
    to.
    """
    idle = 1 / services_per_s, math.exp(-services_per_s * objective.limit_s)
    if not objective.is_met(*idle):
        raise Refused(
            f"No number of instances meets the objective: a service time of {idle[0]:g} s alone "
            f"exceeds {objective.limit_s:g} s "
            + ("in the mean." if objective.share is None else f"for {100 * idle[1]:.3g} %.")
        )
    if rate_per_s <= 0:
        return 0
    load, blocked = rate_per_s / services_per_s, 1.0
    for workers in range(1, most + 1):
        blocked = load * blocked / (workers + load * blocked)
        if workers > load and objective.is_met(
            *_response(workers, blocked, services_per_s, rate_per_s, objective.limit_s)
        ):
            return workers
    raise Refused(f"{rate_per_s:g} requests/s would need more than {most:,} instances.")


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


def retry_wait_s(drop: float, rto_s: float, linear: int = 0) -> float:
    """Returns the mean wait for dropped SYNs of a connection that succeeds in the end.

    linear: number of timeouts before they double (net.ipv4.tcp_syn_linear_timeouts). With none it
    is rto · d / (1 - 2 d). Raises UsageError for a share of one half or more, where the mean of
    doubling timeouts has no bound.
    """
    if not 0 <= drop < 0.5:
        raise UsageError(
            f"A share of dropped SYNs of {drop:g} has no mean wait.", "It must be below 50 %."
        )
    # The j-th timeout passes with probability d^j; the first `linear` and one more are equal.
    equal = drop * (1 - drop ** (linear + 1)) / (1 - drop)
    doubling = drop ** (linear + 1) * 2 * drop / (1 - 2 * drop)
    return rto_s * (equal + doubling)
