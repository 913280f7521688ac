"""`nephoscope runs`: what is in the store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope import units
from nephoscope.commands import options, output

if TYPE_CHECKING:
    from nephoscope.store import StoredRun


@click.command()
@options.STORE
@options.JSON
def runs(store: Path | None, as_json: bool) -> None:
    """List stored runs, newest first."""
    from nephoscope.store import Store

    shelf = Store(store)
    rows = [_row(stored) for stored in reversed(shelf.runs())]
    for sentence in shelf.damaged():
        output.log(f"nephoscope: {output.one_line(sentence)}")
    if as_json:
        output.document({"store": str(shelf.path), "runs": rows})
    elif not rows:
        output.say(f"No runs in {shelf.path}. Run `nephoscope survey` to create one.")
    else:
        output.say(_table(rows))


def _row(stored: StoredRun) -> dict[str, Any]:
    manifest = stored.manifest
    started = manifest.get("started_at")
    return {
        "id": stored.id,
        "plan": manifest.get("plan_name"),
        "state": stored.status,
        "started_at": None
        if started is None
        else datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "spent_s": manifest.get("spent_s"),
        "trials": sum(1 for _ in stored.trials_path.glob("r*.parquet")),
        "targets": [target["name"] for target in manifest["targets"]],
    }


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [
        (
            row["id"],
            row["state"],
            str(row["trials"]),
            "" if row["spent_s"] is None else units.format_duration(row["spent_s"]),
            ", ".join(row["targets"]),
        )
        for row in rows
    ]
    return output.table(("RUN", "STATE", "TRIALS", "TIME", "TARGETS"), cells, right=(2,))
