"""Launches in a CSV file: provider, type, run, and a column for each moment."""

from __future__ import annotations

from pathlib import Path

from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.reading import textfile
from nephoscope.store.imports.moments import moment_s
from nephoscope.store.market.records import MOMENTS, PublishedLaunch


def read(file: Path) -> list[PublishedLaunch]:
    """Returns the launches of a file. UsageError with file and line for whatever is wrong."""
    text = textfile.read(file, "list of launches", UsageError, largest=limits.IMPORT_BYTES)
    launches = []
    columns = ("vendor", "provider", "type", "run", *MOMENTS)
    for where, row in textfile.csv_records(text, str(file), columns, ("type",)):
        provider = row.get("provider") or row.get("vendor") or ""
        if not provider or not row["type"]:
            raise UsageError(f"{where}: provider or type is empty.", "Fill in every row.")
        moments: dict[str, float] = {}
        for name in MOMENTS:
            if cell := row.get(name, ""):
                at = moment_s(cell)
                if at is None:
                    raise UsageError(
                        f"{where}: '{cell[:40]}' is no time.", "Write 2026-11-27T12:00:00Z."
                    )
                moments[name] = at
        launches.append(PublishedLaunch(provider, row["type"], row.get("run", ""), moments))
    if not launches:
        raise UsageError(f"{file}: there are no launches.", f"Columns: {', '.join(columns[1:])}.")
    return launches
