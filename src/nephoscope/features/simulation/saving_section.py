"""What choosing among instances saves: the mean, its spread over fleets, and the surface."""

from __future__ import annotations

from nephoscope.catalog import instruments
from nephoscope.core.model import RunResult
from nephoscope.features.simulation import choice_charts, tables
from nephoscope.features.simulation.records import InstanceSelection, Simulation
from nephoscope.report import charts, wording
from nephoscope.report.blocks import Block, Section, Sentence, Table
from nephoscope.report.columns import spread, table, text

BENCHMARKS = (instruments.SIM_SELECTION,)

_TITLES = {
    "saving_ratio": "saving",
    "cost_usd": "cost with selection",
    "baseline_cost_usd": "cost without selection",
    "launches": "launches",
    "losing_fleets_ratio": "fleets that lose by selection",
    "corrected_saving_usd": "formula: cost saved",
    "corrected_saving_ratio": "formula: saving",
    "break_even_h": "formula: break-even, hours",
    "printed_saving_usd": "published 2012: cost saved",
    "printed_saving_ratio": "published 2012: saving",
    "printed_break_even_h": "published 2012: break-even, hours",
}


def build(result: RunResult) -> Section | None:
    """Every strategy that was simulated."""
    savings = result.part(Simulation)
    if savings is None or not savings.selections:
        return None
    names = tables.names_of(savings.selections)
    blocks: list[Block] = [_table(savings.selections, names)]

    def charts_of(saving: InstanceSelection, name: str, number: int) -> list[Block]:
        own = charts.cdf(
            result,
            tables.keys_of(result, BENCHMARKS[0], saving, ()),
            id=f"saving-{number}",
            title=f"Saving over fleets: {name}",
            axis="saving",
            unit="ratio",
            log=False,
        )
        own += [choice_charts.surface(saving.surface, name, number)] if saving.surface else []
        return list(own)

    blocks += tables.blocks_of(savings, "selections", charts_of)
    intro = (
        "Instances of one type differ in speed. A fleet of fast instances is smaller, but "
        "the rejected instances cost money too."
    )
    return Section("saving", "Savings from instance selection", (Sentence(intro), *blocks))


def _table(selections: tuple[InstanceSelection, ...], names: list[str]) -> Table:
    known = [
        metric for metric in _TITLES if any(metric in selection.figures for selection in selections)
    ]
    return table(
        known,
        text("", lambda metric: _TITLES[metric]),
        *spread(names, lambda metric: [_cell(item, metric) for item in selections]),
        caption="With its interval over replications"
        f"{tables.over(selection.figures for selection in selections)}",
    )


def _cell(selection: InstanceSelection, metric: str) -> str:
    estimate = selection.figures.get(metric)
    if estimate is not None and estimate.unit == "none" and "usd" not in metric:
        return wording.value_text(estimate)
    return tables.estimate_text(estimate)
