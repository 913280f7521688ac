"""`nephoscope runs`: the runs of the store, their labels, and their removal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, Query, command, group
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument
from nephoscope.cli.kit.run_filters import RunFilters
from nephoscope.core import units
from nephoscope.core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from nephoscope.store import StoredRun
    from nephoscope.store.listing import StoredRunRow


@dataclass(frozen=True, slots=True)
class RunLabels:
    """All labels of a run after a change."""

    run: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemovedRuns:
    """Ids of the runs that were removed."""

    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _RunsArguments:
    filters: RunFilters = options.group(RunFilters)
    ids: bool = options.flag("--ids", "Print the run ids only.", is_local=True)
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@group(
    invoke_without_command=True,
    prints=Document("runs", ".store.listing:StoredRuns"),
    requests=Query(),
    examples=(
        "",
        "--since 2026-11-01 --benchmark cpu.hash",
        "label latest commit=abc123",
    ),
)
def runs(args: _RunsArguments) -> None:
    """List stored runs, newest first; label or remove them.

    `nephoscope runs rm $(nephoscope runs --label KEY=VALUE --ids)` removes selected runs.
    """
    context = click.get_current_context()
    if context.invoked_subcommand is not None:
        if any(context.params.values()):
            raise UsageError(
                "Options of `nephoscope runs` select runs to list only.",
                f"Write options behind `{context.invoked_subcommand}`.",
            )
        return
    from nephoscope.store import Store, day_files
    from nephoscope.store.index import RunIndex
    from nephoscope.store.listing import StoredRuns

    run_store = Store(args.store)
    wanted = args.filters.selection()
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
    if args.as_json:
        output.document(StoredRuns(run_store.address, tuple(rows)))
    elif args.ids:
        output.say("\n".join(row.id for row in rows)) if rows else None
    elif not rows and snapshot.total:
        output.say(f"No runs in {run_store.address} meet the conditions.")
    elif not rows:
        output.say(f"No runs in {run_store.address}. Run `nephoscope survey` to create one.")
    else:
        output.say(_table(rows))


@dataclass(frozen=True, slots=True)
class _RunsLabelArguments:
    name: str = argument(RUN)
    texts: Sequence[str] = argument(metavar="KEY=VALUE…", nargs=-1, required=True)
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    runs,
    prints=Document("run_labels", RunLabels),
    requests=Excluded("changes a run"),
    examples=(
        "latest commit=abc123",
        "latest commit=",
    ),
)
def label(args: _RunsLabelArguments) -> None:
    """Set labels of a run; an empty VALUE removes a label."""
    from nephoscope.store import Store
    from nephoscope.store.selection import labels

    run = Store(args.store).open(args.name)
    new_labels = labels(args.texts)
    with run.lock():
        new = {**run.manifest.labels, **new_labels}
        new = {key: value for key, value in new.items() if value}
        run.update(labels=new)
    if args.as_json:
        output.document({"run": run.id, "labels": new})
    else:
        output.say(f"{run.id}: {_in_words(new) or 'no labels'}")


@dataclass(frozen=True, slots=True)
class _RunsRmArguments:
    names: Sequence[str] = argument(RUN, metavar="RUN…", nargs=-1, required=True)
    yes: bool = options.flag("--yes", "Remove without a question.")
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    runs,
    prints=Document("removed_runs", RemovedRuns),
    requests=Excluded("removes runs"),
    examples=(
        "latest --yes",
        "latest --store old --yes",
    ),
)
def rm(args: _RunsRmArguments) -> int:
    """Remove runs with their samples and reports.

    Asks on a terminal; elsewhere --yes is required. Runs that are being measured are kept.
    """
    from nephoscope.store import Store

    run_store = Store(args.store)
    chosen = list({run.id: run for run in map(run_store.find, args.names)}.values())
    if not args.yes and not _confirmed(chosen):
        output.warn("Nothing was removed.")
        return 0
    removed, code = [], 0
    for run in chosen:
        try:
            run_store.remove(run)
            removed.append(run.id)
        except StoreError as error:
            code = output.complain(str(error), error.exit_code)
    if args.as_json:
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


def _names(targets: Sequence[str]) -> str:
    """Returns names of targets; of many the first, and how many more."""
    more = len(targets) - _NAMES_SHOWN
    if more < 2:
        return ", ".join(targets)
    return f"{', '.join(targets[:_NAMES_SHOWN])} and {more} others"


_NAMES_SHOWN = 4


def _table(rows: Sequence[StoredRunRow]) -> str:
    head = ["RUN", "STATE", "TRIALS", "TIME", "TARGETS"]
    cells = [
        [
            row.id,
            row.state,
            str(row.trials),
            "" if row.spent_s is None else units.format_duration(row.spent_s),
            _names(row.targets),
        ]
        for row in rows
    ]
    if any(row.labels for row in rows):
        head.append("LABELS")
        for row, line in zip(rows, cells, strict=True):
            line.append(_in_words(row.labels))
    return output.table(head, cells, right=(2,))
