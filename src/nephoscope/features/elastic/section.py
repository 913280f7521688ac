"""The report of autoscalers: supply, demand and latency, and the measures of elasticity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.elastic.credits import credit_sentence
from nephoscope.features.elastic.records import (
    AutoscalerComparison,
    AutoscalerSummary,
    Elasticity,
    ElasticTrial,
    LoadInterval,
)
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Heading,
    Section,
    Sentence,
    Table,
    Tile,
    items,
)
from nephoscope.report.columns import count, interval, number, ratio, table, text
from nephoscope.stats.compare import TwoSampleComparison

MAX_CHARTS = 6
"""Trials that are drawn, the first of each autoscaler."""
_TICKS = 6
"""Ticks of the number of instances, at most about so many."""
_MEASURES = {
    "under_ratio": "under-provisioned (θU)",
    "over_ratio": "over-provisioned (θO)",
    "under_time_ratio": "time under-provisioned (τU)",
    "over_time_ratio": "time over-provisioned (τO)",
    "under_provisioned": "missing instances",
    "over_provisioned": "surplus instances",
    "instability_ratio": "instability (υ)",
    "opposed_ratio": "opposite changes",
    "jitter_per_min": "jitter",
}
_SEGMENTS = {
    "metric_lag": "metric lag",
    "decision": "decision",
    "creation": "creation",
    "boot": "boot",
    "warm_up": "warm-up",
    "rotation": "into rotation",
    "first_response": "first response",
    "total": "demand to rotation",
}


def build(result: RunResult) -> Section | None:
    """Returns charts and tables; None where the run has no autoscaler."""
    elastic = result.part(Elasticity)
    if elastic is None:
        return None
    blocks: list[Block] = [Sentence(sentence, lead=True) for sentence in answer(result)]
    firsts = [own[0] for own in group_by(elastic.trials, lambda trial: trial.autoscaler).values()]
    blocks += [_chart(trial, elastic) for trial in firsts[:MAX_CHARTS]]
    blocks += [Heading("Service and cost"), service_table(elastic)]
    blocks += [Heading("Provisioning"), measures_table(elastic)]
    if segments := segments_table(elastic):
        blocks += [Heading("Time to scale"), segments]
    if elastic.comparisons:
        blocks += [Heading("Autoscalers against the first"), comparisons_table(elastic)]
    if (decisions := decisions_table(elastic.trials)).rows:
        blocks += [Heading("Decisions"), decisions]
    blocks += items(warnings(elastic))
    return Section("elasticity", "Elasticity", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns the verdicts between autoscalers, then a sentence for each: violations, cost and
    reaction; then the credits of a contract."""
    elastic = result.part(Elasticity)
    if elastic is None:
        return []
    return [
        *(_comparison_sentence(each, elastic.objective) for each in elastic.comparisons),
        *(_sentence(each, elastic.objective) for each in elastic.autoscalers),
        *map(credit_sentence, elastic.credits),
        *(
            f"{wording.clean(name)} is not judged: none of its trials is valid."
            for name in elastic.unmeasured
        ),
    ]


def _comparison_sentence(compared: AutoscalerComparison, objective: str) -> str:
    """Returns which of two autoscalers keeps the objective better."""
    name, reference = wording.clean(compared.autoscaler), wording.clean(compared.reference)
    violations = compared.violations
    word = violations.verdict.word
    share = _missing(violations, wording.clean(objective))
    if word in ("better", "worse"):
        return f"{name} follows the load {word} than {reference}{share}."
    if word == "equivalent":
        return f"{name} follows the load as well as {reference}{share}."
    return (
        f"The rounds do not tell whether {name} or {reference} follows the load better{share}. "
        f"{violations.verdict.sentence}"
    ).rstrip()


def _missing(violations: TwoSampleComparison, objective: str) -> str:
    """Returns how many requests more miss the objective, as a part of a sentence."""
    if violations.ratio is not None:
        ratio = wording.estimate_text(wording.plain(violations.ratio))
        return f": {ratio} times as many requests miss {objective}"
    if violations.difference is not None:
        share = wording.estimate_text(violations.difference)
        return f": {share} more of the requests miss {objective}"
    return ""


def _sentence(summary: AutoscalerSummary, objective: str) -> str:
    name = wording.clean(summary.autoscaler)
    if summary.problems:
        return f"{name} is not judged: {wording.clean(summary.problems[0])}"
    parts = []
    if "total" in summary.out_segments:
        parts.append(f"out after {wording.estimate_text(summary.out_segments['total'])}")
    if "total" in summary.in_segments:
        parts.append(f"in after {wording.estimate_text(summary.in_segments['total'])}")
    scales = f" It scales {' and '.join(parts)}." if parts else ""
    swings = (
        f" It oscillates in {summary.oscillating_rounds} of {summary.rounds} rounds."
        if summary.oscillating_rounds
        else ""
    )
    cost = wording.estimate_text(wording.plain(summary.cost))
    bound = f" ({summary.cost_bound:.3g} at its cap throughout)" if summary.cost_bound else ""
    saves = summary.cost.high is not None and summary.cost.high < 1
    scarce = " It costs less because it ran fewer machines than the load needs." if saves else ""
    return (
        f"With {name}, {wording.estimate_text(summary.violated_requests)} of the requests miss "
        f"{wording.clean(objective)}, at {cost} times the cost of a clairvoyant autoscaler{bound}."
        f"{scarce}{scales}{swings}"
    )


def headline(result: RunResult) -> list[Tile]:
    """Returns violations, cost and reaction of each autoscaler that is judged."""
    elastic = result.part(Elasticity)
    tiles = []
    for summary in elastic.autoscalers if elastic is not None else ():
        if summary.problems:
            continue
        figures_of = [
            ("Requests beyond the objective", summary.violated_requests),
            ("Cost over the minimum", wording.plain(summary.cost)),
        ]
        if "total" in summary.out_segments:
            figures_of.append(("Time to scale out", summary.out_segments["total"]))
        for label, estimate in figures_of:
            value, ends, n = wording.estimate_cells(estimate)
            tiles.append(Tile(label, wording.clean(summary.autoscaler), value, ends, n, ""))
    return tiles


def warnings(elastic: Elasticity) -> list[str]:
    """Returns what forbids a judgement, and what the figures have to be read with."""
    return [
        f"{wording.clean(each.autoscaler)}: {wording.clean(sentence)}"
        for each in elastic.autoscalers
        for sentence in (*each.problems, *each.notes)
    ]


def _steps(pairs: Sequence[tuple[float, float]], end_s: float) -> tuple[list[float], list[float]]:
    times = [at_s for at_s, _ in pairs] + [end_s]
    return times, [level for _, level in pairs] + [pairs[-1][1]]


def _chart(trial: ElasticTrial, elastic: Elasticity) -> Chart:
    """Supply and demand at the left axis, latency at the right one."""
    name = wording.clean(trial.autoscaler)
    curves = []
    for title, pairs in (("demand", trial.demand), ("supply", trial.supply)):
        times, levels = _steps(pairs, trial.duration_s)
        hover = [
            f"{title}, {at_s:.1f} s: {level:g}" for at_s, level in zip(times, levels, strict=True)
        ]
        xs = tuple(at_s * 1e9 for at_s in times)
        curves.append(figures.Curve(title, xs, tuple(levels), hover=tuple(hover), step=True))
    figure = figures.lines(
        curves,
        figures.Axis("time", "ns"),
        figures.Axis("instances", "count", from_zero=True),
        markers=False,
    )
    most = math.ceil(max(level for _, level in (*trial.supply, *trial.demand)))
    whole = range(0, most + 1, math.ceil(max(1, most) / _TICKS))
    figure["layout"]["yaxis"] |= {"tickvals": [*whole], "ticktext": [*map(str, whole)]}
    if any(point.latency_s is not None for point in trial.timeline):
        _draw_latency(figure, trial.timeline, LatencyObjective.of(elastic.objective).limit_ns)
    data = table(
        trial.timeline,
        text("time", lambda point: f"{point.at_s:.1f} s"),
        number("demand", lambda point: f"{_level(trial.demand, point.at_s):g}"),
        number("supply", lambda point: f"{_level(trial.supply, point.at_s):g}"),
        number("due/s", lambda point: f"{point.offered_per_s:.0f}"),
        number("valid/s", lambda point: f"{point.responses_per_s:.0f}"),
        number("latency", lambda point: point.latency_s and point.latency_s * 1e9, "ns"),
        number("failed", lambda point: f"{point.errors:.0f}"),
        collapsed=True,
    )
    caption = (
        f"Demand: instances of {units.format_value(elastic.capacity_per_s, 'per_s')} each that the "
        f"load needs within {wording.clean(elastic.objective)}. Latency: its percentile in each "
        "interval, and its limit."
    )
    title = f"{name}: supply, demand and latency, round {trial.round}"
    return Chart(f"elastic-{wording.slug(name)}", title, figure, data, caption, brief=None)


def _draw_latency(
    figure: dict[str, Any], timeline: Sequence[LoadInterval], limit_ns: float
) -> None:
    """Draws a line with gaps where nothing was answered, and the limit of the objective."""
    colour, _, _ = palette.style(2)
    times_ns = [None if p.latency_s is None else p.latency_s * 1e9 for p in timeline]
    hover = [
        f"latency, {point.at_s:.1f} s: "
        + ("no response" if ns is None else units.format_value(ns, "ns"))
        for point, ns in zip(timeline, times_ns, strict=True)
    ]
    drawn = figures.trace(
        "latency",
        [point.at_s * 1e9 for point in timeline],
        times_ns,
        hover,
        mode="lines",
        line={"color": colour, "width": 1},
        yaxis="y2",
    )
    limit = figures.trace(
        "limit",
        [timeline[0].at_s * 1e9, timeline[-1].at_s * 1e9],
        [limit_ns, limit_ns],
        [f"limit of the objective: {units.format_value(limit_ns, 'ns')}"] * 2,
        mode="lines",
        line={"color": colour, "width": 1, "dash": "dot"},
        yaxis="y2",
    )
    figure["data"] += [drawn, limit]
    every_ns = [limit_ns, *(ns for ns in times_ns if ns)]
    axis = figures.axis_of(figures.Axis("latency", "ns", log=True), every_ns)
    figure["layout"]["yaxis2"] = axis | {"overlaying": "y", "side": "right", "showgrid": False}


def _level(pairs: Sequence[tuple[float, float]], at_s: float) -> float:
    return next((level for begin_s, level in reversed(pairs) if begin_s < at_s), pairs[0][1])


def _name(summary: AutoscalerSummary) -> str:
    """The autoscaler as the tables name it: figures of one that is not judged are no judgement."""
    return f"{summary.autoscaler} (not judged)" if summary.problems else summary.autoscaler


def service_table(elastic: Elasticity) -> Table:
    """Returns violations of the objective and cost of each autoscaler."""
    return table(
        elastic.autoscalers,
        text("autoscaler", _name),
        number("rounds", lambda row: row.rounds),
        *interval("requests beyond", lambda row: row.violated_requests),
        *interval("time beyond", lambda row: row.violated_time),
        *interval("cost", lambda row: wording.plain(row.cost)),
        number("at the cap", lambda row: row.cost_bound and f"{row.cost_bound:.3g}"),
        number("oscillates", lambda row: f"{row.oscillating_rounds} of {row.rounds}"),
        caption=f"Requests that failed or missed the limit of {wording.clean(elastic.objective)}, "
        "time in whose intervals its percentile did, and billed time over that of a clairvoyant "
        "autoscaler that meets the demand at all times. At the cap: with the largest number of "
        f"instances throughout.{_attack(elastic)} Means of the rounds.",
    )


def _attack(elastic: Elasticity) -> str:
    """Returns what the cost means under an attack; empty without one."""
    rate = elastic.trials[0].attack_per_s
    if not rate:
        return ""
    return (
        f" {units.format_value(rate, 'per_s')} of the second half are an attack that a clairvoyant "
        "autoscaler does not serve: cost above 1 is what it makes the owner pay."
    )


def measures_table(elastic: Elasticity) -> Table:
    """Returns the measures of SPEC RG."""
    rows: list[tuple[str, str, Estimate]] = [
        (_name(summary), title, summary.measures[name])
        for summary in elastic.autoscalers
        for name, title in _MEASURES.items()
    ]
    return table(
        rows,
        text("autoscaler", lambda row: row[0]),
        text("measure", lambda row: row[1]),
        *interval("value", lambda row: row[2]),
        number("n", lambda row: row[2].n),
        caption="Measures of SPEC RG, of which smaller is better (of jitter, closer to 0): missing "
        "and surplus instances relative to the demand, shares of time, changes that the demand "
        "does not have. Means of the rounds.",
    )


def segments_table(elastic: Elasticity) -> Table | None:
    """Returns the times of scaling by segment; None where no change was seen."""
    rows: list[tuple[str, str, str, Estimate]] = []
    for summary in elastic.autoscalers:
        if summary.decision_interval is not None:
            name = "between decisions"
            rows.append((_name(summary), "", name, summary.decision_interval))
        for direction, segments in (("out", summary.out_segments), ("in", summary.in_segments)):
            rows += [
                (_name(summary), direction, _SEGMENTS[name], estimate)
                for name, estimate in segments.items()
            ]
    if not rows:
        return None
    return table(
        rows,
        text("autoscaler", lambda row: row[0]),
        text("scaling", lambda row: row[1]),
        text("segment", lambda row: row[2]),
        *interval("time", lambda row: row[3]),
        number("n", lambda row: row[3].n),
        caption="Means over the rounds of the median of each. Metric lag: from the change of the "
        "demand to the value at which the rule wants another number; it contains the interval of "
        "the metric.",
    )


def comparisons_table(elastic: Elasticity) -> Table:
    """Returns violated requests of each autoscaler against the first."""
    return table(
        elastic.comparisons,
        text("autoscaler", lambda row: row.autoscaler),
        text("against", lambda row: row.reference),
        *ratio(
            "ratio of requests beyond",
            lambda row: row.violations.ratio,
            lambda row: row.violations.n_a,
        ),
        text("verdict", lambda row: row.violations.verdict.word),
        number("elastic speed-up", lambda row: row.speed_up and f"{row.speed_up:.3g}"),
        caption="Share of requests beyond the objective over that of the first autoscaler, paired "
        "by round; below 1 is better. Verdicts are corrected over all comparisons (Holm). Elastic "
        "speed-up: SPEC RG's, above 1 is better.",
    )


def decisions_table(trials: Iterable[ElasticTrial]) -> Table:
    """Returns the decisions that changed the number, or were cut."""
    rows = [
        (trial, point)
        for trial in trials
        for before, point in zip([None, *trial.decisions], trial.decisions, strict=False)
        if point.reason != "rule" or (before is not None and before.desired != point.desired)
    ]
    return table(
        rows,
        text("autoscaler", lambda row: row[0].autoscaler),
        number("round", lambda row: row[0].round),
        text("time", lambda row: f"{row[1].at_s:.1f} s"),
        count("wanted", lambda row: row[1].wanted),
        count("decided", lambda row: row[1].desired),
        text("reason", lambda row: row[1].reason),
        collapsed=True,
    )
