"""`nephoscope market`: server types by the price of a unit of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import Count, FiniteRange, flag, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

NOTHING = (
    "No server types were imported.",
    "Clone SpareCores/sc-inspector-data and run `nephoscope import sc-inspector-data`.",
)


def _minimum(texts: Sequence[str]) -> Mapping[str, float]:
    values = {}
    for name, text in options.sets(texts, "--minimum redis=500000").items():
        try:
            rate = float(text)
        except ValueError:
            rate = -1.0
        if not 0 < rate < 1e18:
            raise UsageError(
                f"--minimum takes NAME=RATE with a number above 0, not '{text[:40]}'.",
                "Use, for example, --minimum redis=500000.",
            )
        values[name] = rate
    return values


@dataclass(frozen=True, slots=True)
class _MarketArguments:
    works: Sequence[str] = repeated(
        "--work",
        "NAME[=COUNT]",
        "Work to buy, e.g. redis; with several, how much of each a unit consists of "
        "[default: geekbench].",
    )
    metrics: Sequence[str] = repeated("--metric", "NAME", "Further work or metric to show.")
    providers: Sequence[str] = repeated("--provider", "NAME", "Provider of the types.")
    regions: Sequence[str] = repeated("--region", "NAME", "Region of the prices.")
    architectures: Sequence[str] = repeated(
        "--architecture",
        click.Choice(["x86_64", "aarch64", "amd64", "arm64", "arm"]),
        "CPU architecture.",
    )
    cpus: int = option(
        "--cpus", Count(0, 100_000), "Minimum number of CPUs.", default=0, show_default=False
    )
    memory: int | None = option("--memory", options.SIZE, "Minimum memory, e.g. 8GiB.")
    gpus: int = option(
        "--gpus", Count(0, 1000), "Minimum number of GPUs.", default=0, show_default=False
    )
    cpu_model: str = option("--cpu-model", "TEXT", "Part of the name of the CPU model.", default="")
    gpu_model: str = option("--gpu-model", "TEXT", "Part of the name of the GPU model.", default="")
    price_below: float | None = option(
        "--price-below", FiniteRange(0, 1e9, min_open=True), "Maximum price of an hour."
    )
    minimum: Mapping[str, float] = repeated(
        "--minimum",
        "NAME=RATE",
        "Minimum rate of a work or metric, e.g. redis=500000.",
        callback=lambda context, parameter, texts: _minimum(texts),
    )
    purchase: str = option(
        "--purchase",
        click.Choice(["on_demand", "spot"]),
        "Kind of price.",
        default="on_demand",
    )
    currency: str = option(
        "--currency", "CODE", "Currency of the prices [default: the most frequent].", default=""
    )
    every_region: bool = flag(
        "--every-region", "Show each region, not only the cheapest of a type."
    )
    prices: Sequence[Path] = repeated(
        "--prices", options.PATH, "Price list to use instead of the imported prices.", is_local=True
    )
    top: int = option(
        "--top", Count(1, 100_000), "Number of rows to show.", default=20, show_default=True
    )
    listing: bool = flag("--list", "List the works and metrics that can be named.")
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints={
        "": Document("market", ".features.market.records:MarketTable"),
        "--list": Document("market_listing", ".features.market.records:MarketListing"),
    },
    requests=Query(),
    examples=(
        "--list",
        "--work redis --memory 8GiB --top 10",
    ),
)
def market(args: _MarketArguments) -> int:
    """Find the server type that does your work for the least money.

    The types are those of published measurements that were imported (`nephoscope import`), the
    prices those of `import --prices` or --prices: a FOCUS bill, an AWS price list, a response of
    Azure Retail Prices, Spare Cores' database, or a price book in CSV or YAML.
    """
    from nephoscope.features.market import prices, table
    from nephoscope.features.market.section import PRINTED, listing_section, market_section
    from nephoscope.report import files
    from nephoscope.store import Store
    from nephoscope.store.market.catalogue import MarketCatalogue

    store = Store(args.store).path
    catalogue = MarketCatalogue.of_store(store)
    if catalogue is None:
        raise UsageError(*NOTHING)
    if args.listing:
        listing = _listing(catalogue)
        return present(listing, listing_section(listing), as_json=args.as_json, to=args.to)
    listed = prices.read_files(args.prices) if args.prices else prices.stored_prices(store)
    if args.price_below is not None and not listed.offers:
        raise UsageError(
            "--price-below needs prices, and none were imported.", "Add --prices FILE."
        )
    result = table.build(catalogue, listed, _request(args))
    code = present(result, market_section(result, PRINTED), as_json=args.as_json)
    if args.to is not None:
        page = market_section(result)
        files.write([args.to], page.title, result.title, [page], result, "Name another file.")
        output.log(f"Written: {args.to}")
    return code


def _request(args: _MarketArguments) -> Any:
    from nephoscope.features.market.table import MarketRequest

    return MarketRequest(
        args.works,
        args.metrics,
        args.providers,
        args.regions,
        args.architectures,
        args.cpus,
        args.memory or 0,
        args.gpus,
        args.cpu_model,
        args.gpu_model,
        args.price_below,
        args.minimum,
        args.purchase,
        args.currency.upper(),
        args.every_region,
        args.top,
    )


def _listing(catalogue: Any) -> Any:
    from nephoscope.features.market.records import MarketListing
    from nephoscope.features.market.table import works_of
    from nephoscope.store.market.records import LACKS

    metrics = catalogue.metadata.metrics
    return MarketListing(
        works_of(metrics),
        {name: metrics[name].unit for name in sorted(metrics)},
        len(catalogue.types),
        catalogue.figures,
        LACKS,
    )
