"""`nephoscope cost`: prices, cost per unit of work, saving by instance selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date as Date  # noqa: N812
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.commands import options, output
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.census.records import Census
    from nephoscope.cost.mix import Mix
    from nephoscope.cost.price_book import PriceBook

_BOOK = click.option(
    "--book",
    type=options.PATH,
    metavar="FILE",
    help="Price book, YAML or CSV [default: a few published prices].",
)
_DATE = click.option(
    "--date",
    "day",
    metavar="DATE",
    callback=lambda context, option, text: _day(text),
    help="Day of the prices [default: the latest].",
)


def _day(text: str | None) -> Date | None:
    try:
        return None if text is None else Date.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--date: '{text}' is no day.", "Write, for example, 2026-11-23."
        ) from None


@click.group(cls=options.InOrder)
def cost() -> None:
    """Compute prices, cost per unit of work and savings."""


@cost.command()
@_BOOK
@click.option(
    "--import",
    "bill",
    type=options.PATH,
    metavar="FILE.csv",
    help="Bill in the FOCUS format to take prices from.",
)
@click.option(
    "-o", "--output", "to", type=options.PATH, metavar="FILE", help="Price book to write (YAML)."
)
@options.JSON
def prices(book: Path | None, bill: Path | None, to: Path | None, as_json: bool) -> int:
    """List the prices of a price book, or take them from a bill."""
    from nephoscope.cost import focus, price_book, text

    if bill is not None and book is not None:
        raise UsageError("--book and --import exclude each other.", "Use one of them.")
    imported = None if bill is None else focus.read(bill)
    entries = price_book.load(book) if imported is None else imported.book
    if to is not None:
        _write_book(entries, to)
    document = {
        **entries.model_dump(mode="json", include={"offers", "egress"}),
        "used": None if imported is None else imported.used,
        "left_out": {} if imported is None else dict(imported.left_out),
    }
    return present(document, text.prices_section(entries, imported), as_json=as_json)


def _write_book(book: PriceBook, to: Path) -> None:
    import yaml

    text = yaml.safe_dump(book.model_dump(mode="json", exclude_defaults=True), sort_keys=False)
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
    from nephoscope.cost import price_book, text
    from nephoscope.cost.work import read

    costs = read(file, price_book.load(book))
    return present(costs, text.work_section(costs), to=to, source=str(file), as_json=as_json)


@cost.command()
@click.option(
    "--mix",
    "parts",
    multiple=True,
    metavar="MODEL=SHARE:SPEED",
    help="Model, its number of machines or percentage, and its speed; may be repeated.",
)
@click.option(
    "--machines",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Number of machines behind the percentages.",
)
@click.option("--study", metavar="NAME", help="Study whose published census to use.")
@click.option(
    "--import",
    "files",
    multiple=True,
    type=options.PATH,
    metavar="FILE.csv",
    help="CSV file of a census; may be repeated.",
)
@click.option("--type", "kind", metavar="NAME", help="Instance type of the census.")
@click.option("--benchmark", metavar="NAME", help="Benchmark of the census that gives the speeds.")
@click.option(
    "--speed",
    "speeds",
    multiple=True,
    metavar="MODEL=X",
    help="Speed of a model, instead of a benchmark's; may be repeated.",
)
@click.option(
    "--rest",
    metavar="SPEED",
    help="Speed of launches whose speed is unknown, or `normalise` to leave them out.",
)
@click.option("--keep", multiple=True, metavar="MODEL", help="Model to keep [default: fastest].")
@click.option("--offer", metavar="NAME", help="Offer of the price book.")
@click.option(
    "--price",
    metavar="X",
    help="Price of an hour, instead of an offer.",
)
@click.option(
    "--instances",
    type=click.IntRange(1, 1_000_000),
    default=1,
    show_default=True,
    metavar="N",
    help="Size of the job: instances of speed 1.",
)
@click.option(
    "--hours",
    default="730",
    show_default=True,
    metavar="H",
    help="Hours of the job at speed 1.",
)
@click.option(
    "--trial",
    metavar="TIME",
    default="2min",
    show_default=True,
    help="Time from a launch until its model is known, which is billed.",
)
@click.option(
    "--fleets",
    type=click.IntRange(0, 10_000_000),
    default=0,
    metavar="N",
    help="Number of fleets to simulate with each strategy [default: none].",
)
@_BOOK
@_DATE
@options.CONFIDENCE
@options.REPORT_FILE
@options.STORE
@options.JSON
def saving(to: Path | None, as_json: bool, fleets: int, **values: Any) -> int:
    """Estimate the saving by selecting instances of a fast CPU model.

    The mix of models is that of --mix, of a census (--import, --study) or of the stored runs.
    """
    from nephoscope.cost import text
    from nephoscope.cost.saving import analyse

    mix = _mix(values)
    analysis = analyse(
        mix,
        _job(values),
        rest=values["rest"],
        keep=values["keep"],
        confidence=options.confidence(values["confidence"]),
    )
    if fleets:
        from nephoscope.cost.fleets import simulate

        analysis = replace(analysis, fleets=tuple(simulate(analysis, fleets)))
    page = text.saving_section(analysis)
    return present(analysis, page, to=to, source=mix.source, as_json=as_json)


def _job(values: Mapping[str, Any]) -> Any:
    from nephoscope.cost import price_book
    from nephoscope.cost.mix import number
    from nephoscope.cost.saving import Job

    trial_s = options.seconds_of("--trial", values["trial"], (0, 86_400), "0 to 1 d")
    assert trial_s is not None
    trial_h, currency, price = trial_s / 3600, "USD", 0.0
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
    from nephoscope.cost import mix

    if sum(map(bool, (values["parts"], values["files"], values["study"]))) > 1:
        raise UsageError("--mix, --import and --study exclude each other.", "Use one of them.")
    if values["parts"]:
        if values["speeds"] or values["kind"] or values["benchmark"]:
            raise UsageError(
                "--speed, --type and --benchmark are of a census.", "Write the speed into --mix."
            )
        return mix.stated(values["parts"], values["machines"])
    if values["machines"] is not None:
        raise UsageError("--machines is the number behind percentages.", "Use it with --mix.")
    return mix.of_census(
        _census(values),
        kind=values["kind"],
        benchmark=values["benchmark"],
        speeds=options.sets(values["speeds"], "--speed"),
    )


def _census(values: Mapping[str, Any]) -> Census:
    from nephoscope.census import command as census
    from nephoscope.census.result import of_files

    level = options.confidence(values["confidence"])
    if values["study"] is not None:
        return census.of_study(values["study"], level)
    if values["files"]:
        return of_files(values["files"], confidence=level)
    from nephoscope.store import Store

    store = Store(values["store"])
    return census.of_runs(census.stored_runs(store), store, level)
