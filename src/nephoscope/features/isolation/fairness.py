"""How a resource is shared, and how well a victim is kept apart from others that use it.

Sources: Jain, Chiu & Hawe, A quantitative measure of fairness, DEC-TR-301, 1984; Krebs, Momm &
Kounev, Metrics and techniques for quantifying performance isolation, Science of Computer
Programming 90 (2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.bootstrap import percentile_interval
from nephoscope.stats.statistics.histograms import draws
from nephoscope.stats.statistics.values import Array, Numbers, Refused, finite

LEAST_ROUNDS = 6
RESAMPLES = 1999
SEED = 1


def jain(allocations: Numbers) -> float:
    """Jain's index (sum x)^2 / (n sum x^2): 1 when all get the same, 1/n when one gets all.

    allocations: what each gets of what it is due, >= 0. Raises Refused where nobody gets anything.
    """
    x = finite(allocations, statistic="fairness")
    if np.any(x < 0) or not np.any(x > 0):
        raise Refused("Fairness needs shares that are not negative, and one above zero.")
    return float(_jain_rows(x))


def _jain_rows(rows: Array) -> Array:
    return np.asarray(np.sum(rows, axis=-1) ** 2 / (rows.shape[-1] * np.sum(rows**2, axis=-1)))


def jain_of_rounds(rounds: Sequence[Numbers], *, confidence: float = 0.95) -> Estimate:
    """Jain's index of the mean shares, with an interval from resampling whole rounds.

    rounds: shape (rounds, tenants). Near 1 the index cannot exceed its bound and noise pulls it
    down by about the square of the shares' relative error. Below 6 rounds there is no interval.
    Raises Refused for fewer than two tenants.
    """
    table = np.asarray(rounds, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not len(table):
        raise Refused("Fairness is a question about two tenants or more, in every round.")
    n = len(table)
    point = jain(table.mean(axis=0))
    method = f"Jain's index of mean shares; bootstrap of {n} rounds, {RESAMPLES} resamples"
    if n < LEAST_ROUNDS:
        note = f"n = {n}: an interval needs {LEAST_ROUNDS} rounds."
        return Estimate(point, None, None, confidence, n, "ratio", method, note)
    replicas = _jain_rows(draws(n, SEED, RESAMPLES) @ table / n)
    low, high = percentile_interval(replicas, point, n, confidence)
    return Estimate(point, low, high, confidence, n, "ratio", f"{method}, seed {SEED}")


def krebs_of_ratio(times: Estimate, loads: float) -> Estimate:
    """Returns Krebs' isolation metric I_QoS: relative change of the victim's time per relative
    change of the disruptive load; 0 is isolated. Latency +40 % at twice the load is 0.4.

    times: ratio of the victim's times, higher load to lower; loads: ratio of the loads.
    """
    change = loads - 1
    if change == 0 or not math.isfinite(change):
        raise Refused("I_QoS needs a load that changes.")
    return _mapped(times, lambda r: (r - 1) / change, f"I_QoS at {loads:.3g} times the load")


def isolation_index(factor: Estimate, neighbours: int) -> Estimate:
    """1 where the load takes nothing, 0 where it takes as much as fair sharing would.

    (1/I - f) / (1 - f), with the victim's part 1/I that is left at full load and f = 1 / (1 + k),
    its part if the resource were shared evenly with k neighbours. Below 0 the victim gets less than
    its fair part, at the least -1/k; above 1 it gained. factor: at full intensity, above 1 worse.
    Raises Refused for fewer than one neighbour and for factors that are not above zero.
    """
    if neighbours < 1 or factor.value <= 0:
        raise Refused("An isolation index needs a neighbour, and a factor above zero.")
    fair = 1 / (1 + neighbours)
    words = f"isolation index against fair sharing with {neighbours}"

    def index(of: float) -> float:
        return (1 / of - fair) / (1 - fair)

    return _mapped(factor, index, words)


def _mapped(of: Estimate, to: Callable[[float], float], words: str) -> Estimate:
    """An estimate through a monotone function; a falling one swaps the sides."""
    ends = [None if side is None or side <= 0 else to(side) for side in (of.low, of.high)]
    falls = to(2.0) < to(1.0)
    low, high = reversed(ends) if falls else ends
    return replace(of, value=to(of.value), low=low, high=high, method=f"{words}; {of.method}")
