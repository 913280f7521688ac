"""How users are served: the map, hours, distributions by region, sites and costs of deployments."""

from __future__ import annotations

from nephoscope import units
from nephoscope.model import RunResult
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, Table
from nephoscope.simulation import charts, tables
from nephoscope.simulation.records import Deployment, Simulation

BENCHMARKS = ("sim.geo",)

MAX_SHOWN = 6
"""Deployments with figures of their own; the comparing table holds all."""


def build(result: RunResult) -> Section | None:
    """Every simulated deployment, and all beside each other where there are several."""
    found = result.derived.get("simulation")
    if not isinstance(found, Simulation) or not found.deployments:
        return None
    several = len(found.deployments) > 1
    names = tables.names_of(found.deployments)
    blocks: list[Block] = []
    if several:
        blocks.append(tables.comparison(found.deployments, names))
    for number, (one, name) in enumerate(zip(found.deployments, names, strict=True)):
        if number >= MAX_SHOWN:
            left = wording.plural(len(names) - MAX_SHOWN, "further deployment")
            blocks.append(Sentence(f"{left}: see the table above."))
            break
        blocks += [Heading(name)] if several else []
        blocks += _one(result, one, name, number)
    blocks += tables.notes(found, "deployments")
    return Section("deployments", "Response time and cost", tuple(blocks))


def _one(result: RunResult, found: Deployment, name: str, number: int) -> list[Block]:
    blocks: list[Block] = [Sentence(_lead(found), lead=True)]
    if found.compat:
        blocks.append(
            Sentence(
                f"{wording.clean(found.compat)} compatibility mode: reproduces that tool's known "
                "errors; do not use the figures for planning."
            )
        )
    drawn = [
        charts.world_map(found, name, number),
        charts.distribution(result, found, name, number),
    ]
    blocks += [chart for chart in drawn if chart is not None]
    if found.regions:
        blocks.append(tables.shares(found.regions, "region", "Response time by region"))
    blocks += charts.hourly(found, name, number)
    if found.sites:
        blocks.append(tables.sites(found))
    if found.user_bases:
        caption = "By user base"
        blocks.append(tables.shares(found.user_bases, "user base", caption, collapsed=True))
    spent = tables.costs(found)
    return [*blocks, *([spent] if isinstance(spent, Table) else [])]


def _lead(found: Deployment) -> str:
    """The deployment in a sentence: mean, share within the objective, requests, cost."""
    figures = found.overall.figures
    mean, within = figures.get(tables.MEAN), figures.get(tables.WITHIN)
    cost, requests = figures.get("cost_usd"), figures.get(tables.REQUESTS)
    parts = []
    if mean is not None:
        parts.append(f"the mean response time is {wording.estimate_text(mean)}")
    if within is not None and found.objective_ns is not None:
        objective = units.format_value(found.objective_ns, "ns")
        parts.append(f"{tables.told(within)} are within the objective of {objective}")
    if requests is not None:
        parts.append(f"{tables.told(requests)} requests per replication")
    if cost is not None:
        parts.append(f"the cost is {tables.priced(cost)}")
    text = "; ".join(parts) or "no request was answered"
    return f"{text[0].upper()}{text[1:]}."
