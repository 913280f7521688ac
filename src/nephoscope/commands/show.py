"""`nephoscope show RUN`: analyses a run again, writes its report again, prints it."""

from __future__ import annotations

from pathlib import Path

from nephoscope.commands import measuring


def run(name: str, *, store: Path | None, as_json: bool) -> int:
    """Prints the result of a stored run; returns 3 when it holds no valid trial."""
    from nephoscope.store import Store

    return measuring.present(Store(store).open(name), as_json=as_json)
