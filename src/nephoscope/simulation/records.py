"""What a simulated run says, as records: deployments, placements, schedulers, selections.

An estimate is one over replications: each trial of a simulation is one replication. `scenario` is
the name that a scenario gives itself, '' where it gives none; `conditions` are levels of what the
plan varied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nephoscope.analysis.compare import estimate_json
from nephoscope.model import Estimate

USER_BASE, SITE, CACHE = "user_base", "site", "cache"


def _told(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate_json(estimate)


def _all(found: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate_json(estimate) for name, estimate in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Whose figures they are: the target, its scenario, and the levels of what the plan varied."""

    target: str
    conditions: Mapping[str, Any]
    scenario: str = ""

    def head(self) -> dict[str, Any]:
        """The first keys of the `--json` object."""
        return {
            "target": self.target,
            "scenario": self.scenario,
            "conditions": dict(self.conditions),
        }


@dataclass(frozen=True, slots=True)
class Place:
    """A user base, a site or a cache. latitude, longitude: None where no place for it is known.

    kind: USER_BASE, SITE or CACHE. users: at work, the mean of the day; None but for user bases.
    """

    name: str
    kind: str
    region: str
    latitude: float | None
    longitude: float | None
    users: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "name": self.name,
            "kind": self.kind,
            "region": self.region,
            "latitude": self.latitude,
            "longitude": self.longitude,
            "users": self.users,
        }


@dataclass(frozen=True, slots=True)
class Share:
    """What one region, user base or site saw, or all together (name '').

    figures: metric -> its estimate over replications, percentiles of histograms among them.
    """

    name: str
    figures: Mapping[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {"name": self.name, "figures": _all(self.figures)}


@dataclass(frozen=True, slots=True)
class HourCurve:
    """A metric of one site, region or user base by hour of day (UTC), ascending. of: which.

    kind: 'site', 'region', 'user_base', or '' for all together.
    """

    metric: str
    kind: str
    of: str
    hours: tuple[int, ...]
    estimates: tuple[Estimate, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "metric": self.metric,
            "kind": self.kind,
            "of": self.of,
            "hours": list(self.hours),
            "estimates": [estimate_json(one) for one in self.estimates],
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """What one site costs for one thing: 'instances', 'transfer'."""

    site: str
    part: str
    estimate: Estimate

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {"site": self.site, "part": self.part, "cost_usd": estimate_json(self.estimate)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(Simulated):
    """Users and sites of one scenario.

    objective_ns: the time that users accept; None where the scenario names none.
    """

    objective_ns: float | None
    places: tuple[Place, ...]
    overall: Share
    regions: tuple[Share, ...]
    user_bases: tuple[Share, ...]
    sites: tuple[Share, ...]
    curves: tuple[HourCurve, ...]
    costs: tuple[Cost, ...]
    compat: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            **self.head(),
            "objective_ns": self.objective_ns,
            "compat": self.compat or None,
            "places": [one.to_json() for one in self.places],
            "overall": self.overall.to_json(),
            "regions": [one.to_json() for one in self.regions],
            "user_bases": [one.to_json() for one in self.user_bases],
            "sites": [one.to_json() for one in self.sites],
            "curves": [one.to_json() for one in self.curves],
            "costs": [one.to_json() for one in self.costs],
        }


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of sites on the front of cost against users within the objective.

    mean_ns: mean response time; None where it is not told. chosen: the one that answers.
    """

    sites: tuple[str, ...]
    cost_usd_per_h: float
    within_ratio: float
    mean_ns: float | None
    chosen: bool

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "sites": list(self.sites),
            "cost_usd_per_h": self.cost_usd_per_h,
            "within_ratio": self.within_ratio,
            "response_time_mean_ns": self.mean_ns,
            "chosen": self.chosen,
        }


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What becomes of the choice when latency and load are so many times what was assumed.

    within_ratio: of the chosen sites then; met: they still do what was asked for. best: what would
    be chosen then, for best_cost_usd_per_h; same: that is what was chosen.
    """

    latency: float
    growth: float
    within_ratio: float | None
    met: bool
    best: tuple[str, ...]
    best_cost_usd_per_h: float | None
    same: bool

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "latency_factor": self.latency,
            "growth_factor": self.growth,
            "within_ratio": self.within_ratio,
            "met": self.met,
            "best": list(self.best),
            "best_cost_usd_per_h": self.best_cost_usd_per_h,
            "same": self.same,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement(Simulated):
    """Which sites to take. front: cheapest first; chosen: names of sites.

    met: they do what was asked for, by formula; else they come nearest. confirmed: they did so in
    the simulation; None where they were not simulated. figures: scalars (users within the
    objective, cost, bound on the distance from the optimum).
    """

    front: tuple[Option, ...]
    chosen: tuple[str, ...]
    figures: Mapping[str, Estimate]
    sensitivity: tuple[Sensitivity, ...]
    objective_ns: float | None = None
    met: bool | None = None
    confirmed: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            **self.head(),
            "objective_ns": self.objective_ns,
            "front": [one.to_json() for one in self.front],
            "chosen": list(self.chosen),
            "met": self.met,
            "confirmed": self.confirmed,
            "figures": _all(self.figures),
            "sensitivity": [one.to_json() for one in self.sensitivity],
        }


@dataclass(frozen=True, slots=True)
class Track:
    """When one virtual CPU ran: [start, end] in nanoseconds, ascending, within the window."""

    vm: str
    vcpu: int
    runs: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Guest:
    """One virtual CPU, or one machine (vcpu None): its estimates by metric."""

    vm: str
    vcpu: int | None
    figures: Mapping[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {"vm": self.vm, "vcpu": self.vcpu, "figures": _all(self.figures)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedScheduler(Simulated):
    """One host with its virtual machines. tracks: the first moments of one replication."""

    guests: tuple[Guest, ...]
    tracks: tuple[Track, ...]
    window_ns: float
    trial: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output; the tracks stay in the store."""
        return {
            **self.head(),
            "guests": [one.to_json() for one in self.guests],
        }


@dataclass(frozen=True, slots=True)
class Surface:
    """The saving over two axes: saving[i][j] is at p[i], x[j]; None where there is none.

    p: share of fast instances. x: how much faster they are.
    """

    p: tuple[float, ...]
    x: tuple[float, ...]
    saving: tuple[tuple[float | None, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "share_of_fast": list(self.p),
            "factor": list(self.x),
            "saving_ratio": [list(row) for row in self.saving],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Simulated):
    """What choosing among instances saves."""

    figures: Mapping[str, Estimate]
    surface: Surface | None

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            **self.head(),
            "figures": _all(self.figures),
            "surface": None if self.surface is None else self.surface.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything that was simulated in a run. notes: what could not be read, and why."""

    deployments: tuple[Deployment, ...] = ()
    placements: tuple[Placement, ...] = ()
    schedulers: tuple[SimulatedScheduler, ...] = ()
    selections: tuple[Selection, ...] = ()
    notes: Sequence[str] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "deployments": [one.to_json() for one in self.deployments],
            "placements": [one.to_json() for one in self.placements],
            "schedulers": [one.to_json() for one in self.schedulers],
            "selections": [one.to_json() for one in self.selections],
            "notes": list(self.notes),
        }
