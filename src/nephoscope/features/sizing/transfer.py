"""Capacities of types that nobody loaded, in proportion to imported or predicted rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.features.market import prediction
from nephoscope.features.market.works import PricedWork, work_of
from nephoscope.features.sizing.application import ApplicationSource, MarketChoice
from nephoscope.features.sizing.knowledge import (
    Ledger,
    MeasuredCapacity,
    MissingQuantity,
    TypeKnowledge,
)
from nephoscope.features.sizing.prices import KnownPrices
from nephoscope.stats.statistics import means, ratios
from nephoscope.stats.statistics.distributions import normal_quantile, student_quantile
from nephoscope.stats.statistics.values import Array
from nephoscope.store import Store
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import LACKS

NOTHING = (
    "no server types were imported",
    "Clone SpareCores/sc-inspector-data and run `nephoscope import sc-inspector-data`.",
)
_LEAST_REFERENCES = 3
"""Measured types from which on their own scatter states how well the work's rates carry over."""
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class _Rates:
    """Rates of a work by type. index: PROVIDER/TYPE -> place."""

    catalogue: MarketCatalogue
    work: PricedWork
    rates: Array
    index: dict[str, int]

    def of(self, name: str) -> float | None:
        """Returns the imported rate of a type; None without one."""
        place = self.index.get(name)
        rate = math.nan if place is None else float(self.rates[place])
        return rate if rate > 0 else None


@dataclass(frozen=True, slots=True)
class _Proportion:
    """Capacity for each unit of a work's rate, on a logarithmic scale, and its standard error."""

    log_value: float
    error: float
    references: Sequence[TypeKnowledge]
    capacity: MeasuredCapacity


def add_market_types(
    source: ApplicationSource, types: list[TypeKnowledge], prices: KnownPrices, ledger: Ledger
) -> list[str]:
    """Adds capacities to types without one, and the types that `market` selects; returns notes.

    Raises UsageError where names or imports are missing that the file needs.
    """
    file = source.file
    if file.work is None:
        if file.market is not None:
            raise UsageError(
                f"{source.at('market')}: imported types need a work.", "Add, e.g., `work: web`."
            )
        return []
    catalogue = MarketCatalogue.of_store(Store(source.store).path)
    if catalogue is None:
        raise UsageError(f"{source.at('work')}: {NOTHING[0]}.", NOTHING[1])
    work = work_of(file.work, catalogue.metadata.metrics, source.at("work"))
    index = {f"{kind.provider}/{kind.name}": n for n, kind in enumerate(catalogue.types)}
    known = _Rates(catalogue, work, catalogue.values([work.metric])[work.metric], index)
    if file.market is not None:
        types += _selected(known, file.market, types, prices, list(file.regions), source)
    # What was measured and bounds nothing is measured again, and not guessed.
    without = [kind for kind in types if kind.capacity is None and not kind.gaps]
    proportion = _proportion(known, types, file.transfer)
    for kind in without:
        if isinstance(proportion, str):
            reason = f"the capacity of {kind.name} is not known: {proportion}"
            kind.gaps.append(MissingQuantity("capacity", reason))
        else:
            _add_capacity(kind, known, proportion, ledger)
    if not without or isinstance(proportion, str):
        return []
    names = listed([kind.name for kind in proportion.references], 3)
    return [
        f"Capacities of types that were not loaded are in proportion to {work.title}; the factor "
        f"is that of {names}.",
        LACKS,
    ]


def _selected(
    known: _Rates,
    choice: MarketChoice,
    types: Sequence[TypeKnowledge],
    prices: KnownPrices,
    regions: Sequence[str],
    source: ApplicationSource,
) -> list[TypeKnowledge]:
    providers = sorted({kind.provider for kind in known.catalogue.types})
    for name in choice.providers:
        if name not in providers:
            where = source.at("market", "providers")
            raise UsageError(
                f"{where}: no imported type is of '{name[:40]}'{did_you_mean(name, providers)}.",
                f"Providers: {listed(providers, 20)}.",
            )
    present = {kind.name for kind in types}
    costs: list[tuple[float, str]] = []
    for name, place in known.index.items():
        kind, rate = known.catalogue.types[place], known.of(name)
        offers = [prices.of_type(name, region) for region in regions]
        own = [o.on_demand_per_h for o in offers if o is not None and o.on_demand_per_h]
        if (
            name in present
            or rate is None
            or not own
            or (choice.providers and kind.provider not in choice.providers)
            or (choice.architectures and kind.architecture not in choice.architectures)
            or (kind.cpus or 0) < choice.cpus
        ):
            continue
        costs.append((min(own) / rate, name))
    return [TypeKnowledge(name) for _, name in sorted(costs)[: choice.most]]


def _proportion(
    known: _Rates, types: Sequence[TypeKnowledge], transfer: float | None
) -> _Proportion | str:
    """Returns capacity over rate of the types that have both, or a sentence on what is missing."""
    pairs = [
        (kind, kind.capacity, rate)
        for kind in types
        if kind.capacity is not None and (rate := known.of(kind.name)) is not None
    ]
    if not pairs:
        return f"no type has both a measured capacity and a rate of {known.work.name}"
    first = pairs[0][1]
    pairs = [pair for pair in pairs if pair[1].objective == first.objective]
    logs = np.log([capacity.input.estimate.value / rate for _, capacity, rate in pairs])
    references = [kind for kind, _, _ in pairs]
    if len(pairs) >= _LEAST_REFERENCES:
        own = means.summary(logs)
        # For one more type: the scatter of types, and the error of their mean.
        width = (
            student_quantile(own.n - 1, (1 + _CONFIDENCE) / 2) * own.s * math.sqrt(1 + 1 / own.n)
        )
        return _Proportion(own.mean, width / _normal_width(), references, first)
    if transfer is None:
        return (
            f"how well rates of {known.work.name} carry over to the application is not known; "
            "state `transfer`, or measure the capacity of three types"
        )
    error = math.hypot(
        math.log1p(transfer) / _normal_width(),
        max(ratios.log_error(capacity.input.estimate) for _, capacity, _ in pairs),
    )
    return _Proportion(float(logs.mean()), error, references, first)


def _normal_width() -> float:
    return normal_quantile((1 + _CONFIDENCE) / 2)


def _add_capacity(
    kind: TypeKnowledge, known: _Rates, proportion: _Proportion, ledger: Ledger
) -> None:
    """Gives a type its capacity, or the gap with the reason for which there is none."""
    rate = known.of(kind.name)
    error, origin, source = proportion.error, "imported", f"import, {known.work.metric}"
    if rate is None:
        if kind.name not in known.index:
            reason = f"the capacity of {kind.name} is not known: no imported type has this name"
            kind.gaps.append(MissingQuantity("capacity", reason))
            return
        result = prediction.predict(known.catalogue, known.work, names=[kind.name])
        predicted = result.types[0].predicted
        if predicted is None:
            reason = f"the capacity of {kind.name} is not predicted: {result.types[0].reason}"
            kind.gaps.append(MissingQuantity("capacity", reason))
            return
        rate, error = predicted.value, math.hypot(error, ratios.log_error(predicted))
        origin, source = "predicted", f"prediction of {known.work.metric}"
    value = math.exp(math.log(rate) + proportion.log_value)
    reach = math.exp(error * _normal_width())
    method = "rate of the work times capacity over rate of the references"
    count = len(proportion.references)
    estimate = Estimate(value, value / reach, value * reach, _CONFIDENCE, count, "per_s", method)
    names = listed([reference.name for reference in proportion.references], 3)
    entry = ledger.add(
        f"capacity of {kind.name}",
        estimate,
        origin,
        f"{source}; in proportion to {names}, for {proportion.capacity.objective}",
    )
    kind.capacity = MeasuredCapacity(entry, proportion.capacity.objective, 1)
