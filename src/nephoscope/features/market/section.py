"""The table of server types as a section: answer, table, scatter of price and performance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.features.market.records import (
    MarketListing,
    MarketPoint,
    MarketRow,
    MarketTable,
)
from nephoscope.features.market.table import size_text
from nephoscope.report import figures, palette, wording
from nephoscope.report.blocks import Block, Chart, Column, Section, Sentence, Table, items
from nephoscope.report.columns import number, table, text
from nephoscope.report.wording import amount

PRINTED = 200
"""Rows on a terminal; a page has all."""


def market_section(market: MarketTable, most: int | None = None) -> Section:
    """Returns the section of a table. most: rows of it."""
    return Section("market", "Server types", tuple(_blocks(market, most)))


def _blocks(market: MarketTable, most: int | None) -> Iterator[Block]:
    yield Sentence(_answer(market), lead=True)
    yield Sentence(market.lacks)
    if market.rows:
        yield _table(market, market.rows[:most])
    if market.points:
        yield _scatter(market)
    yield from items(_notes(market))


def _performance(row: MarketRow, market: MarketTable) -> str:
    return _rate(row.performance, market)


def _rate(value: float, market: MarketTable) -> str:
    return units.format_value(value, market.unit)


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


def _table(market: MarketTable, rows: Sequence[MarketRow]) -> Table:
    further: list[Column[MarketRow]] = [
        number(name, lambda row, key=name: row.metrics.get(key), unit)  # type: ignore[misc]
        for name, unit in market.metrics.items()
    ]

    def money(value: float | None) -> str | None:
        return None if value is None else amount(value, "").strip()

    printed, every = len(rows), market.rows_in_all
    caption = f"The first {printed:,} of {every:,}:" if printed < every else ""
    return table(
        rows,
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
    front = [point for point in market.points if point.on_front]
    rest = [point for point in market.points if not point.on_front]
    data = [
        _trace(name, points, market, place)
        for place, (name, points) in enumerate((("another type", rest), ("Pareto front", front)))
        if points
    ]
    data[-1] |= {"mode": "lines+markers"}
    data[-1]["line"] = {"shape": "hv", "width": 1, "color": palette.style(1)[0]}
    prices = [point.price_per_h for point in market.points]
    rates = [point.performance for point in market.points]
    price_axis = figures.Axis(f"price of an hour, {market.currency}", "none", log=True)
    unit = market.unit if market.unit in ("per_s", "per_h", "bytes_per_s") else "none"
    x = figures.axis_of(price_axis, prices)
    y = figures.axis_of(figures.Axis(market.title, unit, log=True), rates)
    behind = table(
        front,
        text("type", lambda point: point.name),
        number("price of an hour", lambda point: amount(point.price_per_h, market.currency)),
        number("rate", lambda point: _rate(point.performance, market)),
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
    name: str, points: Sequence[MarketPoint], market: MarketTable, place: int
) -> dict[str, object]:
    colour, _, symbol = palette.style(place)
    hover = [
        f"{point.name}: {_rate(point.performance, market)}, "
        f"{amount(point.price_per_h, market.currency)} an hour"
        for point in points
    ]
    return figures.trace(
        name,
        [point.price_per_h for point in points],
        [point.performance for point in points],
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
