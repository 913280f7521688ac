"""The tables of what neighbours take, and how its victims and loads are called."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.core.naming import common_factors
from nephoscope.features.isolation import money
from nephoscope.features.isolation.records import Cell, DoseResponse, Index, NamedLoad, VictimLine
from nephoscope.measure.plans.resources import IDLE, RESOURCES
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Sentence, Table
from nephoscope.report.columns import number, ratio, table, text

MAX_ROWS = 80
"""Lines of one table; the others are in result.json."""


def is_idle(cell: Cell) -> bool:
    """Returns whether the load does nothing: the control."""
    return cell.resource == IDLE


def victim_name(victim: VictimLine) -> str:
    """'mem.stream throughput (triad)'."""
    return wording.line_name(victim.benchmark, victim.metric, victim.factors)


def victim_names(victims: Sequence[VictimLine]) -> dict[int, str]:
    """id() of each victim -> its name, with the factors and targets that tell it from others."""
    several = len({victim.target for victim in victims}) > 1
    names = {}
    for alike in group_by(victims, lambda victim: (victim.benchmark, victim.metric)).values():
        common = common_factors([victim.factors for victim in alike])
        for victim in alike:
            name = wording.line_name(victim.benchmark, victim.metric, victim.factors, common)
            names[id(victim)] = name + (f", {wording.clean(victim.target)}" if several else "")
    return names


def resource_name(resource: str) -> str:
    """A resource in words: 'memory bandwidth'; the idle one says that it is the control."""
    if resource == IDLE:
        return "idle (control)"
    known = RESOURCES.get(resource)
    return known.words if known else wording.clean(resource)


def concurrent(neighbours: int) -> str:
    """', 2 neighbours'; nothing for one."""
    return f", {neighbours} neighbours" if neighbours > 1 else ""


def load_name(cell: Cell) -> str:
    """'memory bandwidth at 50 %', 'memory bandwidth, 2 neighbours'."""
    name = resource_name(cell.resource)
    if not is_idle(cell) and cell.intensity < 1:
        name += f" at {100 * cell.intensity:g} %"
    return name + concurrent(cell.neighbours)


def one_cell(estimate: Estimate | None) -> str:
    """Value with interval; '–' where there is none."""
    if estimate is None:
        return "–"
    value, interval, _ = wording.ratio_cells(estimate)
    return f"{value} {interval}"


def factors(cells: Sequence[Cell]) -> Table:
    """Everything that was estimated of each cell, folded away on the page."""
    names = victim_names([cell.victim for cell in cells])
    more = f"; {len(cells) - MAX_ROWS} more in result.json" if len(cells) > MAX_ROWS else ""
    return table(
        cells[:MAX_ROWS],
        text("victim", lambda cell: names[id(cell.victim)]),
        text("load", load_name),
        number("lost", money.lost_text),
        number("achieved", lambda cell: cell.achieved),
        number("of means", lambda cell: one_cell(cell.factor_mean)),
        number("of p99", lambda cell: one_cell(cell.factor_p99)),
        number("of variation", lambda cell: one_cell(cell.variation.cv or cell.variation.robust)),
        text("verdict", lambda cell: cell.comparison.verdict.word),
        text(
            "attributed to", lambda cell: cell.attribution.word.value if cell.attribution else "–"
        ),
        caption=f"All slowdown factors{more}",
        collapsed=True,
    )


def recovery(cells: Sequence[Cell]) -> list[Block]:
    """Returns whether each victim came back; nothing where no plan went around its quiet."""
    recovered = [cell for cell in cells if cell.recovery.word != "not measured"]
    if not recovered:
        return []
    names = victim_names([cell.victim for cell in recovered])
    order = {"not recovered": 0, "undecided": 1, "better after": 2, "recovered": 3}
    ranked = sorted(recovered, key=lambda cell: order.get(cell.recovery.word, 4))
    rows = table(
        ranked[:MAX_ROWS],
        text("victim", lambda cell: names[id(cell.victim)]),
        text("load", load_name),
        *ratio("after / before", lambda cell: cell.recovery.ratio),
        text("verdict", lambda cell: cell.recovery.word),
    )
    explanation = (
        "Baseline after the load relative to the baseline before it; above 1 is worse. "
        "Recovered means equivalent within the margin, by the interval of the equivalence test "
        "(90 % where the interval shown is at 95 %)."
    )
    return [Heading("Recovery after the load"), Sentence(explanation, roomy=True), rows]


def responses(curves: Sequence[DoseResponse]) -> list[Block]:
    """Word, slope, test and Krebs' metric of each victim and resource."""
    names = victim_names([curve.victim for curve in curves])
    rows = table(
        curves[:MAX_ROWS],
        text("victim", lambda row: names[id(row.victim)]),
        text("load", lambda row: resource_name(row.resource) + concurrent(row.neighbours)),
        text("response", lambda row: row.response.word),
        *ratio("slope", lambda row: row.response.slope),
        number("p", lambda row: row.response.trend and f"{row.response.trend.p:.2g}", roomy=True),
        number("I_QoS", lambda row: one_cell(row.i_qos), roomy=True),
    )
    explanation = (
        "Slope: change of the factor from no load to full load (Theil-Sen within each "
        "round). p: Page's test for a trend over load levels. I_QoS: relative loss per "
        "relative increase of the load from its lowest to its highest level; 0 is isolated."
    )
    return [Heading("Dose-response"), Sentence(explanation, roomy=True), rows]


def indices(every_index: Sequence[Index]) -> list[Block]:
    """The index of each resource, by the victim that stands for it; the others folded away."""
    names = victim_names([index.victim for index in every_index])

    def listed(some: Sequence[Index], caption: str = "") -> Table:
        return table(
            some,
            text("resource", lambda row: resource_name(row.resource) + concurrent(row.neighbours)),
            *ratio("index", lambda row: row.index),
            text("by", lambda row: names[id(row.victim)] + ("" if row.own else " *")),
            number("fairness (Jain)", lambda row: one_cell(row.jain)),
            caption=caption,
            collapsed=bool(caption),
        )

    chosen = sorted(
        (index for index in every_index if index.chosen), key=lambda index: index.index.value
    )
    explanation = (
        "1: full load causes no slowdown. 0: the slowdown equals fair sharing with that "
        "number of neighbours. Below 0: the victim gets less than its fair share. Computed "
        "from the victim of the same resource if measured, otherwise (*) from the victim "
        "with the largest loss."
    )
    rest = [index for index in every_index if not index.chosen]
    blocks: list[Block] = [
        Heading("Isolation index"),
        Sentence(explanation, roomy=True),
        listed(chosen),
    ]
    if rest:
        blocks.append(listed(rest[:MAX_ROWS], "Isolation index of the other victims"))
    return blocks


def named(loads: Sequence[NamedLoad]) -> list[Block]:
    """The resource that the victims' losses name, beside the one that was taken."""

    def is_correct(load: NamedLoad) -> bool:
        return load.word == ("none" if load.resource == IDLE else load.resource)

    rows = table(
        loads[:MAX_ROWS],
        text(
            "loaded resource",
            lambda row: f"{row.resource} at {100 * row.intensity:g} %{concurrent(row.neighbours)}",
        ),
        text("identified as", lambda row: row.word),
        text("correct", is_correct),
        text("affected victims", lambda row: ", ".join(row.lost) or "nothing"),
    )
    explanation = (
        "The pattern of losses identifies the contended resource without knowledge of the "
        "load. docs/explanation/naming-accuracy.md states how often the identification is "
        "correct."
    )
    return [Heading("Identified resource"), Sentence(explanation, roomy=True), rows]
