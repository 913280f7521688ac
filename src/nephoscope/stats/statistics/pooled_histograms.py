"""Histograms of trials on one list of values: what is summed over all of them, or all but one.

Every cost is in proportion to the buckets that the trials have, times a logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from nephoscope.stats.statistics.values import Array, Refused, clean

Counts = NDArray[np.int64]
Trial = tuple[Sequence[float] | Array, Sequence[int] | Counts]
"""The histogram of one trial: values (any order, repeats allowed) and how often each was seen."""


_TABLE = 1 << 16
"""Numbers up to which those of all trials and values are one table: 512 KiB."""


def nearest_ranks(totals: Counts, q: float) -> Counts:
    """Nearest rank of a quantile among so many observations; shape as `totals`."""
    if not 0 <= q <= 1:
        raise Refused(f"{q} is no quantile; give a share between 0 and 1, 0.99 for p99.")
    wanted = q * totals
    ranks: Counts = np.ceil(wanted - 1e-9 * np.maximum(1.0, wanted)).astype(np.int64)
    np.maximum(1, ranks, out=ranks)
    return ranks


def merge(trials: Sequence[Trial]) -> tuple[Array, Counts]:
    """One histogram of all trials: distinct values ascending, and their summed counts.

    Values with a count of zero vanish; no trials give two empty arrays.
    """
    return pooled(trials).merged


def pooled(trials: Sequence[Trial]) -> PooledHistograms:
    """Returns the trials, prepared once for all quantiles that are asked of them."""
    return trials if isinstance(trials, PooledHistograms) else PooledHistograms(trials)


class _Flat(NamedTuple):
    """Buckets of all trials, those of a trial side by side and ascending, none of them empty.

    begins: of each trial, and the end; shape (trials + 1,). cumulative: sum of all counts before
    each bucket, and the sum of all; shape (buckets + 1,).
    """

    values: Array
    counts: Counts
    begins: Counts
    cumulative: Counts


class _Window:
    """The buckets of all trials between two values, on one list of values.

    rows: of `flat`, ascending, at least one of each trial. values: the distinct ones, ascending,
    shape (values,). cumulative: observations of all trials that are at most each of them. own: the
    quantiles of the trials that it was made for.
    """

    def __init__(self, flat: _Flat, rows: Counts, own: Array) -> None:
        self.own = own
        self._begins = np.searchsorted(rows, flat.begins)
        # Of each trial, what lies below the window.
        self._before = flat.cumulative[rows[self._begins[:-1]]] - flat.cumulative[flat.begins[:-1]]
        self._counts = flat.counts[rows]
        self.values, self._at = np.unique(flat.values[rows], return_inverse=True)
        summed = np.zeros(self.values.size, dtype=np.int64)
        np.add.at(summed, self._at, self._counts)
        self.cumulative: Counts = self._before.sum() + np.cumsum(summed)

    @cached_property
    def _keys(self) -> Counts:
        """The place of each bucket among the values, those of later trials behind."""
        trial = np.repeat(np.arange(self._before.size), np.diff(self._begins))
        return trial * self.values.size + self._at

    @cached_property
    def _sums(self) -> Counts:
        """Counts before each row, and all of them; shape (rows + 1,)."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self._counts)])

    @property
    def ends(self) -> tuple[Counts, Counts]:
        """Observations of each trial below the window, and up to its end; shape (trials,) each."""
        return self._before, self._before + np.diff(self._sums[self._begins])

    def up_to(self, trials: Counts, places: Counts) -> Counts:
        """Observations of trials that are at most the value at a place; one shape."""
        ends = np.searchsorted(self._keys, trials * self.values.size + places, side="right")
        of_trials: Counts = (
            self._before[trials] + self._sums[ends] - self._sums[self._begins[trials]]
        )
        return of_trials

    def table(self) -> Counts | None:
        """`up_to` of all trials and places, shape (trials, values); None where it is large."""
        shape = self._before.size, self.values.size
        if shape[0] * shape[1] > _TABLE:
            return None
        counts = np.zeros(shape, dtype=np.int64)
        counts.reshape(-1)[self._keys] = self._counts
        return self._before[:, None] + np.cumsum(counts, axis=1)


class PooledHistograms(Sequence[Trial]):
    """The histograms of trials. Methods raise Refused for damaged ones, when they are called.

    The quantiles of single trials are refused where one observed nothing.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials
        self._last: tuple[float, _Window] | None = None

    def __len__(self) -> int:
        return len(self._trials)

    @overload
    def __getitem__(self, at: int) -> Trial: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Trial]: ...
    def __getitem__(self, at: int | slice) -> Trial | Sequence[Trial]:
        return self._trials[at]

    @cached_property
    def _flat(self) -> _Flat:
        values, counts, sizes = _joined(self._trials)
        trial = np.repeat(np.arange(len(sizes)), sizes)
        is_next = trial[1:] != trial[:-1]
        if not (np.all(counts > 0) and np.all(is_next | (values[1:] > values[:-1]))):
            order = np.lexsort((values, trial))
            values, counts, trial = values[order], counts[order], trial[order]
            is_first = np.ones(values.size, dtype=bool)
            is_first[1:] = (values[1:] != values[:-1]) | (trial[1:] != trial[:-1])
            firsts = np.flatnonzero(is_first)
            summed = np.add.reduceat(counts, firsts) if firsts.size else counts
            seen = summed > 0
            values, counts, trial = values[firsts][seen], summed[seen], trial[firsts][seen]
        begins = np.searchsorted(trial, np.arange(len(sizes) + 1))
        cumulative = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return _Flat(values, counts, begins, cumulative)

    @cached_property
    def merged(self) -> tuple[Array, Counts]:
        """One histogram of all trials (`merge`)."""
        values, counts, *_ = self._flat
        if len(self) == 1:
            return values, counts
        distinct, at = np.unique(values, return_inverse=True)
        summed = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(summed, at, counts)
        return distinct, summed

    @cached_property
    def totals(self) -> Counts:
        """Observations of each trial; shape (trials,)."""
        flat = self._flat
        return np.diff(flat.cumulative[flat.begins])

    def _refuse_empty(self) -> None:
        if not np.all(self.totals):
            row = int(np.argmin(self.totals != 0))
            raise Refused(f"Trial {row + 1} observed nothing; leave it out and say why.")

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the largest value of all trials."""
        flat = self._flat
        return float(np.min(flat.values)), float(np.max(flat.values))

    def quantiles(self, q: float) -> Array:
        """Nearest-rank quantile of each trial; shape (trials,)."""
        self._refuse_empty()
        flat = self._flat
        ranks = flat.cumulative[flat.begins[:-1]] + nearest_ranks(self.totals, q)
        return flat.values[np.searchsorted(flat.cumulative, ranks) - 1]

    def _window(self, q: float) -> _Window:
        """The buckets between the least and the largest of the trials' own quantiles.

        The quantile of trials that are merged lies between them, whichever they are: below the
        least one fewer than a share q of each trial were observed.
        """
        if self._last is None or self._last[0] != q:
            flat, own = self._flat, self.quantiles(q)
            is_within = (flat.values >= np.min(own)) & (flat.values <= np.max(own))
            self._last = q, _Window(flat, np.flatnonzero(is_within), own)
        return self._last[1]

    def _window_of(self, q: float, ranks: Counts, of: Callable[[Counts], Counts]) -> _Window:
        """`_window` where it holds these ranks, else the window of all buckets: a rank is rounded.

        of: observations of each merged histogram, from those of each trial.
        """
        window = self._window(q)
        below, up_to = window.ends
        if np.all(of(below) < ranks) and np.all(ranks <= of(up_to)):
            return window
        return _Window(self._flat, np.arange(self._flat.values.size), window.own)

    def quantile(self, q: float) -> float:
        """Nearest-rank quantile of all trials together."""
        if not np.all(self.totals):
            values, counts = self.merged
            cumulative = np.cumsum(counts)
            ranks = nearest_ranks(cumulative[-1:], q)
        else:
            ranks = nearest_ranks(np.sum(self.totals, keepdims=True), q)
            window = self._window_of(q, ranks, lambda of_trials: np.sum(of_trials, keepdims=True))
            values, cumulative = window.values, window.cumulative
        if not ranks.size:
            raise Refused("The histogram is empty: nothing was observed.")
        return float(values[int(np.searchsorted(cumulative, ranks[0]))])

    def quantiles_without_each(self, q: float) -> Array:
        """Nearest-rank quantile of all trials but one, for each of them; shape (trials,)."""
        self._refuse_empty()
        ranks = nearest_ranks(np.sum(self.totals) - self.totals, q)
        window = self._window_of(q, ranks, lambda of_trials: np.sum(of_trials) - of_trials)
        cumulative = window.cumulative
        if (table := window.table()) is not None:
            places: Counts = np.argmax(cumulative - table >= ranks[:, None], axis=1)
            return window.values[places]
        trials = np.arange(len(self))
        # The trial left out lies wholly below the value, or wholly above it, at the two ends.
        first, last = (np.searchsorted(cumulative, ranks + more) for more in (0, self.totals))
        last = np.minimum(last, cumulative.size - 1)
        while np.any(first < last):
            middle = (first + last) // 2
            enough = cumulative[middle] - window.up_to(trials, middle) >= ranks
            first, last = np.where(enough, first, middle + 1), np.where(enough, middle, last)
        return window.values[first]

    def quantiles_of_draws(self, q: float, drawn: Counts) -> Array:
        """The quantile of the merged histogram of each draw; shape (draws,).

        drawn: how often each trial is in each draw, shape (draws, trials).
        """
        self._refuse_empty()
        trials = np.arange(len(self))[:, None]
        ranks = nearest_ranks(drawn @ self.totals, q)
        window = self._window_of(q, ranks, lambda of_trials: drawn @ of_trials)
        # Bisection over the buckets, all resamples at once: the full table would be
        # resamples x buckets (9999 x 27 000 for three digits).
        first = np.zeros(len(drawn), np.int64)
        last = np.full(len(drawn), window.values.size - 1, np.int64)
        while np.any(first < last):
            middle = (first + last) // 2
            places, at = np.unique(middle, return_inverse=True)
            below = window.up_to(trials, places[None, :])[:, at]
            enough = np.einsum("rt,tr->r", drawn, below) >= ranks
            first, last = np.where(enough, first, middle + 1), np.where(enough, middle, last)
        return window.values[first]


def _joined(trials: Sequence[Trial]) -> tuple[Array, Counts, list[int]]:
    """Returns values and counts of all trials one behind the other, and how many each has."""
    pairs = [
        (np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.int64))
        for values, counts in trials
    ]
    values = np.concatenate([np.empty(0), *(values.ravel() for values, _ in pairs)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts.ravel() for _, counts in pairs)])
    is_sound = all(values.ndim == 1 and values.shape == counts.shape for values, counts in pairs)
    # No number is not above minus infinity either.
    if not is_sound or not np.all(values > -np.inf) or counts.min(initial=0) < 0:
        for own, numbers in pairs:
            _refuse_damaged(own, numbers)
    return values, counts, [values.size for values, _ in pairs]


def _refuse_damaged(values: Array, counts: Counts) -> None:
    clean(values, least=0)
    if values.shape != counts.shape:
        raise Refused(f"{values.size} values but {counts.size} counts: not a histogram.")
    if np.any(counts < 0):
        raise Refused("A histogram has a negative count; it was damaged on its way here.")
