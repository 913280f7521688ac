"""Reads series from stored runs: one point a run, by metric, target and setting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from nephoscope.analysis import facts
from nephoscope.analysis.statistics import estimates, histograms
from nephoscope.analysis.statistics.values import Refused
from nephoscope.catalog import FINGERPRINT
from nephoscope.comparison.history import machine_of
from nephoscope.errors import StoreError, UnknownName
from nephoscope.model import INTERNAL, Better, Estimate, Shape, TrialRecord, factors_key
from nephoscope.reading.sentences import did_you_mean
from nephoscope.results import lines, names
from nephoscope.store import StoredRun, counts, query

CPU_MODEL = "CPU model"
FACTS: Mapping[str, str] = {
    "cpu.by_cpuid.brand": CPU_MODEL,
    "cpu.microcode": "microcode",
    "kernel.release": "kernel",
    "hypervisor.name": "hypervisor",
    "cloud.instance_type": "instance type",
    "cloud.zone": "zone",
    "limits.cpu_quota_cpus": "CPU quota",
    "clock.source": "clock source",
}
"""Facts of a fingerprint whose changes are annotated, with their names."""
VERSIONS: Mapping[str, str] = {"nephoscope": "nephoscope", "probe": "nephoscope-probe"}
"""Keys of a manifest that are versions."""
MACHINE = "machine"
COMMAND = "argv"
"""Parameter of a labelled command that may change from version to version."""
REPETITION = "repeats"
"""Label of runs that repeat a measurement to confirm a change; they are no points of a series."""
_PERCENTILE = re.compile(r"_p(\d{2,6})(?=_|$)")


@dataclass(frozen=True, slots=True)
class Point:
    """The metric in one run.

    at_s: start of the run, seconds since the epoch. target: its name in that run. facts: name ->
    value of FACTS, VERSIONS and MACHINE as far as the machine shows them. steal: median share of
    CPU time stolen by the hypervisor; None where hidden.
    """

    run: str
    at_s: float
    estimate: Estimate
    target: str
    facts: Mapping[str, str] = field(metadata=INTERNAL)
    steal: float | None = field(default=None, metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class Series:
    """A metric at one setting on one target over time.

    target: its newest name. factors: as of results. params: the other parameters of the benchmark.
    points: in order of time.
    """

    benchmark: str
    metric: str
    target: str
    factors: Mapping[str, Any]
    params: Mapping[str, Any]
    unit: str
    better: Better
    points: tuple[Point, ...]


def read(
    runs: Iterable[StoredRun],
    metric: str,
    *,
    targets: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    confidence: float = 0.95,
    repetitions: bool = False,
) -> tuple[list[Series], list[str]]:
    """Returns the series of a metric, and a sentence for each run that is left out.

    metric: as in results, such as `latency_p99_ns`; any percentile of a histogram. targets,
    benchmarks: only these, all when empty. repetitions: runs labelled so too. Raises UnknownName
    where no run has the metric.
    """
    by_setting: dict[tuple[str, str, str, str], list[_Entry]] = {}
    known: set[str] = set()
    notes = []
    for run in runs:
        if not repetitions and REPETITION in (run.manifest.get("labels") or {}):
            continue
        try:
            for entry in entries_of(run, metric, known, confidence):
                if benchmarks and entry.key.benchmark not in benchmarks:
                    continue
                setting = (entry.key.benchmark, entry.key.factors, entry.params, entry.unit)
                by_setting.setdefault(setting, []).append(entry)
        except (StoreError, Refused) as error:
            notes.append(f"Run {run.id} is left out: {error}")
    if not by_setting and not notes:
        raise UnknownName(
            f"No selected run has the metric '{metric}'{did_you_mean(metric, known)}.",
            "`nephoscope show RUN` prints the metrics of a run.",
        )
    series = [one for entries in by_setting.values() for one in _by_target(metric, entries)]
    wanted = [
        one
        for one in series
        if not targets or {point.target for point in one.points} & set(targets)
    ]
    if by_setting and not wanted:
        names_there = sorted({point.target for one in series for point in one.points})
        raise UnknownName(
            f"No run of target {' or '.join(targets)} has the metric '{metric}'.",
            f"Targets with it: {', '.join(names_there)}.",
        )
    order = sorted(wanted, key=lambda one: (one.benchmark, one.target, factors_key(one.factors)))
    return order, notes


@dataclass(frozen=True, slots=True)
class _Entry:
    """A point with the setting that it belongs to. lab: its target is a lab host."""

    key: lines.Key
    params: str
    unit: str
    better: Better
    point: Point
    lab: bool


def entries_of(run: StoredRun, metric: str, known: set[str], confidence: float) -> Iterator[_Entry]:
    """Yields the points of a metric in a run; adds the names of all its metrics to `known`."""
    quantiles = dict(_percentiles(run, metric))
    scalars = {name for _, name in run.metrics_of_shape(Shape.SCALAR)}
    known |= scalars
    known |= {
        names.percentile_metric(name, _unit(run, benchmark, name), quantile)
        for benchmark, name in run.metrics_of_shape(Shape.HISTOGRAM)
        for quantile in lines.PERCENTILES
    }
    if metric not in scalars and not quantiles:
        return
    records = {record.key.name: record for record in run.records() if counts(record)}
    place = {name: record.position for name, record in records.items()}
    if metric in scalars:
        rows = [row for row in query.trial_medians(run) if row.metric == metric]
        for key, group in lines.group_scalars(rows, place).items():
            estimate = estimates.median(group.values, unit=group.unit, confidence=confidence)
            yield _entry(run, key, group, estimate, records)
    for (benchmark, name), quantile in quantiles.items():
        found = [r for r in query.histograms(run) if (r.benchmark, r.metric) == (benchmark, name)]
        for key, distribution in lines.group_histograms(found, place).items():
            estimate = histograms.quantile_of_trials(
                distribution.trials,
                quantile,
                unit=distribution.unit,
                confidence=confidence,
                seed=names.seed_of(*key, metric),
            )
            yield _entry(run, key, distribution, estimate, records)


def _percentiles(run: StoredRun, metric: str) -> Iterator[tuple[tuple[str, str], float]]:
    """Yields (benchmark, histogram) and the quantile that a name such as latency_p99_ns means."""
    match = _PERCENTILE.search(metric)
    if match is None:
        return
    digits = match[1]
    quantile = int(digits) / 10 ** len(digits)
    for benchmark, name in run.metrics_of_shape(Shape.HISTOGRAM):
        unit = _unit(run, benchmark, name)
        if 0 < quantile < 1 and names.percentile_metric(name, unit, quantile) == metric:
            yield (benchmark, name), quantile


def _unit(run: StoredRun, benchmark: str, name: str) -> str:
    return next(one.unit for one in run.spec(benchmark).metrics if one.id == name)


def _entry(
    run: StoredRun,
    key: lines.Key,
    group: lines.Group | lines.Histograms,
    estimate: Estimate,
    records: Mapping[str, TrialRecord],
) -> _Entry:
    record = records[group.trial]
    fixed = {k: v for k, v in record.params.items() if k not in record.factors and k != "seed"}
    if fixed.get("label"):
        fixed.pop(COMMAND, None)
    of_target = [one for one in records.values() if one.key.target == key.target]
    target = next(one for one in run.manifest["targets"] if one["name"] == key.target)
    point = Point(
        run.id,
        float(run.manifest.get("started_at") or 0.0),
        estimate,
        key.target,
        _facts(run, key.target, of_target) | _command(record.params),
        _steal(of_target),
    )
    lab = target.get("kind") == "lab"
    return _Entry(key, factors_key(fixed), group.unit, group.better, point, lab)


def _command(params: Mapping[str, Any]) -> dict[str, str]:
    """The command line of a user's program, which is a version where the program has a label."""
    words = params.get(COMMAND)
    return {"command": " ".join(map(str, words))} if words and params.get("label") else {}


def _facts(run: StoredRun, target: str, records: Sequence[TrialRecord]) -> dict[str, str]:
    document: Any = (run.manifest.get("fingerprints") or {}).get(target)
    if not document:
        documents = [
            one
            for record in records
            if record.benchmark == FINGERPRINT
            for one in record.documents.values()
        ]
        document = documents[0] if documents else {}
    known = {title: facts.fact(document, name) for name, title in FACTS.items()}
    known |= {title: run.manifest.get(key) for key, title in VERSIONS.items()}
    known[MACHINE] = machine_of(run, target)
    return {
        title: " ".join(str(value).split())
        for title, value in known.items()
        if value not in (None, "")
    }


def _steal(records: Sequence[TrialRecord]) -> float | None:
    values = [record.beside.get("steal_ratio") for record in records]
    numbers = [
        float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)
    ]
    return median(numbers) if numbers else None


def _by_target(metric: str, entries: Sequence[_Entry]) -> Iterator[Series]:
    """Yields a series for each target.

    A target that was renamed continues its series: two names of one machine are one target unless
    a run has both, or they are hosts of a lab, which share the machine they run on.
    """
    by_name: dict[str, list[_Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry.point.target, []).append(entry)
    groups: list[list[_Entry]] = []
    for own in by_name.values():
        group = next((one for one in groups if _is_renamed(one, own)), None)
        if group is None:
            groups.append(list(own))
        else:
            group += own
    for group in groups:
        points = sorted((entry.point for entry in group), key=lambda one: (one.at_s, one.run))
        first = group[0]
        yield Series(
            first.key.benchmark,
            metric,
            points[-1].target,
            json.loads(first.key.factors),
            json.loads(first.params),
            first.unit,
            first.better,
            tuple(points),
        )


def _is_renamed(a: Sequence[_Entry], b: Sequence[_Entry]) -> bool:
    machines = [
        {entry.point.facts.get(MACHINE) for entry in side if not entry.lab} - {None}
        for side in (a, b)
    ]
    runs = [{entry.point.run for entry in side} for side in (a, b)]
    return bool(machines[0] & machines[1]) and not runs[0] & runs[1]
