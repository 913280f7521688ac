"""How users are served: the map, hours, distributions by region, sites and costs of deployments."""

from __future__ import annotations

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.model import RunResult
from nephoscope.features.simulation import charts, tables
from nephoscope.features.simulation.records import Deployment, Simulation
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Section, Sentence

BENCHMARKS = (instruments.SIM_GEO,)

MAX_SHOWN = 6
"""Deployments with figures of their own; the comparing table holds all."""


def build(result: RunResult) -> Section | None:
    """Every simulated deployment, and all beside each other where there are several."""
    simulation = result.part(Simulation)
    if simulation is None or not simulation.deployments:
        return None
    deployments = simulation.deployments
    blocks: list[Block] = []
    if len(deployments) > 1:
        blocks.append(tables.comparison(deployments, tables.names_of(deployments)))
    blocks += tables.blocks_of(
        simulation,
        "deployments",
        lambda deployment, name, number: _deployment_blocks(result, deployment, name, number),
        MAX_SHOWN,
    )
    return Section("deployments", "Response time and cost", tuple(blocks))


def _deployment_blocks(
    result: RunResult, deployment: Deployment, name: str, number: int
) -> list[Block]:
    blocks: list[Block] = [Sentence(_lead(deployment), lead=True)]
    if deployment.compat:
        blocks.append(
            Sentence(
                f"{wording.clean(deployment.compat)} compatibility mode: reproduces that tool's "
                "known errors; do not use the figures for planning."
            )
        )
    blocks += charts.world_map(deployment, name, number)
    blocks += charts.distribution(result, deployment, name, number)
    if deployment.regions:
        blocks.append(tables.shares(deployment.regions, "region", "Response time by region"))
    blocks += charts.hourly(deployment, name, number)
    if deployment.sites:
        blocks.append(tables.sites(deployment))
    if deployment.user_bases:
        caption = "By user base"
        blocks.append(tables.shares(deployment.user_bases, "user base", caption, collapsed=True))
    return [*blocks, *tables.costs(deployment)]


def _lead(deployment: Deployment) -> str:
    """The deployment in a sentence: mean, share within the objective, requests, cost."""
    figures = deployment.overall.figures
    mean, within = figures.get(tables.MEAN), figures.get(tables.WITHIN)
    cost, requests = figures.get("cost_usd"), figures.get(tables.REQUESTS)
    parts = []
    if mean is not None:
        parts.append(f"the mean response time is {wording.estimate_text(mean)}")
    if within is not None and deployment.objective_ns is not None:
        objective = units.format_value(deployment.objective_ns, "ns")
        parts.append(f"{tables.estimate_text(within)} are within the objective of {objective}")
    if requests is not None:
        parts.append(f"{tables.estimate_text(requests)} requests per replication")
    if cost is not None:
        parts.append(f"the cost is {tables.priced(cost)}")
    text = "; ".join(parts) or "no request was answered"
    return f"{text[0].upper()}{text[1:]}."
