"""The machines of a run among published ones, as a section and as sentences of the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.known_machines.records import (
    MIN_MACHINES,
    KnownMachines,
    MachineRank,
    MachineStanding,
)
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Heading, Section, Sentence, Table, items
from nephoscope.report.columns import count, number, table, text

NOTHING = (
    "No published measurements were imported, so that this machine is compared with none: clone "
    "SpareCores/sc-inspector-data and run `nephoscope import sc-inspector-data`."
)
_METHOD = (
    "Percentile: share of the published machines of the class that the machine is better than. Its "
    "interval has the machine's own interval and the number of machines of the class in it, as if "
    "they were drawn independently; machines of one provider are more alike than that."
)


def build(result: RunResult) -> Section | None:
    """Returns the section of a run; None for one without such a record."""
    record = result.part(KnownMachines)
    if record is None:
        return None
    return Section("known_machines", "Percentile among known machines", tuple(_blocks(record)))


def answers(result: RunResult) -> list[str]:
    """Returns a sentence for each machine that has a percentile: on its best known class."""
    record = result.part(KnownMachines)
    machines = record.machines if record is not None else ()
    return [sentence for machine in machines if (sentence := _answer(machine, len(machines)))]


def _answer(machine: MachineStanding, machines: int) -> str:
    rank = next((rank for rank in machine.ranks if rank.percentile is not None), None)
    if rank is None or rank.percentile is None:
        return ""
    title = wording.clean(rank.machines.title.partition(";")[0])
    name = "This machine" if machines == 1 else wording.clean(machine.target)
    return (
        f"{name} is faster than {_percentile(rank.percentile)} of the {rank.machines.machines} "
        f"published machines of its class ({title}) by "
        f"{wording.clean(rank.measured)}."
    )


def _blocks(record: KnownMachines) -> Iterator[Block]:
    if not record.types:
        yield Sentence(wording.clean(record.problem) or NOTHING)
        return
    for machine in record.machines:
        if len(record.machines) > 1:
            yield Heading(wording.clean(machine.target))
        yield Sentence(_identity(machine))
        yield from _tables(machine.ranks, "this machine", "Measured here, among")
        yield from _tables(
            machine.type_ranks, "published", f"Published for {wording.clean(machine.type)}, among"
        )
        yield from items(_notes(machine))
    if any(machine.ranks or machine.type_ranks for machine in record.machines):
        yield Sentence(f"{_METHOD} {record.lacks}")


def _identity(machine: MachineStanding) -> str:
    if not machine.type:
        return (
            "The type of this machine is not known, so that neither its price nor its published "
            "figures are used; `nephoscope survey --type PROVIDER/TYPE` states it."
        )
    price = ""
    if machine.price_per_h is not None:
        price = f", {wording.amount(machine.price_per_h, machine.currency)} an hour"
    return f"This machine is {wording.clean(machine.type)} ({machine.identified_by}{price})."


def _tables(ranks: Sequence[MachineRank], value_title: str, among: str) -> Iterator[Table]:
    for title, own in group_by(ranks, lambda rank: rank.machines.title).items():
        yield _ranks(own, value_title, f"{among} {wording.clean(title)}:")


def _ranks(ranks: Sequence[MachineRank], value_title: str, caption: str) -> Table:
    published: list[Column[MachineRank]] = [
        number(
            "published for the type",
            lambda rank: None if rank.of_type is None else _value(rank.of_type, rank),
        )
    ]
    has_published = value_title != "published" and any(rank.of_type for rank in ranks)
    return table(
        ranks,
        text("figure", lambda rank: wording.clean(rank.measured)),
        number(value_title, lambda rank: wording.value_text(rank.value)),
        *(published if has_published else ()),
        count("machines", lambda rank: rank.machines.machines),
        number("median", lambda rank: None if rank.median is None else _value(rank.median, rank)),
        number("better than", lambda rank: _share(rank.percentile)),
        number("interval", lambda rank: _interval(rank.percentile)),
        caption=caption,
    )


def _value(value: float, rank: MachineRank) -> str:
    return units.format_value(value, rank.value.unit)


def _share(estimate: Estimate | None) -> str:
    return "none" if estimate is None else f"{100 * estimate.value:.0f} %"


def _interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def _percentile(estimate: Estimate) -> str:
    return f"{_share(estimate)} {_interval(estimate)}"


def _notes(machine: MachineStanding) -> Iterator[str]:
    if any(rank.percentile is None for rank in (*machine.ranks, *machine.type_ranks)):
        yield f"A percentile needs {MIN_MACHINES} published machines of the class."
    compared = {rank.measured: rank for rank in machine.ranks}.values()
    for rank in compared:
        yield wording.clean(f"{rank.measured} is compared with {rank.metric}: {rank.relation}.")
    for rank in compared:
        if rank.of_type and rank.value.low is not None and rank.value.high is not None:
            ends = [end / rank.of_type for end in (rank.value.low, rank.value.high)]
            yield wording.clean(
                f"{rank.measured}: {rank.value.value / rank.of_type:.3g} [{ends[0]:.3g}, "
                f"{ends[1]:.3g}] times the published figure of the type, of which no interval is "
                "known."
            )
    for benchmark, reason in machine.left_out.items():
        yield f"Not compared: {benchmark}, because {reason}."
    yield from map(wording.clean, machine.notes)
