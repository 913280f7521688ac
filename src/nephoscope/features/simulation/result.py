"""What was simulated in a run, gathered from its lines and documents.

A pure function of the store, like every result: each trial of a simulation is one replication, so
that the estimates are those of the lines, and documents are of the first replication that counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core.model import (
    Estimate,
    Factors,
    MetricResult,
    TrialRecord,
    TrialStatus,
    factors_key,
)
from nephoscope.core.naming import as_number
from nephoscope.core.records import dataclass
from nephoscope.features.simulation import documents
from nephoscope.features.simulation.records import (
    Cost,
    Deployment,
    HourCurve,
    InstanceSelection,
    Placement,
    Share,
    SimulatedGuest,
    SimulatedScheduler,
    Simulation,
)
from nephoscope.results.run_data import RunData

GEO, PLACE, SCHEDULER, SELECTION = (
    instruments.SIM_GEO,
    instruments.SIM_PLACE,
    instruments.SIM_SCHEDULER,
    instruments.SIM_SELECTION,
)

_KINDS = ("region", "user_base", "site")
_UNSAID = ("seed",)
"""Factors that tell replications apart and are no conditions."""


@dataclass(slots=True)
class _Group:
    """One benchmark on one target under one combination of conditions.

    lines: (factors of the simulation's own, line). record: the first trial that counts.
    """

    benchmark: str
    target: str
    conditions: Mapping[str, Any]
    record: TrialRecord
    lines: list[tuple[Factors, MetricResult]] = field(default_factory=list)

    def figures(self, **own: Any) -> dict[str, Estimate]:
        """Metric -> estimate of the lines with exactly these factors."""
        return {line.metric: line.estimate for factors, line in self.lines if factors == own}

    def head(self) -> dict[str, Any]:
        """The fields that all records of a simulation have."""
        return {"target": self.target, "conditions": self.conditions, "scenario": _name(self)}

    def levels(self, factor: str) -> list[Any]:
        """The levels of one factor among the lines, in the order of their names."""
        distinct = dict.fromkeys(own[factor] for own, _ in self.lines if factor in own)
        return sorted(distinct, key=lambda level: (isinstance(level, str), level))


def analyse(data: RunData) -> Simulation | None:
    """Returns the simulated part of a run; None where no trial of a simulation counts."""
    groups = _groups(data.records, data.metrics)
    if not groups:
        return None
    notes: list[str] = []
    return Simulation(
        deployments=tuple(_deployment(group, notes) for group in groups if group.benchmark == GEO),
        placements=tuple(_placement(group, notes) for group in groups if group.benchmark == PLACE),
        schedulers=tuple(
            _scheduler(group, notes) for group in groups if group.benchmark == SCHEDULER
        ),
        selections=tuple(
            _selection(group, notes) for group in groups if group.benchmark == SELECTION
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def _groups(records: Iterable[TrialRecord], metrics: Sequence[MetricResult]) -> list[_Group]:
    simulated = {GEO, PLACE, SCHEDULER, SELECTION}
    groups: dict[tuple[str, str, str], _Group] = {}
    for record in sorted(records, key=lambda record: (record.key.setting, record.key.round)):
        counts = record.key.round > 0 and record.status is TrialStatus.VALID
        if record.benchmark in simulated and counts:
            key = (record.benchmark, record.key.target, factors_key(record.factors))
            conditions = {k: v for k, v in record.factors.items() if k not in _UNSAID}
            groups.setdefault(key, _Group(*key[:2], conditions, record))
    for line in metrics:
        for group in groups.values():
            factors = group.record.factors
            if (line.benchmark, line.target) == (group.benchmark, group.target) and (
                factors.items() <= line.factors.items()
            ):
                own = {k: v for k, v in line.factors.items() if k not in factors}
                group.lines.append((own, line))
    return list(groups.values())


def scenario_of(record: TrialRecord) -> Mapping[str, Any]:
    """The scenario that a trial was given; empty where it is not told as JSON."""
    text = record.params.get("scenario")
    if isinstance(text, Mapping):
        return text
    try:
        document = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return {}
    return document if isinstance(document, Mapping) else {}


def _name(group: _Group) -> str:
    """The scenario's own name; a built-in one is given by it."""
    text, name = group.record.params.get("scenario"), scenario_of(group.record).get("name", "")
    if not name and isinstance(text, str) and not text.lstrip().startswith("{"):
        return text.strip()
    return str(name)


def _scenario_value(group: _Group, key: str) -> Any:
    """A key of the scenario, from the document of places or from the scenario itself."""
    reported = documents.find(group.record.documents, "locations")
    for source in (reported if isinstance(reported, Mapping) else {}, scenario_of(group.record)):
        if source.get(key) is not None:
            return source[key]
    return None


def _objective(group: _Group) -> float | None:
    value = as_number(_scenario_value(group, "objective_ms"))
    return value * 1e6 if value is not None and value > 0 else None


def _deployment(group: _Group, notes: list[str]) -> Deployment:
    results = group.record.documents
    compat = _scenario_value(group, "compat")
    return Deployment(
        **group.head(),
        objective_ns=_objective(group),
        places=documents.read(results, "locations", documents.places, notes) or (),
        overall=Share("", group.figures()),
        regions=_shares(group, "region"),
        user_bases=_shares(group, "user_base"),
        sites=_shares(group, "site"),
        curves=tuple(_curves(group)),
        costs=tuple(
            Cost(str(own["site"]), str(own["part"]), line.estimate)
            for own, line in group.lines
            if line.metric == "cost_usd" and own.keys() == {"site", "part"}
        ),
        compat=compat if isinstance(compat, str) and compat else None,
    )


def _shares(group: _Group, kind: str) -> tuple[Share, ...]:
    return tuple(Share(str(name), group.figures(**{kind: name})) for name in group.levels(kind))


def _curves(group: _Group) -> Iterable[HourCurve]:
    """Every metric that a line gives by hour, of everything or of one of its parts."""
    curves: dict[tuple[str, str, str], dict[int, Estimate]] = {}
    for own, line in group.lines:
        rest = own.keys() - {"hour"}
        if "hour" not in own or len(rest) > 1 or not rest <= set(_KINDS):
            continue
        kind = next(iter(rest), "")
        key = (line.metric, kind, str(own[kind]) if kind else "")
        curves.setdefault(key, {})[int(own["hour"])] = line.estimate
    for (metric, kind, of), by_hour in curves.items():
        hours = sorted(by_hour)
        yield HourCurve(metric, kind, of, tuple(hours), tuple(by_hour[hour] for hour in hours))


def _placement(group: _Group, notes: list[str]) -> Placement:
    results = group.record.documents
    chosen = documents.read(results, "chosen", documents.chosen, notes)
    chosen_sites, met, confirmed = chosen or ((), None, None)
    front = documents.read(
        results, "front", lambda document: documents.front(document, chosen_sites), notes
    )
    return Placement(
        **group.head(),
        front=front or (),
        chosen=chosen_sites,
        figures=group.figures(),
        sensitivity=documents.read(results, "sensitivity", documents.sensitivity, notes) or (),
        objective_ns=_objective(group),
        met=met,
        confirmed=confirmed,
    )


def _scheduler(group: _Group, notes: list[str]) -> SimulatedScheduler:
    figures: dict[tuple[str, int | None], dict[str, Estimate]] = {}
    for own, line in group.lines:
        if "vm" in own:
            vcpu = own.get("vcpu")
            guest = str(own["vm"]), None if vcpu is None else int(vcpu)
            figures.setdefault(guest, {})[line.metric] = line.estimate
    ordered = sorted(
        figures, key=lambda figure: (figure[0], -1 if figure[1] is None else figure[1])
    )
    timeline = documents.read(group.record.documents, "timeline", documents.tracks, notes)
    window, tracks = timeline or (0.0, ())
    return SimulatedScheduler(
        **group.head(),
        guests=tuple(SimulatedGuest(*guest, figures[guest]) for guest in ordered),
        tracks=tracks,
        window_ns=window,
        trial=group.record.key.name,
    )


def _selection(group: _Group, notes: list[str]) -> InstanceSelection:
    surface = documents.read(group.record.documents, "surface", documents.surface, notes)
    return InstanceSelection(**group.head(), figures=group.figures(), surface=surface)
