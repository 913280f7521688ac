"""What rentals really cost: the rows of a bill that carry their tags, beside what was quoted.

Source: FinOps Open Cost and Usage Specification (FOCUS), versions 1.0 to 1.3: BilledCost, Tags,
ServiceCategory, ChargePeriodStart.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError, words_of
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.ended_rentals import EndedRental

NEEDED = ("BilledCost", "BillingCurrency", "ChargePeriodStart", "ServiceCategory", "Tags")
_RUN = "nephoscope-run"


@dataclass(slots=True)
class BilledRental:
    """The billed cost of a rental. by_service: its parts. first, last: days of its rows. quoted:
    by the quote, for the time that it was rented; None where that is not known here."""

    name: str
    currency: str
    billed: float = 0.0
    by_service: dict[str, float] = field(default_factory=dict)
    rows: int = 0
    first: str = ""
    last: str = ""
    quoted: float | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """The rentals of a bill. left_out: reason -> rows that were not used."""

    rentals: Sequence[BilledRental]
    left_out: Mapping[str, int]


def read(file: Path, ended: Sequence[EndedRental]) -> Bill:
    """Returns the rentals that a bill has rows of. Raises UsageError with the line.

    ended: rentals that were made from this machine, with their quotes.
    """
    rentals: dict[str, BilledRental] = {}
    left_out: Counter[str] = Counter()
    for where, row in _rows(file):
        run = _run_of(row["Tags"])
        if run is None:
            left_out["without a tag of a rental"] += 1
            continue
        cost = _cost(row["BilledCost"], where)
        entry = rentals.setdefault(run, BilledRental(run, row["BillingCurrency"]))
        if entry.currency != row["BillingCurrency"]:
            raise UsageError(
                f"{where}: the rental {run} is billed in {entry.currency} and in "
                f"{row['BillingCurrency']}.",
                "Export one billing account at a time.",
            )
        day = row["ChargePeriodStart"][:10]
        entry.billed += cost
        service = row["ServiceCategory"] or "other"
        entry.by_service[service] = entry.by_service.get(service, 0.0) + cost
        entry.rows += 1
        entry.first, entry.last = min(entry.first or day, day), max(entry.last, day)
    if not rentals:
        raise UsageError(
            f"{file}: none of its {sum(left_out.values())} rows has the tag {_RUN}.",
            "Activate it as a cost allocation tag with your provider; bills show it from then on.",
        )
    quoted = {rental.name: rental for rental in ended}
    for name, entry in rentals.items():
        known = quoted.get(name)
        if known is not None and known.currency == entry.currency:
            entry.quoted = known.cost
    return Bill([rentals[name] for name in sorted(rentals)], dict(left_out))


def _rows(file: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    try:
        with io.TextIOWrapper(regular.open_regular(file), encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text, strict=True)
            missing = [name for name in NEEDED if name not in (rows.fieldnames or ())]
            if missing:
                raise UsageError(
                    f"{file}:1: the columns {', '.join(missing)} of FOCUS are missing.",
                    "Export cost and usage in FOCUS 1.0 or later.",
                )
            for row in rows:
                where = f"{file}:{rows.line_num}"
                if None in row or None in row.values():
                    raise UsageError(f"{where}: the row has not as many fields as the header.")
                yield where, row
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file.", "Check the path.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"{file}: this is no CSV file: {words_of(error)}.", "Export the bill as CSV."
        ) from None


def _run_of(text: str) -> str | None:
    """Returns the rental among the tags of a row; some providers put a prefix before the key."""
    try:
        tags: Any = json.loads(text) if text and text != "NULL" else {}
    except ValueError:
        return None
    if not isinstance(tags, dict):
        return None
    values = [value for key, value in tags.items() if str(key).rpartition(":")[2] == _RUN]
    return values[0] if values and isinstance(values[0], str) else None


def _cost(text: str, where: str) -> float:
    try:
        cost = float(text)
    except ValueError:
        cost = float("nan")
    if not abs(cost) < 1e12:
        raise UsageError(f"{where}: BilledCost '{text[:30]}' is no amount.", "Export it again.")
    return cost
