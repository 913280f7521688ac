"""A search for a fast machine as a page."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.cloud.pick_records import PickedMachine
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Section, Sentence, items
from nephoscope.report.columns import fact_table, number, table, text


def section(result: PickedMachine) -> Section:
    """Returns the whole page."""
    blocks: list[Block] = [Sentence(_lead(result), lead=True)]
    blocks += [Heading("Machines"), _machines(result)]
    blocks += [Heading("Saving"), fact_table(_facts(result), aligned=False)]
    blocks += items(result.problems, "warning", title="Machines that were not measured")
    return Section("pick", "Search for a fast machine", tuple(blocks))


def _lead(result: PickedMachine) -> str:
    what = "launches" if result.by == "launch" else "starts"
    stopped = f" {result.stopped}" if result.stopped else ""
    return (
        f"{result.selected} is kept after {result.launches} of at most {result.at_most} {what}, "
        f"until {result.expires}; all others were removed, and the cloud's list confirms it."
        f"{stopped} Remove it with `{result.remove}`."
    )


def _machines(result: PickedMachine) -> Block:
    against = "speed, mix = 1" if result.mix_machines else "speed, slowest = 1"
    return table(
        list(enumerate(result.candidates, start=1)),
        number("", lambda row: row[0]),
        text("machine", lambda row: row[1].id),
        text("zone", lambda row: row[1].zone),
        text("host hint", lambda row: row[1].host or "–"),
        number(
            f"{result.benchmark} {result.metric}",
            lambda row: units.format_value(row[1].value, row[1].unit),
        ),
        number("n", lambda row: row[1].trials),
        number(against, lambda row: units.format_number(row[1].speed, 3)),
        text("", lambda row: "kept" if row[1].is_kept else "removed"),
    )


def _facts(result: PickedMachine) -> Iterator[tuple[str, str]]:
    yield "work", f"{result.hours:g} h on an average machine"
    yield "mix", result.mix
    if result.keeps_from is not None:
        yield "kept at once from", f"{result.keeps_from:.2f} times the speed of the mix"
    if result.search_cost is not None:
        cost = f"{result.search_cost:.4f} {result.currency}"
        yield "cost of the search", f"{cost}, all machines until the decision"
    yield "expected saving", _saving(result.predicted, "no mix or no price is known")
    yield "real saving", _saving(result.saving, "no price is known")


def _saving(estimate: Estimate | None, missing: str) -> str:
    if estimate is None:
        return missing
    note = f" ({wording.clean(estimate.note)})" if estimate.note else ""
    ends = ""
    if estimate.low is not None and estimate.high is not None:
        ends = f", {100 * estimate.confidence:g} %: {estimate.low:.4f} to {estimate.high:.4f}"
    return f"{estimate.value:.4f} {estimate.unit}{ends}, n = {estimate.n}{note}"
