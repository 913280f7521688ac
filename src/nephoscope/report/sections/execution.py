"""Builds the section on execution: time by phase, start skew, loads, lost targets."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core import units
from nephoscope.core.model import RunResult
from nephoscope.report import charts, figures, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Column,
    Heading,
    Item,
    Section,
    Sentence,
    Table,
    items,
)
from nephoscope.results.counters import TrialCounters
from nephoscope.results.execution import PHASES, ExecutionSummary, LoadUse, PhaseTime, Skew

_MEANINGS = {
    "prepare": "set conditions, run hooks",
    "start": "start probes, servers and loads until all are ready",
    "measure": "measure, from the common start signal to the results",
    "stop": "stop loads and servers, read their counters",
    "clean": "run final hooks",
}


def build(result: RunResult) -> Section | None:
    """Time by phase, the skew of common starts, what the loads achieved, who was lost."""
    execution = result.part(ExecutionSummary)
    if execution is None:
        return None
    states = {True: "lost and not retried", False: "unreachable for a while"}
    lost = (
        f"{lost_target.target} was {states[lost_target.is_abandoned]}: "
        f"{wording.plural(lost_target.trials, 'trial')} not measured. {lost_target.sentence}"
        for lost_target in execution.lost
    )
    notes = [Item(wording.clean(text), "warning") for text in (*execution.warnings, *lost)]
    if execution.tried_again:
        text = f"{wording.plural(execution.tried_again, 'trial')} succeeded only after a retry; "
        notes.append(Item(text + "`nephoscope show --journal` lists every attempt.", "notice"))
    blocks = items(notes)
    if execution.phases:
        blocks.append(_time(execution.phases))
    if execution.skew is not None:
        blocks.append(_skew(execution.skew))
    if execution.loads:
        blocks += _loads(result, execution.loads)
    blocks += _counters(result)
    return Section("phases", "Execution", tuple(blocks)) if blocks else None


def _counters(result: RunResult) -> list[Block]:
    """The counters beside the trials; those that nothing shows in one sentence."""
    counters = result.part(TrialCounters)
    lines = counters.lines if counters is not None else ()
    measured = [line for line in lines if line.median is not None and line.maximum is not None]
    if not measured:
        return []
    several = len({line.target for line in lines}) > 1
    rows = tuple(
        (
            wording.clean(f"{counter.target}: {counter.name}" if several else counter.name),
            units.format_value(counter.median or 0.0, counter.unit),
            units.format_value(counter.maximum or 0.0, counter.unit),
            str(counter.n),
        )
        for counter in measured
    )
    columns = (Column("counter"), *Column.numbers("median", "maximum", "n"))
    blocks: list[Block] = [Heading("System counters during trials"), Table(columns, rows)]
    hidden = dict.fromkeys(f"{line.name}: {line.why_missing}" for line in lines if line.why_missing)
    if hidden:
        blocks.append(Sentence(wording.clean(f"Unavailable counters: {'; '.join(hidden)}.")))
    return blocks


def _time(times: Sequence[PhaseTime]) -> Chart:
    """Seconds of each phase, a bar for each benchmark."""
    benchmarks = list(dict.fromkeys(time.benchmark for time in times))
    by_key = {(time.benchmark, time.phase): time for time in times}
    parts = []
    for phase in PHASES:
        own = [by_key.get((benchmark, phase)) for benchmark in benchmarks]
        if any(own):
            parts.append((phase, tuple(float(phase.total_ns) if phase else 0.0 for phase in own)))
    figure = figures.stacked(benchmarks, parts, figures.Axis("total time", "ns"))
    rows = tuple(
        (
            wording.clean(time.benchmark),
            time.phase,
            units.format_value(float(time.total_ns), "ns"),
            units.format_value(time.median_ns, "ns"),
            units.format_value(float(time.longest_ns), "ns"),
            str(time.n),
            str(time.failed) if time.failed else "–",
        )
        for time in sorted(
            times, key=lambda t: (benchmarks.index(t.benchmark), PHASES.index(t.phase))
        )
    )
    head = Column.head(("benchmark", "phase"), ("total", "median", "longest", "n", "failed"))
    whole = sum(time.total_ns for time in times)
    brief = tuple(
        (
            phase,
            _MEANINGS[phase],
            units.format_value(float(sum(values)), "ns"),
            wording.percent(sum(values) / whole if whole else None),
        )
        for phase, values in parts
    )
    brief_head = (*Column.texts("phase", "description"), *Column.numbers("total", "share"))
    return Chart(
        "phases-time",
        "Time by phase",
        figure,
        Table(head, rows),
        "; ".join(f"{phase}: {_MEANINGS[phase]}" for phase, _ in parts) + ".",
        brief=Table(brief_head, brief),
    )


def _skew(skew: Skew) -> Chart:
    """The cumulative distribution of start skews."""
    n = skew.n
    steps = tuple(number / n for number in range(1, n + 1))
    values = tuple(float(value) for value in skew.values_ns)
    hover = tuple(
        f"{units.format_value(value, 'ns')} or less: {share:.0%} of {n}"
        for value, share in zip(values, steps, strict=True)
    )
    log = values[0] > 0
    figure = figures.lines(
        [figures.Curve("start skew", values, steps, hover=hover, step=True)],
        figures.Axis("start skew", "ns", log=log),
        figures.Axis("Cumulative share", "ratio", from_zero=True),
        height=320,
    )
    row = (
        str(n),
        units.format_value(skew.median_ns, "ns"),
        units.format_value(float(skew.largest_ns), "ns"),
        str(skew.over),
    )
    head = Column.numbers("synchronised starts", "median", "largest", "over 1 ms")
    table = Table(head, (row,))
    return Chart(
        "phases-skew",
        "Start skew between participants",
        figure,
        table,
        "Difference between the first and the last start of one trial, by the clock of "
        "each participant. Between machines it includes their clock offset.",
        brief=table,
    )


def _loads(result: RunResult, loads: Sequence[LoadUse]) -> list[Block]:
    """Returns the loads of the trials and what their own counters report."""
    rows = tuple(
        (
            wording.clean(load.name),
            wording.clean(load.benchmark),
            wording.clean(load.target),
            str(load.n),
            str(load.died) if load.died else "–",
            wording.percent(load.covered_least) if load.covered_least is not None else "–",
        )
        for load in loads
    )
    head = Column.head(
        ("load", "benchmark", "target"), ("trials", "died in trials", "minimum coverage")
    )
    blocks: list[Block] = [Heading("Loads"), Table(head, rows)]
    names = {load.name for load in loads}
    achieved = [line for line in result.metrics if line.factors.get("load") in names]
    if achieved:
        rows_achieved = tuple(
            (
                wording.clean(line.factors["load"]),
                wording.clean(line.target),
                wording.metric_name(line.metric),
                wording.factors_text(line.factors, ("load",)) or "–",
                *wording.estimate_cells(line.estimate),
            )
            for line in achieved
        )
        columns = charts.estimate_columns("load", "target", "metric", "setting")
        text = "Load achieved in valid trials, by the counters of the load programs:"
        blocks += [Sentence(text), Table(columns, rows_achieved)]
    return blocks
