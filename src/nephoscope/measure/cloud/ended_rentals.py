"""Rentals that have ended: what they were, what they were expected to cost, in one file.

$XDG_STATE_HOME/nephoscope/ended-rentals.jsonl   one line per removed rental, appended
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nephoscope.core.errors import StoreError
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.intents import RentalFolder, rentals_root
from nephoscope.measure.provisioning import Quote

_READ_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class EndedRental:
    """A rental that was removed. began_s, ended_s: seconds since the epoch, from the first call to
    the confirmed removal. cost: of that time by the quote, and by each change of a spot price from
    then on; None where no price was known. price_changes: how many were seen."""

    name: str
    provider: str
    machines: int
    began_s: float
    ended_s: float
    cost: float | None
    currency: str = ""
    price_changes: int = 0


def append(folder: RentalFolder, ended_s: float) -> None:
    """Notes that a rental was removed; one of which too little is known is left out."""
    known = folder.read()
    if not {"since", "cloud", "hosts"} <= known.keys():
        return
    quote = Quote(**known["quote"]) if known.get("quote") else None
    hours = (ended_s - known["since"]) / 3600
    changes = [intent for intent in folder.intents() if intent.change_per_h]
    more = sum(each.change_per_h * (ended_s - each.at_s) / 3600 for each in changes)
    line = EndedRental(
        folder.name,
        known["cloud"]["provider"],
        len(known["hosts"]),
        known["since"],
        ended_s,
        None if quote is None else quote.cost(hours) + more,
        "" if quote is None else quote.currency,
        len(changes),
    )
    with regular.open_to_append(_file(folder.path.parent)) as file:
        values = asdict(line)
        if not changes:
            del values["price_changes"]  # Earlier versions leave out a line with it.
        file.write(f"{json.dumps(values)}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def read(root: Path | None = None) -> Sequence[EndedRental]:
    """Returns the rentals that have ended, in the order of their removal.

    A line that is not whole, because its process was killed, is left out. Raises StoreError for a
    file that cannot be read.
    """
    try:
        lines = regular.read_regular(_file(root or rentals_root()), _READ_BYTES).split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be read: {error.strerror}.") from None
    rentals = []
    for line in lines:
        try:
            values: dict[str, Any] = json.loads(line)
            rentals.append(EndedRental(**values))
        except (ValueError, TypeError):
            continue
    return rentals


def _file(rentals: Path) -> Path:
    return rentals.parent / "ended-rentals.jsonl"
