"""The table of server types: figures joined with prices, filtered, the cheapest first."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.features.market.prices import PriceList, latest_by_region
from nephoscope.features.market.records import (
    MarketPoint,
    MarketRow,
    MarketTable,
    PricedOffer,
)
from nephoscope.features.market.works import (
    PricedWork,
    WorkShare,
    parse_shares,
    title_of,
    unit_words,
    units_of_price,
    work_of,
)
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import LACKS, ServerType

_MOST_POINTS = 4_000
_NEARLY = 0.9
"""Types with so much of the wanted memory are named: 8 GB are 7.5 GiB."""


@dataclass(frozen=True, slots=True)
class MarketRequest:
    """Conditions of a table; empty ones and None are none. price_below: of an hour.

    minimum: work -> least rate. architectures, providers, regions: any of them. cpu_model,
    gpu_model: parts of the name.
    """

    works: Sequence[str] = ()
    metrics: Sequence[str] = ()
    providers: Sequence[str] = ()
    regions: Sequence[str] = ()
    architectures: Sequence[str] = ()
    cpus: int = 0
    memory_bytes: int = 0
    gpus: int = 0
    cpu_model: str = ""
    gpu_model: str = ""
    price_below: float | None = None
    minimum: Mapping[str, float] = field(default_factory=dict)
    purchase: str = "on_demand"
    currency: str = ""
    every_region: bool = False
    top: int | None = 20


_ARCHITECTURES: Mapping[str, str] = {"arm": "aarch64", "arm64": "aarch64", "amd64": "x86_64"}


def build(catalogue: MarketCatalogue, prices: PriceList, request: MarketRequest) -> MarketTable:
    """Returns the table. UsageError for a name that nothing has."""
    metrics = catalogue.metadata.metrics
    shares = parse_shares(request.works, metrics)
    further_works = [work_of(name, metrics, "--metric") for name in request.metrics]
    least = {work_of(name, metrics, "--minimum"): rate for name, rate in request.minimum.items()}
    used = {share.work.metric for share in shares} | {
        work.metric for work in (*further_works, *least)
    }
    figures = {name: each.tolist() for name, each in catalogue.values(used).items()}
    _check_names(catalogue.types, request)
    currency, offers, notes = _offers_by_type(prices, request)
    notes = [
        *dict.fromkeys(share.work.condition for share in shares if share.work.condition),
        *notes,
    ]
    left_out: Counter[str] = Counter()
    conditions = list(_conditions(request))
    rows: list[MarketRow] = []
    nearly = 0
    for index, server in enumerate(catalogue.types):
        reason = next((why for why, holds in conditions if not holds(server)), "")
        if reason:
            left_out[reason] += 1
            nearly += reason == "with less memory" and _is_nearly(server, request)
            continue
        per_h = _units_per_h(shares, figures, index)
        if per_h is None:
            left_out["without a figure of this work"] += 1
            continue
        if any(not figures[work.metric][index] >= rate for work, rate in least.items()):
            left_out["below --minimum"] += 1
            continue
        priced = list(_priced(server, offers, request, left_out)) if offers else [(None, "", "")]
        rate = figures[shares[0].work.metric][index] if len(shares) == 1 else per_h
        further = {work.name: _finite(figures[work.metric][index]) for work in further_works}
        sold_per_h = per_h / units_of_price(shares)
        rows += [_row(server, price, rate, sold_per_h, further) for price in priced]
    rows.sort(key=lambda row: (_cost(row), -row.performance, row.provider, row.type, row.region))
    rows = _with_front(rows)
    if nearly:
        notes.append(
            f"{nearly:,} types have 90 % or more of the memory, as sizes in GB have in GiB: a "
            "lower --memory includes them."
        )
    return MarketTable(
        title_of(shares),
        shares[0].unit if len(shares) == 1 else "per_h",
        unit_words(shares),
        currency,
        request.purchase,
        tuple(rows[: request.top]),
        len(rows),
        len(catalogue.types),
        dict(left_out.most_common()),
        {work.name: metrics[work.metric].unit for work in further_works},
        tuple(_points(rows)),
        _sources(catalogue, rows, prices),
        LACKS,
        tuple(notes),
    )


def _conditions(
    request: MarketRequest,
) -> Iterator[tuple[str, Callable[[ServerType], bool]]]:
    """Yields why a type is left out, and whether it may stay."""
    architectures = {_ARCHITECTURES.get(each, each) for each in request.architectures}
    model, gpu = request.cpu_model.lower(), request.gpu_model.lower()
    if request.providers:
        yield "of another provider", lambda server: server.provider in request.providers
    if architectures:
        yield "of another architecture", lambda server: server.architecture in architectures
    if request.cpus:
        yield "with fewer CPUs", lambda server: (server.cpus or 0) >= request.cpus
    if request.memory_bytes:
        yield (
            "without a known memory",
            lambda server: server.memory_bytes is not None,
        )
        yield "with less memory", lambda server: (server.memory_bytes or 0) >= request.memory_bytes
    if request.gpus:
        yield "with fewer GPUs", lambda server: server.gpus >= request.gpus
    if model:
        yield "with another CPU model", lambda server: model in server.cpu_model.lower()
    if gpu:
        yield "with another GPU", lambda server: gpu in server.gpu_model.lower()


def _is_nearly(server: ServerType, request: MarketRequest) -> bool:
    return (server.memory_bytes or 0) >= _NEARLY * request.memory_bytes


def _check_names(types: Sequence[ServerType], request: MarketRequest) -> None:
    known = sorted({server.provider for server in types})
    for name in request.providers:
        if name not in known:
            raise UsageError(
                f"--provider: no imported type is of '{name[:40]}'{did_you_mean(name, known)}.",
                f"Providers: {listed(known, 20)}.",
            )


def _offers_by_type(
    prices: PriceList, request: MarketRequest
) -> tuple[str, dict[tuple[str, str], list[PricedOffer]], list[str]]:
    """Returns the currency, the offers of each type in lower case, and sentences on both."""
    notes = list(prices.notes)
    counts = Counter(offer.currency for offer in prices.offers)
    currency = request.currency or (counts.most_common(1)[0][0] if counts else "")
    if counts and currency not in counts:
        raise UsageError(
            f"--currency: there is no price in {currency}.", f"Prices are in {listed(counts)}."
        )
    if len(counts) > 1:
        rest = sum(counts.values()) - counts[currency]
        notes.append(
            f"{rest:,} prices in other currencies are not used, because nothing states a rate of "
            "exchange; --currency selects another one."
        )
    regions = {offer.region for offer in prices.offers}
    for name in request.regions:
        if counts and name not in regions:
            raise UsageError(
                f"--region: there is no price in '{name[:40]}'{did_you_mean(name, regions)}.",
                f"Regions: {listed(sorted(regions), 20)}.",
            )
    offers: dict[tuple[str, str], list[PricedOffer]] = defaultdict(list)
    for offer in prices.offers:
        if offer.currency == currency and (not request.regions or offer.region in request.regions):
            offers[(offer.provider, offer.type.lower())].append(offer)
    return currency, offers, notes


def _priced(
    server: ServerType,
    offers: Mapping[tuple[str, str], list[PricedOffer]],
    request: MarketRequest,
    left_out: Counter[str],
) -> Iterator[tuple[float, str, str]]:
    """Yields price, region and date of the offers of a type: of its cheapest region, or of all."""
    name = server.name.lower()
    own = [*offers.get((server.provider, name), ()), *offers.get(("", name), ())]
    latest = latest_by_region(own, request.purchase)
    if not latest:
        left_out["without a price"] += 1
        return
    sold = sorted((price, region, date) for region, (date, price) in latest.items())
    limit = math.inf if request.price_below is None else request.price_below
    cheap = [each for each in sold if each[0] <= limit]
    if not cheap:
        left_out["above the price"] += 1
    yield from cheap if request.every_region else cheap[:1]


def _units_per_h(
    shares: Sequence[WorkShare], figures: Mapping[str, Sequence[float]], index: int
) -> float | None:
    """Returns the units of work that a machine does in an hour, one after the other."""
    seconds = sum(share.count / figures[share.work.metric][index] for share in shares)
    return 3600 / seconds if math.isfinite(seconds) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _row(
    server: ServerType,
    price: tuple[float | None, str, str],
    performance: float,
    per_h: float,
    metrics: Mapping[str, float | None],
) -> MarketRow:
    hourly, region, date = price
    return MarketRow(
        server.provider,
        server.name,
        region,
        server.cpus,
        server.memory_bytes,
        server.architecture,
        server.cpu_model,
        server.gpus,
        server.gpu_model,
        hourly,
        date,
        performance,
        None if hourly is None else hourly / per_h,
        False,
        metrics,
    )


def _cost(row: MarketRow) -> float:
    return math.inf if row.cost_per_unit is None else row.cost_per_unit


def _with_front(rows: Sequence[MarketRow]) -> list[MarketRow]:
    """Returns the rows, with those that no other one beats in price and performance marked."""
    front: set[int] = set()
    best = (math.inf, -math.inf)
    by_price = sorted(
        (row.price_per_h, -row.performance, place)
        for place, row in enumerate(rows)
        if row.price_per_h is not None
    )
    for price, negative, place in by_price:
        if -negative > best[1] or (price, -negative) == best:
            best = (price, -negative)
            front.add(place)
    return [
        replace(row, on_front=True) if place in front else row for place, row in enumerate(rows)
    ]


def _points(rows: Sequence[MarketRow]) -> Iterator[MarketPoint]:
    """Yields the front in order of price, and as many other rows as a scatter can show."""
    priced = [(row, row.price_per_h) for row in rows if row.price_per_h is not None]
    front = sorted((each for each in priced if each[0].on_front), key=lambda each: each[1])
    rest = [each for each in priced if not each[0].on_front][:_MOST_POINTS]
    for row, price in (*front, *rest):
        name = f"{row.provider}/{row.type} {row.region}".strip()
        yield MarketPoint(name, price, row.performance, row.on_front)


def _sources(
    catalogue: MarketCatalogue, rows: Sequence[MarketRow], prices: PriceList
) -> tuple[str, ...]:
    tools = sorted({str(each.get("tool")) for each in catalogue.metadata.sources.values()})
    dates = sorted({row.price_date for row in rows if row.price_date})
    names = sorted({offer.source for offer in prices.offers})
    stated = [f"Figures: {listed(tools)}."]
    if dates:
        days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        stated.append(f"Prices of {days}: {listed(names, 3)}.")
    return tuple(stated)


def works_of(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Returns the works whose metric was imported, by name."""
    from nephoscope.features.market.works import WORKS

    known: Sequence[PricedWork] = [work for work in WORKS if work.metric in metrics]
    return {work.name: f"{work.title} ({work.metric})" for work in known}


def size_text(value: int | None) -> str | None:
    """Returns a memory in GiB."""
    return None if value is None else f"{units.format_number(value / 2**30)} GiB"
