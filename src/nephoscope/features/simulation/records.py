"""What a simulated run says, as records: deployments, placements, schedulers, selections.

An estimate is one over replications: each trial of a simulation is one replication. `scenario` is
the name that a scenario gives itself, '' where it gives none; `conditions` are levels of what the
plan varied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from nephoscope.core.model import INTERNAL, Estimate
from nephoscope.core.records import dataclass

PlaceKind = Literal["user_base", "site", "cache"]
USER_BASE: PlaceKind = "user_base"
SITE: PlaceKind = "site"
CACHE: PlaceKind = "cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Whose figures they are: the target, its scenario, and the levels of what the plan varied."""

    target: str
    conditions: Mapping[str, Any]
    scenario: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A user base, a site or a cache. latitude, longitude: None where no place for it is known.

    kind: USER_BASE, SITE or CACHE. users: at work, the mean of the day; None but for user bases.
    """

    name: str
    kind: PlaceKind
    region: str
    latitude: float | None
    longitude: float | None
    users: float | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Results of one region, user base or site, or of all together (name '').

    figures: metric -> its estimate over replications, percentiles of histograms among them.
    """

    name: str
    figures: Mapping[str, Estimate]


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


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one site for 'instances' or 'transfer'."""

    site: str
    part: str
    estimate: Estimate


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
    compat: str | None = None


@dataclass(frozen=True, slots=True)
class SiteChoice:
    """One choice of sites on the front of cost against users within the objective.

    mean_ns: mean response time; None where it is not told. chosen: the one that answers.
    """

    sites: tuple[str, ...]
    cost_usd_per_h: float
    within_ratio: float
    mean_ns: float | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Choice of sites if latency and load are so many times those assumed.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement(Simulated):
    """Choice of sites. front: cheapest first; chosen: names of sites.

    met: they do what was asked for, by formula; else they come nearest. confirmed: they did so in
    the simulation; None where they were not simulated. figures: scalars (users within the
    objective, cost, bound on the distance from the optimum).
    """

    front: tuple[SiteChoice, ...]
    chosen: tuple[str, ...]
    figures: Mapping[str, Estimate]
    sensitivity: tuple[Sensitivity, ...]
    objective_ns: float | None = None
    met: bool | None = None
    confirmed: bool | None = None


@dataclass(frozen=True, slots=True)
class Track:
    """Runs of one virtual CPU: [start, end] in nanoseconds, ascending, within the window."""

    vm: str
    vcpu: int
    runs: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class SimulatedGuest:
    """One virtual CPU, or one machine (vcpu None): its estimates by metric."""

    vm: str
    vcpu: int | None
    figures: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedScheduler(Simulated):
    """One host with its virtual machines. tracks: the first moments of one replication."""

    guests: tuple[SimulatedGuest, ...]
    tracks: tuple[Track, ...] = field(metadata=INTERNAL)
    window_ns: float = field(metadata=INTERNAL)
    trial: str = field(default="", metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class Surface:
    """The saving over two axes: saving[i][j] is at p[i], x[j]; None where there is none.

    p: share of fast instances. x: how much faster they are.
    """

    p: tuple[float, ...]
    x: tuple[float, ...]
    saving: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSelection(Simulated):
    """Saving by choosing among instances."""

    figures: Mapping[str, Estimate]
    surface: Surface | None


@dataclass(frozen=True, slots=True)
class Simulation:
    """Everything that was simulated in a run. notes: what could not be read, and why."""

    deployments: tuple[Deployment, ...] = ()
    placements: tuple[Placement, ...] = ()
    schedulers: tuple[SimulatedScheduler, ...] = ()
    selections: tuple[InstanceSelection, ...] = ()
    notes: tuple[str, ...] = ()
