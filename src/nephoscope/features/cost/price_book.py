"""The price book: dated, sourced prices of offers and of transfers, from YAML or CSV.

A book is a file. Prices of the same name and different dates may stand side by side: the latest
one up to a day holds. Prices of different currencies are never added or compared.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import recordfile, textfile
from nephoscope.features.cost import price_lists
from nephoscope.features.cost.price_records import Offer, PriceBook, offer_of

_NEEDED = ("name", "currency", "date", "source")
"""Columns of a book in CSV that there must be."""

STARTER = "prices.yaml"
"""The book that comes with the package."""


def load(file: Path | None) -> PriceBook:
    """Returns the book in a YAML or CSV file or of a published price list in JSON.

    Without a file it is the one of the package.
    """
    if file is None:
        with resources.as_file(resources.files("nephoscope.features.cost") / STARTER) as starter:
            return recordfile.load(starter, PriceBook, "price book")
    if listed := price_lists.read(file):
        return listed.book
    if file.suffix != ".csv":
        return recordfile.load(file, PriceBook, "price book")
    values = {"offers": offers_of_csv(file)}
    return recordfile.validated(values, PriceBook, lambda loc: f"{file}: ")


def offers_of_csv(file: Path) -> tuple[Offer, ...]:
    """Returns the offers of a CSV file, also of one name in several regions. Raises UsageError."""
    text = textfile.read(file, "price book", UsageError)
    offers = tuple(
        offer_of({name: cell for name, cell in row.items() if cell}, f"{where}: ")
        for where, row in textfile.csv_records(text, str(file), Offer.model_fields, _NEEDED)
    )
    if not offers:
        raise UsageError(
            f"{file}: there is no header, or no price below it.",
            f"Columns: {', '.join(Offer.model_fields)}.",
        )
    return offers
