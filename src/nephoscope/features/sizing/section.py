"""The size of a deployment as a section: ranking, what is not known, measurements, inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from nephoscope.core.model import Estimate
from nephoscope.features.sizing import sentences
from nephoscope.features.sizing.records import SizeAnalysis, SizedDeployment, SizingInput
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Linked, Section, Sentence, Table, items
from nephoscope.report.columns import number, table, text
from nephoscope.report.wording import amount, amount_interval


def size_section(analysis: SizeAnalysis) -> Section:
    """Returns the section."""
    title = f"Size of {wording.clean(analysis.application)}"
    return Section("size", title, tuple(_blocks(analysis)))


def _blocks(analysis: SizeAnalysis) -> Iterator[Block]:
    yield Sentence(wording.clean(analysis.sentence), lead=True)
    if analysis.recommended_measurement:
        yield Sentence(wording.clean(analysis.recommended_measurement))
    currency = analysis.currency
    if analysis.deployments:
        yield table(
            analysis.deployments,
            text("deployment", sentences.instances),
            text("users", lambda row: _served(row.served_from), roomy=True),
            number("a month", lambda row: amount(row.cost_per_month.value, currency)),
            number("interval", lambda row: _cost_interval(row.cost_per_month)),
            *_parts(analysis),
            number("spare", lambda row: sum(row.spare.values())),
            number("misses", lambda row: sentences.chance(row.miss_probability)),
            text("inputs", lambda row: _links(row.inputs)),
            caption=_caption(analysis),
        )
    if analysis.unknown:
        yield table(
            analysis.unknown,
            text("type", lambda row: row.type),
            text("purchase", lambda row: row.purchase.replace("_", " ")),
            number(
                "a month at least",
                lambda row: (
                    None
                    if row.least_cost_per_month is None
                    else amount(row.least_cost_per_month, currency)
                ),
                missing="unknown",
            ),
            text("missing", lambda row: row.reason),
            text("inputs", lambda row: _links(row.inputs)),
            caption="Cannot be sized, and may be cheaper:",
        )
    if analysis.measurements:
        yield table(
            analysis.measurements,
            text("measurement", lambda row: row.name),
            number("cost", lambda row: amount(row.cost, currency)),
            number(
                "changes the answer",
                lambda row: wording.percent(row.change_probability) or None,
                missing="unknown",
            ),
            number("saves a month", lambda row: amount(row.saving_per_month, currency)),
            text("inputs", lambda row: _links(row.inputs)),
            caption="Value of knowing a quantity exactly, which is the most that its measurement "
            "is worth:",
        )
    first, *rest = _rows(analysis)
    more = {each for row in rest for each in row}.difference(first)
    yield _inputs(analysis, first, "Inputs of the first row:" if rest else "Inputs:")
    yield _inputs(analysis, more, "Other inputs", collapsed=True)
    yield from items(_notes(analysis))


def _parts(analysis: SizeAnalysis) -> Iterator[Column[SizedDeployment]]:
    """Yields the columns that the file asks for."""
    if any(row.egress_per_month is not None for row in analysis.deployments):
        yield number(
            "of it data",
            lambda row: (
                None
                if row.egress_per_month is None
                else amount(row.egress_per_month, analysis.currency)
            ),
        )
    if any(row.survived_failures for row in analysis.deployments):
        yield number("regions may fail", lambda row: row.survived_failures)


def _inputs(
    analysis: SizeAnalysis, wanted: Collection[int], caption: str, *, collapsed: bool = False
) -> Table:
    return table(
        [entry for entry in analysis.inputs if entry.id in wanted],
        text("input", lambda row: Linked(str(row.id), id=f"input-{row.id}")),
        text("quantity", lambda row: row.name),
        number("value", lambda row: _value(row, analysis.currency)),
        number("interval", _interval),
        text("origin", lambda row: row.origin),
        text("source", lambda row: row.source),
        caption=caption,
        collapsed=collapsed,
    )


def _rows(analysis: SizeAnalysis) -> Iterator[tuple[int, ...]]:
    """Yields the inputs of each row, those of the recommendation first; without any the demand."""
    for rows in (analysis.deployments, analysis.unknown, analysis.measurements):
        yield from (row.inputs for row in rows)
    yield (analysis.inputs[0].id,)


def _caption(analysis: SizeAnalysis) -> str:
    in_all, rows = analysis.deployments_in_all, len(analysis.deployments)
    more = f" {rows} of {in_all}." if in_all > rows else ""
    return (
        f"Deployments that miss {analysis.objective} with a probability of "
        f"{100 * analysis.risk:g} % at most, the cheapest first.{more}"
    )


def _served(served: Mapping[str, str]) -> str:
    if len(set(served.values())) < 2:
        return "all" if served else ""
    return ", ".join(f"{site} from {region}" for site, region in served.items())


def _cost_interval(cost: Estimate) -> str:
    """Returns the interval of the prices; list prices and stated ones without one are exact."""
    return "exact" if cost.low is None else amount_interval(cost)


def _links(inputs: Sequence[int]) -> Linked:
    return Linked(links=tuple((str(number), f"input-{number}") for number in inputs))


def _value(row: SizingInput, currency: str) -> str:
    if row.name.startswith(("price", "spot price")):
        return amount(row.estimate.value, currency)
    return wording.value_text(row.estimate)


def _interval(row: SizingInput) -> str:
    return "none" if row.estimate.low is None else wording.interval_text(row.estimate)


def _notes(analysis: SizeAnalysis) -> Iterator[str]:
    yield from analysis.notes
    yield (
        "An instance is a queue with random arrivals and service times (M/M/c) that reaches its "
        "capacity at the objective under which that was measured."
    )
    yield (
        f"The probability of missing the objective is that of {analysis.draws:,} draws of all "
        "inputs and of the instances that the user gets. Its interval is that of the draws alone."
    )
    has_egress = any(row.egress_per_month is not None for row in analysis.deployments)
    traffic = "Traffic between regions" if has_egress else "Traffic"
    yield f"A month has 730 hours. {traffic}, storage and balancers are not included."
