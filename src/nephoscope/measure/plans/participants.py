"""Resolves who takes part in a plan: targets, peers, loads, hooks, hosts of the lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.model import SELF, Background, Hook
from nephoscope.core.reading.sentences import choices, did_you_mean
from nephoscope.core.reading.validation_errors import ValidationErrors
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass
from nephoscope.core.shared_load import GENERATORS
from nephoscope.measure.plans.context import AGGRESSOR, DEFAULT_ROLES, SERVER, PlanContext
from nephoscope.measure.plans.factors import lab
from nephoscope.measure.plans.factors.bound import NONE
from nephoscope.measure.plans.model import BackgroundEntry, Entry, HookEntry
from nephoscope.measure.plans.server_address import (
    AUTHORISED,
    SERVER_ADDRESS,
    SERVICE_URL,
    mentions_server,
    service_params,
)
from nephoscope.measure.targets.kinds.record import why_unreachable
from nephoscope.measure.targets.kinds.service import ServiceRecord

DURATION = "duration_ns"
"""The parameter with which a load runs until it is stopped: 0."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Targets of one entry of `benchmarks`. on: what its results are of. peer, client: as in
    `Setting`."""

    on: tuple[str, ...]
    peer: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True)
class Participants:
    """A plan's parts, checked. ends: one for each entry of `benchmarks`.

    treatments: background -> the conditions that hold while it is on; of those that are no loads.
    """

    ends: tuple[Ends, ...]
    backgrounds: tuple[Background, ...]
    before: tuple[Hook, ...]
    after: tuple[Hook, ...]
    treatments: Mapping[str, Mapping[str, Any]]


def resolve_participants(context: PlanContext) -> Participants:
    """Returns targets for names and roles, records for loads and hooks. Raises PlanError."""
    plan = context.plan
    errors = ValidationErrors()
    with errors.of_part():
        _check_hosts(context)
    entries: list[Ends] = []
    for number, entry in enumerate(plan.benchmarks):
        with errors.of_part():
            entries.append(_entry(context, entry, number))
    with errors.of_part():
        backgrounds = _backgrounds(context)
    with errors.of_part():
        before = _hooks(context, "before", plan.before)
    with errors.of_part():
        after = _hooks(context, "after", plan.after)
    with errors.of_part():
        treatments = _treatments(context)
    errors.report()
    return Participants(
        ends=tuple(entries),
        backgrounds=backgrounds,
        before=before,
        after=after,
        treatments=treatments,
    )


def _check_hosts(context: PlanContext) -> None:
    topology = context.topology
    for index, target in enumerate(context.plan.targets):
        loc: Loc = ("targets", index)
        if not target.in_plan_lab:
            continue
        if topology is None:
            raise context.error(
                (*loc, "kind"),
                f"'{target.name}' is of kind lab, and the plan has no lab.",
                "Give the plan `lab: topology.yaml`, or the target `lab: NAME` of one that is up.",
            )
        host = target.topology_host
        if host not in topology.hosts:
            raise context.error(
                (*loc, "name" if host == target.name else "host"),
                f"the lab '{topology.name}' has no host '{host}'"
                f"{did_you_mean(host, topology.hosts)}.",
                f"It has: {', '.join(topology.hosts)}.",
            )


def _entry(context: PlanContext, entry: Entry, number: int) -> Ends:
    loc: Loc = ("benchmarks", number)
    spec = context.spec(entry.benchmark, loc)
    client = context.resolve_one(entry.client, (*loc, "client")) if entry.client else ""
    roles = (SERVER,) if client else DEFAULT_ROLES
    on = context.resolve_roles(entry.on, (*loc, "on")) if entry.on else ()
    if not entry.on:
        on = tuple(name for name in context.default_targets(roles) if name != client)
    if not on and not client:
        _check_targets(context, spec, context.services(), loc)
    if not on:
        holders = "each other target" if client else "each"
        raise context.error(
            (*loc, "benchmark"),
            f"no target {'serves' if client else 'runs'} {entry.benchmark}: {holders} has a role, "
            f"and none the role {' or '.join(roles)}.",
            "Name the target: `on: NAME` or `on: ROLE`.",
        )
    _check_targets(context, spec, (client,) if client else on, loc)
    _check_generators(context, entry, on, loc)
    loads = [load.name for load in context.plan.backgrounds if load.benchmark]
    for name in entry.served_by:
        if name not in loads:
            raise context.error(
                (*loc, "served_by"),
                f"there is no background '{name}'{did_you_mean(name, loads)}.",
                choices("The plan has", loads, "The plan has no `backgrounds`; add one."),
            )
    services = [target for target in context.plan.targets if isinstance(target, ServiceRecord)]
    measured = [target for target in services if target.name in on]
    if client and measured:
        _check_services(context, entry, spec, measured, loc)
    filled = {name for target in measured for name in service_params(spec, target)}
    wants_peer = spec.wants_peer({*entry.params, *entry.factors, *filled})
    if client:
        return _served(context, entry, spec, on, client, loc, wants_peer)
    return Ends(on, _peer(context, entry.peer, spec, on, loc, wants_peer))


def _check_generators(context: PlanContext, entry: Entry, on: Sequence[str], loc: Loc) -> None:
    """PlanError where targets that run together cannot share the load as the plan states."""
    number = entry.params.get(GENERATORS, 1)
    if not entry.together or number in (1, len(on)):
        return
    raise context.error(
        (*loc, "params", GENERATORS),
        f"{number} generators are to share the load, and {len(on)} targets run together.",
        f"Write `{GENERATORS}: {len(on)}`, or leave it out: then each sends a load of its own.",
    )


def _served(
    context: PlanContext,
    entry: Entry,
    spec: BenchmarkSpec,
    on: tuple[str, ...],
    client: str,
    loc: Loc,
    wants_peer: bool,
) -> Ends:
    """Returns the ends of an entry whose targets serve one client."""
    at: Loc = (*loc, "client")
    if entry.peer:
        message = "`client` and `peer` exclude each other: with a client, the targets serve."
        raise context.error(at, message, "Keep `client`, and name the servers in `on`.")
    if entry.together:
        raise context.error(
            (*loc, "together"),
            f"servers that run together would share the client '{client}'.",
            "Drop `together`, or give each server a client of its own: `peer: self`.",
        )
    targets = {target.name: target for target in context.plan.targets}
    are_services = any(targets[name].traits().is_service for name in on)
    serves = not are_services and (wants_peer or (spec.two_sided and not spec.needs_peer))
    if not (serves or are_services or any(map(mentions_server, _values(entry)))):
        raise context.error(
            at,
            f"{spec.id} has one side here, so a client has no server to measure.",
            f"Drop `client`; or write {SERVER_ADDRESS} in a parameter, where the address of a "
            "running service stands.",
        )
    for name in on:
        if targets[name].traits().place == targets[client].traits().place:
            problem = f"the client '{client}' and the server '{name}' are the same machine."
            if name == client:
                problem = f"'{client}' is the client and also a server of the comparison."
            raise context.error(
                at,
                problem,
                "Take another machine as the client, or compare each with its own client: "
                "`peer: self`.",
            )
        reason = why_unreachable(targets[client], targets[name]) if serves else ""
        if reason:
            message = f"'{client}' cannot reach '{name}': {reason}."
            raise context.error(at, message, "Choose targets that share a network.")
    return Ends(on, SELF if serves else "", client)


def _check_services(
    context: PlanContext,
    entry: Entry,
    spec: BenchmarkSpec,
    services: Sequence[ServiceRecord],
    loc: Loc,
) -> None:
    """PlanError when the benchmark cannot measure a service, or may not."""
    machines = [name for name in entry.on if name not in {service.name for service in services}]
    values = _values(entry)
    if machines and any(mentions_server(value, (SERVICE_URL,)) for value in values):
        message = f"'{machines[0]}' is no service, so {SERVICE_URL} stands for nothing there."
        raise context.error((*loc, "on"), message, "Measure the two in entries of their own.")
    for service in services:
        filled = service_params(spec, service)
        if spec.wants_peer({*entry.params, *entry.factors, *filled}) or (
            spec.two_sided and not filled
        ):
            raise context.error(
                (*loc, "benchmark"),
                f"{spec.id} starts the server that it measures, and '{service.name}' is a service, "
                "on which no program can be started.",
                "Take http.load, kv.load, storage.transfer or net.rtt.",
            )
        placeholders = (SERVER_ADDRESS, SERVICE_URL)
        if not filled and not any(mentions_server(value, placeholders) for value in values):
            raise context.error(
                (*loc, "benchmark"),
                f"{spec.id} has no parameter that the address {service.url} of '{service.name}' "
                "would fill.",
                f"Take a benchmark of a {service.product}, or write {SERVICE_URL} in a parameter.",
            )
        owned = entry.params.get(AUTHORISED, ())
        if not service.may_be_loaded(tuple(owned) if isinstance(owned, list | tuple) else ()):
            index = context.plan.targets.index(service)
            raise context.error(
                ("targets", index, "url"),
                f"{service.host} is not this machine, and load could disturb its owner.",
                f"If it is yours, add `authorised_hosts: [{service.host}]` to '{service.name}'.",
            )


def _values(entry: Entry) -> list[Any]:
    return [*entry.params.values(), *(level for each in entry.factors.values() for level in each)]


def _check_targets(context: PlanContext, spec: BenchmarkSpec, on: Sequence[str], loc: Loc) -> None:
    """PlanError when a target cannot run the benchmark at all."""
    for target in context.plan.targets:
        reason = target.unanswered(spec) if target.name in on else None
        if reason:
            raise context.error((*loc, "benchmark"), *reason)


def _peer(
    context: PlanContext,
    peer: str,
    spec: BenchmarkSpec,
    on: Sequence[str],
    loc: Loc,
    wants_peer: bool,
) -> str:
    if not peer:
        if wants_peer:
            raise context.error(
                (*loc, "benchmark"),
                f"{spec.id} has two sides, and no target serves the far one.",
                "Name it: `peer: NAME`, `peer: ROLE` or `peer: self`; or name one client of all "
                "targets: `client: NAME`.",
            )
        return ""
    at: Loc = (*loc, "peer")
    if not spec.two_sided:
        message = f"{spec.id} has one side only; there is nothing to serve."
        raise context.error(at, message, "Drop `peer`.")
    known = {name for target in context.plan.targets for name in (target.name, *target.roles)}
    if peer == SELF and SELF not in known:
        return SELF
    server = context.resolve_one(peer, at)
    if on == (server,):
        return SELF
    targets = {target.name: target for target in context.plan.targets}
    if targets[server].traits().is_service:
        message, hint = targets[server].unanswered(spec) or ("", "")
        raise context.error(at, message, hint)
    for name in on:
        reason = why_unreachable(targets[name], targets[server])
        if reason:
            message = f"'{name}' cannot reach '{server}': {reason}."
            raise context.error(at, message, "Choose two targets that share a network.")
    return server


def _backgrounds(context: PlanContext) -> tuple[Background, ...]:
    backgrounds: list[Background] = []
    names: list[str] = []
    for index, load in enumerate(context.plan.backgrounds):
        loc: Loc = ("backgrounds", index)
        at: Loc = (*loc, "name")
        if load.name == NONE or load.name in names:
            problem = "is the word for no load" if load.name == NONE else "exists twice"
            raise context.error(at, f"the background '{load.name}' {problem}.", "Rename it.")
        names.append(load.name)
        if bool(load.benchmark) == bool(load.conditions):
            problem = "has a benchmark and conditions" if load.benchmark else "does nothing"
            raise context.error(
                at,
                f"the background '{load.name}' {problem}.",
                "Give it a benchmark, or conditions.",
            )
        if load.benchmark:
            backgrounds.append(_background(context, load, loc))
    return tuple(backgrounds)


def _treatments(context: PlanContext) -> dict[str, dict[str, Any]]:
    """The conditions of backgrounds that are no loads, in the topology's own units."""
    treatments: dict[str, dict[str, Any]] = {}
    varied = {factor.path for factor in context.plan.factors.values()}
    for index, load in enumerate(context.plan.backgrounds):
        for path, raw in load.conditions.items():
            loc: Loc = ("backgrounds", index, "conditions", path)
            if context.topology is None or not path.startswith("lab."):
                raise context.error(
                    loc,
                    f"'{path}' is no condition of the plan's lab.",
                    "Write lab.hosts.NAME.… or lab.links.NAME.…, and give the plan `lab:`.",
                )
            if path in varied:
                message = f"a factor sets '{path}' as well."
                raise context.error(loc, message, "Keep one of the two.")
            inner = path.removeprefix("lab.")
            value = lab.convert_condition(context, inner, raw, loc, loc)
            treatments.setdefault(load.name, {})[inner] = value
    return treatments


def _background(context: PlanContext, load: BackgroundEntry, loc: Loc) -> Background:
    spec = context.spec(load.benchmark, loc)
    if not spec.load:
        known = [spec.id for spec in context.catalog.benchmarks.values() if spec.load]
        raise context.error(
            (*loc, "benchmark"),
            f"{spec.id} ends by itself; a background runs until it is stopped.",
            f"These run until stopped: {', '.join(known) or 'none of this version'}.",
        )
    params = context.convert_all(spec, load.params, (*loc, "params"))
    if params.get(DURATION):
        raise context.error(
            (*loc, "params", DURATION),
            f"the background '{load.name}' would end by itself and invalidate its trials.",
            f"Drop {DURATION}: a background runs until it is stopped.",
        )
    if any(param.id == DURATION for param in spec.params):
        params[DURATION] = 0
    on = context.resolve_roles(load.on, (*loc, "on")) if load.on else _aggressors(context)
    if not on:
        raise context.error(
            (*loc, "name"),
            f"no target runs the background '{load.name}': none has the role {AGGRESSOR}.",
            "Name the target: `on: NAME` or `on: ROLE`.",
        )
    _check_targets(context, spec, on, loc)
    peer = _peer(context, load.peer, spec, on, loc, spec.wants_peer(load.params))
    return Background(load.name, load.benchmark, params, on, peer, load.settle_s)


def _aggressors(context: PlanContext) -> tuple[str, ...]:
    return tuple(target.name for target in context.plan.targets if AGGRESSOR in target.roles)


def _hooks(context: PlanContext, key: str, entries: Sequence[HookEntry]) -> tuple[Hook, ...]:
    hooks: list[Hook] = []
    for index, hook in enumerate(entries):
        loc: Loc = (key, index)
        spec = context.spec(hook.benchmark, loc)
        if spec.wants_peer(hook.params):
            message = f"{spec.id} has two sides; a hook has one."
            raise context.error(
                (*loc, "benchmark"), message, "Measure it as a benchmark of the plan."
            )
        params = context.convert_all(spec, hook.params, (*loc, "params"))
        on = context.resolve_roles(hook.on, (*loc, "on")) if hook.on else ("",)
        services = context.services()
        if unable := [name for name in (on if hook.on else services) if name in services]:
            raise context.error(
                (*loc, "on") if hook.on else (*loc, "benchmark"),
                f"'{unable[0]}' is a service, so {spec.id} cannot be started on it.",
                "Name a machine: `on: NAME`.",
            )
        hooks += [Hook(hook.benchmark, params, hook.timeout_s, name) for name in on]
    return tuple(hooks)
