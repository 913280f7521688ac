"""The plan of `isolate`: victims against aggressors, quiet, noisy, quiet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import Catalog
from nephoscope.core.errors import Lacking, UnknownName, UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.records import dataclass
from nephoscope.features.isolation import placement as places
from nephoscope.measure.plans import resources
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.plans.resources import IDLE, INTENSITY, NONE
from nephoscope.measure.targets.kinds.record import TargetRecord as Target

ALL = "all"
"""Every resource of the table."""

INTENSITIES = (0.5, 1.0)
MAX_NEIGHBOURS = 32

VICTIM, NEIGHBOUR, FAR = "victim", "neighbour", "far"
AGGRESSOR, SERVER = "aggressor", "server"

CAP = 0.5
"""CPUs of a victim under its own quota, where that is one of the treatments."""
CAP_PERIOD = "20ms"
"""Short, so that even a trial of 0.1 s sees several periods and not just one."""

QUOTA = "quota"
"""Level of `resource` at which the victim has a quota and no neighbour does anything."""

LINE_RATE = "100Mbit/s"
"""What victim and neighbours share on their way to the far host of a lab."""

_ROUNDS = {"min": 10, "max": 20, "look_every": 5, "relative_half_width": 0.03}
_QUICK = {"min": 6, "max": 6, "relative_half_width": 0.05}
"""Six pairs are the fewest that have an interval at 95 %."""


@dataclass(frozen=True, slots=True)
class IsolationRequest:
    """What to measure. victims: resources or benchmarks; aggressors: resources, () for all.

    intensities: 0..1, () for the default. neighbours: the levels are 1 … neighbours. targets:
    (role, target); () for a lab on this machine. a_a: neighbours that do nothing, at every level.
    price_per_h: of the victim, in USD.
    """

    victims: tuple[str, ...]
    aggressors: tuple[str, ...] = ()
    intensities: tuple[float, ...] = ()
    neighbours: int = 1
    placement: str = places.OWN
    targets: tuple[tuple[str, Target], ...] = ()
    a_a: bool = False
    quick: bool = False
    budget_s: float | None = None
    seed: int | None = None
    price_per_h: float | None = None


@dataclass(frozen=True, slots=True)
class IsolationPlan:
    """A plan, and the sentences that a person has to know before it runs."""

    plan: Plan
    warnings: tuple[str, ...]


def plan_isolation(
    request: IsolationRequest,
    *,
    cpus: Sequence[int] | None = None,
    cores: dict[int, str] | None = None,
    known: Catalog | None = None,
) -> IsolationPlan:
    """Returns the plan of a request.

    cpus, cores: of this machine, read from it when not given. The lab's name follows from the
    whole request, so that the same command finds its own lab again and no other one does.
    Raises UsageError for what makes no sense, UnknownName for names that do not exist, Lacking when
    this version's probe lacks the load or the victim of a resource that was named.
    """
    known = known or catalog.load()
    victims = _victims(request, known)
    aggressors, left_out = _aggressors(request, known)
    network = any("peer" in entry for entry in victims) or any(
        resources.RESOURCES[name].network for name in aggressors
    )
    values = _common(request, victims, aggressors)
    if request.targets:
        values["targets"] = _target_records(request, network)
        warnings: tuple[str, ...] = ()
    else:
        allowed = tuple(cpus) if cpus is not None else places.allowed_cpus()
        assignment = places.assign_cpus(
            request.placement,
            request.neighbours,
            allowed,
            cores if cores is not None else places.cores_here(allowed),
        )
        warnings = assignment.warnings
        values |= _lab(request, assignment, network)
        if request.placement == places.CAPPED:
            _add_quota(values)
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
        values["lab"]["name"] = f"iso-{digest[:8]}"
    if request.price_per_h is not None:
        for target in values["targets"]:
            target |= {"per_hour": request.price_per_h} if target["name"] == VICTIM else {}
    return IsolationPlan(from_values(values, known, lambda _: ""), (*left_out, *warnings))


def _victims(request: IsolationRequest, known: Catalog) -> list[dict[str, Any]]:
    """Entries of the plan, one a victim; those of the network have a peer."""
    wanted: list[str] = []
    for name in request.victims:
        wanted += _all(known, victims=True) if name == ALL else [name]
    if ALL not in request.victims:
        _refuse_repeats("victim", wanted)
    if not wanted:
        raise UsageError(
            "Name at least one victim.",
            f"VICTIM is {ALL}, a benchmark, or a resource: {', '.join(resources.NAMES)}.",
        )
    return [_victim(name, known) for name in dict.fromkeys(wanted)]


def _refuse_repeats(role: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The {role} '{name}' is named twice.", "Name each one once.")


def _all(known: Catalog, *, victims: bool) -> list[str]:
    """The names of every resource that this catalogue can take or miss."""
    return [
        name
        for name in resources.NAMES
        if not resources.missing(resources.RESOURCES[name], known)
        and (resources.RESOURCES[name].victim is not None or not victims)
    ]


def _victim(name: str, known: Catalog) -> dict[str, Any]:
    if name not in resources.RESOURCES:
        return _of_benchmark(name, known)
    resource = resources.RESOURCES[name]
    if resource.victim is None:
        raise UsageError(
            f"'{name}' cannot be a victim.",
            f"Use a benchmark or one of {', '.join(resources.NAMES)}.",
        )
    _require(resource, known)
    return {
        "benchmark": resource.victim.benchmark,
        "params": dict(resource.victim.params),
        "headline": [resource.victim.metric],
        "on": VICTIM,
        **_peer(resource.network),
    }


def _peer(network: bool) -> dict[str, str]:
    return {"peer": SERVER} if network else {}


def _of_benchmark(name: str, known: Catalog) -> dict[str, Any]:
    try:
        spec = known.benchmark(name)
    except UnknownName:
        names = [*resources.NAMES, *known.benchmarks]
        raise UnknownName(
            f"'{name}' is neither a resource nor a benchmark{did_you_mean(name, names)}.",
            f"Resources: {', '.join(resources.NAMES)}; `nephoscope list` prints the benchmarks.",
        ) from None
    if spec.load and not spec.two_sided:
        raise UsageError(
            f"'{name}' is a load and cannot be a victim.",
            "Name a victim, and the load with --aggressor RESOURCE.",
        )
    # A victim on one CPU has one thread.
    params = {"threads": 1} if any(param.id == "threads" for param in spec.params) else {}
    return {"benchmark": name, "params": params, "on": VICTIM, **_peer(spec.needs_peer)}


def _aggressors(request: IsolationRequest, known: Catalog) -> tuple[list[str], list[str]]:
    """Names of the aggressors, and sentences on those that were meant and are not here."""
    if request.a_a:
        if request.aggressors:
            raise UsageError(
                "--a-a and --aggressor exclude each other: --a-a uses idle aggressors only.",
                "Omit one of them.",
            )
        return [IDLE], []
    named = [name for name in request.aggressors if name != ALL]
    for name in named:
        _require(resources.resource(name), known)
    _refuse_repeats("aggressor", named)
    if named and ALL not in request.aggressors:
        return list(dict.fromkeys([*named, IDLE])), []
    # A network load needs a far side, which a new lab has.
    has_far = not request.targets or SERVER in dict(request.targets)
    available = [
        name
        for name in _all(known, victims=False)
        if has_far or not resources.RESOURCES[name].network
    ]
    left = ", ".join(name for name in resources.NAMES if name not in available)
    warnings = [f"Omitted aggressors (unsupported on this host): {left}."] if left else []
    return [*available, IDLE], warnings


def _require(resource: resources.SharedResource, known: Catalog) -> None:
    lacking = resources.missing(resource, known)
    if lacking:
        raise Lacking(
            f"The resource '{resource.name}' needs {' and '.join(lacking)}, which this version of "
            "the probe lacks on this platform.",
            f"Available: {', '.join(_all(known, victims=False))}.",
        )


def _common(
    request: IsolationRequest, victims: Sequence[dict[str, Any]], aggressors: Sequence[str]
) -> dict[str, Any]:
    """All that does not depend on where it runs."""
    intensities = _intensities(request)
    if not 1 <= request.neighbours <= MAX_NEIGHBOURS:
        raise UsageError(
            f"--neighbours: {request.neighbours} is out of range.", f"Use 1 to {MAX_NEIGHBOURS}."
        )
    counts = list(range(1, request.neighbours + 1))
    values: dict[str, Any] = {
        "name": "isolation-a-a" if request.a_a else "isolation",
        "question": "How often does an idle neighbour appear to cause a slowdown?"
        if request.a_a
        else "How much does a neighbour slow each resource, and does performance recover?",
        "benchmarks": list(victims),
        "backgrounds": [_background(name) for name in aggressors],
        "factors": {
            "resource": {"path": "backgrounds", "levels": [NONE, *aggressors]},
            "intensity": {"path": f"backgrounds.*.params.{INTENSITY}", "levels": intensities},
            "neighbours": {"path": "backgrounds.*.count", "levels": counts},
        },
        "design": {
            "around": True,
            "baseline": {"resource": NONE},
            "exclude": [] if request.a_a else _idle_once(aggressors, intensities, counts),
        },
        "repeat": dict(_QUICK if request.quick else _ROUNDS),
        # A packet that leaves late because a neighbour took the CPU is late for the victim too:
        # round trips count from the moment at which it was due.
        "accept": ["late_sends"],
    }
    if request.budget_s is not None:
        values["budget"] = request.budget_s
    if request.seed is not None:
        values["seed"] = request.seed
    return values


def _intensities(request: IsolationRequest) -> list[float]:
    levels = list(request.intensities) or ([1.0] if request.quick else list(INTENSITIES))
    for value in levels:
        if not 0 < value <= 1:
            raise UsageError(
                f"--intensity: {value:g} is out of range. Levels lie above 0 (the baseline is "
                "always measured) and up to 1 (full load).",
                "Use a list such as 0.25,0.5,1 or 25%,50%.",
            )
    if len(set(levels)) < len(levels):
        raise UsageError("--intensity lists a level twice.", "Name each one once.")
    return sorted(levels)


def _idle_once(
    aggressors: Sequence[str], intensities: Sequence[float], counts: Sequence[int]
) -> list[dict[str, Any]]:
    """The control that does nothing needs no levels: only the last of each stays."""
    if IDLE not in aggressors:
        return []
    few: list[dict[str, Any]] = [
        {"resource": IDLE, "intensity": intensity} for intensity in intensities[:-1]
    ]
    return few + [{"resource": IDLE, "neighbours": count} for count in counts[:-1]]


def _background(name: str) -> dict[str, Any]:
    resource = resources.RESOURCES[name]
    load = resource.aggressor
    values = {"name": name, "benchmark": load.benchmark, "params": dict(load.params)}
    return {**values, **_peer(resource.network)}


def _target_records(request: IsolationRequest, network: bool) -> list[dict[str, Any]]:
    """The targets that a person gave, by the parts they play."""
    roles = [role for role, _ in request.targets]
    if request.placement != places.OWN:
        raise UsageError(
            "--placement and --target exclude each other: the targets decide where victims and "
            "neighbours run.",
            "Omit --placement, or omit --target to measure in a new lab.",
        )
    if roles.count(VICTIM) != 1 or not roles.count(AGGRESSOR):
        raise UsageError(
            "--target needs one victim and at least one aggressor on the same physical host.",
            "Use --target victim=TARGET --target aggressor=TARGET, and server=TARGET for "
            "network resources.",
        )
    if network and roles.count(SERVER) != 1:
        raise UsageError(
            "Network resources need a target with the role server.", "Add --target server=TARGET."
        )
    if request.neighbours > roles.count(AGGRESSOR):
        raise UsageError(
            f"--neighbours {request.neighbours} exceeds the {roles.count(AGGRESSOR)} aggressor "
            "targets.",
            "Add aggressor targets, or reduce --neighbours.",
        )
    words = {AGGRESSOR: NEIGHBOUR, SERVER: FAR}
    records = []
    seen: dict[str, str] = {}
    for place, (role, target) in enumerate(request.targets):
        name = VICTIM if role == VICTIM else f"{words[role]}-{roles[: place + 1].count(role)}"
        traits = target.traits()
        # Programs on this very machine are neighbours of one another; another machine that is
        # named twice would be its own.
        if (
            traits.place in seen
            and not traits.allows_colocation
            and VICTIM in (role, seen[traits.place])
        ):
            raise UsageError(
                f"The same target is victim and {role if role != VICTIM else seen[traits.place]}.",
                "Name two machines that share the measured resource.",
            )
        seen[traits.place] = role
        values = target.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        records.append({**values, "name": name, "kind": target.kind, "roles": [role]})
    return records


def _lab(request: IsolationRequest, cpus: places.CpuAssignment, network: bool) -> dict[str, Any]:
    """Targets and topology of a lab: a host for the victim, one for each neighbour, a far one."""
    neighbours = [f"{NEIGHBOUR}-{number}" for number in range(1, request.neighbours + 1)]
    hosts: dict[str, Any] = {VICTIM: {"cpu": {"cpus": [cpus.victim]}}}
    hosts |= {
        name: {"cpu": {"cpus": [cpu]}}
        for name, cpu in zip(neighbours, cpus.neighbours, strict=True)
    }
    targets = [{"name": VICTIM, "kind": "lab", "roles": [VICTIM]}]
    targets += [{"name": name, "kind": "lab", "roles": [AGGRESSOR]} for name in neighbours]
    lab: dict[str, Any] = {"hosts": hosts}
    if network:
        hosts[FAR] = {}
        targets.append({"name": FAR, "kind": "lab", "roles": [SERVER]})
        near = {name: {"between": [name, "near"]} for name in (VICTIM, *neighbours)}
        lab["switches"] = {"near": {}}
        lab["links"] = {**near, "shared": {"between": ["near", FAR], "rate": LINE_RATE}}
    return {"lab": lab, "targets": targets}


def _add_quota(values: dict[str, Any]) -> None:
    """The victim's own quota, as one more treatment without any neighbour."""
    values["lab"]["hosts"][VICTIM]["cpu"]["cap_period"] = CAP_PERIOD
    conditions = {f"lab.hosts.{VICTIM}.cpu.cap": CAP}
    values["backgrounds"].append({"name": QUOTA, "conditions": conditions})
    values["factors"]["resource"]["levels"].append(QUOTA)
    # The quota is part of what is measured.
    values["accept"].append("throttled")
