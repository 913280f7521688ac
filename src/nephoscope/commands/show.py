"""`nephoscope show RUN`: analyses a run again, writes its report again, prints it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.commands import measuring, output

if TYPE_CHECKING:
    from nephoscope.store import StoredRun


def run(name: str, *, journal: bool, store: Path | None, as_json: bool) -> int:
    """Prints the result of a stored run; returns 3 when it holds no valid trial.

    journal: what happened when, instead of the result.
    """
    from nephoscope.store import Store

    if journal:
        return _journal(Store(store).open(name), as_json=as_json)
    return measuring.present(Store(store).open(name), as_json=as_json)


def _journal(run: StoredRun, *, as_json: bool) -> int:
    from nephoscope.runs.journal import lines

    if as_json:
        output.document(run.events())
    else:
        output.say("\n".join(lines(run.events())))
    return 0
