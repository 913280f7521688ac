"""The table of server types as a section: answer, table, scatter of price and performance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.features.market.records import MarketListing, MarketRow, MarketTable
from nephoscope.features.market.table import size_text
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Column, Section, Sentence, Table, items
from nephoscope.report.columns import number, table, text
from nephoscope.report.wording import amount

_POINTS = 4_000
"""Points of the scatter besides the front: the cheapest ones for a unit of work."""


def market_section(market: MarketTable) -> Section:
    """Returns the section of a table."""
    return Section("market", "Server types", tuple(_blocks(market)))


def _blocks(market: MarketTable) -> Iterator[Block]:
    yield Sentence(_answer(market), lead=True)
    yield Sentence(market.lacks)
    if market.rows:
        yield _table(market)
    if any(row.price_per_h is not None for row in market.rows):
        yield _scatter(market)
    yield from items(_notes(market))


def _performance(row: MarketRow, market: MarketTable) -> str:
    if market.unit == "per_h":
        return f"{units.format_number(row.performance)} units/h"
    return units.format_value(row.performance, market.unit)


def _answer(market: MarketTable) -> str:
    if not market.rows:
        return f"None of {market.considered:,} server types meets all conditions."
    first = market.rows[0]
    name = f"{first.provider}/{first.type}"
    where = f" in {first.region}" if first.region else ""
    if first.cost_per_unit is None or first.price_per_h is None:
        return (
            f"{name} has the highest rate of {market.title}: {_performance(first, market)}. There "
            "are no prices: import a price list with --prices."
        )
    sentence = (
        f"{name}{where} is cheapest for {market.title}: "
        f"{amount(first.cost_per_unit, market.currency)} per {market.unit_of_work} "
        f"({_performance(first, market)} at {amount(first.price_per_h, market.currency)} an hour)."
    )
    if len(market.rows) > 1 and market.rows[1].cost_per_unit:
        more = market.rows[1].cost_per_unit / first.cost_per_unit - 1
        second = f"{market.rows[1].provider}/{market.rows[1].type}"
        sentence += f" The next, {second}, costs {wording.percent(more, 2) or '0 %'} more."
    return sentence


def _table(market: MarketTable) -> Table:
    further: list[Column[MarketRow]] = [
        number(name, lambda row, key=name: row.metrics.get(key), unit)  # type: ignore[misc]
        for name, unit in market.metrics.items()
    ]

    def money(value: float | None) -> str | None:
        return None if value is None else amount(value, "").strip()

    printed, every = len(market.rows), market.rows_in_all
    caption = f"The first {printed:,} of {every:,}:" if printed < every else ""
    return table(
        market.rows,
        text("type", lambda row: f"{row.provider}/{row.type}"),
        text("region", lambda row: row.region),
        number("CPUs", lambda row: row.cpus),
        number("memory", lambda row: size_text(row.memory_bytes)),
        text("CPU model", lambda row: row.cpu_model, roomy=True),
        text("GPU", lambda row: f"{row.gpus} x {row.gpu_model}" if row.gpus else "", roomy=True),
        number(f"{market.currency} an hour".strip(), lambda row: money(row.price_per_h)),
        number("rate", lambda row: _performance(row, market)),
        number(
            f"{market.currency} per {market.unit_of_work}".strip(),
            lambda row: money(row.cost_per_unit),
        ),
        text("front", lambda row: "yes" if row.on_front else ""),
        *further,
        caption=caption,
    )


def _scatter(market: MarketTable) -> Chart:
    priced = [row for row in market.rows if row.price_per_h is not None]
    front = sorted((row for row in priced if row.on_front), key=lambda row: row.price_per_h or 0.0)
    rest = [row for row in priced if not row.on_front][:_POINTS]
    data = [
        _trace(name, rows, market, place)
        for place, (name, rows) in enumerate((("another type", rest), ("Pareto front", front)))
        if rows
    ]
    if front:
        data[-1] |= {"mode": "lines+markers"}
        data[-1]["line"] = {"shape": "hv", "width": 1, "color": palette.style(1)[0]}
    prices = [row.price_per_h or 0.0 for row in priced]
    rates = [row.performance for row in priced]
    x = figures.axis_of(
        figures.Axis(f"price of an hour, {market.currency}", "none", log=True), prices
    )
    unit = market.unit if market.unit in ("per_s", "bytes_per_s") else "none"
    y = figures.axis_of(figures.Axis(market.title, unit, log=True), rates)
    behind = table(
        front,
        text("type", lambda row: f"{row.provider}/{row.type}"),
        number("price of an hour", lambda row: amount(row.price_per_h or 0.0, market.currency)),
        number("rate", lambda row: _performance(row, market)),
    )
    return Chart(
        "market-front",
        "Price and performance",
        {"data": data, "layout": figures.layout(x, y, height=460)},
        behind,
        "A type is on the Pareto front if no other one has more performance for the same price or "
        "less. Each point is one machine without an interval.",
    )


def _trace(
    name: str, rows: Sequence[MarketRow], market: MarketTable, place: int
) -> dict[str, object]:
    colour, _, symbol = palette.style(place)
    hover = [
        f"{row.provider}/{row.type} {row.region}: {_performance(row, market)}, "
        f"{amount(row.price_per_h or 0.0, market.currency)} an hour"
        for row in rows
    ]
    return figures.trace(
        name,
        [row.price_per_h for row in rows],
        [row.performance for row in rows],
        hover,
        marker={"color": colour, "symbol": symbol, "size": 8 if place else 5},
    )


def _notes(market: MarketTable) -> Iterator[str]:
    if market.left_out:
        parts = ", ".join(f"{count:,} {reason}" for reason, count in market.left_out.items())
        yield f"Left out of {market.considered:,} types: {parts}."
    yield from market.sources
    yield from market.notes


def listing_section(listing: MarketListing) -> Section:
    """Returns the works and metrics that can be named."""
    blocks = (
        Sentence(f"{listing.types:,} server types with {listing.figures:,} figures."),
        Sentence(listing.lacks),
        table(
            listing.works.items(),
            text("work", lambda pair: pair[0]),
            text("metric", lambda pair: pair[1]),
        ),
        table(
            listing.metrics.items(),
            text("metric", lambda pair: pair[0]),
            text("unit", lambda pair: pair[1]),
            caption="All metrics:",
        ),
    )
    return Section("market-metrics", "Works and metrics", blocks)
