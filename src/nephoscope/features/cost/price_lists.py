"""Offers from published price lists: AWS offer files, Azure Retail Prices, ec2instances.info.

Taken are prices per hour of virtual machines with Linux and shared hardware: on demand, of Azure
also spot. What is not taken is counted by reason. A list that states no day has that of its file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import foreign, jsontext, textfile
from nephoscope.core.records import dataclass
from nephoscope.features.cost.price_records import Offer, PriceBook, offer_of, single_currency

_HINT = "Write a price book: docs/how-to/cost.md describes its keys."
_HOURS = re.compile(r"([1-9][0-9]{0,5}) Hours?")

Row = dict[str, Any]
"""Values of an offer."""


@dataclass(frozen=True, slots=True)
class Import:
    """Offers from another format. used: rows behind them. left_out: reason -> rows not used.

    what: name of the format. notes: sentences on what was assumed.
    """

    book: PriceBook
    used: int
    left_out: Mapping[str, int]
    what: str
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _CollectedOffers:
    """Offers by name, and the rows that are left out by reason."""

    file: Path
    day: str
    offers: dict[str, Row]
    left_out: Counter[str]
    used: int = 0

    def add(self, name: str, row: Row) -> None:
        """Adds prices of an offer; a second, different price is an error."""
        known = self.offers.setdefault(name, {"name": name})
        for key, value in row.items():
            if key.endswith("_per_h") and known.get(key, value) != value:
                raise UsageError(
                    f"{self.file}: {name} has two prices, {known[key]:g} and {value:g} "
                    f"{row['currency']}.",
                    "Leave out one of them.",
                )
        known |= row
        self.used += 1


def read(file: Path) -> Import | None:
    """Returns the offers of a published price list; None where the file is none.

    Raises UsageError for a price list without a price that can be used.
    """
    if not textfile.begins_as_json(file):
        return None
    try:
        values = jsontext.parse(textfile.large_bytes(file, "Use the list of one region."))
    except ValueError:
        return None
    what = foreign.format_of(values)
    reader = _READERS.get(what)
    if reader is None:
        return None
    day = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    collected = _CollectedOffers(file, day, {}, Counter())
    try:
        reader(values, collected)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise UsageError(
            f"{file}: this is {what}, but not in a form that is known ({error!r:.80}).", _HINT
        ) from error
    if not collected.offers:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in collected.left_out.items())
        raise UsageError(
            f"{file}: this is {what}, without a price per hour of a virtual machine with Linux "
            f"({reasons or 'no entries'}).",
            _HINT,
        )
    offers = tuple(_offer(row, file) for row in collected.offers.values())
    single_currency((offer.currency for offer in offers), f"{file}: offers")
    notes: tuple[str, ...] = ()
    if any(str(offer.date) == day for offer in offers):
        notes = (f"Prices without a date have the day of the file, {day}.",)
    return Import(PriceBook(offers=offers), collected.used, dict(collected.left_out), what, notes)


def _offer(row: Row, file: Path) -> Offer:
    return offer_of(row, f"{file}: {row['name']}: ")


def _aws(values: Mapping[str, Any], collected: _CollectedOffers) -> None:
    on_demand = values["terms"].get("OnDemand", {})
    published = str(values.get("publicationDate", ""))[:10] or collected.day
    for sku, product in values["products"].items():
        attributes = product["attributes"]
        if reason := _aws_reason(product, attributes):
            collected.left_out[reason] += 1
            continue
        region = str(attributes.get("regionCode") or attributes["location"])
        hourly = [
            (currency, float(price))
            for term in on_demand.get(sku, {}).values()
            for dimension in term["priceDimensions"].values()
            if dimension["unit"] == "Hrs"
            for currency, price in dimension["pricePerUnit"].items()
        ]
        if len(hourly) != 1 or hourly[0][1] <= 0:
            collected.left_out["without a single price above 0 per hour"] += 1
            continue
        currency, price = hourly[0]
        collected.add(
            f"aws/{region}/{attributes['instanceType']}",
            {
                "region": region,
                "currency": currency,
                "date": published,
                "on_demand_per_h": price,
                "source": f"{collected.file.name} (AWS price list, Linux on demand)",
            },
        )
    reserved = len(values["terms"].get("Reserved", {}))
    if reserved:
        collected.left_out["with terms of reservations"] += reserved


_AWS_NEEDED = (
    ("operatingSystem", {"Linux"}, "not with Linux"),
    ("tenancy", {"Shared"}, "not with shared tenancy"),
    ("capacitystatus", {"Used", ""}, "of reserved capacity"),
    ("preInstalledSw", {"NA", ""}, "with other software"),
    ("marketoption", {"OnDemand", ""}, "not on demand"),
)


def _aws_reason(product: Mapping[str, Any], attributes: Mapping[str, Any]) -> str:
    """Returns why a product is no virtual machine on demand; empty where it is one."""
    if not str(product.get("productFamily", "")).startswith("Compute Instance"):
        return "not virtual machines"
    for key, values, reason in _AWS_NEEDED:
        if str(attributes.get(key, "")) not in values:
            return reason
    return ""


def _azure(values: Mapping[str, Any], collected: _CollectedOffers) -> None:
    for item in values["Items"]:
        if reason := _azure_reason(item):
            collected.left_out[reason] += 1
            continue
        match = _HOURS.fullmatch(item["unitOfMeasure"])
        assert match is not None  # as checked above
        words = f"{item.get('skuName', '')} {item.get('meterName', '')}"
        purchase = "spot" if "Spot" in words else "on_demand"
        collected.add(
            f"azure/{item['armRegionName']}/{item['armSkuName']}",
            {
                "region": item["armRegionName"],
                "currency": item["currencyCode"],
                "date": str(item.get("effectiveStartDate", ""))[:10] or collected.day,
                f"{purchase}_per_h": float(item["retailPrice"]) / int(match[1]),
                "source": f"{collected.file.name} (Azure Retail Prices, Linux)",
            },
        )
    if values.get("NextPageLink"):
        collected.left_out["page of prices that follows and is not in this file"] += 1


def _azure_reason(item: Mapping[str, Any]) -> str:
    """Returns why an item is no virtual machine by the hour; empty where it is one."""
    words = f"{item.get('skuName', '')} {item.get('meterName', '')}"
    for reason, is_so in (
        ("not virtual machines", item.get("serviceName") != "Virtual Machines"),
        ("not with Linux", "Windows" in str(item.get("productName", ""))),
        (f"of type {str(item.get('type'))[:20]}", item.get("type") != "Consumption"),
        ("of low priority", "Low Priority" in words),
        ("without the name of a size", not item.get("armSkuName")),
        ("not priced by the hour", not _HOURS.fullmatch(str(item.get("unitOfMeasure", "")))),
        ("of a higher tier of use", item.get("tierMinimumUnits", 0) != 0),
        ("at no cost", float(item["retailPrice"]) <= 0),
    ):
        if is_so:
            return reason
    return ""


def _ec2_instances(values: list[Any], collected: _CollectedOffers) -> None:
    for entry in values:
        for region, systems in entry["pricing"].items():
            other_systems = len(systems) - ("linux" in systems)
            if other_systems:
                collected.left_out["of other operating systems"] += other_systems
            linux = systems.get("linux", {})
            try:
                price = float(linux.get("ondemand", ""))
            except ValueError:
                price = 0.0
            if price <= 0:
                collected.left_out["without a price on demand"] += "linux" in systems
                continue
            collected.add(
                f"aws/{region}/{entry['instance_type']}",
                {
                    "region": region,
                    "currency": "USD",
                    "date": collected.day,
                    "on_demand_per_h": price,
                    "source": f"{collected.file.name} (ec2instances.info, Linux on demand; "
                    "the day is that of the file)",
                },
            )


_READERS: Mapping[str, Callable[[Any, _CollectedOffers], None]] = {
    "an AWS price list": _aws,
    "a response of Azure Retail Prices": _azure,
    "the list of instances of ec2instances.info": _ec2_instances,
}
