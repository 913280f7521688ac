"""`nephoscope cost`: prices, cost per unit of work, saving by instance selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date as Date  # noqa: N812
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command, group
from nephoscope.cli.kit.documents import Rows
from nephoscope.cli.kit.options import (
    CSV_FILE,
    FILE,
    Count,
    Parsed,
    argument,
    duration,
    option,
    repeated,
)
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import PRICE_BOOK

if TYPE_CHECKING:
    from nephoscope.features.census.records import Census
    from nephoscope.features.cost.mix import Mix
    from nephoscope.features.cost.price_records import PriceBook

_BOOK = option(
    "--book",
    FILE,
    "Price book (YAML or CSV), or a price list in JSON of AWS, Azure Retail Prices or "
    "ec2instances.info [default: a few published prices].",
)


def _day(text: str) -> Date:
    try:
        return Date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"'{text}' is no day.", "Write, for example, 2026-11-23.") from None


@dataclass(frozen=True, slots=True)
class Prices:
    """Offers and egress prices of a book.

    used: rows of a bill or price list behind them; left_out: reason -> rows that are not used;
    notes: what was assumed.
    """

    offers: Rows
    egress: Rows
    used: int | None
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


@group()
def cost() -> None:
    """Compute prices, cost per unit of work and savings."""


@dataclass(frozen=True, slots=True)
class _CostPricesArguments:
    book: Path | None = _BOOK
    bill: Path | None = option(
        "--import", FILE, "Bill in the FOCUS format (CSV), or a price list, to take prices from."
    )
    to: Path | None = option("-o --output", FILE, "Price book to write (YAML).")
    as_json: bool = options.JSON


@command(
    cost,
    prints=Document("prices", Prices),
    requests=Query(),
    examples=(
        "",
        "--book prices.yaml",
    ),
)
def prices(args: _CostPricesArguments) -> int:
    """List the prices of a price book, or take them from a bill."""
    from nephoscope.features.cost import focus, price_book, price_lists, section

    if args.bill is not None and args.book is not None:
        raise UsageError("--book and --import exclude each other.", "Use one of them.")
    file = args.book if args.bill is None else args.bill
    imported = None if file is None else price_lists.read(file)
    if args.bill is not None and imported is None:
        imported = focus.read(args.bill)
    entries = price_book.load(args.book) if imported is None else imported.book
    if args.to is not None:
        _write_book(entries, args.to)
    document = {
        **entries.model_dump(mode="json", include={"offers", "egress"}),
        "used": None if imported is None else imported.used,
        "left_out": {} if imported is None else dict(imported.left_out),
        "notes": [] if imported is None else list(imported.notes),
    }
    return present(document, section.prices_section(entries, imported), as_json=args.as_json)


def _write_book(book: PriceBook, to: Path) -> None:
    import yaml

    # A file that another version may read states its version, though that is the default.
    values = book.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump({"version": PRICE_BOOK.version, **values}, sort_keys=False)
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {to}: {error.strerror}.", "Name another file.") from error
    output.log(f"Written: {to}")


@dataclass(frozen=True, slots=True)
class _CostWorkArguments:
    file: Path = argument(options.PATH)
    book: Path | None = _BOOK
    to: Path | None = options.REPORT_FILE
    as_json: bool = options.JSON


@command(
    cost,
    prints=Document("cost_of_work", ".features.cost.work:WorkCosts"),
    requests=Query(),
    examples=(
        "options.yaml",
        "options.yaml --book prices.yaml -o cost.html",
    ),
)
def work(args: _CostWorkArguments) -> int:
    """Compare the cost of a unit of work of several options.

    FILE is a YAML file of options; docs/how-to/cost.md describes it.
    """
    from nephoscope.features.cost import price_book, section
    from nephoscope.features.cost.work import read

    costs = read(args.file, price_book.load(args.book))
    return present(
        costs, section.work_section(costs), to=args.to, source=str(args.file), as_json=args.as_json
    )


@dataclass(frozen=True, slots=True)
class _CostSavingArguments:
    parts: tuple[str, ...] = repeated(
        "--mix",
        "MODEL=SHARE:SPEED",
        "CPU model, its number of machines or percentage, and its speed.",
    )
    machines: int | None = option(
        "--machines", Count(1, 10**9), "Number of machines behind the percentages."
    )
    study: str | None = option("--study", "NAME", "Study whose published census to use.")
    files: tuple[Path, ...] = repeated("--import", CSV_FILE, "CSV file of a census.")
    kind: str | None = option("--type", "NAME", "Instance type of the census.")
    benchmark: str | None = option(
        "--benchmark", "NAME", "Benchmark of the census that gives the speeds."
    )
    speeds: tuple[str, ...] = repeated(
        "--speed", "MODEL=X", "Speed of a model, instead of a benchmark's."
    )
    rest: str | None = option(
        "--rest",
        "SPEED",
        "Speed of launches whose speed is unknown, or `normalise` to leave them out.",
    )
    keep: tuple[str, ...] = repeated("--keep", "MODEL", "CPU model to keep [default: the fastest].")
    offer: str | None = option("--offer", "NAME", "Offer of the price book.")
    price: str | None = option(
        "--price", "X", "Price of an instance per hour, instead of an offer."
    )
    instances: int = option(
        "--instances", Count(1, 1_000_000), "Size of the job: instances of speed 1.", default=1
    )
    hours: str = option("--hours", "H", "Hours of the job at speed 1.", default="730")
    trial_s: float = option(
        "--trial",
        duration("0 s", "1 d"),
        "Time from a launch until its model is known, which is billed.",
        default="2min",
    )
    fleets: int = option(
        "--fleets",
        Count(0, 10_000_000),
        "Number of fleets to simulate with each strategy [default: none].",
        default=0,
        show_default=False,
    )
    book: Path | None = _BOOK
    day: Any = option("--date", Parsed("DATE", _day), "Day of the prices [default: the latest].")
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cost,
    prints=Document("saving", ".features.cost.saving:SavingAnalysis"),
    requests=Query(),
    examples=(
        "--mix fast=10%:1.5 --mix slow=90%:1 --machines 100 --price 0.34",
        "--mix fast=4:1.5 --mix slow=6:1 --price 0.34 --fleets 1000",
    ),
)
def saving(args: _CostSavingArguments) -> int:
    """Estimate the saving by selecting instances of a fast CPU model.

    The mix of models is that of --mix, of a census (--import, --study) or of the stored runs.
    """
    from nephoscope.features.cost import section
    from nephoscope.features.cost.saving import analyse

    mix = _mix(args)
    analysis = analyse(mix, _job(args), rest=args.rest, keep=args.keep, confidence=args.confidence)
    if args.fleets:
        from nephoscope.features.cost.fleets import simulate

        analysis = replace(analysis, fleets=tuple(simulate(analysis, args.fleets)))
    page = section.saving_section(analysis)
    return present(analysis, page, to=args.to, source=mix.source, as_json=args.as_json)


def _job(args: _CostSavingArguments) -> Any:
    from nephoscope.features.cost import price_book
    from nephoscope.features.cost.mix import number
    from nephoscope.features.cost.saving import Job

    trial_h, currency, price = args.trial_s / 3600, "USD", 0.0
    if (args.offer is None) == (args.price is None):
        raise UsageError("The saving needs a price.", "Use --price X or --offer NAME.")
    if args.price is not None:
        price = number("--price", args.price, "a price above 0")
    if args.offer is not None:
        offer = price_book.load(args.book).offer(args.offer, args.day)
        price, currency = offer.price("on_demand") + offer.licence_per_h, offer.currency
        trial_h = offer.billed_h(trial_h)
    hours = number("--hours", args.hours, "a number of hours above 0")
    return Job(args.instances, hours, price, trial_h, currency)


def _mix(args: _CostSavingArguments) -> Mix:
    from nephoscope.features.cost import mix

    if sum(map(bool, (args.parts, args.files, args.study))) > 1:
        raise UsageError("--mix, --import and --study exclude each other.", "Use one of them.")
    if args.parts:
        if args.speeds or args.kind or args.benchmark:
            raise UsageError(
                "--speed, --type and --benchmark select values of a census, which --mix replaces.",
                "Write the speed into --mix.",
            )
        return mix.stated(args.parts, args.machines)
    if args.machines is not None:
        raise UsageError(
            "--machines is the number of machines behind the percentages of --mix.", "Add --mix."
        )
    return mix.of_census(
        _census(args),
        kind=args.kind,
        benchmark=args.benchmark,
        speeds=options.sets(args.speeds, "--speed E5430=1.1"),
    )


def _census(args: _CostSavingArguments) -> Census:
    from nephoscope.features.census import command as census
    from nephoscope.features.census.result import of_files
    from nephoscope.features.cost.mix import NO_CENSUS

    level = args.confidence
    if args.study is not None:
        return census.of_study(args.study, level)
    if args.files:
        return of_files(args.files, confidence=level)
    from nephoscope.store import Store

    store = Store(args.store)
    try:
        return census.of_runs(census.stored_runs(store), store, level)
    except UsageError as error:
        raise UsageError(error.message, NO_CENSUS) from error
