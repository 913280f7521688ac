"""The page of `nephoscope platforms`: boot timeline, memory per guest, density."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.core import units
from nephoscope.core.model import Estimate
from nephoscope.features.platforms import boot_chart
from nephoscope.features.platforms.boot_chart import estimate_cell
from nephoscope.features.platforms.density import DOUBLED
from nephoscope.features.platforms.records import MARKS, BootFigures, Density, PlatformReport
from nephoscope.features.platforms.windows import MAX_ANALYSES, ROUNDS
from nephoscope.report import figures, wording
from nephoscope.report.blocks import Block, Chart, Heading, Item, Section, Sentence, items
from nephoscope.report.columns import number, spread, table, text


def section(report: PlatformReport) -> Section:
    """Returns the whole page."""
    blocks: list[Block] = list(_summary(report))
    booted = [platform for platform in report.platforms if platform.marks]
    if booted:
        blocks += [boot_chart.chart(booted), *boot_chart.remarks(report.platforms)]
        blocks += _memory(report)
    if report.densities:
        blocks += _densities(report)
    unavailable = (
        Item(
            wording.clean(f"{platform.platform}: {platform.reason}"),
            next_step=wording.clean(platform.next_step),
        )
        for platform in report.unavailable
    )
    blocks += items(unavailable, title="Platforms that this machine cannot run")
    return Section("platforms", "Platforms", tuple(blocks))


def _summary(report: PlatformReport) -> Iterator[Block]:
    """Yields the boot time, memory and density of each platform, one item each."""
    density = {platform.platform: platform for platform in report.densities}
    texts = [
        f"{_words(platform, density.get(platform.name))}."
        for platform in report.platforms
        if platform.marks
    ]
    yield from items(texts) or [Sentence("No platform booted.", lead=True)]


def _words(platform: BootFigures, density: Density | None) -> str:
    boot = wording.value_text(platform.marks[MARKS[-1]])
    words = [f"{wording.clean(platform.name)} is reachable after {boot}"]
    if platform.memory is not None:
        words.append(f"needs {wording.value_text(platform.memory)} of memory")
    if density is not None and density.guests is not None:
        guests = wording.plural(round(density.guests.value), "loaded guest")
        end = " until the p99 doubles"
        if density.guests.note:
            end = " without a doubled p99, and possibly more"
        elif density.guests.high is None:
            end += " (the doubling is not proven)"
        words.append(f"carries {guests}{end}")
    return wording.joined(words)


def _memory(report: PlatformReport) -> Iterator[Block]:
    loaded = {platform.platform: platform.memory for platform in report.densities}

    def after_boot(platform: BootFigures) -> str:
        if platform.memory is None:
            return f"– ({wording.clean(platform.reasons.get('memory', 'not measured'))})"
        return estimate_cell(platform.memory)

    size = units.format_value(report.guest_memory_bytes, "bytes")
    merging = {
        True: "Same-page merging (KSM) is on, so that equal pages of guests count once: the memory "
        "per guest is lower than with KSM off.",
        False: "Same-page merging (KSM) is off.",
        None: "The kernel does not say whether it merges equal pages (KSM).",
    }[report.same_page_merging]
    yield Heading("Memory per guest")
    yield table(
        report.platforms,
        text("platform", lambda platform: platform.name),
        number("after boot", after_boot),
        number("after load", lambda platform: estimate_cell(loaded.get(platform.name))),
        caption="Proportional set size (PSS) of all processes of a guest, its kernel included; "
        "after load also the HTTP server that was loaded.",
    )
    tone = "warning" if report.same_page_merging else "info"
    yield from items([f"{merging} Guests with a kernel of their own have {size}."], tone)


def _densities(report: PlatformReport) -> Iterator[Block]:
    yield Heading("Density")
    rate = units.format_value(report.rate_per_s, "per_s")
    yield Sentence(
        f"Guests that each serve small HTTP requests at {rate} (Poisson arrivals, over their own "
        "loopback interface) until the p99 of the first guest is twice its p99 while the other "
        "guests are idle. Both windows of a round follow each other, in random order; a step has "
        f"{ROUNDS} rounds, up to {MAX_ANALYSES * ROUNDS} while the interval of the ratio "
        "contains 2."
    )
    yield table(
        report.densities,
        text("platform", lambda platform: platform.platform),
        *spread(("guests", "low", "high"), lambda platform: _guests(platform.guests)),
        text("search ended", lambda platform: platform.stopped),
        caption="low, high: numbers up to which every interval of the p99 ratio lies below 2, and "
        "from which on it lies above.",
    )
    steps = [(platform, step) for platform in report.densities for step in platform.steps]
    dots = [
        (f"{wording.clean(platform.platform)}, {step.guests} guests", wording.plain(step.p99_ratio))
        for platform, step in steps
        if step.p99_ratio is not None
    ]
    listing = table(
        steps,
        text("platform", lambda row: row[0].platform),
        number("guests", lambda row: row[1].guests),
        number("live", lambda row: row[1].live),
        number(
            "p99 ratio",
            lambda row: estimate_cell(row[1].p99_ratio and wording.plain(row[1].p99_ratio)),
        ),
        number("completed", lambda row: estimate_cell(row[1].completed_per_s)),
        text("failures", lambda row: row[1].reason, roomy=True),
        caption="live: guests that answered every request that they received.",
    )
    if dots:
        figure = figures.dots(
            dots, figures.Axis("p99 relative to one loaded guest", "none", log=True)
        )
        figures.vertical(figure["layout"], DOUBLED, "doubled", log=True)
        yield Chart("platform-density", "Response time by number of guests", figure, listing)
    elif steps:
        yield listing


def _guests(estimate: Estimate | None) -> tuple[str, str, str]:
    if estimate is None:
        return "–", "–", "–"
    at_least = "≥ " if estimate.note else ""
    high = "–" if estimate.high is None else f"{estimate.high:.0f}"
    return f"{at_least}{estimate.value:.0f}", f"{estimate.low:.0f}", high
