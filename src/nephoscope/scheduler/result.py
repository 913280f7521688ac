"""What schedules each target's CPUs, from every trial of `cpu.gaps` in a run.

Looks of one target under one combination of conditions belong together; where a plan varies a
condition (a cap, a neighbour), each of its levels has a verdict of its own. Trials with a load
beside them are looked at apart from those without.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nephoscope.model import BESIDE, Sample, TrialRecord, factors_key
from nephoscope.results.run_data import RunData
from nephoscope.scheduler.inference import Look, SchedulerVerdicts, infer
from nephoscope.scheduler.observations import BENCHMARK, look_of
from nephoscope.store import counts

if TYPE_CHECKING:
    import pyarrow as pa


def analyse(data: RunData) -> SchedulerVerdicts:
    """Returns a verdict for each target and combination of conditions of a run of `cpu.gaps`."""
    run = data.run
    cpus = {target: _cpus(document) for target, document in data.fingerprints.items()}
    own = {param.id for param in run.spec(BENCHMARK).params}
    looks: dict[tuple[str, str], list[Look]] = {}
    for record, table in run.tables():
        if record.benchmark == BENCHMARK and counts(record):
            target = record.key.target
            look = _look(record, table, cpus.get(target))
            looks.setdefault((target, factors_key(conditions_of(record, own))), []).append(look)
    return SchedulerVerdicts(
        tuple(
            replace(infer(target, found), conditions=json.loads(conditions))
            for (target, conditions), found in looks.items()
        )
    )


def conditions_of(record: TrialRecord, own: Iterable[str]) -> dict[str, Any]:
    """The factors of a trial without the benchmark's own parameters (`own`), and its loads."""
    conditions = {name: level for name, level in record.factors.items() if name not in own}
    if record.loads:
        conditions["loads"] = ", ".join(sorted({str(load["name"]) for load in record.loads}))
    return conditions


def _look(record: TrialRecord, table: pa.Table, cpus: int | None) -> Look:
    return look_of(
        record.key.target,
        record.key.name,
        record.params,
        _samples(table),
        record.beside,
        machine_cpus=cpus,
    )


def _samples(table: pa.Table) -> Iterable[Sample]:
    """The trial's own samples; those of its loads and hooks are left out."""
    names = ("metric", "value", "count", "at_ns", "factors")
    columns = [table.column(name).to_pylist() for name in names]
    known: dict[str, dict[str, Any]] = {}
    for metric, value, count, at_ns, text in zip(*columns, strict=True):
        factors = known.setdefault(text, json.loads(text) if text not in known else {})
        if not BESIDE & factors.keys():
            yield Sample(metric, value, count, at_ns, factors)


def _cpus(document: Any) -> int | None:
    topology = document.get("topology") if isinstance(document, dict) else None
    allowed = topology.get("allowed_cpus") if isinstance(topology, dict) else None
    return len(allowed) if isinstance(allowed, list) and allowed else None
