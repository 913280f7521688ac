"""What schedules each target's CPUs, from every trial of `cpu.gaps` in a run.

Looks of one target under one combination of conditions belong together; where a plan varies a
condition (a cap, a neighbour), each of its levels has a verdict of its own. Trials with a load
beside them are looked at apart from those without.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import CPU_GAPS
from nephoscope.core.model import AUXILIARY_FACTORS, Sample, TrialRecord, factors_key
from nephoscope.core.naming import as_number
from nephoscope.features.scheduler.inference.infer import infer
from nephoscope.features.scheduler.inference.verdict import (
    Gap,
    Loop,
    ObservationWindow,
    SchedulerVerdicts,
)
from nephoscope.measure.targets.probe.busy_programs import BUSY_PROGRAMS
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.store import counts

if TYPE_CHECKING:
    import pyarrow as pa

BENCHMARK = CPU_GAPS

_SHARE = "cpu_share_ratio"
_DURATION_NS = 1_000_000_000
"""Where the plan gives none."""

Place = tuple[Any, int]


def analyse(data: RunData) -> SchedulerVerdicts:
    """Returns a verdict for each target and combination of conditions of a run of `cpu.gaps`."""
    run = data.run
    own = {param.id for param in run.spec(BENCHMARK).params}
    windows: dict[tuple[str, str], list[ObservationWindow]] = {}
    for record, table in run.tables():
        if record.benchmark == BENCHMARK and counts(record):
            target = record.key.target
            allowed = facts.items(data.fingerprints.get(target), "topology.allowed_cpus")
            window = window_of(
                target,
                record.key.name,
                record.params,
                _samples(table),
                record.counters,
                machine_cpus=len(allowed) if allowed else None,
                programs=_programs(record),
            )
            windows.setdefault((target, factors_key(conditions_of(record, own))), []).append(window)
    return SchedulerVerdicts(
        tuple(
            replace(infer(target, target_windows), conditions=json.loads(conditions))
            for (target, conditions), target_windows in windows.items()
        )
    )


def conditions_of(record: TrialRecord, own: Iterable[str]) -> dict[str, Any]:
    """The factors of a trial without the benchmark's own parameters (`own`), and its loads."""
    conditions = {name: level for name, level in record.factors.items() if name not in own}
    if record.loads:
        conditions["loads"] = ", ".join(sorted({str(load["name"]) for load in record.loads}))
    return conditions


def _samples(table: pa.Table) -> Iterable[Sample]:
    """The trial's own samples; those of its loads and hooks are left out."""
    names = ("metric", "value", "count", "at_ns", "factors")
    columns = [table.column(name).to_pylist() for name in names]
    known: dict[str, dict[str, Any]] = {}
    for metric, value, count, at_ns, text in zip(*columns, strict=True):
        factors = known.setdefault(text, json.loads(text) if text not in known else {})
        if not AUXILIARY_FACTORS & factors.keys():
            yield Sample(metric, value, count, at_ns, factors)


def window_of(
    target: str,
    trial: str,
    params: Mapping[str, Any],
    samples: Iterable[Sample],
    counters: Mapping[str, Any],
    *,
    machine_cpus: int | None = None,
    programs: Iterable[tuple[str, float]] = (),
) -> ObservationWindow:
    """The window of one trial.

    params: as the plan gave them. samples: all of the trial's; other metrics are passed over.
    counters: those of the machine over the trial. machine_cpus: those that a process may use.
    programs: other programs with the CPUs that each used.
    """
    settings = {name: value for name, value in params.items() if value is not None}
    throttled = as_number(counters.get("throttled_count"))
    return ObservationWindow(
        target=target,
        trial=trial,
        processes=int(settings.get("processes_per_cpu", 1)),
        window_ns=int(settings.get("duration_ns", _DURATION_NS)),
        loops=_loops(samples),
        sleep_ns=int(settings.get("sleep_ns", 0)),
        machine_cpus=machine_cpus,
        steal_ratio=as_number(counters.get("steal_ratio")),
        throttled_ratio=as_number(counters.get("throttled_ratio")),
        throttled_count=None if throttled is None else int(throttled),
        programs=tuple(programs),
    )


def _programs(record: TrialRecord) -> Iterator[tuple[str, float]]:
    """Yields the other programs that used CPUs during a trial."""
    document = record.documents.get(BUSY_PROGRAMS)
    for program in document if isinstance(document, list) else ():
        cpus = facts.number(program, "cpus")
        if cpus is not None:
            yield str(facts.text(program, "program") or "?"), cpus


def _loops(samples: Iterable[Sample]) -> tuple[Loop, ...]:
    scalars: dict[Place, dict[str, float]] = defaultdict(dict)
    gaps: dict[Place, list[Gap]] = defaultdict(list)
    sleeps: dict[Place, list[Gap]] = defaultdict(list)
    for sample in samples:
        if "cpu" not in sample.factors:
            continue
        place = (sample.factors["cpu"], int(sample.factors.get("process", 0)))
        if sample.metric == "gap_event_ns":
            cause = str(sample.factors.get("cause", "unexplained"))
            gaps[place].append(Gap(sample.at_ns, sample.value, cause))
        elif sample.metric == "sleep_event_ns":
            sleeps[place].append(Gap(sample.at_ns, sample.value, "slept"))
        else:
            scalars[place][sample.metric] = sample.value

    def in_order(unordered: list[Gap]) -> tuple[Gap, ...]:
        return tuple(sorted(unordered, key=lambda gap: gap.start_ns))

    return tuple(
        Loop(
            cpu=place[0] if isinstance(place[0], int) else None,
            process=place[1],
            share=scalars[place][_SHARE],
            thread_cpu_ratio=scalars[place].get("thread_cpu_ratio"),
            look_cost_ns=scalars[place].get("look_cost_ns"),
            gaps=in_order(gaps[place]),
            sleeps=in_order(sleeps[place]),
        )
        for place in sorted(scalars, key=lambda place: (str(place[0]), place[1]))
        if _SHARE in scalars[place]
    )
