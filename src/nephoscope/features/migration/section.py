"""The page of `nephoscope migration`: total time, pause, loss and slowdown by dirty rate."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.migration.records import MigrationFigures, MigrationReport
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Heading, Item, Items, Section, Sentence
from nephoscope.report.columns import number, table, text
from nephoscope.report.wording import estimate_text, value_text

SLOW_RATIO = 1.3
"""Total time ÷ closed form above which the link was not what took the time: rounds of QEMU that the
closed form has not, and the start, make less than a tenth at the default memory."""


def section(report: MigrationReport) -> Section:
    """Returns the whole page."""
    blocks: list[Block] = list(_items(report))
    return Section("migration", "Live migration", (*blocks, *_tables(report)))


def _items(report: MigrationReport) -> Iterator[Block]:
    entries = [
        Item(_completed(row)) if row.completed else _cancelled(report, row)
        for row in report.figures
    ]
    yield Items(tuple(entries))
    slow = [
        row.total_ns.value / row.predicted_total_ns
        for row in report.figures
        if row.total_ns is not None and row.predicted_total_ns is not None
    ]
    if slow and max(slow) > SLOW_RATIO:
        sentence = (
            f"Migrations took up to {units.format_number(max(slow))} times as long as the closed "
            "form: QEMU did not fill the link, so that CPUs and not the link decided."
        )
        step = "Repeat on a machine with free CPUs, or with a lower --bandwidth."
        yield Items((Item(sentence, "warning", next_step=step),))


def _completed(row: MigrationFigures) -> str:
    assert row.total_ns is not None
    assert row.pause_ns is not None
    assert row.lost is not None
    lost = units.format_number(row.lost.value)
    every = row.completed + row.cancelled
    rest = f" {row.cancelled} of {every} were cancelled." if row.cancelled else ""
    return (
        f"{_rate(row)}: a migration takes {value_text(row.total_ns)}, pauses the guest for "
        f"{value_text(row.pause_ns)} and loses {lost} packets; until the pause its work takes "
        f"{units.format_number(row.slowdown.value)} times as long.{rest}"
    )


def _cancelled(report: MigrationReport, row: MigrationFigures) -> Item:
    """What is known of a rate at which nothing completed, and the next step."""
    limit = units.format_value(report.downtime_limit_ns, "ns")
    fits = report.bytes_per_s * report.downtime_limit_ns / 1e9
    bound = units.format_duration(report.timeout_s)
    sentence = f"{_rate(row)}: no migration completed within {bound}"
    if row.predicted_rounds is not None:
        unexpected = f"{sentence}, although pre-copy converges."
        return Item(unexpected, "warning", next_step="Raise --timeout.")
    rest = min(report.working_set_bytes, report.memory_bytes)
    sizes = [units.format_value(size, "bytes") for size in (rest, fits)]
    pause = units.format_value(rest / report.bytes_per_s * 1e9, "ns")
    return Item(
        f"{sentence}: pre-copy does not converge. The memory changes faster than the link carries "
        f"it, and its working set of {sizes[0]} is more than the {sizes[1]} of a pause of {limit}.",
        "warning",
        next_step=f"Raise the bandwidth, or accept a pause of {pause} (--downtime-limit).",
    )


def _rate(row: MigrationFigures) -> str:
    if not row.dirty_bytes_per_s.value:
        return "Memory does not change"
    rate = units.format_value(row.dirty_bytes_per_s.value, "bytes_per_s")
    share = f"{wording.percent(row.dirty_ratio)} of"
    if row.dirty_ratio > 1:
        share = f"{units.format_number(row.dirty_ratio)} times"
    return f"Memory changes at {rate} ({share} the bandwidth)"


def _cell(estimate: Estimate | None) -> str:
    return "–" if estimate is None else estimate_text(estimate)


def _dirty(row: MigrationFigures) -> str:
    return units.format_value(row.requested_dirty_bytes_per_s, "bytes_per_s")


def _tables(report: MigrationReport) -> Iterator[Block]:
    memory, link = (
        units.format_value(report.memory_bytes, "bytes"),
        units.format_value(report.link_bits_per_s, "bits_per_s"),
    )
    yield Heading("Total time")
    yield table(
        report.figures,
        text("requested dirty rate", _dirty),
        number("completed", lambda row: f"{row.completed} of {row.completed + row.cancelled}"),
        number("total time", lambda row: _cell(row.total_ns)),
        number("closed form", _closed_form),
        number("rounds", lambda row: _cell(row.rounds)),
        number("closed form", lambda row: row.predicted_rounds),
        caption="Closed form of pre-copy: the sum of its rounds, each of which sends what became "
        "dirty during the one before, from the measured dirty rate and the memory of the first "
        "round. QEMU looks for dirty pages as soon as the rest of a round fits the pause, and so "
        "has more and shorter rounds.",
    )
    yield Heading("Pause")
    yield table(
        report.figures,
        text("requested dirty rate", _dirty),
        number("pause", lambda row: _cell(row.pause_ns)),
        number("memory ÷ bandwidth", lambda row: _cell(row.predicted_pause_ns)),
        number("by QEMU", lambda row: _cell(row.downtime_ns)),
        number("by heartbeats", lambda row: _cell(row.gap_ns)),
        number("lost packets", lambda row: _cell(row.lost)),
        number("slowdown", lambda row: _cell(wording.plain(row.slowdown))),
        caption="Pause: from the end of the guest at the source to its start at the destination. "
        "Memory ÷ bandwidth: what was sent meanwhile. By heartbeats: longest time between two "
        "answers, which a user of the guest sees.",
    )
    interval = units.format_value(report.heartbeat_interval_ns, "ns")
    accelerator = {"kvm": "KVM", "tcg": "emulation (TCG)"}.get(report.accelerator, "QEMU")
    yield Sentence(
        f"A guest with {memory} of memory under {accelerator}, a link of {link}, a heartbeat every "
        f"{interval}; means over migrations."
    )


def _closed_form(row: MigrationFigures) -> str:
    if row.predicted_total_ns is None:
        return "does not converge"
    return units.format_value(row.predicted_total_ns, "ns")
