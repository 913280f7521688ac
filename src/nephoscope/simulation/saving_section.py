"""What choosing among instances saves: the mean, its spread over fleets, and the surface."""

from __future__ import annotations

from nephoscope.model import RunResult
from nephoscope.report import charts, wording
from nephoscope.report.blocks import Block, Column, Heading, Section, Sentence, Table
from nephoscope.simulation import choice_charts, tables
from nephoscope.simulation.records import Selection, Simulation

BENCHMARKS = ("sim.selection",)

_TOLD = {
    "saving_ratio": "saving",
    "cost_usd": "cost of the fleet that chooses",
    "random_cost_usd": "cost of the one that takes what comes",
    "launches": "launches",
    "lost_ratio": "fleets that lose by choosing",
    "closed_saving_usd": "by formula: saved",
    "closed_saving_ratio": "by formula: saving",
    "break_even_h": "by formula: pays from, hours",
    "printed_saving_usd": "as printed in 2012: saved",
    "printed_saving_ratio": "as printed in 2012: saving",
    "printed_break_even_h": "as printed in 2012: pays from, hours",
}


def build(result: RunResult) -> Section | None:
    """Every strategy that was simulated."""
    found = result.derived.get("simulation")
    if not isinstance(found, Simulation) or not found.selections:
        return None
    names = tables.names_of(found.selections)
    blocks: list[Block] = [_table(found.selections, names)]
    for number, (one, name) in enumerate(zip(found.selections, names, strict=True)):
        own: list[Block] = []
        chart = charts.cdf(
            result,
            tables.keys_of(result, BENCHMARKS[0], one, ()),
            id=f"saving-{number}",
            title=f"Saving over fleets: {name}",
            axis="saving",
            unit="ratio",
            log=False,
        )
        own += [chart] if chart is not None else []
        own += [choice_charts.surface(one.surface, name, number)] if one.surface else []
        blocks += [Heading(name), *own] if own and len(names) > 1 else own
    blocks += tables.notes(found, "selections")
    intro = (
        "Instances of one type differ in speed. Who keeps the fast ones needs fewer, and pays for "
        "those that were tried."
    )
    return Section("saving", "What choosing instances saves", (Sentence(intro), *blocks))


def _table(found: tuple[Selection, ...], names: list[str]) -> Table:
    rows = tuple(
        (told, *(_cell(one, metric) for one in found))
        for metric, told in _TOLD.items()
        if any(metric in one.figures for one in found)
    )
    n = tables.over(one.figures for one in found)
    caption = f"With its interval over replications{n}"
    return Table((Column(""), *(Column(name, True) for name in names)), rows, caption)


def _cell(found: Selection, metric: str) -> str:
    estimate = found.figures.get(metric)
    if estimate is not None and estimate.unit == "none" and "usd" not in metric:
        return wording.value_text(estimate)
    return tables.told(estimate)
