"""Machines that stored runs show for a census, and the speeds of their CPU models."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from nephoscope.catalog import CPU_GAPS, FINGERPRINT
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Better, TrialRecord, factors_key
from nephoscope.core.records import dataclass
from nephoscope.features.census import hosts
from nephoscope.features.census.records import (
    UNKNOWN_TYPE,
    Census,
    MachineCount,
    ModelValues,
    Observations,
)
from nephoscope.features.census.result import build
from nephoscope.results import lines, run_settings
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.store import StoredRun, counts, query
from nephoscope.store.engines.question import Engine, size_of

GROUPS = ("cpu.", "mem.", "disk.")
"""Benchmarks whose headline metrics are the speed of a machine."""

NO_SPEED = (CPU_GAPS,)
"""A share of the CPU is what the hypervisor gives, not what the model does with it."""

_COUNTED = run_settings.OF_MACHINE - {run_settings.HYPERVISOR}
"""Settings that a census counts or groups by, so that they are not hidden."""

_LAB = "lab"
_SIGNATURE = ("family", "model", "stepping")
_REASONS = {
    "unreadable": ("run whose samples cannot be read", "runs whose samples cannot be read"),
    "lab": ("lab host, not a separate machine", "lab hosts, not separate machines"),
    "nameless": (
        "target without a fingerprint that names its CPU",
        "targets without a fingerprint that names their CPU",
    ),
    "shared": (
        "measurement of a machine whose identifier several instances share",
        "measurements of machines whose identifiers several instances share",
    ),
}
"""Why something was not counted, of one and of several."""
_CLOCK = re.compile(r"@\s*([0-9.]+)\s*GHz")


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at one machine. machine: its identity. at: seconds since the epoch.

    instance, host: the two hashes it may be known by; '' where hidden. signature: family, model and
    stepping. agree: False where cpuid and /proc/cpuinfo tell different CPUs. settings: as of
    results.run_settings. placed_on: physical host, as the provider of a rented machine names it; ''
    where it does not.
    """

    run: str
    target: str
    machine: str
    instance: str
    host: str
    model: str
    signature: str
    instance_type: str
    zone: str
    at: float
    agree: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    placed_on: str = ""


@dataclass(frozen=True, slots=True)
class SpeedTrials:
    """The trials of a headline scalar on a target of a run. params: canonical, without levels."""

    key: lines.LineId
    params: str
    trials: lines.Group


@dataclass(frozen=True, slots=True)
class UsedRun:
    """A run that shows a machine: what is used of it, once it was read."""

    run: StoredRun
    speeds: tuple[SpeedTrials, ...]


def seen(
    runs: Iterable[StoredRun],
    *,
    targets: Iterable[str] = (),
    with_lab: bool = False,
    engine: Engine | None = None,
) -> Observations:
    """The machines and speeds of these runs, and a sentence for whatever was not counted.

    targets: only these names; all when none is given. with_lab: hosts of a lab too, which are no
    machines of their own and count as the machine that they live on. engine: reads the runs; None
    for this process.
    """
    reasons: Counter[str] = Counter()
    used, observations, looked_at = observed(
        runs, frozenset(targets), with_lab, reasons, engine=engine
    )
    first = _first(observations)
    measured, otherwise = _measured(used, observations)
    return Observations(
        tuple(_count(observation) for observation in first.values()),
        measured,
        looked_at=looked_at,
        runs=len(used),
        flags=tuple(_flags(observations, first)),
        left_out=(*left_out(reasons), *otherwise),
        hidden_settings=run_settings.hidden_settings(
            (observation.settings for observation in observations), compared=_COUNTED
        ),
    )


def observed(
    runs: Iterable[StoredRun],
    wanted: frozenset[str],
    with_lab: bool,
    reasons: Counter[str],
    *,
    benchmark: str = "",
    engine: Engine | None = None,
) -> tuple[list[UsedRun], list[Observation], int]:
    """Returns the runs that show a machine, every look at one, and how many runs were looked at.

    Counts `reasons` of the rest. Asks each run once, in this order. benchmark: whose headline
    metrics are the speed; '' for those of `GROUPS`. engine: reads the runs; None for this process.
    """
    observations: list[Observation] = []
    used: list[UsedRun] = []
    looked_at = 0
    for run, (own, speeds, counted) in _each_observed(
        runs, partial(_observed_run, wanted, with_lab, benchmark), engine
    ):
        looked_at += 1
        reasons.update(counted)
        observations += own
        if speeds is not None:
            used.append(UsedRun(run, speeds))
    return used, _named(_identified(observations, reasons)), looked_at


_OfRun = tuple[list[Observation], tuple[SpeedTrials, ...] | None, Counter[str]]
"""The looks at machines in a run, its speeds, None where it is not used, and counted reasons."""


def _each_observed(
    runs: Iterable[StoredRun], observe: Callable[[StoredRun], _OfRun], engine: Engine | None
) -> Iterator[tuple[StoredRun, _OfRun]]:
    if engine is None:
        yield from ((run, observe(run)) for run in runs)
        return
    every = list(runs)
    paths = [run.path for run in every]
    answers = engine.each(partial(_at_path, observe), paths, size_bytes=sum(map(size_of, every)))
    yield from zip(every, answers, strict=True)


def _at_path(observe: Callable[[StoredRun], _OfRun], path: Path) -> _OfRun:
    return observe(StoredRun(path))


def _observed_run(wanted: frozenset[str], with_lab: bool, benchmark: str, run: StoredRun) -> _OfRun:
    reasons: Counter[str] = Counter()
    try:
        records = run.records()
        own = _of_run(run, records, wanted, with_lab, reasons)
        if not own:
            return [], None, reasons
        targets = {observation.target for observation in own}
        return own, tuple(_speeds(run, records, targets, benchmark)), reasons
    except StoreError:
        reasons["unreadable"] += 1
        return [], None, reasons


def left_out(reasons: Counter[str]) -> tuple[str, ...]:
    """Returns a sentence for each reason why something was not counted."""
    return tuple(
        f"Excluded: {number} {_REASONS[what][number != 1]}." for what, number in reasons.items()
    )


def analyse(data: RunData) -> Census | None:
    """Returns the census of a run that measured several machines; None of any other."""
    apart = [target for target in data.manifest.targets if target.get("kind") != _LAB]
    observed = seen([data.run]) if len(apart) > 1 else None
    if observed is None or len(observed.counts) < 2:
        return None
    return build(observed, confidence=data.confidence)


def _of_run(
    run: StoredRun,
    records: Sequence[TrialRecord],
    wanted: frozenset[str],
    with_lab: bool,
    reasons: Counter[str],
) -> list[Observation]:
    out = []
    for target in run.manifest.targets:
        name = str(target["name"])
        if wanted and name not in wanted:
            continue
        if target.get("kind") == _LAB and not with_lab:
            reasons["lab"] += 1
        elif observation := _observation(run, name, *_fingerprint(run, name, records)):
            out.append(observation)
        else:
            reasons["nameless"] += 1
    return out


def _fingerprint(
    run: StoredRun, target: str, records: Sequence[TrialRecord]
) -> tuple[Mapping[str, Any], float]:
    """The document that says most: one whose cloud was asked, else the one taken at the start."""
    started = run.started_s
    documents = [
        (document, record.started_at or started)
        for record in records
        if record.key.target == target and record.benchmark == FINGERPRINT
        for document in record.documents.values()
    ]
    with_cloud_facts = [
        document for document in documents if facts.text(document[0], "cloud.instance_type")
    ]
    own = run.manifest.fingerprints.get(target)
    return next(
        iter([*with_cloud_facts, *([(own, started)] if own else []), *documents]), ({}, started)
    )


def _observation(
    run: StoredRun, target: str, document: Mapping[str, Any], at: float
) -> Observation | None:
    model = (
        facts.text(document, "cpu.by_cpuid.brand")
        or facts.text(document, "cpu.by_cpuinfo.model_name")
        or facts.text(document, "cpu.model")
    )
    if not model:
        return None
    numbers = {k: facts.number(document, f"cpu.by_cpuid.{k}") for k in _SIGNATURE}
    # What the run rented is known also where the machine's metadata service was not asked.
    rented = run.manifest.rented.get(target, {})
    kind = facts.text(document, "cloud.instance_type")
    provider = facts.text(document, "cloud.provider") if kind else rented.get("provider")
    kind = kind or rented.get("type")
    instance = facts.text(document, "cloud.instance_id_hash") or str(rented.get("id", ""))
    return Observation(
        run.id,
        target,
        "",
        instance,
        facts.text(document, "identity.machine_id_hash") or "",
        " ".join(model.split()),
        ", ".join(f"{k} {v:g}" for k, v in numbers.items() if v is not None),
        (f"{provider} {kind}" if provider else kind) if kind else UNKNOWN_TYPE,
        facts.text(document, "cloud.zone") or str(rented.get("zone", "")),
        at,
        facts.fact(document, "cpu.agree") is not False,
        run_settings.settings_of(run.manifest, target, document),
        str(rented.get("host", "")),
    )


def _identified(observations: Sequence[Observation], reasons: Counter[str]) -> list[Observation]:
    """Each with its machine: the instance where the cloud told it, else the machine identifier.

    A machine that was asked in one run and not in another is the same: its identifier leads to its
    instance. An identifier that several instances share (a copied image) leads nowhere.
    """
    of_host: dict[str, dict[str, Observation]] = {}
    for observation in observations:
        if observation.host and observation.instance:
            of_host.setdefault(observation.host, {})[observation.instance] = observation
    out = []
    for observation in observations:
        known = of_host.get(observation.host, {})
        if observation.instance:
            out.append(replace(observation, machine=f"instance {observation.instance}"))
        elif len(known) > 1:
            reasons["shared"] += 1
        elif known:
            (identified,) = known.values()
            same = replace(
                observation, instance_type=identified.instance_type, zone=identified.zone
            )
            out.append(replace(same, machine=f"instance {identified.instance}"))
        elif observation.host:
            out.append(replace(observation, machine=f"machine {observation.host}"))
        else:
            # Hidden: nothing tells whether it was seen before, so that a run is all it has.
            out.append(replace(observation, machine=f"run {observation.run} {observation.target}"))
    return out


def _named(observations: Sequence[Observation]) -> list[Observation]:
    """Models of one name and several steppings are told apart by them."""
    signatures: dict[str, set[str]] = {}
    for observation in observations:
        signatures.setdefault(observation.model, set()).add(observation.signature)
    return [
        replace(observation, model=f"{observation.model} ({observation.signature})")
        if len(signatures[observation.model]) > 1 and observation.signature
        else observation
        for observation in observations
    ]


def _first(observations: Sequence[Observation]) -> dict[str, Observation]:
    """The first look at each machine: the draw that a census counts."""
    out: dict[str, Observation] = {}
    for earliest in sorted(
        observations, key=lambda observation: (observation.at, observation.run, observation.target)
    ):
        out.setdefault(earliest.machine, earliest)
    return out


def _flags(observations: Sequence[Observation], first: Mapping[str, Observation]) -> Iterator[str]:
    moved = {
        observation.machine
        for observation in observations
        if observation.model != first[observation.machine].model
    }
    torn = {observation.machine for observation in observations if not observation.agree}
    hidden = {machine for machine in first if machine.startswith("run ")}
    for machines, text in (
        (
            moved,
            "later seen with another CPU model (migrated, or stopped and started). Shares use the "
            "first measurement; speeds use the measured model.",
        ),
        (
            torn,
            "seen with a /proc/cpuinfo that contradicts the cpuid instruction; the census uses the "
            "instruction.",
        ),
        (
            hidden,
            "counted without an identity; a machine measured in several of these runs is counted "
            "several times.",
        ),
    ):
        if machines:
            yield f"{len(machines)} machine{'s were' if len(machines) != 1 else ' was'} {text}"
    yield from hosts.sentences(hosts.host_hints(observations))


def _count(observation: Observation) -> MachineCount:
    clock = _CLOCK.search(observation.model)
    return MachineCount(
        observation.instance_type,
        observation.model,
        1,
        observation.zone,
        datetime.fromtimestamp(observation.at, UTC).hour if observation.at else None,
        float(clock[1]) * 1e9 if clock else None,
    )


_Line = tuple[str, str, str, str]
"""Instance type, benchmark, metric, factors."""
_Models = dict[str, dict[str, dict[str, list[float]]]]
"""CPU model -> machine -> run -> trial values."""


def _measured(
    runs: Sequence[UsedRun], observations: Sequence[Observation]
) -> tuple[tuple[ModelValues, ...], list[str]]:
    """Of each line the parameters with which most machines were measured, two models at least."""
    better: dict[_Line, Better] = {}
    values: dict[_Line, dict[str, _Models]] = {}
    for observation, speed in speeds_of(runs, observations):
        line = (observation.instance_type, speed.key.benchmark, speed.key.metric, speed.key.factors)
        better[line] = speed.trials.better
        models = values.setdefault(line, {}).setdefault(speed.params, {})
        by_run = models.setdefault(observation.model, {}).setdefault(observation.machine, {})
        # Several targets of one run may live on one machine.
        by_run.setdefault(observation.run, []).extend(speed.trials.values)
    measured = []
    for line, by_params in sorted(values.items()):
        models = min(by_params.items(), key=lambda item: (*_narrowness(item[1]), item[0]))[1]
        if len(models) > 1:
            kind, benchmark, metric, factors = line
            of = json.loads(factors)
            measured.append(ModelValues(kind, benchmark, metric, of, better[line], models))
    ambiguous = sorted({line[1] for line, by_params in values.items() if len(by_params) > 1})
    remark = (
        f"Measured with several sets of parameters: {', '.join(ambiguous)}; each speed uses the "
        "most common set."
    )
    return tuple(measured), [remark] if ambiguous else []


def _narrowness(models: _Models) -> tuple[int, int]:
    """Returns a key that puts the most models first, of as many the most machines."""
    return -len(models), -sum(map(len, models.values()))


def speeds_of(
    runs: Sequence[UsedRun], observations: Sequence[Observation]
) -> Iterable[tuple[Observation, SpeedTrials]]:
    """Yields the headline scalars of runs, each with the machine that it was measured on."""
    machines = {(observation.run, observation.target): observation for observation in observations}
    for used in runs:
        for speed in used.speeds:
            if (machine := machines.get((used.run.id, speed.key.target))) is not None:
                yield machine, speed


def _speeds(
    run: StoredRun, records: Sequence[TrialRecord], targets: Container[str], only: str
) -> Iterable[SpeedTrials]:
    def is_speed(benchmark: str, metric: str) -> bool:
        is_general = benchmark.startswith(GROUPS) and benchmark not in NO_SPEED
        if benchmark != only if only else not is_general:
            return False
        return any(spec.id == metric and spec.headline for spec in run.spec(benchmark).metrics)

    plain = {record.key.name: record for record in records if counts(record) and not record.loads}
    place = {name: record.position for name, record in plain.items()}
    rows = [row for row in query.trial_medians(run, is_speed) if row.trial in place]
    settings = run.manifest.settings
    for key, trials in lines.group_scalars(rows, place).items():
        if trials.better is Better.NONE or key.target not in targets:
            continue
        record = plain[trials.trial]
        setting = settings[record.key.setting] if record.key.setting < len(settings) else {}
        if setting.get("conditions") or setting.get("peer") or setting.get("client"):
            continue  # a lab's limit or a second machine made it, not this model
        fixed = {k: v for k, v in record.params.items() if k not in record.factors and k != "seed"}
        yield SpeedTrials(key, factors_key(fixed), trials)
