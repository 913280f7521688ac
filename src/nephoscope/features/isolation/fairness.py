"""How well a victim is kept apart from others that use its resource.

Source: Krebs, Momm & Kounev, Metrics and techniques for quantifying performance isolation, Science
of Computer Programming 90 (2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from nephoscope.core.model import Estimate
from nephoscope.stats.statistics.values import Refused


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
