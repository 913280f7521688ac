"""Offers of a price book from a bill: a cost and usage file (CSV) of the FOCUS specification.

Used are the rows of compute usage that are priced by the hour. Of each instance type (the
InstanceType of SkuPriceDetails, else SkuId), provider and region the price is what was paid on
average: the sum of EffectiveCost over the sum of PricingQuantity, by pricing category.

Source: FinOps Open Cost and Usage Specification, versions 1.0 to 1.3.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import foreign, jsontext, regular
from nephoscope.core.records import dataclass
from nephoscope.features.cost.price_lists import Import
from nephoscope.features.cost.price_records import (
    Offer,
    PriceBook,
    Purchase,
    offer_of,
    single_currency,
)

NEEDED = (
    "BillingCurrency",
    "ChargeCategory",
    "ChargePeriodStart",
    "EffectiveCost",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "RegionId",
    "ServiceCategory",
    "SkuId",
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOURS = frozenset({"hour", "hours", "hr", "hrs", "instance hours", "instance-hours"})
_PURCHASES: Mapping[str, Purchase] = {
    "Standard": "on_demand",
    "Committed": "committed",
    "Dynamic": "spot",
}


@dataclass(slots=True)
class _Sums:
    """Cost, hours and rows by purchase, and the last day of a row."""

    region: str
    currency: str
    cost: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hours: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    day: str = ""


def read(file: Path) -> Import:
    """Returns the offers of a bill, which is read row by row. Raises UsageError with the line."""
    sums: dict[str, _Sums] = {}
    left_out: Counter[str] = Counter()
    try:
        with io.TextIOWrapper(regular.open_regular(file), encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text, strict=True)
            _check_columns(rows.fieldnames or (), file)
            for cells in rows:
                where = f"{file}:{rows.line_num}"
                if None in cells or None in cells.values():
                    raise UsageError(f"{where}: the row has not as many fields as the header.")
                # Exports of some databases write the word for a value that is not there.
                row = {name: "" if cell == "NULL" else cell for name, cell in cells.items()}
                if reason := _unused(row) or _add(row, sums, where):
                    left_out[reason] += 1
    except FileNotFoundError as error:
        raise UsageError(f"{file}: there is no such file.", "Check the path.") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file}: this is no CSV file: {error}.", "Export the bill as CSV.") from (
            error
        )
    for name in list(sums):
        _leave_out_free(sums[name], left_out)
        if not sums[name].hours:
            del sums[name]
    if not sums:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or "no rows"
        raise UsageError(
            f"{file}: there is no compute usage with a cost and a price by the hour ({reasons}).",
            "Export the rows of virtual machines.",
        )
    single_currency((entry.currency for entry in sums.values()), f"{file}: rows")
    offers = tuple(_offer(name, entry, file) for name, entry in sorted(sums.items()))
    used = sum(sum(entry.rows.values()) for entry in sums.values())
    return Import(PriceBook(offers=offers), used, dict(left_out), "the bill")


def _check_columns(names: Sequence[str], file: Path) -> None:
    """Raises UsageError, with the name of the format where it is known, for missing columns."""
    missing = [name for name in NEEDED if name not in names]
    if not missing:
        return
    hint = "Export cost and usage in FOCUS 1.0 or later."
    kind = foreign.table_format_of(names)
    if kind and "FOCUS" not in kind:
        raise UsageError(f"{file}: this is {kind}, not a bill in the FOCUS format.", hint)
    raise UsageError(f"{file}:1: the columns {', '.join(missing)} of FOCUS are missing.", hint)


def _leave_out_free(entry: _Sums, left_out: Counter[str]) -> None:
    """Leaves out the usage that cost nothing or has no hours, which has no price."""
    for purchase in list(entry.hours):
        if entry.cost[purchase] <= 0 or entry.hours[purchase] <= 0:
            reason = "used at no cost" if entry.cost[purchase] <= 0 else "with a cost but no hours"
            left_out[reason] += entry.rows[purchase]
            for sums in (entry.cost, entry.hours, entry.rows):
                del sums[purchase]


def _unused(row: Mapping[str, str]) -> str:
    """Returns why a row says nothing of the price of an hour; '' if it does."""
    if row["ChargeCategory"] != "Usage":
        return "not usage"
    if row.get("ChargeClass"):
        return "corrections"
    if row["ServiceCategory"] != "Compute":
        return "not compute"
    unit = row["PricingUnit"].strip()
    if unit.lower() not in _HOURS:
        return f"not priced by the hour but by {unit[:30] or 'no unit'}"
    return "" if row["PricingCategory"] in _PURCHASES else "of another pricing category"


def _add(row: Mapping[str, str], sums: dict[str, _Sums], where: str) -> str:
    """Adds a row to the sums of its offer. Returns why it cannot be used; '' if it was."""
    cost, hours = _number(row["EffectiveCost"]), _number(row["PricingQuantity"])
    if cost is None or hours is None:
        return "without a cost or a quantity"
    if cost < 0 or hours < 0:
        return "with a negative cost or quantity"
    if not (instance_type := _instance_type(row)):
        return "with SkuPriceDetails that are no JSON, or without a SKU"
    if not _DAY.match(row["ChargePeriodStart"]):
        return "without a day"
    provider = row.get("ServiceProviderName") or row.get("ProviderName") or "unknown"
    region = row["RegionId"]
    parts = (provider.lower().replace(" ", "-"), region, instance_type)
    purchase = _PURCHASES[row["PricingCategory"]]
    name = "/".join(part for part in parts if part)[:100]
    entry = sums.setdefault(name, _Sums(region, row["BillingCurrency"]))
    if entry.currency != row["BillingCurrency"]:
        single_currency((entry.currency, row["BillingCurrency"]), f"{where}: rows of {name}")
    entry.cost[purchase] += cost
    entry.hours[purchase] += hours
    entry.rows[purchase] += 1
    entry.day = max(entry.day, row["ChargePeriodStart"][:10])
    return ""


def _instance_type(row: Mapping[str, str]) -> str:
    details = row.get("SkuPriceDetails") or "{}"
    try:
        parsed = jsontext.parse(details)
    except ValueError:
        return ""
    named = parsed.get("InstanceType") if isinstance(parsed, dict) else None
    return str(named or row["SkuId"])


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e15 else None


def _offer(name: str, sums: _Sums, file: Path) -> Offer:
    prices = {
        f"{purchase}_per_h": sums.cost[purchase] / hours for purchase, hours in sums.hours.items()
    }
    values = {"name": name, "region": sums.region, "currency": sums.currency, "date": sums.day}
    return offer_of({**values, "source": f"{file.name} (FOCUS)", **prices}, f"{file}: {name}: ")
