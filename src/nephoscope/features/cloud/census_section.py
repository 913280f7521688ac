"""A census of a cloud as a page: the census of CPU models, host hints, launch times, problems."""

from __future__ import annotations

from nephoscope.features.census import section as models
from nephoscope.features.census.hosts import HostHints
from nephoscope.features.cloud.census_records import CloudCensus
from nephoscope.features.platforms import boot_chart
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, items
from nephoscope.report.columns import number, table, text


def section(result: CloudCensus) -> Section:
    """Returns the whole page."""
    counted = models.section(result.census)
    blocks: list[Block] = [Sentence(_lead(result), lead=True), *counted.blocks[1:]]
    blocks += _hosts(result)
    if result.launches:
        blocks += [Heading("Launch times"), boot_chart.chart(result.launches)]
    blocks += items(result.problems, "warning", title="Machines that were not measured")
    return Section("census", "Census of rented machines", tuple(blocks))


def _lead(result: CloudCensus) -> str:
    waves = ""
    if result.waves > 1:
        waves = f", wave {result.waves_begun} of {result.waves}"
    cost = ""
    if result.cost is not None:
        cost = f" Cost of this call at the quoted prices: {result.cost:.4f} {result.currency}."
    stopped = f" {result.stopped}" if result.stopped else ""
    return (
        f"Census {result.name}: {result.measured} of {result.planned} planned machines were "
        f"measured, in {wording.plural(len(result.runs), 'run')}{waves}.{cost}{stopped}"
    )


def _hosts(result: CloudCensus) -> list[Block]:
    """Hints on physical hosts: how many of the machines may be dependent."""
    listing = table(
        result.hosts,
        text("type", lambda row: row.instance_type),
        number("machines", lambda row: row.machines),
        number("with a host hint", lambda row: row.hinted),
        number("distinct hosts by hint", lambda row: row.hosts if row.hinted else "–"),
        number("possibly dependent", _dependent),
    )
    notes = [
        f"{entry.instance_type}: {len(shared.machines)} machines may stand on one host, because "
        f"{shared.hint}: {', '.join(shared.machines)}."
        for entry in result.hosts
        for shared in entry.shared
    ]
    return [
        Heading("Physical hosts"),
        Sentence("Hints, not proofs. Machines of one host are no independent draws."),
        listing,
        *items(notes, folded="Machines that may share a host"),
    ]


def _dependent(hints: HostHints) -> int | str:
    return hints.hinted - hints.hosts if hints.hinted else "–"
