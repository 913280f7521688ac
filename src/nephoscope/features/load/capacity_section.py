"""The report of a search for a capacity: its stages, and latency by rate beside the objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.features.load.records import CapacityResult, SearchStage, TrialOutcome
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Chart, Section, Sentence
from nephoscope.report.columns import number, table, text

_MET = ("objective met", 2, "circle")
_MISSED = ("objective missed", 1, "x")
_APART = 0.12  # of the width of a stage: trials stand beside the interval


def section(result: CapacityResult) -> Section:
    """Returns the conclusion, the stages of the search, and latency by rate."""
    closed = units.format_value(result.closed_loop_per_s, "per_s")
    return Section(
        "capacity",
        "Capacity",
        (
            Sentence(wording.clean(result.sentence), lead=True),
            *(Sentence(wording.clean(remark)) for remark in result.remarks),
            Sentence(
                f"Closed loop with {wording.plural(result.connections, 'connection')}: {closed}. "
                "Each stage measures the rates that tell most after the trials before it."
            ),
            _stages(result),
            _latencies(result),
            table(
                result.tried,
                text("rate", lambda row: units.format_value(row.rate_per_s, "per_s")),
                number("trials", lambda row: row.trials),
                number("objective met", lambda row: row.met),
                number("sender late", lambda row: row.sender_late),
                caption="Trials by rate.",
            ),
        ),
    )


def _stages(result: CapacityResult) -> Chart:
    """Rates of each stage, and the interval of the capacity after it."""
    places = range(len(result.stages))
    colour, _, symbol = palette.style(0)
    medians = [stage.capacity_per_s for stage in result.stages]
    lows = [stage.low_per_s for stage in result.stages]
    highs = [stage.high_per_s for stage in result.stages]
    data = [
        figures.trace(
            "capacity so far",
            places,
            medians,
            [f"after stage {place + 1}: {_range(result.stages[place])}" for place in places],
            marker={"color": colour, "symbol": symbol, "size": 8},
            error_y=figures.error_bars(medians, lows, highs) | {"color": colour},
        )
    ]
    trials = [(place + _APART, trial) for place in places for trial in result.stages[place].trials]
    data += _marks(trials)
    rates = [trial.rate_per_s for _, trial in trials] + lows + highs
    figure = {
        "data": data,
        "layout": figures.layout(
            figures.named_ticks(
                [str(place + 1) for place in places],
                title={"text": "stage", "font": {"size": 13}, "standoff": 12},
                range=[-0.5, len(places) - 0.5],
            ),
            figures.axis_of(figures.Axis("rate", "per_s", log=True), rates),
        ),
    }

    def rates_of(stage: SearchStage, *, met: bool) -> str:
        own = [trial.rate_per_s for trial in stage.trials if trial.met == met]
        return ", ".join(units.format_value(rate, "per_s") for rate in own) or "–"

    rows = table(
        enumerate(result.stages, 1),
        text("stage", lambda row: row[0]),
        text("met", lambda row: rates_of(row[1], met=True)),
        text("missed", lambda row: rates_of(row[1], met=False)),
        number("capacity so far", lambda row: _range(row[1])),
        collapsed=True,
    )
    return Chart("capacity-stages", "Stages of the search", figure, rows)


def _latencies(result: CapacityResult) -> Chart:
    """Latency of each trial at the objective's percentile, with the limit and the capacity."""
    percentile = result.objective.split(" ")[0]
    trials = [trial for stage in result.stages for trial in stage.trials]
    timed = [trial for trial in trials if trial.latency_ns is not None]
    rates = [trial.rate_per_s for trial in trials]
    data = _marks([(outcome.rate_per_s, outcome) for outcome in timed], of_latency=True)
    ends = [min(rates), max(rates)]
    data.append(
        figures.trace(
            result.objective,
            ends,
            [float(result.limit_ns)] * 2,
            [result.objective] * 2,
            mode="lines",
            line={"color": palette.NEUTRAL, "dash": "dash", "width": 1.5},
        )
    )
    latencies = [outcome.latency_ns for outcome in timed if outcome.latency_ns is not None]
    layout = figures.layout(
        figures.axis_of(figures.Axis("rate", "per_s", log=True), rates),
        figures.axis_of(
            figures.Axis(f"latency {percentile}", "ns", log=True),
            [*latencies, float(result.limit_ns)],
        ),
    )
    if result.capacity_per_s is not None:
        figures.vertical(layout, result.capacity_per_s.value, "capacity", log=True)
    rows = table(
        sorted(trials, key=lambda outcome: outcome.rate_per_s),
        text("rate", lambda row: units.format_value(row.rate_per_s, "per_s")),
        number(f"latency {percentile}", lambda row: row.latency_ns, "ns"),
        text("objective", lambda row: "met" if row.met else "missed"),
        collapsed=True,
    )
    failed = len(trials) - len(timed)
    return Chart(
        "capacity-latency",
        f"Latency {percentile} of each trial by rate",
        {"data": data, "layout": layout},
        rows,
        f"Without {wording.plural(failed, 'trial')} in which failed requests reach the percentile."
        if failed
        else "",
    )


def _marks(
    trials: Sequence[tuple[float, TrialOutcome]], *, of_latency: bool = False
) -> list[dict[str, Any]]:
    """A point for each trial, apart where it missed the objective."""
    data = []
    for name, place, symbol in (_MET, _MISSED):
        own = [(x, trial) for x, trial in trials if trial.met == (name == _MET[0])]
        hover = [
            f"{units.format_value(outcome.rate_per_s, 'per_s')}: "
            + (
                "failed"
                if outcome.latency_ns is None
                else units.format_value(outcome.latency_ns, "ns")
            )
            + (", sender late" if outcome.is_sender_late else "")
            for _, outcome in own
        ]
        data.append(
            figures.trace(
                name,
                [x for x, _ in own],
                [outcome.latency_ns if of_latency else outcome.rate_per_s for _, outcome in own],
                hover,
                marker={"color": palette.COLOURS[place], "symbol": symbol, "size": 7},
            )
        )
    return data


def _range(stage: SearchStage) -> str:
    low, value, high = (
        units.format_value(each, "per_s")
        for each in (stage.low_per_s, stage.capacity_per_s, stage.high_per_s)
    )
    return f"{value} [{low}, {high}]"
