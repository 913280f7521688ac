"""Imports a folder of server types and their prices into a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from nephoscope.features.market import prices
from nephoscope.features.market.import_records import MarketImport
from nephoscope.store.imports.inspector import Progress, import_tree
from nephoscope.store.market.catalogue import MarketCatalogue


def import_types(
    folder: Path, price_files: Sequence[Path], store: Path, note: Progress
) -> MarketImport:
    """Returns what was imported. Prices come first: a wrong list costs no time."""
    listed = prices.read_files(price_files) if price_files else None
    result = asdict(import_tree(folder, store, note=note))
    result["left_out"] = tuple(result["left_out"])
    if listed is None:
        return MarketImport(**result)
    prices.store_prices(store, listed)
    catalogue = MarketCatalogue.of_store(store)
    known = {(each.provider, each.name.lower()) for each in catalogue.types} if catalogue else set()
    priced = {(offer.provider, offer.type.lower()) for offer in listed.offers}
    return MarketImport(
        **result,
        prices=len(listed.offers),
        prices_matched=len(known & priced),
        prices_left_out=dict(listed.left_out),
    )
