"""Simulated scaling as a section: answer, frontier of cost and slow requests, all settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.features.scaling import sentences
from nephoscope.features.scaling.records import (
    ReplayedDecisions,
    ScalingAnalysis,
    ScalingCandidate,
    ScalingCurves,
)
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Column, Section, Sentence, Table, items
from nephoscope.report.columns import number, table, text

_MAX_ROWS = 20
_POINTS = 5000
"""Steps of a curve that the chart draws."""


def scaling_section(analysis: ScalingAnalysis) -> Section:
    """Returns the section."""
    title = f"Scaling on {wording.clean(analysis.bound.trace)}"
    return Section("scaling", title, tuple(_blocks(analysis)))


def _blocks(analysis: ScalingAnalysis) -> Iterator[Block]:
    yield Sentence(wording.clean(analysis.sentence), lead=True)
    for remark in analysis.remarks:
        yield Sentence(wording.clean(remark))
    if analysis.replays:
        yield _replays(analysis.replays)
    members = sorted(
        (each for each in analysis.candidates if each.is_on_frontier),
        key=lambda each: each.figures.cost_h.value,
    )
    if len(analysis.candidates) > 1:
        caption = "Frontier: no other setting has both a lower cost and fewer slow requests."
        yield _table(members, analysis, caption)
        rest = [each for each in analysis.candidates if not each.is_on_frontier]
        if rest:
            more = f" The first {_MAX_ROWS} of {len(rest)}." if len(rest) > _MAX_ROWS else ""
            caption = f"Other settings, the best first.{more}"
            yield _table(rest[:_MAX_ROWS], analysis, caption, collapsed=True)
    else:
        yield _table(analysis.candidates, analysis, "Simulated setting:")
    if analysis.curves is not None:
        yield _chart(
            analysis.curves, sentences.name_of(analysis.candidates[0]), analysis.bound.model
        )
    yield from items(_notes(analysis))


def _table(
    rows: Sequence[ScalingCandidate],
    analysis: ScalingAnalysis,
    caption: str,
    *,
    collapsed: bool = False,
) -> Table:
    tested: tuple[Column[ScalingCandidate], ...] = ()
    if analysis.test_bound is not None:
        tested = (
            number("test: hours", lambda row: row.test and f"{row.test.cost_h.value:.4g}"),
            number(
                "test: slow", lambda row: row.test and sentences.share(row.test.slow_ratio.value)
            ),
        )
    return table(
        rows,
        text("setting", sentences.name_of),
        number("hours", lambda row: f"{row.figures.cost_h.value:.4g}"),
        number("slow", lambda row: sentences.share(row.figures.slow_ratio.value)),
        text("meets", lambda row: "yes" if row.meets else "no"),
        number("missing", lambda row: f"{row.figures.under_provisioned:.3g}"),
        number("unneeded", lambda row: f"{row.figures.over_provisioned:.3g}"),
        number("changes", lambda row: f"{row.figures.changes:.3g}"),
        *tested,
        caption=caption,
        collapsed=collapsed,
    )


def _replays(replays: Sequence[ReplayedDecisions]) -> Table:
    """What was recorded of each rule, with its simulation beside."""

    def hours(value: float | None) -> str | None:
        return None if value is None else f"{value:.4g}"

    return table(
        replays,
        text("recorded rule", lambda row: row.rule),
        number("trials", lambda row: row.trials),
        number("missing", lambda row: f"{row.measured_under:.3g}"),
        number("missing, simulated", lambda row: f"{row.simulated_under:.3g}"),
        number("unneeded", lambda row: f"{row.measured_over:.3g}"),
        number("unneeded, simulated", lambda row: f"{row.simulated_over:.3g}"),
        number(
            "slow",
            lambda row: (
                None
                if row.measured_slow_ratio is None
                else sentences.share(row.measured_slow_ratio)
            ),
        ),
        number("slow, simulated", lambda row: sentences.share(row.simulated_slow_ratio)),
        number("hours", lambda row: hours(row.measured_cost_h)),
        number("hours, simulated", lambda row: hours(row.simulated_cost_h)),
        caption="Recorded figures, each with that of simulations of the load beside it, which "
        "decide at the same times: missing and unneeded instances in the mean, requests beyond the "
        "objective, billed instance-hours. Means of the trials.",
    )


def _chart(curves: ScalingCurves, name: str, model: str) -> Chart:
    lines = []
    for title, steps in ((f"needed ({model})", curves.needed), ("serving", curves.serving)):
        drawn = steps[:: max(1, len(steps) // _POINTS)]
        lines.append(
            figures.Curve(
                title,
                tuple(time_s for time_s, _ in drawn),
                tuple(count for _, count in drawn),
                hover=tuple(f"{time_s:g} s: {count:g} instances" for time_s, count in drawn),
                step=True,
            )
        )
    figure = figures.lines(
        lines,
        figures.Axis("time", "s"),
        figures.Axis("instances", "count", from_zero=True),
        markers=False,
    )
    data = table(
        curves.serving[:_MAX_ROWS],
        number("time", lambda row: f"{row[0]:g} s"),
        number("serving", lambda row: f"{row[1]:g}"),
        caption="First changes of the serving instances.",
        collapsed=True,
    )
    return Chart(
        "scaling-supply",
        f"Instances that {name} has, and that are needed by {model}",
        figure,
        data,
    )


def _notes(analysis: ScalingAnalysis) -> Iterator[str]:
    settings = ", ".join(f"{name}={value}" for name, value in analysis.settings.items())
    yield (
        f"An instance serves {analysis.services_per_s:.4g} requests/s while it is busy. "
        f"Service: {settings}."
    )
    yield (
        "A backlog grows and drains evenly; without one, response times are those of M/M/c in "
        "equilibrium, with waits in proportion to the variation of arrivals and service times."
    )
    if analysis.replications == 1:
        yield "One replication: the rule sees its metrics without sampling errors."
        return
    yield (
        f"{analysis.replications} replications (seed {analysis.seed}) draw the sampling errors of "
        "the metrics, the same for all settings. The intervals do not cover how days differ: "
        "--test-trace shows another one."
    )
    if len(analysis.candidates) > 1:
        yield (
            "Settings are equal where the 95 % interval of their difference, with Bonferroni's "
            "correction, contains 0."
        )
