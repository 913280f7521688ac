"""`nephoscope runs`: the runs of the store, their labels, and their removal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import options, output, run_filters
from nephoscope.core import units
from nephoscope.core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from nephoscope.store import StoredRun
    from nephoscope.store.listing import StoredRunRow


@click.group(cls=options.InOrder, invoke_without_command=True)
@run_filters.add_filters
@options.flag("--ids", "Print the run ids only.")
@options.STORE
@options.JSON
@click.pass_context
def runs(context: click.Context, /, store: Path | None, as_json: bool, **conditions: Any) -> None:
    """List stored runs, newest first; label or remove them.

    `nephoscope runs rm $(nephoscope runs --label KEY=VALUE --ids)` removes selected runs.
    """
    if context.invoked_subcommand is not None:
        if store is not None or as_json or any(conditions.values()):
            raise UsageError(
                "Options of `nephoscope runs` select runs to list only.",
                f"Write options behind `{context.invoked_subcommand}`.",
            )
        return
    from nephoscope.store import Store, day_files
    from nephoscope.store.index import RunIndex
    from nephoscope.store.listing import StoredRuns

    run_store = Store(store)
    ids_only = conditions.pop("ids")
    wanted = run_filters.selection_of(**conditions)
    snapshot = RunIndex(run_store).whole()
    rows = [run.row for run in snapshot.runs if run.meets(wanted)]
    for sentence in snapshot.damaged:
        output.warn(sentence)
    days = day_files.day_files(run_store.path)
    if days:
        output.warn(
            f"The trials of older runs were compacted into {len(days)} day "
            f"file{'s'[: len(days) > 1]}, {days[0].day} to {days[-1].day}; `nephoscope history "
            "METRIC` reads them."
        )
    if as_json:
        output.document(StoredRuns(str(run_store.path), tuple(rows)))
    elif ids_only:
        output.say("\n".join(row.id for row in rows)) if rows else None
    elif not rows and snapshot.total:
        output.say(f"No runs in {run_store.path} meet the conditions.")
    elif not rows:
        output.say(f"No runs in {run_store.path}. Run `nephoscope survey` to create one.")
    else:
        output.say(_table(rows))


@runs.command()
@click.argument("name", metavar="RUN")
@click.argument("texts", metavar="KEY=VALUE…", nargs=-1, required=True)
@options.STORE
@options.JSON
def label(name: str, texts: Sequence[str], store: Path | None, as_json: bool) -> None:
    """Set labels of a run; an empty VALUE removes a label."""
    from nephoscope.store import Store
    from nephoscope.store.selection import labels

    run = Store(store).open(name)
    given = labels(texts)
    with run.lock():
        new = {**run.manifest.labels, **given}
        new = {key: value for key, value in new.items() if value}
        run.update(labels=new)
    if as_json:
        output.document({"run": run.id, "labels": new})
    else:
        output.say(f"{run.id}: {_in_words(new) or 'no labels'}")


@runs.command()
@click.argument("names", metavar="RUN…", nargs=-1, required=True)
@options.flag("--yes", "Remove without a question.")
@options.STORE
@options.JSON
def rm(names: Sequence[str], yes: bool, store: Path | None, as_json: bool) -> int:
    """Remove runs with their samples and reports.

    Asks on a terminal; elsewhere --yes is required. Runs that are being measured are kept.
    """
    from nephoscope.store import Store

    run_store = Store(store)
    chosen = list({run.id: run for run in map(run_store.find, names)}.values())
    if not yes and not _confirmed(chosen):
        output.warn("Nothing was removed.")
        return 0
    removed, code = [], 0
    for run in chosen:
        try:
            run_store.remove(run)
            removed.append(run.id)
        except StoreError as error:
            code = output.complain(str(error), error.exit_code)
    if as_json:
        output.document({"removed": removed})
    else:
        output.say("\n".join(f"Removed: {run_id}" for run_id in removed)) if removed else None
    return code


def _confirmed(chosen: Sequence[StoredRun]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Runs are removed for good.", "Confirm with --yes.")
    for run in chosen:
        output.log(run.id)
    return click.confirm(f"Remove {len(chosen)} run{'s'[: len(chosen) > 1]} for good?", err=True)


def _in_words(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _table(rows: Sequence[StoredRunRow]) -> str:
    head = ["RUN", "STATE", "TRIALS", "TIME", "TARGETS"]
    cells = [
        [
            row.id,
            row.state,
            str(row.trials),
            "" if row.spent_s is None else units.format_duration(row.spent_s),
            ", ".join(row.targets),
        ]
        for row in rows
    ]
    if any(row.labels for row in rows):
        head.append("LABELS")
        for row, line in zip(rows, cells, strict=True):
            line.append(_in_words(row.labels))
    return output.table(head, cells, right=(2,))
