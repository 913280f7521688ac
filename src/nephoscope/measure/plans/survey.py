"""The built-in plans: `survey` in three levels, `census`, `noise`, and the plan behind `bench`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from nephoscope import catalog
from nephoscope.core.model import SELF
from nephoscope.core.reading import yamltext
from nephoscope.core.reading.sentences import Place, unknown_name
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Entry, Plan
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.record import TargetRecord

LEVELS = ("quick", "standard", "full")

THREADS = "threads"
"""The factor whose levels are filled in from the CPUs that this process may use."""


def survey(
    level: str,
    budget_s: float | None = None,
    seed: int | None = None,
    *,
    comparable: bool = False,
    cpus: int | None = None,
    known: catalog.Catalog | None = None,
) -> Plan:
    """The survey plan of a level (quick, standard, full), fitted to this machine.

    comparable: adds the programs that published server types were measured with, and their time.
    cpus: how many CPUs the process may use; read from its affinity when not given. Where a
    benchmark varies `threads`, the levels become 1, 2, 4, … and `cpus`.
    """
    if level not in LEVELS:
        raise unknown_name(f"There is no survey level '{level}'", level, LEVELS, "It has")
    plan = _builtin(f"survey-{level}", budget_s, seed, cpus, known, {})
    if not comparable:
        return plan
    more = _builtin("comparable", None, None, cpus, known, {})
    benchmarks = (*plan.benchmarks, *more.benchmarks)
    total_s = budget_s or (plan.budget_s or 0.0) + (more.budget_s or 0.0)
    return plan.model_copy(update={"budget_s": total_s, "benchmarks": benchmarks})


def census(
    budget_s: float | None = None,
    seed: int | None = None,
    *,
    metadata: bool = False,
    cpus: int | None = None,
    known: catalog.Catalog | None = None,
) -> Plan:
    """The plan of `census`: who the machine is, how fast its CPU and memory are.

    metadata: whether the cloud is asked for the instance type and zone. cpus: as of `survey`.
    """
    params = {catalog.FINGERPRINT: {"cloud_metadata": metadata}}
    return _builtin("census", budget_s, seed, cpus, known, params)


def noise(*, known: catalog.Catalog | None = None) -> Plan:
    """The plan of `noise`: one benchmark of CPU, memory and disk each."""
    return _builtin("noise", None, None, None, known, {})


def _builtin(
    plan: str,
    budget_s: float | None,
    seed: int | None,
    cpus: int | None,
    known: catalog.Catalog | None,
    params: Mapping[str, Mapping[str, Any]],
) -> Plan:
    """A plan of builtin/ with the user's budget and seed, and further parameters by benchmark."""
    name = f"builtin/{plan}.yaml"
    text = resources.files("nephoscope.measure.plans").joinpath(name).read_text(encoding="utf-8")
    values: dict[str, Any] = yamltext.parse(text, name)
    levels = thread_levels(cpus or len(os.sched_getaffinity(0)))
    for entry in values["benchmarks"]:
        if THREADS in entry.get("factors", {}):
            entry["factors"][THREADS] = levels
        if entry["benchmark"] in params:
            entry["params"] = {**entry.get("params", {}), **params[entry["benchmark"]]}
    if budget_s is not None:
        values["budget"] = budget_s
    if seed is not None:
        values["seed"] = seed
    return from_values(values, known or catalog.load(), lambda _: f"{name}: ")


def thread_levels(cpus: int) -> list[int]:
    """1, 2, 4, … up to `cpus`, and `cpus` itself."""
    powers = [1 << shift for shift in range(cpus.bit_length()) if 1 << shift <= cpus]
    return powers if powers[-1] == cpus else [*powers, cpus]


def fit_to_machines(plan: Plan, targets: Sequence[TargetRecord], cpus: Mapping[str, int]) -> Plan:
    """Returns the plan for other targets. cpus: target -> CPUs that a process may use there.

    An entry that varies `threads` gets the levels of each machine; what only some of the machines
    have becomes an entry of its own, on those.
    """
    entries: list[Entry] = []
    for entry in plan.benchmarks:
        if THREADS not in entry.factors:
            entries.append(entry)
            continue
        for names, levels in _levels_by_targets(targets, cpus):
            factors = {**entry.factors, THREADS: levels}
            on = names if len(names) < len(targets) else ()
            entries.append(entry.model_copy(update={"factors": factors, "on": on}))
    return plan.model_copy(update={"targets": tuple(targets), "benchmarks": tuple(entries)})


def _levels_by_targets(
    targets: Sequence[TargetRecord], cpus: Mapping[str, int]
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Returns levels by the targets that have them, those of all targets first."""
    by_targets: dict[tuple[str, ...], list[int]] = {}
    of_each = {target.name: thread_levels(cpus[target.name]) for target in targets}
    for level in sorted({level for levels in of_each.values() for level in levels}):
        names = tuple(name for name, levels in of_each.items() if level in levels)
        by_targets.setdefault(names, []).append(level)
    return sorted(by_targets.items(), key=lambda pair: -len(pair[0]))


def single(
    benchmark: str,
    sets: Mapping[str, str] | None = None,
    targets: Sequence[TargetRecord] = (),
    *,
    peer: TargetRecord | None = None,
    client: TargetRecord | None = None,
    budget_s: float | None = 60.0,
    seed: int | None = None,
    rounds: int | None = None,
    timeout_s: float = 120.0,
    known: catalog.Catalog | None = None,
) -> Plan:
    """The plan of `bench`: one benchmark, its parameters from `name=value`, on each target.

    sets: parameter -> value as on the command line. A list for a parameter that takes one value
    makes a factor of it: `--set threads=[1,2]`. rounds: exactly so many, instead of the stopping
    rule. targets: this machine when empty; of several each is compared with the first. peer, client
    (one of them at most): the far side of a two-sided benchmark, or the one client that all targets
    serve; without both each target serves itself.
    Raises PlanError for a parameter that does not exist or is out of bounds, and for ends that
    cannot be.
    """
    known = known or catalog.load()
    spec = known.benchmark(benchmark)
    set_params = sets or {}
    targets = tuple(targets) or (LocalRecord(),)
    names = [target.name for target in targets]
    params: dict[str, Any] = {}
    factors: dict[str, Any] = {}
    for name, text in set_params.items():
        value = yamltext.parse_scalar(text)
        kinds = {param.id: param.type for param in spec.params}
        if kinds.get(name) == "text":
            value = text
        varied = isinstance(value, list) and value and not kinds.get(name, "").endswith("_list")
        (factors if varied else params)[name] = value
    entry: dict[str, Any] = {
        "benchmark": benchmark,
        "params": params,
        "factors": factors,
        "timeout": timeout_s,
        "on": names,
    }
    if client is not None:
        entry["client"] = client.name
    elif peer is not None:
        entry["peer"] = peer.name
    elif spec.wants_peer(set_params):
        entry["peer"] = SELF
    values: dict[str, Any] = {
        "name": f"bench-{benchmark.replace('.', '-')}",
        "question": _question(benchmark, names, entry),
        "targets": [*targets, *(target for target in (peer, client) if target is not None)],
        "benchmarks": [entry],
        "accept": ["throttled"],
        "budget": budget_s,
        "seed": seed,
    }
    if "peer" in entry or "client" in entry:
        # A server may have to fill its tables first.
        values["phases"] = {"start": timeout_s}
    if len(names) > 1:
        values["design"] = {"baseline": {"target": names[0]}}
    if rounds is not None:
        values["repeat"] = {"min": rounds, "max": rounds}
    return from_values(values, known, place_of_set(set_params))


def _question(benchmark: str, names: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Returns the question of `bench`; '' for a benchmark of one side on one target."""
    client, peer = entry.get("client"), entry.get("peer")
    ends = ""
    if client:
        ends = f"with the client on {client}"
    elif peer == SELF:
        ends = "with client and server on each"
    elif peer:
        ends = f"with the server on {peer}"
    if len(names) > 1:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        return f"How do {listed} compare in {benchmark}{', ' if ends else ''}{ends}?"
    if not ends:
        return ""
    (name,) = names
    where = f"of {name}, {ends}" if client else f"between {name} and {peer}"
    if peer == SELF:
        where = f"of {name} with itself"
    return f"What does {benchmark} measure {where}?"


def place_of_set(sets: Mapping[str, str]) -> Place:
    """Returns the places of a plan whose parameters are given on the command line by `--set`."""

    def place(loc: yamltext.Loc) -> str:
        name = str(loc[3]) if len(loc) > 3 else ""
        return f"--set {name}={sets[name]}: " if name in sets else ""

    return place
