"""Compares the machines of a run with the published ones of their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from nephoscope.core.errors import StoreError
from nephoscope.core.model import Estimate
from nephoscope.core.naming import plural
from nephoscope.features.known_machines.machine_classes import (
    ClassCondition,
    MachineSize,
    members,
    model_conditions,
    size_conditions,
)
from nephoscope.features.known_machines.records import (
    MIN_MACHINES,
    KnownMachines,
    MachineClass,
    MachineRank,
    MachineStanding,
)
from nephoscope.features.known_machines.type_identity import IdentifiedType, identify
from nephoscope.features.market.prices import PriceList, cheapest_by_type, stored_prices
from nephoscope.features.market.run_rates import (
    ComparableRate,
    comparable_rates,
    cpus_of,
)
from nephoscope.features.market.works import WORKS
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.stats.statistics.percentile_ranks import percentile_rank
from nephoscope.stats.statistics.values import Array
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import LACKS, ServerType

_TYPE_WORKS = ("geekbench", "geekbench-single", "redis", "web", "memory-read", "zstd", "llm-2b")
"""Works whose published figures of the machine's own type are ranked, too."""


@dataclass(frozen=True, slots=True)
class _Published:
    """The imported types with prices, None where unknown."""

    catalogue: MarketCatalogue
    currency: str
    prices: Sequence[float | None]


def analyse(data: RunData) -> KnownMachines | None:
    """Returns the machines of a run among the imported ones; None for a run without a machine.
    Where nothing was imported, a survey has a record without machines."""
    store = data.run.path.parents[1]
    try:
        catalogue = MarketCatalogue.of_store(store)
        if catalogue is None:
            return KnownMachines(0) if str(data.manifest.plan_name).startswith("survey") else None
        published = _published(catalogue, stored_prices(store))
        machines = [
            _standing(data, target, fingerprint, published)
            for target, fingerprint in data.fingerprints.items()
            if facts.is_machine(fingerprint) and not facts.is_simulated(fingerprint)
        ]
    except StoreError as error:  # damaged market files are no reason to show nothing of a run
        return KnownMachines(0, problem=str(error))
    return KnownMachines(len(catalogue.types), tuple(machines), LACKS) if machines else None


def _published(catalogue: MarketCatalogue, listed: PriceList) -> _Published:
    currency, priced = cheapest_by_type(listed)
    prices = [
        priced.get((server.provider, server.name.lower()), priced.get(("", server.name.lower())))
        for server in catalogue.types
    ]
    return _Published(catalogue, currency, prices)


def _standing(
    data: RunData, target: str, fingerprint: Any, published: _Published
) -> MachineStanding:
    catalogue = published.catalogue
    rates, left_out = comparable_rates(data, target, catalogue.metadata.metrics)
    identified = identify(data.manifest.labels, fingerprint, catalogue.types)
    own = identified.place
    server = None if own is None else catalogue.types[own]
    size = MachineSize(
        facts.text(fingerprint, "kernel.arch") or "",
        cpus_of(fingerprint),
        facts.number(fingerprint, "memory.total_bytes"),
        facts.text(fingerprint, "cpu.model") or "",
        server.gpus if server else 0,
        None if own is None else published.prices[own],
        published.currency,
    )
    works = [
        work
        for work in WORKS
        if work.name in _TYPE_WORKS
        and work.metric in catalogue.metadata.metrics
        and work.metric not in {rate.metric for rate in rates}
    ]
    figures = catalogue.values({rate.metric for rate in rates} | {work.metric for work in works})
    compared = _Comparison(published, figures, size, own)
    return MachineStanding(
        target,
        f"{server.provider}/{server.name}" if server else "",
        identified.stated_by,
        size.price_per_h,
        size.currency if size.price_per_h else "",
        tuple(rank for rate in rates for rank in compared.of_rate(rate)),
        tuple(
            rank
            for work in works
            if own is not None
            for rank in compared.of_type(work.title, work.metric, own)
        ),
        left_out,
        tuple(_notes(identified, fingerprint, size, server)),
    )


def _notes(
    identified: IdentifiedType, fingerprint: Any, size: MachineSize, server: ServerType | None
) -> list[str]:
    notes = [identified.note] if identified.note else []
    if server is not None and server.cpus not in (None, size.cpus):
        notes.append(
            f"This machine has {plural(size.cpus, 'CPU')} and {server.provider}/{server.name} "
            f"{server.cpus}: either the type is another one, or the process may not use all."
        )
    quota = facts.number(fingerprint, "limits.cpu_quota_cpus")
    if quota is not None and quota < size.cpus:
        notes.append(
            f"A cgroup quota of {quota:g} CPUs limits this machine; published ones have none."
        )
    return notes


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A machine of a size among published ones. own: place of its type, None if unknown."""

    published: _Published
    figures: Mapping[str, Array]
    size: MachineSize
    own: int | None

    def of_rate(self, rate: ComparableRate) -> list[MachineRank]:
        """Returns the ranks of a measured rate: in the class of its size, and of its CPU model."""
        line = rate.line
        return self._ranks(line.label, rate.metric, rate.relation.text, line.estimate, rate.bounds)

    def of_type(self, title: str, metric: str, own: int) -> list[MachineRank]:
        """Returns the rank of the published figure of a type, within its size class."""
        value = float(self.figures[metric][own])
        if not value > 0:
            return []
        unit = self.published.catalogue.metadata.metrics[metric].unit
        single = Estimate(value, None, None, 0.95, 1, unit, "single published value")
        return self._ranks(title, metric, "published for the type", single, (value, value))[:1]

    def _ranks(
        self,
        measured: str,
        metric: str,
        relation: str,
        value: Estimate,
        bounds: tuple[float, float],
    ) -> list[MachineRank]:
        of_type = None if self.own is None else float(self.figures[metric][self.own])
        ranks: list[MachineRank] = []
        for conditions in (size_conditions(self.size), model_conditions(self.size)):
            title, group = self._group(conditions, metric)
            ranked = None
            if group.size >= MIN_MACHINES:
                ranked = percentile_rank(
                    group,
                    value.value,
                    min(bounds[0], value.value),
                    max(bounds[1], value.value),
                    confidence=value.confidence,
                    better=self.published.catalogue.metadata.metrics[metric].better,
                )
            elif ranks:
                continue  # too few of the CPU model
            ranks.append(
                MachineRank(
                    measured,
                    metric,
                    relation,
                    value,
                    MachineClass(title, int(group.size)),
                    ranked,
                    float(np.median(group)) if group.size else None,
                    of_type if of_type is not None and of_type > 0 else None,
                )
            )
        return ranks

    def _group(self, conditions: Sequence[ClassCondition], metric: str) -> tuple[str, Array]:
        """Returns what the class is and its figures. Where too few machines meet all conditions,
        as few as possible are dropped, the last ones first; the first one never is. The machine's
        own type does not count."""
        values = self.figures[metric]
        first, *further = conditions
        for number in range(len(further), -1, -1):
            for met in combinations(further, number):
                wanted = (first, *met)
                places = [
                    place
                    for place in members(
                        self.published.catalogue.types, self.published.prices, wanted
                    )
                    if place != self.own and values[place] > 0
                ]
                if len(places) >= MIN_MACHINES or not number:
                    title = ", ".join(condition.text for condition in wanted)
                    dropped = [each.text for each in further if each not in met]
                    if dropped:
                        title += f"; too few with {' and '.join(dropped)}"
                    return title, values[places]
        raise AssertionError("the loop ends with the first condition alone")
