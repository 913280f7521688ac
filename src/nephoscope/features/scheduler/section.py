"""How the CPUs are scheduled: by whom, the share a busy thread gets, the gaps and their causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import RunResult
from nephoscope.features.scheduler import charts as pictures
from nephoscope.features.scheduler.inference.verdict import Fit, Scheduler, SchedulerVerdicts, Word
from nephoscope.report import charts, figures, palette, selection, wording
from nephoscope.report.blocks import Block, Chart, Heading, Item, Section, Sentence, Table, items
from nephoscope.report.columns import estimate, estimates_table, number, table, text

BENCHMARKS = (instruments.CPU_GAPS,)

MAX_STRIPS = 8
"""Targets with a strip of their own; the others are in the tables."""

MAX_MARKS = 3000
"""Gaps drawn in the timeline: the longest; more would only blacken it."""

_MAX_ROWS = 64
_TABLE_ROWS = 60


@dataclass(frozen=True, slots=True)
class DrawnGap:
    """One gap: where, when in its trial, how long, and why."""

    lane: tuple[str, str, str]
    at_ns: int
    length_ns: float
    cause: str


def build(result: RunResult) -> Section | None:
    """Share per CPU, the timeline and the distribution of gap lengths."""
    metrics = selection.of_benchmark(result, *BENCHMARKS)
    gaps = _gaps(result)
    keys = selection.histogram_keys(
        result, instruments.CPU_GAPS, lambda name: name.startswith("gap_length")
    )
    verdicts = result.part(SchedulerVerdicts)
    schedulers = verdicts.targets if verdicts is not None else ()
    if not metrics and not gaps and not keys and not schedulers:
        return None
    blocks: list[Block] = [
        *scheduler_blocks(schedulers),
        *([Heading("All gaps")] if schedulers else []),
        Sentence(
            "One loop per CPU reads the clock continuously. An interval between two reads "
            "above the threshold is a scheduling gap: the CPU was taken away."
        ),
    ]
    shares = [metric for metric in metrics if metric.metric == "cpu_share_ratio"]
    if shares:
        caption = "1 minus gap time over measured time; 100 % is a dedicated CPU."
        blocks.append(
            charts.dots(shares, id="cpu-share", title="CPU share obtained", caption=caption)
        )
    if gaps:
        blocks.append(_timeline(gaps))
    elif shares:
        blocks.append(Sentence("No single gap above the threshold was recorded."))
    blocks += charts.cdf(
        result,
        keys,
        id="gap-lengths",
        title="Distribution of gap lengths",
        axis="gap length",
        unit="ns",
        caption="Cumulative distribution of gap lengths; further right is worse.",
    )
    return Section("scheduling", "CPU scheduling", tuple(blocks))


def scheduler_blocks(schedulers: Sequence[Scheduler]) -> list[Block]:
    """Everything that is known of the schedulers of a run's targets."""
    if not schedulers:
        return []
    several = len(schedulers) > 1
    out: list[Block] = []
    if several:
        out += [Heading("Scheduling policy"), _verdicts(schedulers)]
    for position, scheduler in enumerate(schedulers):
        if several:
            out.append(Heading(pictures.name_of(scheduler)))
        out += _verdict_blocks(scheduler, position)
    if several:
        out.append(Heading("Run, wait and period lengths"))
    return [*out, *pictures.distributions(schedulers)]


def _verdicts(schedulers: Sequence[Scheduler]) -> Table:
    return table(
        schedulers,
        text("target", pictures.name_of),
        text("verdict", lambda row: row.word.value),
        number("share", lambda row: row.fit.share),
        number("slice", lambda row: row.fit.slice_ns),
        number("period", lambda row: row.fit.period_ns),
    )


def _verdict_blocks(scheduler: Scheduler, position: int) -> list[Block]:
    word = f"{scheduler.word.value[0].upper()}{scheduler.word.value[1:]}"
    sentence = wording.clean(scheduler.sentence)
    out: list[Block] = [
        Sentence(sentence if sentence.startswith(word) else f"{word}: {sentence}", lead=True),
        *items(scheduler.contradictions, "warning"),
        *_fit_table(scheduler.fit),
    ]
    chart = pictures.strip(scheduler, f"scheduler-strip-{position}")
    if chart is not None and position < MAX_STRIPS:
        out.append(chart)
    return [*out, *_obtained(scheduler), *_evidence(scheduler)]


def _fit_table(fit: Fit) -> list[Block]:
    named = {"share": fit.share, "slice per period": fit.slice_ns, "period": fit.period_ns}
    known = [(name, fitted) for name, fitted in named.items() if fitted is not None]
    return [estimates_table(known, "fitted")] if known else []


def _obtained(scheduler: Scheduler) -> list[Block]:
    rows = table(
        scheduler.per_cpu,
        text("observation", lambda own: pictures.KINDS.get(own.window, own.window)),
        text("CPU", lambda own: "unpinned" if own.cpu is None else f"CPU {own.cpu}"),
        number("loops", lambda own: own.processes),
        number(
            "share of each", lambda own: ", ".join(wording.percent(part, 3) for part in own.share)
        ),
        *estimate("total", lambda own: own.total),
        caption="Share of each CPU:",
    )
    return [rows] if scheduler.per_cpu else []


def _evidence(scheduler: Scheduler) -> list[Block]:
    tone = "notice" if scheduler.word is Word.UNCLEAR else ""
    missing = [f"Not observed: {wording.clean(text)}" for text in scheduler.missing]
    if scheduler.next_step and not missing:
        missing = ["More observations are possible."]
    evidence = [Item(wording.clean(text)) for text in scheduler.evidence]
    evidence += [Item(text, tone) for text in missing]
    if scheduler.next_step:
        evidence[-1] = replace(evidence[-1], next_step=wording.clean(scheduler.next_step))
    return items(evidence)


def _gaps(result: RunResult) -> list[DrawnGap]:
    out = []
    for key, events in result.series.items():
        if key[0] in BENCHMARKS and key[1].startswith("gap"):
            factors = selection.key_factors(key)
            cause = wording.clean(factors.get("cause", "unexplained"))
            cpu = wording.factors_text(factors, leave_out=("cause",)) or "any CPU"
            out += [
                DrawnGap((key[2], cpu, trial), int(at_ns), float(length), cause)
                for trial, at_ns, length in events
            ]
    return out


def _lane_order(lane: tuple[str, str, str]) -> tuple[str, list[int], str, str]:
    target, cpu, trial = lane
    return target, [int(part) for part in cpu.split() if part.isdigit()], cpu, trial


def _timeline(gaps: Sequence[DrawnGap]) -> Chart:
    lost: dict[tuple[str, str, str], float] = {}
    for gap in gaps:
        lost[gap.lane] = lost.get(gap.lane, 0.0) + gap.length_ns
    worst = sorted(lost, key=lambda lane: -lost[lane])[:_MAX_ROWS]
    lanes = sorted(worst, key=_lane_order)
    places = {lane: index for index, lane in enumerate(lanes)}
    drawn = [gap for gap in gaps if gap.lane in places]
    drawn = sorted(drawn, key=lambda gap: -gap.length_ns)[:MAX_MARKS]
    caption = (
        "Each row is one trial on one CPU. Each mark is the start of a gap; its size shows "
        "the length, its colour and symbol the cause by the kernel's counters."
    )
    if len(lanes) < len(lost):
        caption += f" Shows the {len(lanes)} rows with the most lost time, of {len(lost)}."
    if len(drawn) < len(gaps):
        caption += f" Shows the {len(drawn)} longest of {len(gaps)} gaps."
    return Chart(
        "gap-timeline",
        "Timeline of scheduling gaps",
        {"data": _marks(drawn, places), "layout": _strip_layout(lanes, drawn)},
        _timeline_table(drawn),
        caption,
        brief=_causes_table(gaps),
    )


def _marks(
    gaps: Sequence[DrawnGap], places: Mapping[tuple[str, str, str], int]
) -> list[dict[str, Any]]:
    causes = [cause for cause in palette.CAUSES if any(gap.cause == cause for gap in gaps)]
    causes += sorted({gap.cause for gap in gaps} - set(causes))
    longest = max(gap.length_ns for gap in gaps)
    out = []
    for index, cause in enumerate(causes):
        own = [gap for gap in gaps if gap.cause == cause]
        colour, _, symbol = palette.style(len(palette.CAUSES) + index)
        colour, symbol = palette.CAUSES.get(cause, (colour, symbol))
        marker = {
            "color": colour,
            "symbol": symbol,
            # Area by length: the eye adds areas up.
            "size": [round(4 + 16 * (gap.length_ns / longest) ** 0.5, 1) for gap in own],
            "opacity": 0.75,
            "line": {"width": 1.5 if symbol.endswith("-open") else 0, "color": colour},
        }
        x, y = [gap.at_ns for gap in own], [places[gap.lane] for gap in own]
        out.append(figures.trace(cause, x, y, map(_gap_text, own), marker=marker))
    return out


def _gap_text(gap: DrawnGap) -> str:
    _, cpu, trial = gap.lane
    length, start = units.format_value(gap.length_ns, "ns"), units.format_value(gap.at_ns, "ns")
    return f"{cpu}, trial {trial}: {length} at {start}, {gap.cause}"


def _strip_layout(
    lanes: Sequence[tuple[str, str, str]], gaps: Sequence[DrawnGap]
) -> dict[str, Any]:
    ends = [0.0, *(gap.at_ns + gap.length_ns for gap in gaps)]
    x_axis = figures.axis_of(figures.Axis("time since start of trial", "ns", from_zero=True), ends)
    targets = len({lane[0] for lane in lanes})
    blocks: dict[str, list[int]] = {}
    for index, (target, cpu, _) in enumerate(lanes):
        name = f"{wording.clean(target)}, {cpu}" if targets > 1 else cpu
        blocks.setdefault(name, []).append(index)
    middles = [sum(rows) / len(rows) for rows in blocks.values()]
    y_axis = figures.named_ticks(
        list(blocks), tickvals=middles, range=[len(lanes) - 0.2, -0.8], showgrid=False
    )
    layout = figures.layout(x_axis, y_axis, height=min(620, 150 + 16 * max(4, len(lanes))))
    layout["shapes"] = [figures.horizontal(rows[-1] + 0.5) for rows in list(blocks.values())[:-1]]
    layout["legend"] |= {"itemsizing": "constant"}
    return layout


def _timeline_table(gaps: Sequence[DrawnGap]) -> Table:
    longest = gaps[:_TABLE_ROWS]
    return table(
        longest,
        text("where", lambda gap: gap.lane[1]),
        text("trial", lambda gap: gap.lane[2]),
        number("start", lambda gap: gap.at_ns, "ns", 4),
        number("length", lambda gap: gap.length_ns, "ns"),
        text("cause", lambda gap: gap.cause),
        caption=f"The {len(longest)} longest gaps",
    )


def _causes_table(gaps: Sequence[DrawnGap]) -> Table:
    total = sum(gap.length_ns for gap in gaps)
    by_cause = {
        cause: [gap.length_ns for gap in own]
        for cause, own in group_by(gaps, lambda gap: gap.cause).items()
    }
    return table(
        sorted(by_cause.items(), key=lambda row: -sum(row[1])),
        text("cause", lambda row: row[0]),
        number("recorded gaps", lambda row: len(row[1])),
        number("longest", lambda row: max(row[1]), "ns"),
        number("share of lost time", lambda row: sum(row[1]) / total, "ratio"),
    )
