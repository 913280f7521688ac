"""The rate of a work on server types that nobody measured, from small benchmarks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Estimate
from nephoscope.core.reading.sentences import did_you_mean, listed
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
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import LACKS, ServerType

_INSTEAD = "run the work itself on it, or import measurements of types like it"
_FAR = f"its figures together are unlike those of all measured types; {_INSTEAD}"
_FAR_ENDS = (
    "its figures together, up to the ends of their intervals, are unlike those of all measured "
    f"types; repeat the run while the machine is idle, which narrows them, or {_INSTEAD}"
)
METHOD = "Gaussian process on logarithms; conformal interval over left-out groups"


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """A machine that is not imported. rates: by metric, as many as were measured; low, high: bounds
    of those of a run. caveats: sentences on how it was measured."""

    name: str
    facts: MachineFacts
    rates: Mapping[str, float]
    low: Mapping[str, float] = field(default_factory=dict)
    high: Mapping[str, float] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def is_of_run(self) -> bool:
        """States whether it was measured by a run."""
        return bool(self.low)


@dataclass(slots=True)
class _Table:
    """Rows with all features, aligned: types or own machines, features, rates of the work."""

    servers: list[ServerType] = field(default_factory=list)
    features: list[Array] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def add(self, server: ServerType, row: Array, rate: float) -> None:
        self.servers.append(server)
        self.features.append(row)
        self.rates.append(rate)


@dataclass(slots=True)
class _Rows:
    """Types by their use: known ones, new ones to predict, refused and left-out ones.

    figures: metric -> values of the types. corners: the last new row with its rates at both ends of
    their intervals.
    """

    chosen: FeatureSet
    figures: Mapping[str, Array]
    work: str
    known: _Table = field(default_factory=_Table)
    new: _Table = field(default_factory=_Table)
    corners: list[Array] = field(default_factory=list)
    refused: list[PredictedType] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def sort_in(self, index: int, server: ServerType, *, is_named: bool, is_wanted: bool) -> None:
        """Adds a type where it belongs. is_named: by the user; is_wanted: because of the others."""
        own = float(self.figures[self.work][index])
        facts = MachineFacts.of(server)
        rates = {name: float(self.figures[name][index]) for name in self.chosen.metrics}
        row = None if facts is None else self.chosen.row(rates, facts)
        reason = _unusable(server, row, facts, self.chosen, rates)
        if reason and is_named:
            self.refused.append(_without(server, reason, own))
        elif reason:
            self.left_out[reason.split(":")[0]] += 1
        elif row is not None and (is_named or is_wanted):
            self.new.add(server, row, own)
        elif row is not None and own > 0:
            self.known.add(server, row, own)

    def add_machine(self, machine: OwnMachine) -> None:
        """Adds a machine to predict; one of a run with both ends of its rates, too."""
        self.new.add(ServerType("", machine.name), _own_row(machine, self.chosen), np.nan)
        if machine.is_of_run:
            ends = (replace(machine, rates=machine.low), replace(machine, rates=machine.high))
            self.corners = [_own_row(end, self.chosen) for end in ends]


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
    measurable = possible
    if machine is not None:
        possible = _measured(machine, possible, catalogue)
    figures = catalogue.values([work.metric, *possible])
    counts = {name: int((figures[name] > 0).sum()) for name in possible}
    features = feature_set(counts, least=2 if machine is None else 1)
    everything = not wanted and machine is None
    rows = _Rows(features, figures, work.metric)
    for index, server in enumerate(catalogue.types):
        is_unmeasured = not figures[work.metric][index] > 0
        rows.sort_in(
            index,
            server,
            is_named=server.key in wanted,
            is_wanted=everything
            and is_unmeasured
            and (not providers or server.provider in providers),
        )
    if machine is None:
        return _result(work, metric.unit, rows, top, confidence)
    rows.add_machine(machine)
    result = _result(work, metric.unit, rows, top, confidence)
    own = {name.partition("/")[0] for name in machine.rates}
    tools = {name.partition("/")[0] for name in measurable} - own
    return replace(result, not_measured=tuple(sorted(tools)), caveats=machine.caveats)


def _measured(
    machine: OwnMachine, possible: Sequence[str], catalogue: MarketCatalogue
) -> list[str]:
    """Returns the metrics that a machine has a rate of. UsageError for a name of a file that no
    imported type has, and where nothing is left."""
    metrics = catalogue.metadata.metrics
    for name in () if machine.is_of_run else machine.rates:
        if name not in metrics:
            raise UsageError(
                f"{machine.name}: no imported type has {name[:80]}{did_you_mean(name, metrics)}.",
                "List the metrics by `nephoscope market --list`.",
            )
    own = [name for name in possible if name in machine.rates]
    if not own:
        raise UsageError(
            f"{machine.name}: it has no figure of a small benchmark from which this work is "
            "predicted.",
            f"Measure some of: {listed(possible, 30)}.",
        )
    return own


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
            f"{machine.name}: the interval of {listed(features.missing(machine.rates), 30)} "
            "reaches 0.",
            "Repeat the run with more trials.",
        )
    return row


def _result(
    work: PricedWork, unit: str, rows: _Rows, top: int, confidence: float
) -> TypePrediction:
    known, new = rows.known, rows.new
    table, rates = np.array(known.features), np.array(known.rates)
    groupings = {
        "provider": [server.provider for server in known.servers],
        "CPU model": [server.cpu_model for server in known.servers],
    }
    columns = table.shape[1] if table.size else 0
    wanted = [*new.features, *rows.corners]
    matrix = np.array(wanted) if wanted else np.empty((0, columns))
    try:
        forecast = intervals.forecast(table, rates, groupings, matrix, confidence=confidence)
        carried_by = intervals.errors_without(
            table, rates, groupings["provider"], rows.chosen.blocks, forecast.shape
        )
        forecast = _widened(forecast, len(new.features))
    except Refused as why:
        raise UsageError(
            f"{work.title} cannot be predicted: {why}", "Import measurements of more types."
        ) from None
    predicted = [*_predicted(rows, forecast, unit), *rows.refused]
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
        dict(rows.left_out),
        LACKS,
    )


def _widened(forecast: GroupForecast, rows: int) -> GroupForecast:
    """Returns the forecast of the first rows, the last of them with an interval that has those of
    the further rows in it."""
    if rows == len(forecast.value):
        return forecast
    low, high = forecast.low[:rows].copy(), forecast.high[:rows].copy()
    low[-1], high[-1] = forecast.low[rows - 1 :].min(), forecast.high[rows - 1 :].max()
    near = forecast.is_near[:rows].copy()
    near[-1] = forecast.is_near[rows - 1 :].all()
    return replace(forecast, value=forecast.value[:rows], low=low, high=high, is_near=near)


def _predicted(rows: _Rows, forecast: GroupForecast, unit: str) -> list[PredictedType]:
    new, known, result = rows.new, np.array(rows.known.features), []
    for place, server in enumerate(new.servers):
        if not forecast.is_near[place]:
            own = [new.features[place], *(rows.corners if place == len(new.servers) - 1 else ())]
            beyond = filter(None, (rows.chosen.beyond(row, known) for row in own))
            far = _FAR_ENDS if len(own) > 1 else _FAR
            reason = next((f"{outside}; {_INSTEAD}" for outside in beyond), far)
            result.append(_without(server, reason, new.rates[place]))
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
