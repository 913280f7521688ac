"""Offers of a price book from a bill: a cost and usage file (CSV) of the FOCUS specification.

Used are the rows of compute usage that are priced by the hour. Of each instance type (the
InstanceType of SkuPriceDetails, else SkuId), provider and region the price is what was paid on
average: the sum of EffectiveCost over the sum of PricingQuantity, by pricing category.

Source: FinOps Open Cost and Usage Specification, versions 1.0 to 1.3.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nephoscope.cost.price_book import Offer, PriceBook, Purchase, offer_of, single_currency
from nephoscope.errors import UsageError
from nephoscope.reading import jsontext, textfile

NEEDED = (
    "BillingCurrency",
    "ChargeCategory",
    "ChargePeriodStart",
    "EffectiveCost",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "SkuId",
)
_HOURS = frozenset({"hour", "hours", "hr", "hrs", "instance hours", "instance-hours"})
_PURCHASES: Mapping[str, Purchase] = {
    "Standard": "on_demand",
    "Committed": "committed",
    "Dynamic": "spot",
}


@dataclass(frozen=True, slots=True)
class Import:
    """Offers of a bill. used: rows behind them. left_out: reason -> rows that are not used."""

    book: PriceBook
    used: int
    left_out: Mapping[str, int]


@dataclass(slots=True)
class _Sums:
    """Cost and hours by purchase, and the last day of a row."""

    region: str
    currency: str
    cost: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hours: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    day: str = ""


def read(file: Path) -> Import:
    """Returns the offers of a bill, which is read row by row. Raises UsageError with the line."""
    sums: dict[str, _Sums] = {}
    left_out: Counter[str] = Counter()
    used = 0
    try:
        with io.TextIOWrapper(
            textfile.open_regular(file), encoding="utf-8-sig", newline=""
        ) as text:
            rows = csv.DictReader(text, strict=True)
            if missing := [name for name in NEEDED if name not in (rows.fieldnames or ())]:
                raise UsageError(
                    f"{file}:1: the columns {', '.join(missing)} of FOCUS are missing.",
                    "Export cost and usage in FOCUS 1.0 or later.",
                )
            for row in rows:
                where = f"{file}:{rows.line_num}"
                if None in row or None in row.values():
                    raise UsageError(f"{where}: the row has not as many fields as the header.")
                if reason := _unused(row):
                    left_out[reason] += 1
                    continue
                _add(row, sums, where)
                used += 1
    except FileNotFoundError as error:
        raise UsageError(f"{file}: there is no such file.", "Check the path.") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: this is no CSV file: {error}.", "Export the bill as CSV.") from (
            error
        )
    if not used:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "no rows"
        raise UsageError(
            f"{file}: there is no compute usage that is priced by the hour ({reasons}).",
            "Export the rows of virtual machines.",
        )
    single_currency((entry.currency for entry in sums.values()), f"{file}: rows")
    offers = tuple(_offer(name, entry, file) for name, entry in sorted(sums.items()))
    return Import(PriceBook(offers=offers), used, dict(left_out))


def _unused(row: Mapping[str, str]) -> str:
    """Returns why a row says nothing of the price of an hour; '' if it does."""
    if row["ChargeCategory"] != "Usage":
        return "not usage"
    if row.get("ChargeClass"):
        return "corrections"
    if row.get("ServiceCategory", "Compute") != "Compute":
        return "not compute"
    if row["PricingUnit"].strip().lower() not in _HOURS:
        return "not priced by the hour"
    return "" if row["PricingCategory"] in _PURCHASES else "of another pricing category"


def _add(row: Mapping[str, str], sums: dict[str, _Sums], where: str) -> None:
    provider = row.get("ServiceProviderName") or row.get("ProviderName") or "unknown"
    region = row.get("RegionId", "")
    parts = (provider.lower().replace(" ", "-"), region, _instance_type(row, where))
    purchase = _PURCHASES[row["PricingCategory"]]
    cost, hours = (_number(row, name, where) for name in ("EffectiveCost", "PricingQuantity"))
    name = "/".join(part for part in parts if part)[:100]
    entry = sums.setdefault(name, _Sums(region, row["BillingCurrency"]))
    if entry.currency != row["BillingCurrency"]:
        single_currency((entry.currency, row["BillingCurrency"]), f"{where}: rows of {name}")
    entry.cost[purchase] += cost
    entry.hours[purchase] += hours
    entry.day = max(entry.day, row["ChargePeriodStart"][:10])


def _instance_type(row: Mapping[str, str], where: str) -> str:
    details = row.get("SkuPriceDetails") or "{}"
    try:
        parsed = jsontext.parse(details)
    except ValueError as error:
        raise UsageError(f"{where}: SkuPriceDetails is no JSON: {error}.") from None
    named = parsed.get("InstanceType") if isinstance(parsed, dict) else None
    return str(named or row["SkuId"])


def _number(row: Mapping[str, str], name: str, where: str) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e15:
        raise UsageError(
            f"{where}: {name} '{row[name][:40]}' is not a number from 0 on.",
            "Export the bill again; corrections have a ChargeClass.",
        )
    return value


def _offer(name: str, sums: _Sums, file: Path) -> Offer:
    prices = {
        f"{purchase}_per_h": sums.cost[purchase] / hours
        for purchase, hours in sums.hours.items()
        if hours > 0 and sums.cost[purchase] > 0
    }
    if not prices:
        raise UsageError(
            f"{file}: {name} was used and costs nothing, so it has no price.",
            "Leave out free usage, or write the price into the book.",
        )
    values = {"name": name, "region": sums.region, "currency": sums.currency, "date": sums.day}
    return offer_of({**values, "source": f"{file.name} (FOCUS)", **prices}, f"{file}: {name}: ")
