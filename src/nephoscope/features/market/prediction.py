"""The rate of a work on server types that nobody measured, from small benchmarks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Estimate
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.core.records import dataclass
from nephoscope.features.market.micro_benchmarks import (
    FeatureSet,
    MachineFacts,
    candidates,
    feature_set,
)
from nephoscope.features.market.prediction_records import (
    HoldOutCheck,
    PredictedType,
    TypePrediction,
)
from nephoscope.features.market.works import PricedWork
from nephoscope.stats.group_prediction import intervals
from nephoscope.stats.group_prediction.intervals import GroupCheck, GroupForecast
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Array, Refused
from nephoscope.store.imports.inspector import LACKS
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import ServerType

_FAR = "its figures are farther from all measured types than left-out ones were"
METHOD = "Gaussian process on logarithms; conformal interval over left-out groups"


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """A machine that is not imported. rates: by metric."""

    name: str
    facts: MachineFacts
    rates: Mapping[str, float]


@dataclass(slots=True)
class _Rows:
    """Rows with all features, aligned: types or own machines, features, rates of the work."""

    servers: list[ServerType] = field(default_factory=list)
    features: list[Array] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def add(self, server: ServerType, row: Array, rate: float) -> None:
        self.servers.append(server)
        self.features.append(row)
        self.rates.append(rate)


def predict(
    catalogue: MarketCatalogue,
    work: PricedWork,
    *,
    names: Sequence[str] = (),
    machine: OwnMachine | None = None,
    providers: Sequence[str] = (),
    top: int = 20,
    confidence: float = 0.9,
) -> TypePrediction:
    """Returns the predictions for the named types (PROVIDER/TYPE), of which no own figure of the
    work is used, and for `machine`; without either for all types that have no figure of the work.

    Raises UsageError for unknown names, and where too little was imported.
    """
    metric = catalogue.metadata.metrics[work.metric]
    if metric.better is not Better.HIGHER:
        raise UsageError(f"--work: {work.metric} is no rate of work.", "Name a rate such as redis.")
    wanted = _named(catalogue.types, names)
    possible = candidates(catalogue.metadata.metrics, work.metric)
    figures = catalogue.values([work.metric, *possible])
    own = figures[work.metric]
    features = feature_set({name: int((figures[name] > 0).sum()) for name in possible})
    left_out: Counter[str] = Counter()
    known, new = _Rows(), _Rows()
    refused: list[PredictedType] = []
    everything = not wanted and machine is None
    for index, server in enumerate(catalogue.types):
        is_wanted = server.key in wanted or (everything and not own[index] > 0)
        if everything and providers and server.provider not in providers:
            is_wanted = False
        facts = MachineFacts.of(server)
        rates = {name: float(figures[name][index]) for name in features.metrics}
        row = None if facts is None else features.row(rates, facts)
        reason = _unusable(server, row, facts, features, rates)
        if reason and server.key in wanted:
            refused.append(_without(server, reason, float(own[index])))
        elif reason:
            left_out[reason.split(":")[0]] += 1
        elif row is not None and is_wanted:
            new.add(server, row, float(own[index]))
        elif row is not None and own[index] > 0:
            known.add(server, row, float(own[index]))
    if machine is not None:
        new.add(ServerType("", machine.name), _own_row(machine, features), np.nan)
    return _result(work, metric.unit, known, new, refused, left_out, features, top, confidence)


def _named(types: Sequence[ServerType], names: Sequence[str]) -> set[tuple[str, str]]:
    keys = {f"{server.provider}/{server.name}": server.key for server in types}
    for name in names:
        if name not in keys:
            raise UsageError(
                f"No imported type is '{name[:80]}'{did_you_mean(name, keys)}.",
                "Write PROVIDER/TYPE, or --figures FILE for a machine that was not imported.",
            )
    return {keys[name] for name in names}


def _unusable(
    server: ServerType,
    row: Array | None,
    facts: MachineFacts | None,
    features: FeatureSet,
    rates: Mapping[str, float],
) -> str:
    if server.gpus:
        return "with a GPU"
    if facts is None:
        return "without a known number of CPUs"
    if row is None:
        return f"without all small benchmarks: {listed(features.missing(rates), 3)}"
    return ""


def _without(server: ServerType, reason: str, measured: float) -> PredictedType:
    known = measured if measured > 0 else None
    return PredictedType(server.provider, server.name, server.cpu_model, None, known, reason)


def _own_row(machine: OwnMachine, features: FeatureSet) -> Array:
    row = features.row(machine.rates, machine.facts)
    if row is None:
        raise UsageError(
            f"{machine.name}: missing are {listed(features.missing(machine.rates), 30)}.",
            "Measure them on the machine and add a line METRIC,VALUE for each.",
        )
    return row


def _result(
    work: PricedWork,
    unit: str,
    known: _Rows,
    new: _Rows,
    refused: Sequence[PredictedType],
    left_out: Mapping[str, int],
    features: FeatureSet,
    top: int,
    confidence: float,
) -> TypePrediction:
    table, rates = np.array(known.features), np.array(known.rates)
    groupings = {
        "provider": [server.provider for server in known.servers],
        "CPU model": [server.cpu_model for server in known.servers],
    }
    columns = table.shape[1] if table.size else 0
    rows = np.array(new.features) if new.features else np.empty((0, columns))
    try:
        forecast = intervals.forecast(table, rates, groupings, rows, confidence=confidence)
        carried_by = intervals.errors_without(
            table, rates, groupings["provider"], features.blocks, forecast.shape
        )
    except Refused as why:
        raise UsageError(
            f"{work.title} cannot be predicted: {why}", "Import measurements of more types."
        ) from None
    predicted = [*_predicted(new, forecast, unit), *refused]
    predicted.sort(key=lambda each: -each.predicted.value if each.predicted else 0.0)
    return TypePrediction(
        work.title,
        unit,
        confidence,
        tuple(predicted[:top]),
        len(predicted),
        len(known.servers),
        {name: tuple(map(_check, own)) for name, own in forecast.checks.items()},
        dict(sorted(carried_by.items(), key=lambda pair: -pair[1])),
        dict(left_out),
        LACKS,
    )


def _predicted(new: _Rows, forecast: GroupForecast, unit: str) -> list[PredictedType]:
    result = []
    for place, server in enumerate(new.servers):
        if not forecast.is_near[place]:
            result.append(_without(server, _FAR, new.rates[place]))
            continue
        value, low, high = (
            float(ends[place]) for ends in (forecast.value, forecast.low, forecast.high)
        )
        estimate = Estimate(value, low, high, forecast.confidence, forecast.rows, unit, METHOD)
        result.append(replace(_without(server, "", new.rates[place]), predicted=estimate))
    return result


def _check(check: GroupCheck) -> HoldOutCheck:
    share = wilson(round(check.coverage * check.rows), check.rows)
    return HoldOutCheck(check.group, share, check.error, check.half_width)
