"""Prices of server types: price books, FOCUS bills, published lists, Spare Cores' database.

What an import reads is stored in STORE/market/prices.json.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope import __version__
from nephoscope.core import limits
from nephoscope.core.errors import LaterFormat, StoreError, UsageError
from nephoscope.core.format_versions import MARKET
from nephoscope.core.reading import jsontext, regular
from nephoscope.features.market.records import PricedOffer
from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.store.imports.source import DATABASE
from nephoscope.store.market.catalogue import folder_of

if TYPE_CHECKING:
    import sqlite3

    from nephoscope.features.cost.price_records import Offer

ALIASES: Mapping[str, str] = {
    "amazon-web-services": "aws",
    "amazon": "aws",
    "ec2": "aws",
    "microsoft": "azure",
    "microsoft-azure": "azure",
    "google": "gcp",
    "google-cloud": "gcp",
    "google-cloud-platform": "gcp",
    "gce": "gcp",
    "hetzner-cloud": "hcloud",
    "ovhcloud": "ovh",
    "alibaba-cloud": "alicloud",
}
"""Names that bills and price lists have for providers -> those of the measurements."""
_MOST_OFFERS = 2_000_000
_STEPS, _MOST_CALLS = 10_000, 200_000
"""A database is asked to stop after 2 thousand million steps."""


@dataclass(slots=True)
class PriceList:
    """Prices that were read. left_out: reason -> rows. notes: sentences on what was assumed."""

    offers: list[PricedOffer] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def read_files(files: Sequence[Path]) -> PriceList:
    """Returns the prices of all files. UsageError for a file that has none."""
    whole = PriceList()
    for file in files:
        part = _read(file)
        if not part.offers:
            reasons = ", ".join(f"{n:,} {why}" for why, n in part.left_out.items()) or "no rows"
            raise UsageError(
                f"{file}: there is no price per hour of a server type ({reasons}).",
                "docs/how-to/market.md describes the price lists that are read.",
            )
        whole.offers += part.offers
        whole.left_out += part.left_out
        whole.notes += part.notes
    return whole


def _read(file: Path) -> PriceList:
    # Stored prices need none of these readers, whose models take longer to import than a table.
    from nephoscope.features.cost import focus, price_book, price_lists

    try:
        with regular.open_regular(file, pipe=False) as stream:
            head = stream.read(4096)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file.", "Check the path.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error
    if head.startswith(DATABASE):
        return _of_database(file)
    if b"ChargeCategory" in head.partition(b"\n")[0]:
        listed = focus.read(file)
        return _of_offers(listed.book.offers, listed.left_out, listed.notes)
    published = price_lists.read(file)
    if published is not None:
        return _of_offers(published.book.offers, published.left_out, published.notes)
    # A book has one offer of a name and day; a price list has one for each region.
    is_table = file.suffix == ".csv" or b"per_h" in head.partition(b"\n")[0]
    offers = price_book.offers_of_csv(file) if is_table else price_book.load(file).offers
    return _of_offers(offers, {}, ())


def _of_offers(
    offers: Sequence[Offer], left_out: Mapping[str, int], notes: Sequence[str]
) -> PriceList:
    result = PriceList(left_out=Counter(left_out), notes=list(notes))
    for offer in offers:
        provider, slash, rest = offer.name.partition("/")
        region, _, kind = rest.rpartition("/") if slash else ("", "", offer.name)
        name = provider.lower() if slash else ""
        on_demand, spot = (offer.price_or_none(each) for each in ("on_demand", "spot"))
        if on_demand is None and spot is None:
            result.left_out["under a commitment only"] += 1
            continue
        result.offers.append(
            PricedOffer(
                ALIASES.get(name, name),
                kind,
                offer.region or region,
                offer.currency,
                _with_licence(on_demand, offer),
                _with_licence(spot, offer),
                str(offer.date),
                offer.source,
            )
        )
    return result


def _with_licence(price: float | None, offer: Offer) -> float | None:
    return None if price is None else price + offer.licence_per_h


def _of_database(file: Path) -> PriceList:
    """Returns the active prices per hour with Linux of the database of `sparecores-data`."""
    # Some builds of Python lack it, and only this reading needs it.
    import sqlite3

    calls = iter(range(_MOST_CALLS))
    result = PriceList()
    offers: dict[tuple[str, str, str, str], PricedOffer] = {}
    try:
        uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_progress_handler(lambda: next(calls, None) is None, _STEPS)
            for values in _database_rows(database):
                _add(offers, result.left_out, file.name, *values)
    except sqlite3.Error as error:
        raise UsageError(
            f"{file}: its prices cannot be read ({error}).",
            "Use the database of the package sparecores-data, with its tables server_price and "
            "server.",
        ) from error
    result.offers = list(offers.values())
    return result


def _database_rows(database: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    regions = {row[1] for row in database.execute("PRAGMA table_info(region)")}
    region = (
        "COALESCE(r.api_reference, p.region_id)" if "api_reference" in regions else "p.region_id"
    )
    join = (
        " LEFT JOIN region r ON r.vendor_id = p.vendor_id AND r.region_id = p.region_id"
        if "api_reference" in regions
        else ""
    )
    yield from database.execute(
        f"SELECT p.vendor_id, {region}, s.api_reference, upper(p.allocation), upper(p.unit),"
        " p.price, p.currency, p.observed_at, p.operating_system, lower(p.status)"
        " FROM server_price p JOIN server s ON s.vendor_id = p.vendor_id"
        f" AND s.server_id = p.server_id{join}"
    )


def _add(
    offers: dict[tuple[str, str, str, str], PricedOffer],
    left_out: Counter[str],
    source: str,
    vendor: Any,
    region: Any,
    kind: Any,
    allocation: Any,
    unit: Any,
    price: Any,
    currency: Any,
    observed: Any,
    system: Any,
    status: Any,
) -> None:
    """Adds a row; of several zones of a region the lowest price counts."""
    reason = next(
        (
            why
            for why, is_so in (
                ("not active", status != "active"),
                ("not with Linux", "linux" not in str(system).lower()),
                ("not on demand or spot", allocation not in ("ONDEMAND", "SPOT")),
                ("not priced by the hour", unit != "HOUR"),
                ("without a price", not isinstance(price, int | float) or not 0 < price < 1e6),
            )
            if is_so
        ),
        "",
    )
    if reason:
        left_out[reason] += 1
        return
    key = (str(vendor), str(region), str(kind), str(currency))
    known = offers.get(key)
    prices = {
        "ONDEMAND": known.on_demand_per_h if known else None,
        "SPOT": known.spot_per_h if known else None,
    }
    earlier = prices[allocation]
    prices[allocation] = price if earlier is None else min(earlier, price)
    if len(offers) >= _MOST_OFFERS and known is None:
        raise UsageError(f"{source}: more than {_MOST_OFFERS:,} prices.", "Use one provider's.")
    offers[key] = PricedOffer(
        key[0],
        key[2],
        key[1],
        key[3],
        prices["ONDEMAND"],
        prices["SPOT"],
        max(str(observed)[:10], known.date if known else ""),
        f"{source} (Spare Cores)",
    )


def store_prices(store: Path, prices: PriceList) -> None:
    """Writes prices in place of the stored ones."""
    document = {
        "version": MARKET.version,
        "nephoscope": __version__,
        "offers": [list(asdict(offer).values()) for offer in prices.offers],
        "left_out": dict(prices.left_out),
        "notes": prices.notes,
    }
    folder = folder_of(store)
    with translating_os_errors(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "prices.json", json.dumps(document, separators=(",", ":")).encode())


def stored_prices(store: Path) -> PriceList:
    """Returns the stored prices; none where nothing was stored. Raises StoreError."""
    path = folder_of(store) / "prices.json"
    with translating_os_errors(path, "read"):
        if not path.is_file():
            return PriceList()
        content = regular.read_regular(path, limits.MARKET_PRICES_BYTES)
    try:
        values = jsontext.parse(content)
        if MARKET.is_later(values["version"]):
            writer = str(values.get("nephoscope", ""))
            raise LaterFormat(*MARKET.refusal(path, values["version"], writer))
        offers = [PricedOffer(*each) for each in values["offers"]]
        return PriceList(offers, Counter(values["left_out"]), list(values["notes"]))
    except (LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"{path} is damaged ({error!s:.100}).", "Import the prices again with --prices."
        ) from error


def latest_by_region(
    offers: Iterable[PricedOffer], purchase: str = "on_demand"
) -> dict[str, tuple[str, float]]:
    """Returns date and price of the latest offer of each region."""
    latest: dict[str, tuple[str, float]] = {}
    for offer in offers:
        price = offer.spot_per_h if purchase == "spot" else offer.on_demand_per_h
        if price is not None and offer.date >= latest.get(offer.region, ("", 0.0))[0]:
            latest[offer.region] = (offer.date, price)
    return latest


def cheapest_by_type(prices: PriceList) -> tuple[str, dict[tuple[str, str], float]]:
    """Returns the most frequent currency, and in it the price of each type on demand in its
    cheapest region: by provider and type in lower case; of no provider where none is stated."""
    currency = next(iter(Counter(offer.currency for offer in prices.offers).most_common(1)), ("",))
    offers: dict[tuple[str, str], list[PricedOffer]] = {}
    for offer in prices.offers:
        if offer.currency == currency[0]:
            offers.setdefault((offer.provider, offer.type.lower()), []).append(offer)
    latest = {key: latest_by_region(own).values() for key, own in offers.items()}
    return currency[0], {key: min(price for _, price in own) for key, own in latest.items() if own}
