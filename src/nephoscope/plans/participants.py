"""Who plays which part: targets of each entry, peers, loads, hooks, and the plan's lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import BenchmarkSpec, Catalog
from nephoscope.errors import PlanError
from nephoscope.model import Background, Hook
from nephoscope.plans import roles
from nephoscope.plans.check import nowhere, spec_of
from nephoscope.plans.factors import lab, of_plan
from nephoscope.plans.factors.bound import NONE, BoundFactor
from nephoscope.plans.model import BackgroundEntry, Entry, HookEntry, Plan
from nephoscope.plans.parameters import checked_params
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc
from nephoscope.targets.kinds.record import why_unreachable

if TYPE_CHECKING:
    from nephoscope.lab.topology import Topology

ALONE = ("null",)
"""Two-sided benchmarks that have a meaning without their far side as well."""

DURATION = "duration_ns"
"""The parameter with which a load is told to run until it is stopped: 0."""


@dataclass(frozen=True, slots=True)
class Cast:
    """A plan's parts, checked. on, peers: one for each entry of `benchmarks`."""

    on: tuple[tuple[str, ...], ...]
    peers: tuple[str, ...]
    backgrounds: tuple[Background, ...]
    before: tuple[Hook, ...]
    after: tuple[Hook, ...]
    levers: tuple[BoundFactor, ...]
    topology: Topology | None
    treatments: Mapping[str, Mapping[str, Any]]
    """Background -> the conditions that hold while it is on; of those that are no loads."""


def cast(plan: Plan, catalog: Catalog, place: Place = nowhere) -> Cast:
    """Names and roles as targets, loads and hooks as records. PlanError for what cannot be."""
    topology = _topology(plan, place)
    _hosts(plan, topology, place)
    parts = [_entry(plan, entry, i, catalog, place) for i, entry in enumerate(plan.benchmarks)]
    return Cast(
        on=tuple(on for on, _ in parts),
        peers=tuple(peer for _, peer in parts),
        backgrounds=_backgrounds(plan, catalog, place),
        before=_hooks(plan, "before", plan.before, catalog, place),
        after=_hooks(plan, "after", plan.after, catalog, place),
        levers=of_plan.of_plan(plan, catalog, topology, place),
        topology=topology,
        treatments=_treatments(plan, topology, place),
    )


def _topology(plan: Plan, place: Place) -> Topology | None:
    if plan.lab is None:
        return None
    if isinstance(plan.lab, str):
        raise PlanError(
            f"{place(('lab',))}the topology '{plan.lab}' was not read with the plan.",
            "Load the plan from its file.",
        )
    from nephoscope.lab import files

    return files.from_values(plan.lab, lambda loc: place(("lab", *loc)))


def _hosts(plan: Plan, topology: Topology | None, place: Place) -> None:
    for index, target in enumerate(plan.targets):
        loc: Loc = ("targets", index)
        if not target.in_plan_lab:
            continue
        if topology is None:
            raise PlanError(
                f"{place((*loc, 'kind'))}'{target.name}' is of kind lab, and the plan has no lab.",
                "Give the plan `lab: topology.yaml`, or the target `lab: NAME` of one that is up.",
            )
        host = target.topology_host
        if host not in topology.hosts:
            key = "name" if host == target.name else "host"
            raise PlanError(
                f"{place((*loc, key))}the lab '{topology.name}' has no host '{host}'"
                f"{did_you_mean(host, topology.hosts)}.",
                f"It has: {', '.join(topology.hosts)}.",
            )


def _entry(
    plan: Plan, entry: Entry, number: int, catalog: Catalog, place: Place
) -> tuple[tuple[str, ...], str]:
    loc: Loc = ("benchmarks", number)
    spec = spec_of(catalog, entry.benchmark, loc, place)
    if entry.on:
        on = roles.targets_of(plan, entry.on, (*loc, "on"), place)
    else:
        on = roles.default_targets(plan)
    if not on:
        raise PlanError(
            f"{place((*loc, 'benchmark'))}no target runs {entry.benchmark}: each has a role, and "
            f"none the role {' or '.join(roles.MEASURED)}.",
            "Say who: `on: NAME` or `on: ROLE`.",
        )
    _fits(plan, spec, on, loc, place)
    return on, _peer(plan, entry.peer, spec, on, loc, place)


def _fits(plan: Plan, spec: BenchmarkSpec, on: Sequence[str], loc: Loc, place: Place) -> None:
    """PlanError when a target cannot run the benchmark at all."""
    for target in plan.targets:
        reason = target.unanswered(spec) if target.name in on else None
        if reason:
            raise PlanError(f"{place((*loc, 'benchmark'))}{reason[0]}", reason[1])


def _peer(
    plan: Plan, peer: str, spec: BenchmarkSpec, on: Sequence[str], loc: Loc, place: Place
) -> str:
    if not peer:
        if spec.two_sided and spec.id not in ALONE:
            raise PlanError(
                f"{place((*loc, 'benchmark'))}{spec.id} has two sides, and no target serves the "
                "far one.",
                "Name it: `peer: NAME` or `peer: ROLE`.",
            )
        return ""
    if not spec.two_sided:
        raise PlanError(
            f"{place((*loc, 'peer'))}{spec.id} has one side only; there is nothing to serve.",
            "Drop `peer`.",
        )
    server = roles.one_target(plan, peer, (*loc, "peer"), place)
    known = {target.name: target for target in plan.targets}
    for name in on:
        reason = why_unreachable(known[name], known[server])
        if reason:
            raise PlanError(
                f"{place((*loc, 'peer'))}'{name}' cannot reach '{server}': {reason}.",
                "Choose two targets that share a network.",
            )
    return server


def _backgrounds(plan: Plan, catalog: Catalog, place: Place) -> tuple[Background, ...]:
    found: list[Background] = []
    for index, load in enumerate(plan.backgrounds):
        loc: Loc = ("backgrounds", index)
        if load.name == NONE or load.name in [one.name for one in plan.backgrounds[:index]]:
            what = "is the word for no load" if load.name == NONE else "is there twice"
            raise PlanError(
                f"{place((*loc, 'name'))}the background '{load.name}' {what}.", "Name it otherwise."
            )
        if bool(load.benchmark) == bool(load.conditions):
            both = "has a benchmark and conditions" if load.benchmark else "does nothing"
            raise PlanError(
                f"{place((*loc, 'name'))}the background '{load.name}' {both}.",
                "Give it a benchmark, or conditions.",
            )
        if load.benchmark:
            found.append(_background(plan, load, catalog, loc, place))
    return tuple(found)


def _treatments(plan: Plan, topology: Topology | None, place: Place) -> dict[str, dict[str, Any]]:
    """The conditions of backgrounds that are no loads, in the topology's own units."""
    found: dict[str, dict[str, Any]] = {}
    varied = {factor.path for factor in plan.factors.values()}
    for index, load in enumerate(plan.backgrounds):
        for path, raw in load.conditions.items():
            loc: Loc = ("backgrounds", index, "conditions", path)
            if topology is None or not path.startswith("lab."):
                raise PlanError(
                    f"{place(loc)}'{path}' is no condition of the plan's lab.",
                    "Write lab.hosts.NAME.… or lab.links.NAME.…, and give the plan `lab:`.",
                )
            if path in varied:
                raise PlanError(
                    f"{place(loc)}a factor sets '{path}' as well.", "Keep one of the two."
                )
            own = path.removeprefix("lab.")
            value = lab.condition(plan, topology, own, raw, loc, loc, place)
            found.setdefault(load.name, {})[own] = value
    return found


def _background(
    plan: Plan, load: BackgroundEntry, catalog: Catalog, loc: Loc, place: Place
) -> Background:
    spec = spec_of(catalog, load.benchmark, loc, place)
    if not spec.load:
        known = [one.id for one in catalog.benchmarks.values() if one.load]
        raise PlanError(
            f"{place((*loc, 'benchmark'))}{spec.id} ends by itself; a background runs until it is "
            "stopped.",
            f"These do: {', '.join(known) or 'none of this version'}.",
        )
    params: dict[str, Any] = checked_params(spec, load.params, (*loc, "params"), place)
    if params.get(DURATION):
        raise PlanError(
            f"{place((*loc, 'params', DURATION))}the background '{load.name}' would end by itself "
            "and invalidate its trials.",
            f"Drop {DURATION}: a background runs until it is stopped.",
        )
    if any(param.id == DURATION for param in spec.params):
        params[DURATION] = 0
    if load.on:
        on = roles.targets_of(plan, load.on, (*loc, "on"), place)
    else:
        on = tuple(one.name for one in plan.targets if roles.AGGRESSOR in one.roles)
    if not on:
        raise PlanError(
            f"{place((*loc, 'name'))}no target runs the background '{load.name}': none has the "
            f"role {roles.AGGRESSOR}.",
            "Say who: `on: NAME` or `on: ROLE`.",
        )
    _fits(plan, spec, on, loc, place)
    peer = _peer(plan, load.peer, spec, on, loc, place)
    return Background(load.name, load.benchmark, params, on, peer, load.settle_s)


def _hooks(
    plan: Plan, key: str, entries: Sequence[HookEntry], catalog: Catalog, place: Place
) -> tuple[Hook, ...]:
    found: list[Hook] = []
    for index, hook in enumerate(entries):
        loc: Loc = (key, index)
        spec = spec_of(catalog, hook.benchmark, loc, place)
        if spec.two_sided and spec.id not in ALONE:
            raise PlanError(
                f"{place((*loc, 'benchmark'))}{spec.id} has two sides; a hook has one.",
                "Measure it as a benchmark of the plan.",
            )
        params = checked_params(spec, hook.params, (*loc, "params"), place)
        on = roles.targets_of(plan, hook.on, (*loc, "on"), place) if hook.on else ("",)
        found += [Hook(hook.benchmark, params, hook.timeout_s, name) for name in on]
    return tuple(found)
