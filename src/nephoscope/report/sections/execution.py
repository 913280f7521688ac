"""Builds the section on execution: time by phase, start skew, loads, lost targets."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import RunResult
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Item, Section, Sentence, items
from nephoscope.report.columns import estimate, number, table, text
from nephoscope.results.counters import CounterLine, TrialCounters
from nephoscope.results.execution import (
    PHASES,
    ControllerSummary,
    ExecutionSummary,
    LoadUse,
    PhaseTime,
    Skew,
)

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
    if execution.controller is not None:
        blocks.append(Sentence(_controller(execution.controller)))
    blocks += _counters(result)
    return Section("phases", "Execution", tuple(blocks)) if blocks else None


def _controller(load: ControllerSummary) -> str:
    """Returns a sentence on the controller's own load."""
    cpu = units.format_duration(load.cpu_s)
    each = units.format_value(load.cpu_s * 1e9 / load.trials, "ns") if load.trials else "none"
    share = "" if load.overhead_ratio is None else f", {load.overhead_ratio:.2%} of their time"
    memory = units.format_value(load.peak_memory_bytes, "bytes")
    late = units.format_value(load.late_ns, "ns")
    return (
        f"The controller used {cpu} of CPU time for {wording.plural(load.trials, 'trial')} ({each} "
        f"each{share}) and at most {memory} of memory; it answered nothing for at most {late}."
    )


MAX_TARGETS = 8
"""Targets whose counters are listed one by one; of more, the middle and the worst."""


def _widest(lines: Sequence[CounterLine]) -> list[CounterLine]:
    """Returns one line for each counter: the median of all targets, and the largest with its
    target."""
    out = []
    for own in group_by(lines, lambda line: line.counter).values():
        worst = max(own, key=lambda line: line.maximum or 0.0)
        middle = statistics.median(line.median for line in own if line.median is not None)
        name = f"{worst.name} (maximum on {worst.target})"
        n = sum(line.n for line in own)
        out.append(replace(worst, name=name, median=middle, n=n))
    return out


def _counters(result: RunResult) -> list[Block]:
    """The counters beside the trials; those that nothing shows in one sentence."""
    counters = result.part(TrialCounters)
    lines = counters.lines if counters is not None else ()
    visible = [line for line in lines if line.median is not None and line.maximum is not None]
    if not visible:
        return []
    targets = len({line.target for line in lines})
    several = 1 < targets <= MAX_TARGETS
    visible = _widest(visible) if targets > MAX_TARGETS else visible
    rows = table(
        visible,
        text("counter", lambda row: f"{row.target}: {row.name}" if several else row.name),
        number("median", lambda row: units.format_value(row.median or 0.0, row.unit)),
        number("maximum", lambda row: units.format_value(row.maximum or 0.0, row.unit)),
        number("n", lambda row: row.n),
    )
    blocks: list[Block] = [Heading("System counters during trials"), rows]
    hidden = group_by([line for line in lines if line.why_missing], lambda line: line.why_missing)
    if hidden:
        reasons = "; ".join(
            f"{', '.join(dict.fromkeys(line.name for line in group))} ({why})"
            for why, group in hidden.items()
        )
        blocks.append(Sentence(wording.clean(f"Unavailable counters: {reasons}.")))
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
    rows = table(
        sorted(times, key=lambda t: (benchmarks.index(t.benchmark), PHASES.index(t.phase))),
        text("benchmark", lambda time: time.benchmark),
        text("phase", lambda time: time.phase),
        number("total", lambda time: time.total_ns, "ns"),
        number("median", lambda time: time.median_ns, "ns"),
        number("longest", lambda time: time.longest_ns, "ns"),
        number("n", lambda time: time.n),
        number("failed", lambda time: time.failed or None),
    )
    whole = sum(time.total_ns for time in times)
    brief = table(
        [(phase, sum(values)) for phase, values in parts],
        text("phase", lambda part: part[0]),
        text("description", lambda part: _MEANINGS[part[0]]),
        number("total", lambda part: part[1], "ns"),
        number("share", lambda part: wording.percent(part[1] / whole if whole else None)),
    )
    return Chart(
        "phases-time",
        "Time by phase",
        figure,
        rows,
        "; ".join(f"{phase}: {_MEANINGS[phase]}" for phase, _ in parts) + ".",
        brief=brief,
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
    row = table(
        [skew],
        number("synchronised starts", lambda row: row.n),
        number("median", lambda row: row.median_ns, "ns"),
        number("largest", lambda row: row.largest_ns, "ns"),
        number("over 1 ms", lambda row: row.over),
    )
    return Chart(
        "phases-skew",
        "Start skew between participants",
        figure,
        row,
        "Difference between the first and the last start of one trial, by the clock of "
        "each participant. Between machines it includes their clock offset.",
        brief=row,
    )


def _loads(result: RunResult, loads: Sequence[LoadUse]) -> list[Block]:
    """Returns the loads of the trials and what their own counters report."""
    uses = table(
        loads,
        text("load", lambda load: load.name),
        text("benchmark", lambda load: load.benchmark),
        text("target", lambda load: load.target),
        number("trials", lambda load: load.n),
        number("died in trials", lambda load: load.died or None),
        number("minimum coverage", lambda load: load.covered_least, "ratio", 2),
    )
    blocks: list[Block] = [Heading("Loads"), uses]
    names = {load.name for load in loads}
    achieved = [line for line in result.metrics if line.factors.get("load") in names]
    if achieved:
        blocks += [
            Sentence("Load achieved in valid trials, by the counters of the load programs:"),
            table(
                achieved,
                text("load", lambda line: line.factors["load"]),
                text("target", lambda line: line.target),
                text("metric", lambda line: wording.metric_name(line.metric)),
                text("setting", lambda line: wording.factors_text(line.factors, ("load",)) or "–"),
                *estimate("value", lambda line: line.estimate),
            ),
        ]
    return blocks
