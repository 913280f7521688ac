"""Draws of all inputs, and of the speeds of the instances that the user gets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nephoscope.features.census.analysis import draw_mix
from nephoscope.features.sizing.knowledge import ApplicationKnowledge, InstanceSpread, TypeKnowledge
from nephoscope.features.sizing.records import SizingInput
from nephoscope.results import names
from nephoscope.stats import queueing
from nephoscope.stats.statistics import ratios
from nephoscope.stats.statistics.values import Array

_NS = 1e9
_BLOCK = 64
"""Instances whose speeds are drawn at one time."""
Sample = tuple[Array, ...]
"""Values of an input, of which the first axis is the draw: one array; of a mix shares and speeds.
Those of a capacity are services per second of a worker, those of a round trip factors."""


@dataclass(slots=True)
class InputDraws:
    """Draws of the inputs by id. Instances are drawn with common random numbers: those of a region
    have the same ranks among their type's in all deployments."""

    count: int
    samples: Mapping[int, Sample]
    ranks: dict[str, Array] = field(default_factory=dict)

    @property
    def is_of_values(self) -> bool:
        """Returns whether these are the values alone, with instances that are alike."""
        return self.count == 1

    def known(self, inputs: frozenset[int], draw: int) -> InputDraws:
        """Returns the draws where some inputs are known to have the values of one draw."""
        fixed = {
            key: tuple(np.repeat(array[draw : draw + 1], self.count, axis=0) for array in sample)
            if key in inputs
            else sample
            for key, sample in self.samples.items()
        }
        return replace(self, samples=fixed)

    def speeds(self, spread: InstanceSpread, region: str, instances: int, rows: slice) -> Array:
        """Returns the speeds of instances relative to that of the capacity, (draws, instances).

        rows: the draws that are wanted.
        """
        ranks = self._ranks(region, instances)[rows]
        sample = tuple(array[rows] for array in self.samples[spread.input.id])
        if spread.mix is None:
            return np.exp(sample[0][:, None] * ranks)
        from scipy.special import ndtr

        shares, speeds = sample
        uniform = ndtr(ranks)
        chosen = (uniform[:, :, None] > np.cumsum(shares, axis=1)[:, None, :-1]).sum(axis=2)
        return np.take_along_axis(speeds, chosen, axis=1)

    def _ranks(self, region: str, instances: int) -> Array:
        """Returns standard normal ranks, (draws, instances)."""
        known = self.ranks.get(region, np.empty((self.count, 0)))
        while known.shape[1] < instances:
            seed = names.seed_of("size", region, str(known.shape[1]))
            block = np.random.default_rng(seed).standard_normal((self.count, _BLOCK))
            known = np.concatenate([known, block], axis=1)
        self.ranks[region] = known
        return known[:, :instances]


def draw(known: ApplicationKnowledge, count: int) -> InputDraws:
    """Draws all inputs, those with an interval on a logarithmic scale; others are exact."""
    samples: dict[int, Sample] = {known.demand.id: (_scattered(known.demand, count),)}
    for trips in known.round_trips.values():
        samples[trips.input.id] = (_scattered(trips.input, count) / trips.input.estimate.value,)
    for kind in known.types:
        if kind.spread is not None:
            samples[kind.spread.input.id] = _spread(kind.spread, count)
        if kind.capacity is not None:
            samples[kind.capacity.input.id] = (_capacity(kind, samples, count),)
    return InputDraws(count, samples)


def values_alone(known: ApplicationKnowledge) -> InputDraws:
    """Returns one draw: the values of the inputs, and instances that are alike."""
    samples: dict[int, Sample] = {known.demand.id: (np.array([known.demand.estimate.value]),)}
    for trips in known.round_trips.values():
        samples[trips.input.id] = (np.ones(1),)
    for kind in known.types:
        if kind.capacity is not None:
            value = kind.capacity.input.estimate.value
            samples[kind.capacity.input.id] = (services(kind, np.array([value])),)
        if kind.spread is not None and kind.spread.mix is not None:
            shares = kind.spread.mix[0] / kind.spread.mix[0].sum()
            logs = np.log([speed.value for speed in kind.spread.mix[1]])
            samples[kind.spread.input.id] = (np.ones((1, 1)), np.exp([[float(shares @ logs)]]))
        elif kind.spread is not None:
            samples[kind.spread.input.id] = (np.zeros(1),)
    return InputDraws(1, samples)


def _scattered(entry: SizingInput, count: int) -> Array:
    """Returns draws of an input on a logarithmic scale."""
    error = ratios.log_error(entry.estimate)
    normal = _generator(entry.name).standard_normal(count) if error else np.zeros(count)
    return entry.estimate.value * np.exp(error * normal)


def _generator(name: str, *more: str) -> np.random.Generator:
    return np.random.default_rng(names.seed_of("size", name, *more))


def _spread(spread: InstanceSpread, count: int) -> Sample:
    if spread.mix is not None:
        counts, speeds = spread.mix
        seed = names.seed_of("size", spread.input.name)
        return draw_mix(counts, speeds, seed=seed, draws=count)
    if not spread.repeated:
        return (_scattered(spread.input, count),)
    freedom = spread.repeated - 1
    chi_square = _generator(spread.input.name).chisquare(freedom, count)
    return (spread.input.estimate.value * np.sqrt(freedom / chi_square),)


def services(kind: TypeKnowledge, capacity_per_s: Array) -> Array:
    """Returns the services per second of a worker with which an instance has a capacity.

    An instance is a queue with `workers` (M/M/c) that reaches its capacity at the objective under
    which that was measured.
    """
    assert kind.capacity is not None
    objective = kind.capacity.objective
    return queueing.services_at(
        kind.workers, capacity_per_s, 1 - objective.share_ratio, objective.limit_ns / _NS
    )


def _capacity(kind: TypeKnowledge, samples: Mapping[int, Sample], count: int) -> Array:
    """Returns draws of the services of the typical instance of a type.

    The instances that were measured are draws of the same spread: their mean has its error.
    """
    capacity = kind.capacity
    assert capacity is not None
    if capacity.is_repeated:
        drawn = np.full(count, services(kind, np.array(capacity.input.estimate.value)))
    else:
        drawn = services(kind, _scattered(capacity.input, count))
    if kind.spread is None or kind.spread.mix is not None:
        return drawn
    normal = _generator(capacity.input.name, "instances").standard_normal(count)
    deviation = samples[kind.spread.input.id][0]
    return drawn * np.exp(deviation / math.sqrt(capacity.machines) * normal)
