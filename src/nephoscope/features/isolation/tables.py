"""The tables of what neighbours take, and how its victims and loads are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.core.naming import common_factors
from nephoscope.features.isolation import money
from nephoscope.features.isolation.records import Cell, DoseResponse, Index, NamedLoad, VictimLine
from nephoscope.measure.plans.resources import IDLE, RESOURCES
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Heading, Sentence, Table

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
    head = Column.head(
        ("victim", "load"),
        ("lost", "achieved", "of means", "of p99", "of variation"),
        ("verdict", "attributed to"),
    )
    rows = tuple(
        (
            names[id(cell.victim)],
            load_name(cell),
            money.lost_text(cell),
            "–" if cell.achieved is None else wording.value_text(cell.achieved),
            one_cell(cell.factor_mean),
            one_cell(cell.factor_p99),
            one_cell(cell.variation.cv or cell.variation.robust),
            cell.comparison.verdict.word,
            cell.attribution.word.value if cell.attribution else "–",
        )
        for cell in cells[:MAX_ROWS]
    )
    more = f"; {len(cells) - MAX_ROWS} more in result.json" if len(cells) > MAX_ROWS else ""
    return Table(head, rows, f"All slowdown factors{more}", collapsed=True)


def recovery(cells: Sequence[Cell]) -> list[Block]:
    """Returns whether each victim came back; nothing where no plan went around its quiet."""
    recovered = [cell for cell in cells if cell.recovery.word != "not measured"]
    if not recovered:
        return []
    names = victim_names([cell.victim for cell in recovered])
    head = Column.head(("victim", "load"), ("after / before", "interval", "n"), ("verdict",))
    order = {"not recovered": 0, "undecided": 1, "better after": 2, "recovered": 3}
    ranked = sorted(recovered, key=lambda cell: order.get(cell.recovery.word, 4))
    rows = tuple(
        (
            names[id(cell.victim)],
            load_name(cell),
            *wording.ratio_cells(cell.recovery.ratio),
            cell.recovery.word,
        )
        for cell in ranked[:MAX_ROWS]
    )
    text = (
        "Baseline after the load relative to the baseline before it; above 1 is worse. "
        "Recovered means equivalent within the margin, by the interval of the equivalence test "
        "(90 % where the interval shown is at 95 %)."
    )
    return [Heading("Recovery after the load"), Sentence(text, roomy=True), Table(head, rows)]


def responses(dose_responses: Sequence[DoseResponse]) -> list[Block]:
    """Word, slope, test and Krebs' metric of each victim and resource."""
    names = victim_names([dose_response.victim for dose_response in dose_responses])
    head = (
        *Column.head(("victim", "load", "response"), ("slope", "interval", "n")),
        *(Column(title, True, roomy=True) for title in ("p", "I_QoS")),
    )
    rows = tuple(
        (
            names[id(dose_response.victim)],
            resource_name(dose_response.resource) + concurrent(dose_response.neighbours),
            dose_response.response.word,
            *wording.ratio_cells(dose_response.response.slope),
            f"{dose_response.response.trend.p:.2g}" if dose_response.response.trend else "–",
            one_cell(dose_response.i_qos),
        )
        for dose_response in dose_responses[:MAX_ROWS]
    )
    text = (
        "Slope: change of the factor from no load to full load (Theil-Sen within each "
        "round). p: Page's test for a trend over load levels. I_QoS: relative loss per "
        "relative increase of the load from its lowest to its highest level; 0 is isolated."
    )
    return [Heading("Dose-response"), Sentence(text, roomy=True), Table(head, rows)]


def indices(every_index: Sequence[Index]) -> list[Block]:
    """The index of each resource, by the victim that stands for it; the others folded away."""
    names = victim_names([index.victim for index in every_index])
    head = Column.head(("resource",), ("index", "interval", "n"), ("by",))
    head += Column.numbers("fairness (Jain)")
    chosen = sorted(
        (index for index in every_index if index.chosen), key=lambda index: index.index.value
    )
    text = (
        "1: full load causes no slowdown. 0: the slowdown equals fair sharing with that "
        "number of neighbours. Below 0: the victim gets less than its fair share. Computed "
        "from the victim of the same resource if measured, otherwise (*) from the victim "
        "with the largest loss."
    )
    rest = [index for index in every_index if not index.chosen]
    blocks: list[Block] = [
        Heading("Isolation index"),
        Sentence(text, roomy=True),
        Table(head, tuple(_index(index, names) for index in chosen)),
    ]
    if rest:
        rows = tuple(_index(index, names) for index in rest[:MAX_ROWS])
        blocks.append(Table(head, rows, "Isolation index of the other victims", collapsed=True))
    return blocks


def _index(index: Index, names: Mapping[int, str]) -> tuple[str, ...]:
    mark = "" if index.own else " *"
    return (
        resource_name(index.resource) + concurrent(index.neighbours),
        *wording.ratio_cells(index.index),
        names[id(index.victim)] + mark,
        one_cell(index.jain),
    )


def named(named_loads: Sequence[NamedLoad]) -> list[Block]:
    """The resource that the victims' losses name, beside the one that was taken."""
    head = Column.texts("loaded resource", "identified as", "correct", "affected victims")
    rows = tuple(
        (
            wording.clean(
                f"{named_load.resource} at {100 * named_load.intensity:g} %"
                f"{concurrent(named_load.neighbours)}"
            ),
            wording.clean(named_load.word),
            "yes"
            if named_load.word == ("none" if named_load.resource == IDLE else named_load.resource)
            else "no",
            wording.clean(", ".join(named_load.lost) or "nothing"),
        )
        for named_load in named_loads[:MAX_ROWS]
    )
    text = (
        "The pattern of losses identifies the contended resource without knowledge of the "
        "load. docs/explanation/naming-accuracy.md states how often the identification is "
        "correct."
    )
    return [Heading("Identified resource"), Sentence(text, roomy=True), Table(head, rows)]
