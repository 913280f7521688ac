"""When to keep a machine of a mix, and what a search for a fast one will save.

Machines of one type cost the same and differ in speed. Each machine of a known mix is one atom of
the distribution of a new launch. The time of a unit of work is relative to the mean over the mix,
so that `hours` of work take so many hours on the first machine that comes, in the mean.

Symbols: W hours of work, f price of an hour, t billed hours of one launch that is measured; x time
of a unit of work, b that of the best machine so far.

Sources: Zhuang (2012), section 5.2 (trial and failure); DeGroot, Optimal Statistical Decisions
(1970), chapter 13: with recall the best is kept as soon as one more wave gains less than it costs;
without recall by backward induction from the last launch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.statistics.values import Array

DRAWS = 10_000
TRIAL_SPREAD = 0.3
"""Standard deviation of the logarithm of t: launches last now longer, now shorter than expected."""
LEAST_MACHINES = 5
"""Fewer machines are no mix: the ends of an interval would be two of them."""


@dataclass(frozen=True, slots=True)
class SpeedMix:
    """Machines whose speed is known. seconds: of a unit of work, one value for each machine."""

    seconds: tuple[float, ...]
    source: str

    @property
    def mean_s(self) -> float:
        """Returns the mean seconds of a unit of work."""
        return float(np.mean(self.seconds))

    @property
    def times(self) -> Array:
        """Returns the time of each machine relative to the mean, the fastest first."""
        return np.sort(np.asarray(self.seconds, dtype=np.float64)) / self.mean_s


@dataclass(frozen=True, slots=True)
class MachineSearch:
    """A search. hours: W; trial_h: t; at_most: launches; at_once: launches of a wave; price_per_h:
    f. recall: the best of all machines can be kept; else only the one that is there."""

    hours: float
    trial_h: float
    at_most: int
    price_per_h: float
    currency: str = "USD"
    at_once: int = 1
    recall: bool = True

    def wave_h(self, launches: int, *, is_first: bool) -> float:
        """Returns the billed hours of a wave; the best machine so far waits meanwhile."""
        return self.trial_h * (launches + (self.recall and not is_first))


def limits(mix: SpeedMix, search: MachineSearch) -> tuple[float, ...]:
    """Returns the longest relative time that is kept, after 1, 2, … launches; the last is infinite.

    A machine with exactly that time is kept.
    """
    if not search.recall:
        return _limits_without_recall(mix, search)
    limit = _reservation(mix.times, search)
    return (*[limit] * (search.at_most - 1), float("inf"))


def _reservation(times: Array, search: MachineSearch) -> float:
    """Returns b with W E max(0, b - min of a wave) = the cost of the wave; found by bisection."""
    k, m = search.at_once, len(times)
    left = np.arange(m, -1, -1) / m
    probability = left[:-1] ** k - left[1:] ** k
    cost_h = search.wave_h(k, is_first=False)
    low, high = float(times[0]), float(times[-1]) + cost_h / search.hours + 1.0
    for _ in range(100):
        middle = (low + high) / 2
        gain_h = search.hours * float(probability @ np.maximum(0.0, middle - times))
        low, high = (middle, high) if gain_h <= cost_h else (low, middle)
    return low


def _limits_without_recall(mix: SpeedMix, search: MachineSearch) -> tuple[float, ...]:
    work_h = search.hours * mix.times
    last_h = search.trial_h + float(np.mean(work_h))
    made = [float("inf")]
    for _ in range(search.at_most - 1):
        made.append(last_h / search.hours)
        last_h = search.trial_h + float(np.mean(np.minimum(work_h, last_h)))
    return tuple(reversed(made))


def predicted(
    mix: SpeedMix, search: MachineSearch, *, confidence: float = 0.95, seed: int = 1
) -> Estimate:
    """Returns the saving of one search against keeping the first machine unmeasured.

    W (x of the first - x of the kept) f, less all billed hours of the search. value: the mean; the
    interval is one of prediction, for a single search: shares of the machines of the mix are drawn
    from Dirichlet(1, …), then the launches from these, and the time that they take.
    """
    rng = np.random.default_rng(seed)
    times = mix.times
    limit = limits(mix, search)
    x = times[_launches(rng, len(times), search.at_most)]
    selected, cost_h = _followed(x, search, limit)
    cost_h *= rng.lognormal(0.0, TRIAL_SPREAD, DRAWS)
    saving = search.price_per_h * (search.hours * (x[:, 0] - selected) - cost_h)
    tail = (1 - confidence) / 2
    low, high = np.quantile(saving, [tail, 1 - tail])
    method = (
        f"prediction interval of one search; {DRAWS} draws from {len(times)} machines (Dirichlet)"
    )
    return Estimate(
        float(np.mean(saving)),
        float(low),
        float(high),
        confidence,
        len(times),
        search.currency,
        method,
    )


def _launches(rng: np.random.Generator, machines: int, launches: int) -> NDArray[np.int64]:
    """Returns indices of machines for DRAWS searches, each with shares of its own.

    Drawing shares from Dirichlet(1, …) and then launches from them is an urn: launch j is one of
    the launches before with probability j / (machines + j), else any machine (Blackwell and
    MacQueen 1973).
    """
    index = rng.integers(machines, size=(DRAWS, launches))
    for j in range(1, launches):
        again = rng.random(DRAWS) < j / (machines + j)
        earlier = index[np.arange(DRAWS), rng.integers(j, size=DRAWS)]
        index[:, j] = np.where(again, earlier, index[:, j])
    return index


def _followed(x: Array, search: MachineSearch, limit: Sequence[float]) -> tuple[Array, Array]:
    """Returns the time of the kept machine and the billed hours, for each row of launches."""
    best = np.full(len(x), np.inf)
    cost_h = np.zeros(len(x))
    going = np.ones(len(x), dtype=bool)
    done = 0
    while done < search.at_most:
        wave = min(search.at_once, search.at_most - done)
        newest = x[:, done : done + wave].min(axis=1)
        cost_h += going * search.wave_h(wave, is_first=done == 0)
        now = np.minimum(best, newest) if search.recall else newest
        best = np.where(going, now, best)
        done += wave
        going &= best > limit[done - 1]
    return best, cost_h
