"""Response times at the users of instances of one type, in each draw of the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nephoscope.features.sizing.drawing import InputDraws
from nephoscope.features.sizing.knowledge import ApplicationKnowledge, TypeKnowledge
from nephoscope.stats import queueing
from nephoscope.stats.statistics.values import Array

_CELLS = 1_000_000
"""Draws times instances that are computed at one time: 8 MB an array."""
_COLUMNS = 128
"""Instances that are drawn: they stand for those of a larger fleet, whose mean scatters less."""
_NS = 1e9


@dataclass(slots=True)
class Fleet:
    """Instances of a type of known capacity under some draws; without a spread all are alike."""

    known: ApplicationKnowledge
    kind: TypeKnowledge
    draws: InputDraws
    beyond: dict[tuple[str, tuple[str, ...], int], Array] = field(default_factory=dict)

    def share_beyond(self, region: str, sites: tuple[str, ...], instances: int) -> Array:
        """Returns the share of *all* requests that come from these sites and miss the limit.

        One value for each draw; instances: of the region that work.
        """
        key = (region, sites, instances)
        if key not in self.beyond:
            rows = max(1, _CELLS // min(instances, _COLUMNS))
            parts = [
                self._part(region, sites, instances, slice(start, start + rows))
                for start in range(0, self.draws.count, rows)
            ]
            self.beyond[key] = np.concatenate(parts)
        return self.beyond[key]

    def _part(self, region: str, sites: tuple[str, ...], instances: int, rows: slice) -> Array:
        known, kind, draws = self.known, self.kind, self.draws
        assert kind.capacity is not None
        typical = draws.samples[kind.capacity.input.id][0]
        columns = 1 if draws.is_of_values else min(instances, _COLUMNS)
        services = typical[rows, None] * np.ones((1, columns))
        if kind.spread is not None:
            services *= draws.speeds(kind.spread, region, columns, rows)
        users = sum(known.users[site] for site in sites)
        rate = draws.samples[known.demand.id][0][rows, None] * users
        if known.balancing == "dynamic":
            parts = services / services.sum(axis=1, keepdims=True)
        else:
            parts = np.full((1, columns), 1 / columns)
        own_rate = rate * parts * (columns / instances)
        limit_s = known.objective.limit_ns / _NS
        beyond = np.zeros(services.shape)
        for site in sites:
            for seconds, weight in self._trips(site, region, rows):
                late = queueing.share_beyond(
                    kind.workers,
                    services,
                    own_rate,
                    limit_s - known.trips_per_request * seconds[:, None],
                )
                beyond += known.users[site] * weight * late
        return np.asarray((beyond * parts).sum(axis=1))

    def _trips(self, site: str, region: str, rows: slice) -> list[tuple[Array, float]]:
        """Returns round trips in each draw with their weights; 0 where no users are stated."""
        trips = self.known.round_trips.get((site, region))
        if trips is None:
            return [(np.zeros(1), 1.0)]
        factor = self.draws.samples[trips.input.id][0][rows]
        pairs = zip(trips.seconds.tolist(), trips.weights.tolist(), strict=True)
        return [(factor * seconds, weight) for seconds, weight in pairs]

    def misses(self, served: Mapping[str, tuple[str, ...]], working: Mapping[str, int]) -> Array:
        """Returns in which draws the objective is missed. served: region -> sites."""
        late = sum(
            (self.share_beyond(region, sites, working[region]) for region, sites in served.items()),
            np.zeros(self.draws.count),
        )
        return np.asarray(late > 1 - self.known.objective.share_ratio)
