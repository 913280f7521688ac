"""The page of `nephoscope platforms`: boot timeline, memory per guest, density."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope import units
from nephoscope.model import Estimate
from nephoscope.platforms import boot_chart
from nephoscope.platforms.boot_chart import estimate_cell
from nephoscope.platforms.density import DOUBLED
from nephoscope.platforms.records import (
    MARKS,
    BootFigures,
    Density,
    DensityStep,
    PlatformReport,
)
from nephoscope.platforms.windows import LOOKS, ROUNDS
from nephoscope.report import figures, wording
from nephoscope.report.blocks import (
    Block,
    Chart,
    Column,
    Heading,
    Item,
    Items,
    Section,
    Sentence,
    Table,
)


def section(report: PlatformReport) -> Section:
    """Returns the whole page."""
    blocks: list[Block] = [Sentence(sentence(report), lead=True)]
    booted = [one for one in report.platforms if one.marks]
    if booted:
        blocks += [boot_chart.chart(booted), *boot_chart.remarks(report.platforms)]
        blocks += _memory(report)
    if report.densities:
        blocks += _densities(report)
    if report.unavailable:
        blocks += [Heading("Platforms that this machine cannot run"), _unavailable(report)]
    return Section("platforms", "Platforms", tuple(blocks))


def sentence(report: PlatformReport) -> str:
    """Returns the boot time, memory and density of each platform in one sentence."""
    density = {one.platform: one for one in report.densities}
    parts = [_words(one, density.get(one.name)) for one in report.platforms if one.marks]
    return "; ".join(parts) + "." if parts else "No platform booted."


def _words(one: BootFigures, density: Density | None) -> str:
    boot = wording.value_text(one.marks[MARKS[-1]])
    words = [f"{wording.clean(one.name)} is reachable after {boot}"]
    if one.memory is not None:
        words.append(f"needs {wording.value_text(one.memory)} of memory")
    if density is not None and density.guests is not None:
        number = wording.plural(round(density.guests.value), "loaded guest")
        end = (
            " without a doubled p99, and possibly more"
            if density.guests.note
            else " until the p99 doubles"
        )
        words.append(f"carries {number}{end}")
    return wording.joined(words)


def _memory(report: PlatformReport) -> Iterator[Block]:
    rows = []
    loaded = {one.platform: one.memory for one in report.densities}
    for one in report.platforms:
        cell = estimate_cell(one.memory)
        if one.memory is None:
            cell = f"– ({wording.clean(one.reasons.get('memory', 'not measured'))})"
        rows.append((wording.clean(one.name), cell, estimate_cell(loaded.get(one.name))))
    size = units.format_value(report.guest_memory_bytes, "bytes")
    merging = {
        True: "Same-page merging (KSM) is on, so that equal pages of guests count once: the memory "
        "per guest is lower than with KSM off.",
        False: "Same-page merging (KSM) is off.",
        None: "The kernel does not say whether it merges equal pages (KSM).",
    }[report.same_page_merging]
    yield Heading("Memory per guest")
    yield Table(
        (Column("platform"), *Column.numbers("after boot", "after load")),
        tuple(rows),
        "Proportional set size (PSS) of all processes of a guest, its kernel included; after load "
        "also the HTTP server that was loaded.",
    )
    tone = "warning" if report.same_page_merging else "info"
    yield Items((Item(f"{merging} Guests with a kernel of their own have {size}.", tone),))


def _densities(report: PlatformReport) -> Iterator[Block]:
    yield Heading("Density")
    rate = units.format_value(report.rate_per_s, "per_s")
    yield Sentence(
        f"Guests that each serve small HTTP requests at {rate} (Poisson arrivals, over their own "
        "loopback interface) until the p99 of the first guest is twice its p99 while the other "
        "guests are idle. Both windows of a round follow each other, in random order; a step has "
        f"{ROUNDS} rounds, up to {LOOKS * ROUNDS} while the interval of the ratio contains 2."
    )
    yield Table(
        (Column("platform"), *Column.numbers("guests", "low", "high"), Column("search ended")),
        tuple(
            (wording.clean(one.platform), *_guests(one.guests), wording.clean(one.stopped))
            for one in report.densities
        ),
        "low, high: numbers up to which every interval of the p99 ratio lies below 2, and from "
        "which on it lies above.",
    )
    steps = [(one, step) for one in report.densities for step in one.steps]
    dots = [
        (f"{wording.clean(one.platform)}, {step.guests} guests", wording.plain(step.p99_ratio))
        for one, step in steps
        if step.p99_ratio is not None
    ]
    table = Table(
        (
            Column("platform"),
            *Column.numbers("guests", "live", "p99 ratio", "completed"),
            Column("failures", roomy=True),
        ),
        tuple(
            (
                wording.clean(one.platform),
                str(step.guests),
                str(step.live),
                _ratio(step),
                estimate_cell(step.completed_per_s),
                wording.clean(step.reason),
            )
            for one, step in steps
        ),
        "live: guests that answered every request of every window.",
    )
    if dots:
        figure = figures.dots(
            dots, figures.Axis("p99 relative to one loaded guest", "none", log=True)
        )
        figures.vertical(figure["layout"], DOUBLED, "doubled", log=True)
        yield Chart("platform-density", "Response time by number of guests", figure, table)
    elif steps:
        yield table


def _guests(estimate: Estimate | None) -> tuple[str, str, str]:
    if estimate is None:
        return "–", "–", "–"
    at_least = "≥ " if estimate.note else ""
    high = "–" if estimate.high is None else f"{estimate.high:.0f}"
    return f"{at_least}{estimate.value:.0f}", f"{estimate.low:.0f}", high


def _ratio(step: DensityStep) -> str:
    if step.p99_ratio is None:
        return "–"
    return estimate_cell(wording.plain(step.p99_ratio))


def _unavailable(report: PlatformReport) -> Items:
    return Items(
        tuple(
            Item(
                wording.clean(f"{one.platform}: {one.reason}"),
                next_step=wording.clean(one.next_step),
            )
            for one in report.unavailable
        )
    )
