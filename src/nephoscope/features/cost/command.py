"""`nephoscope cost`: prices, cost per unit of work, saving by instance selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date as Date  # noqa: N812
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.options import CSV_FILE, FILE, Count, Parsed, duration, option, repeated
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


@click.group(cls=options.InOrder)
def cost() -> None:
    """Compute prices, cost per unit of work and savings."""


@cost.command()
@_BOOK
@option(
    "--import bill",
    FILE,
    "Bill in the FOCUS format (CSV), or a price list, to take prices from.",
)
@option("-o --output to", FILE, "Price book to write (YAML).")
@options.JSON
def prices(book: Path | None, bill: Path | None, to: Path | None, as_json: bool) -> int:
    """List the prices of a price book, or take them from a bill."""
    from nephoscope.features.cost import focus, price_book, price_lists, text

    if bill is not None and book is not None:
        raise UsageError("--book and --import exclude each other.", "Use one of them.")
    file = book if bill is None else bill
    imported = None if file is None else price_lists.read(file)
    if bill is not None and imported is None:
        imported = focus.read(bill)
    entries = price_book.load(book) if imported is None else imported.book
    if to is not None:
        _write_book(entries, to)
    document = {
        **entries.model_dump(mode="json", include={"offers", "egress"}),
        "used": None if imported is None else imported.used,
        "left_out": {} if imported is None else dict(imported.left_out),
        "notes": [] if imported is None else list(imported.notes),
    }
    return present(document, text.prices_section(entries, imported), as_json=as_json)


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


@cost.command()
@click.argument("file", type=options.PATH)
@_BOOK
@options.REPORT_FILE
@options.JSON
def work(file: Path, book: Path | None, to: Path | None, as_json: bool) -> int:
    """Compare the cost of a unit of work of several options.

    FILE is a YAML file of options; docs/how-to/cost.md describes it.
    """
    from nephoscope.features.cost import price_book, text
    from nephoscope.features.cost.work import read

    costs = read(file, price_book.load(book))
    return present(costs, text.work_section(costs), to=to, source=str(file), as_json=as_json)


@cost.command()
@repeated(
    "--mix parts",
    "MODEL=SHARE:SPEED",
    "CPU model, its number of machines or percentage, and its speed.",
)
@option("--machines", Count(1, 10**9), "Number of machines behind the percentages.")
@option("--study", "NAME", "Study whose published census to use.")
@repeated("--import files", CSV_FILE, "CSV file of a census.")
@option("--type kind", "NAME", "Instance type of the census.")
@option("--benchmark", "NAME", "Benchmark of the census that gives the speeds.")
@repeated("--speed speeds", "MODEL=X", "Speed of a model, instead of a benchmark's.")
@option(
    "--rest", "SPEED", "Speed of launches whose speed is unknown, or `normalise` to leave them out."
)
@repeated("--keep", "MODEL", "CPU model to keep [default: the fastest].")
@option("--offer", "NAME", "Offer of the price book.")
@option("--price", "X", "Price of an instance per hour, instead of an offer.")
@option("--instances", Count(1, 1_000_000), "Size of the job: instances of speed 1.", default=1)
@option("--hours", "H", "Hours of the job at speed 1.", default="730")
@option(
    "--trial trial_s",
    duration("0 s", "1 d"),
    "Time from a launch until its model is known, which is billed.",
    default="2min",
)
@option(
    "--fleets",
    Count(0, 10_000_000),
    "Number of fleets to simulate with each strategy [default: none].",
    default=0,
    show_default=False,
)
@_BOOK
@option("--date day", Parsed("DATE", _day), "Day of the prices [default: the latest].")
@options.CONFIDENCE
@options.REPORT_FILE
@options.STORE
@options.JSON
def saving(to: Path | None, as_json: bool, fleets: int, **values: Any) -> int:
    """Estimate the saving by selecting instances of a fast CPU model.

    The mix of models is that of --mix, of a census (--import, --study) or of the stored runs.
    """
    from nephoscope.features.cost import text
    from nephoscope.features.cost.saving import analyse

    mix = _mix(values)
    analysis = analyse(
        mix,
        _job(values),
        rest=values["rest"],
        keep=values["keep"],
        confidence=values["confidence"],
    )
    if fleets:
        from nephoscope.features.cost.fleets import simulate

        analysis = replace(analysis, fleets=tuple(simulate(analysis, fleets)))
    page = text.saving_section(analysis)
    return present(analysis, page, to=to, source=mix.source, as_json=as_json)


def _job(values: Mapping[str, Any]) -> Any:
    from nephoscope.features.cost import price_book
    from nephoscope.features.cost.mix import number
    from nephoscope.features.cost.saving import Job

    trial_h, currency, price = values["trial_s"] / 3600, "USD", 0.0
    if (values["offer"] is None) == (values["price"] is None):
        raise UsageError("The saving needs a price.", "Use --price X or --offer NAME.")
    if values["price"] is not None:
        price = number("--price", values["price"], "a price above 0")
    else:
        offer = price_book.load(values["book"]).offer(values["offer"], values["day"])
        price, currency = offer.price("on_demand") + offer.licence_per_h, offer.currency
        trial_h = offer.billed_h(trial_h)
    hours = number("--hours", values["hours"], "a number of hours above 0")
    return Job(values["instances"], hours, price, trial_h, currency)


def _mix(values: Mapping[str, Any]) -> Mix:
    from nephoscope.features.cost import mix

    if sum(map(bool, (values["parts"], values["files"], values["study"]))) > 1:
        raise UsageError("--mix, --import and --study exclude each other.", "Use one of them.")
    if values["parts"]:
        if values["speeds"] or values["kind"] or values["benchmark"]:
            raise UsageError(
                "--speed, --type and --benchmark select values of a census, which --mix replaces.",
                "Write the speed into --mix.",
            )
        return mix.stated(values["parts"], values["machines"])
    if values["machines"] is not None:
        raise UsageError(
            "--machines is the number of machines behind the percentages of --mix.", "Add --mix."
        )
    return mix.of_census(
        _census(values),
        kind=values["kind"],
        benchmark=values["benchmark"],
        speeds=options.sets(values["speeds"], "--speed E5430=1.1"),
    )


def _census(values: Mapping[str, Any]) -> Census:
    from nephoscope.features.census import command as census
    from nephoscope.features.census.result import of_files
    from nephoscope.features.cost.mix import NO_CENSUS

    level = values["confidence"]
    if values["study"] is not None:
        return census.of_study(values["study"], level)
    if values["files"]:
        return of_files(values["files"], confidence=level)
    from nephoscope.store import Store

    store = Store(values["store"])
    try:
        return census.of_runs(census.stored_runs(store), store, level)
    except UsageError as error:
        raise UsageError(error.message, NO_CENSUS) from error
