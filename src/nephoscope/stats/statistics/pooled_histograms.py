"""Histograms of trials on one list of values: what is summed over all of them, or all but one.

Every cost is in proportion to the buckets that the trials have, times a logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from nephoscope.stats.statistics.values import Array, Refused, clean

Counts = NDArray[np.int64]
Trial = tuple[Sequence[float] | Array, Sequence[int] | Counts]
"""The histogram of one trial: values (any order, repeats allowed) and how often each was seen."""


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


class PooledHistograms(Sequence[Trial]):
    """The histograms of trials. Methods raise Refused for damaged ones, when they are called.

    The quantiles of single trials are refused where one observed nothing.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials

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
        distinct, at = self._places
        summed = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(summed, at, self._flat.counts)
        return distinct, summed

    @cached_property
    def _places(self) -> tuple[Array, NDArray[np.intp]]:
        """The merged values, and the place of each bucket among them."""
        values = self._flat.values
        if len(self) == 1:
            return values, np.arange(values.size)
        return np.unique(values, return_inverse=True)

    @cached_property
    def totals(self) -> Counts:
        """Observations of each trial; shape (trials,)."""
        flat = self._flat
        return np.diff(flat.cumulative[flat.begins])

    @cached_property
    def _keys(self) -> Counts:
        """The place of each bucket among the merged ones, those of later trials behind."""
        distinct, at = self._places
        trial = np.repeat(np.arange(len(self)), np.diff(self._flat.begins))
        return trial * distinct.size + at

    def _up_to(self, trials: Counts, places: Counts) -> Counts:
        """Observations of trials that are at most the merged value at a place; one shape."""
        flat, size = self._flat, self.merged[0].size
        ends = np.searchsorted(self._keys, trials * size + places, side="right")
        of_trials: Counts = flat.cumulative[ends] - flat.cumulative[flat.begins[trials]]
        return of_trials

    def _refuse_empty(self) -> None:
        if not np.all(self.totals):
            row = int(np.argmin(self.totals != 0))
            raise Refused(f"Trial {row + 1} observed nothing; leave it out and say why.")

    def quantiles(self, q: float) -> Array:
        """Nearest-rank quantile of each trial; shape (trials,)."""
        self._refuse_empty()
        flat = self._flat
        ranks = flat.cumulative[flat.begins[:-1]] + nearest_ranks(self.totals, q)
        return flat.values[np.searchsorted(flat.cumulative, ranks) - 1]

    def quantiles_without_each(self, q: float) -> Array:
        """Nearest-rank quantile of all trials but one, for each of them; shape (trials,)."""
        self._refuse_empty()
        values, counts = self.merged
        cumulative, trials = np.cumsum(counts), np.arange(len(self))
        ranks = nearest_ranks(cumulative[-1] - self.totals, q)
        # The trial left out lies wholly below the value, or wholly above it, at the two ends.
        first, last = (np.searchsorted(cumulative, ranks + more) for more in (0, self.totals))
        while np.any(first < last):
            middle = (first + last) // 2
            enough = cumulative[middle] - self._up_to(trials, middle) >= ranks
            first, last = np.where(enough, first, middle + 1), np.where(enough, middle, last)
        return values[first]

    def quantiles_of_draws(self, q: float, drawn: Counts) -> Array:
        """The quantile of the merged histogram of each draw; shape (draws,).

        drawn: how often each trial is in each draw, shape (draws, trials).
        """
        self._refuse_empty()
        values, _ = self.merged
        trials = np.arange(len(self))[:, None]
        ranks = nearest_ranks(drawn @ self.totals, q)
        # Bisection over the buckets, all resamples at once: the full table would be
        # resamples x buckets (9999 x 27 000 for three digits).
        first = np.zeros(len(drawn), np.int64)
        last = np.full(len(drawn), values.size - 1, np.int64)
        while np.any(first < last):
            middle = (first + last) // 2
            places, at = np.unique(middle, return_inverse=True)
            below = self._up_to(trials, places[None, :])[:, at]
            enough = np.einsum("rt,tr->r", drawn, below) >= ranks
            first, last = np.where(enough, first, middle + 1), np.where(enough, middle, last)
        return values[first]


def _joined(trials: Sequence[Trial]) -> tuple[Array, Counts, list[int]]:
    """Returns values and counts of all trials one behind the other, and how many each has."""
    pairs = [
        (np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.int64))
        for values, counts in trials
    ]
    values = np.concatenate([np.empty(0), *(values.ravel() for values, _ in pairs)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts.ravel() for _, counts in pairs)])
    is_sound = all(values.ndim == 1 and values.shape == counts.shape for values, counts in pairs)
    if not is_sound or np.any(values == -np.inf) or np.any(np.isnan(values)) or np.any(counts < 0):
        for own, numbers in pairs:
            _refuse_damaged(own, numbers)
    return values, counts, [values.size for values, _ in pairs]


def _refuse_damaged(values: Array, counts: Counts) -> None:
    clean(values, least=0)
    if values.shape != counts.shape:
        raise Refused(f"{values.size} values but {counts.size} counts: not a histogram.")
    if np.any(counts < 0):
        raise Refused("A histogram has a negative count; it was damaged on its way here.")
