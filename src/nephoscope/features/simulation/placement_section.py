"""Where to put sites: the choice, the front of cost against users in time, what would change it."""

from __future__ import annotations

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.model import RunResult
from nephoscope.features.simulation import choice_charts as charts
from nephoscope.features.simulation import tables
from nephoscope.features.simulation.records import Placement, Simulation
from nephoscope.report import wording
from nephoscope.report.blocks import Section, Sentence

BENCHMARKS = (instruments.SIM_PLACE,)


def build(result: RunResult) -> Section | None:
    """Every question of where to put sites that the run answers."""
    placements = result.part(Simulation)
    if placements is None or not placements.placements:
        return None
    blocks = tables.blocks_of(
        placements,
        "placements",
        lambda placement, name, number: [
            Sentence(_lead(placement), lead=True),
            *charts.front(placement, name, number),
            *tables.sensitivity(placement),
        ],
    )
    return Section("placement", "Site placement", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns the recommended sites of each placement, with what they reach."""
    simulation = result.part(Simulation)
    return [_lead(placement) for placement in simulation.placements[:2]] if simulation else []


def _lead(placement: Placement) -> str:
    sites = wording.joined(wording.clean(site) for site in placement.chosen)
    if not placement.chosen or placement.met is False:
        text = "No choice of sites meets the objective"
        come = "comes" if len(placement.chosen) == 1 else "come"
        text += f"; {sites} {come} closest" if sites else ""
    else:
        text = f"Recommended sites: {sites}"
    within = placement.figures.get(tables.WITHIN)
    if within is not None:
        text += (
            f". {tables.estimate_text(within)} of the requests are answered within the objective"
        )
        if placement.objective_ns is not None:
            text += f" of {units.format_value(placement.objective_ns, 'ns')}"
    cost = placement.figures.get("cost_usd_per_h")
    if cost is not None:
        text += f", at {tables.priced(cost)} per hour"
    parts = [f"{text}.", _bound(placement)]
    if placement.confirmed is not None and placement.met is not False:
        verb = "confirms" if placement.confirmed else "does not confirm"
        parts.append(f"The simulation {verb} it.")
    return " ".join(filter(None, parts))


def _bound(placement: Placement) -> str:
    bound = placement.figures.get("bound_ratio")
    if bound is None:
        return ""
    if bound.value <= 0:
        return "All choices were evaluated; none is better."
    return f"A better choice would gain at most {units.format_value(bound.value, 'ratio')}."
