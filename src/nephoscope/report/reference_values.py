"""Compares headline results with surveys of machines of the same class, from a committed data set.

The data set is one document for each machine: the surveys in reference_surveys/, which
tools/add_reference_survey.py writes, and the repeated surveys of comparison/repeated_surveys/.
A class is the machines of one architecture with the same number of CPUs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, MetricResult, RunResult, factors_key
from nephoscope.report import selection, summary, wording
from nephoscope.report.blocks import Item, Items, Section, Sentence
from nephoscope.report.columns import estimate, number, table, text
from nephoscope.stats import facts

MIN_MACHINES = 5
"""With fewer machines a rank within the class would say more about the data set."""

_FOLDERS = (("report", "reference_surveys"), ("features", "comparison", "repeated_surveys"))

LineName = tuple[str, str, str]
"""Benchmark, metric and `factors_key`."""


@dataclass(frozen=True, slots=True)
class ReferenceMachine:
    """Surveys of one machine. medians: of each survey, by line; date: of the first survey."""

    cpu: str
    cpus: int
    architecture: str
    memory_bytes: float
    date: str
    notes: str
    surveys: int
    medians: Mapping[LineName, tuple[float, ...]]


def load() -> list[ReferenceMachine]:
    """Returns the machines of the data set, oldest first."""
    folders = (resources.files("nephoscope").joinpath(*path) for path in _FOLDERS)
    files = [file for folder in folders if folder.is_dir() for file in folder.iterdir()]
    machines = (
        read(json.loads(file.read_text(encoding="utf-8")))
        for file in files
        if file.name.endswith(".json")
    )
    return sorted(machines, key=lambda machine: machine.date)


def read(document: Any) -> ReferenceMachine:
    """Returns the machine of a document."""
    machine = document["machine"]
    return ReferenceMachine(
        cpu=machine["cpu"],
        cpus=machine["cpus"],
        architecture=machine["architecture"],
        memory_bytes=machine["memory_bytes"],
        date=document["date"],
        notes=document["notes"],
        surveys=len(document["started"]),
        medians={
            (line["benchmark"], line["metric"], factors_key(line["factors"])): tuple(
                line["medians"]
            )
            for line in document["lines"]
        },
    )


def document_of(result: RunResult, notes: str) -> dict[str, Any]:
    """Returns the document of the data set on a survey of one machine.

    Metrics without enough trials for an interval are left out. Raises UsageError for a run of
    several machines, or of none.
    """
    known = _fingerprint(result)
    if known is None:
        raise UsageError(
            f"Run {result.run.id} does not describe one machine.",
            "Name a run of `nephoscope survey` on one target.",
        )
    lines = [
        {
            "benchmark": metric.benchmark,
            "metric": metric.metric,
            "factors": dict(metric.factors),
            "medians": [float(f"{metric.estimate.value:.5g}")],
        }
        for metric in result.metrics
        if metric.estimate.low is not None
        and not metric.estimate.censored
        and metric.better is not Better.NONE
    ]
    started = result.run.started_at or ""
    return {
        "date": started[:10],
        "notes": notes,
        "plan": result.run.plan,
        "nephoscope": f"nephoscope {result.run.nephoscope} (probe {result.run.probe})",
        "machine": {
            "cpu": facts.text(known, "cpu.model") or "unknown CPU",
            "cpus": _cpus(known),
            "memory_bytes": facts.number(known, "memory.total_bytes"),
            "kernel": facts.text(known, "kernel.release"),
            "architecture": facts.text(known, "kernel.arch"),
        },
        "started": [started],
        "lines": lines,
    }


def _fingerprint(result: RunResult) -> Any:
    """Returns the fingerprint of the one machine of a run; None where there is no such machine."""
    targets = selection.target_names(result)
    known = result.fingerprints.get(targets[0]) if len(targets) == 1 else None
    return known if known and facts.is_machine(known) else None


def _cpus(known: Any) -> int:
    return len(facts.items(known, "topology.allowed_cpus") or ())


def build(result: RunResult) -> Section | None:
    """Returns the section of a survey of one machine; None for other runs."""
    known = _fingerprint(result)
    return None if known is None else section_of(result, known, load())


def section_of(
    result: RunResult, known: Any, machines: Sequence[ReferenceMachine]
) -> Section | None:
    """Returns the comparison of a machine with this fingerprint with those of its class."""
    architecture = facts.text(known, "kernel.arch") or "an unknown architecture"
    cpus = _cpus(known)
    alike = [
        machine
        for machine in machines
        if (machine.architecture, machine.cpus) == (architecture, cpus)
    ]
    listed = [metric for metric in result.metrics if any(_line(metric) in m.medians for m in alike)]
    chosen = summary.choose(listed)
    if not chosen and not result.run.plan.startswith("survey"):
        return None
    of_class = f"{wording.clean(architecture)} with {wording.plural(cpus, 'CPU')}"
    surveys = sum(machine.surveys for machine in machines)
    until = max((machine.date for machine in machines), default="no date")
    size = f"{wording.plural(len(machines), 'machine')} ({wording.plural(surveys, 'survey')}"
    sentence = (
        f"The reference data has {size}, until {until}); "
        f"{len(alike)} of this machine's class ({of_class})."
    )
    ranked = len(alike) >= MIN_MACHINES
    if not ranked:
        sentence += (
            f" A rank needs at least {MIN_MACHINES} machines of the class, so none is stated."
        )
    if not chosen:
        return Section("reference", "Reference values", (Sentence(sentence),))
    caption = (
        "Reference: median over machines; range: minimum to maximum, of a single machine over its "
        "surveys."
    )
    sources = Items(tuple(Item(_source(reference)) for reference in alike))
    rows = table(
        [(figure, _medians(figure[2], alike)) for figure in chosen],
        text("result", lambda row: f"{row[0][0]} ({row[0][1]})" if row[0][1] else row[0][0]),
        *estimate("value", lambda row: row[0][2].estimate),
        number("reference", lambda row: _reference(row[0][2], row[1], alike)[0]),
        number("range", lambda row: _reference(row[0][2], row[1], alike)[1]),
        *([text("rank", lambda row: _rank(row[0][2], row[1]))] if ranked else []),
        caption=caption,
    )
    blocks = (Sentence(sentence), rows, sources)
    return Section("reference", "Reference values", blocks)


def _line(metric: MetricResult) -> LineName:
    return metric.benchmark, metric.metric, factors_key(metric.factors)


def _source(machine: ReferenceMachine) -> str:
    size = units.format_value(machine.memory_bytes, "bytes")
    what = f"{machine.cpu}, {wording.plural(machine.cpus, 'CPU')}, {size} of memory"
    when = f"{machine.date}, {wording.plural(machine.surveys, 'survey')}"
    return wording.clean(f"{what} ({when}): {machine.notes}")


def _medians(metric: MetricResult, alike: Sequence[ReferenceMachine]) -> list[float]:
    line = _line(metric)
    return [statistics.median(item.medians[line]) for item in alike if line in item.medians]


def _reference(
    metric: MetricResult, medians: Sequence[float], alike: Sequence[ReferenceMachine]
) -> tuple[str, str]:
    """Returns the median of the machines and their range; of a single one that of its surveys."""
    line = _line(metric)
    surveys = next(item.medians[line] for item in alike if line in item.medians)
    spread = medians if len(medians) > 1 else surveys
    middle = statistics.median(medians)
    ends = units.format_interval(middle, min(spread), max(spread), metric.estimate.unit)
    reference, _, span = ends.partition("[")
    return reference.strip(), f"[{span}"


def _rank(metric: MetricResult, medians: Sequence[float]) -> str:
    """Returns how many machines lie on either side of the result's interval."""
    low, high = metric.estimate.low, metric.estimate.high
    if low is None or high is None or metric.better is Better.NONE:
        return "–"
    below, above = (
        sum(median < low for median in medians),
        sum(median > high for median in medians),
    )
    better, worse = (below, above) if metric.better is Better.HIGHER else (above, below)
    return f"better than {better}, worse than {worse} of {len(medians)}"
