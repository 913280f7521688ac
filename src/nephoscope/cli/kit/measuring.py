"""The steps that all measuring commands share: plan, run, result, report, exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nephoscope.cli.kit import options, output
from nephoscope.core.errors import BenchmarkFailed, StoreError

if TYPE_CHECKING:
    from nephoscope.cli.kit.progress import ProgressDisplay
    from nephoscope.core.model import RunResult
    from nephoscope.measure.plans import Plan
    from nephoscope.measure.targets.kinds.record import TargetRecord as Target
    from nephoscope.store import Store, StoredRun

NOTHING_VALID = 3
TARGET_LOST = 3


def run_or_preview(
    plan: Plan,
    store: Store,
    *,
    as_json: bool,
    fresh: bool,
    dry_run: bool,
    lab_for: str,
    text_of: Callable[[RunResult], str],
) -> int:
    """Runs the plan and presents its result, or prints its preview; returns the exit code.

    lab_for: command line that needs a lab for the plan, whose requirements are checked; empty for
    none. text_of: as for `present`.
    """
    if dry_run:
        from nephoscope.cli.kit import dry_run as preview

        return preview.of_plan(plan, store, as_json=as_json)
    if lab_for:
        from nephoscope.measure.lab import needs

        needs.require(lab_for, store.path)
    return present(executed(plan, store, fresh=fresh), as_json=as_json, text_of=text_of)


def fitted(plan: Plan, texts: Sequence[str]) -> Plan:
    """Returns the plan of a survey on the targets of `--target`, up to the CPUs of each.

    Raises UsageError for what is no target; TargetError for a machine that does not answer.
    """
    import asyncio

    from nephoscope.measure.plans import fit_to_machines

    records = options.targets(texts)
    return fit_to_machines(plan, records, asyncio.run(_cpus(records)))


async def _cpus(records: Sequence[Target]) -> dict[str, int]:
    """The number of CPUs that a process may use on each target; 1 where it is unknown."""
    from nephoscope.stats import facts

    counts = {}
    for record in records:
        target = record.make()
        try:
            allowed = facts.items(await target.open(), "topology.allowed_cpus")
            counts[record.name] = len(allowed or [0])
        finally:
            await target.close()
    return counts


def executed(
    plan: Plan,
    store: Store,
    *,
    fresh: bool = False,
    progress: Callable[[TextIO], ProgressDisplay] | None = None,
    labels: Mapping[str, str] | None = None,
    limit_s: float | None = None,
    **more: Any,
) -> StoredRun:
    """Runs the plan, or resumes its unfinished run; progress goes to stderr.

    progress: class that prints it, where a command has its own. labels: of the run besides the
    user's. limit_s: seconds after which it ends whatever is measured then. more: further
    arguments of `runs.execute`.
    """
    from nephoscope.cli.kit.progress import ProgressDisplay
    from nephoscope.measure import runs

    for target in plan.targets:
        target.require_programs()  # without them no run is begun, so that none is left behind empty
    with (progress or ProgressDisplay)(sys.stderr) as observer:
        every = {**options.given_labels(), **(labels or {})}
        try:
            return runs.execute(
                plan, store, observer, fresh=fresh, labels=every, limit_s=limit_s, **more
            )
        except BenchmarkFailed as error:
            if not output.was_printed(error.message):
                raise
            sentence = "Nothing was measured, for the reason above."
            raise BenchmarkFailed(error.name, sentence, "", error.exit_code) from error


def present(
    run: StoredRun,
    *,
    as_json: bool,
    full: bool = False,
    table: bool = False,
    text_of: Callable[[RunResult], str] | None = None,
    stored: bool = False,
    to: Path | None = None,
) -> int:
    """Analyses the run, writes its report, prints it; returns 3 when nothing valid was measured.

    full: the whole report instead of one screen. table: all metrics as a table, where they fit on
    one screen. text_of: text that a command prints instead.
    stored: the run was measured earlier, so a report that cannot be written (a read-only archive)
    is stated and no error. to: further file to write, as `report_files.write_to` does.
    """
    from nephoscope.report import report_files

    for sentence in run.journal_problems():
        output.complain(sentence, 1)
    result = _analysed(run)
    page: Path | None = None
    try:
        page = _written(result, run)
    except StoreError as error:
        if not stored:
            raise
        output.warn(f"{error.message} The report is printed, and not written.")
    if as_json:
        output.document(report_files.document(result))
        if page is not None:
            output.log(f"Report: {page}")
    else:
        output.say(text_of(result) if text_of else _text(result, full=full, table=table))
        if page is not None:
            output.say(str(page))
    if to is not None:
        report_files.write_to(result, to)
        output.log(f"Written: {to}")
    return exit_code(result, run, is_stated=not as_json and text_of is None)


def reported(run: StoredRun) -> RunResult:
    """Analyses the run, writes its report and prints its path; the run is finished then."""
    result = _analysed(run)
    output.log(f"Report: {_written(result, run)}")
    return result


def _analysed(run: StoredRun) -> RunResult:
    """Returns the result as the report of a finished run states it."""
    from nephoscope.results import analyse_run
    from nephoscope.store import FINISHED, MEASURED

    result = analyse_run.build(run)
    if result.run.state == MEASURED:
        result = replace(result, run=replace(result.run, state=FINISHED))
    return result


def _written(result: RunResult, run: StoredRun) -> Path:
    from nephoscope.measure import runs
    from nephoscope.report import report_files

    paths = report_files.write(result, run.report_path)
    runs.mark_reported(run)
    return paths.html


def _text(result: RunResult, *, full: bool, table: bool) -> str:
    from nephoscope.cli.kit import metric_table
    from nephoscope.report import first_screen, report_files

    if table and not full:
        text = metric_table.table(result)
        if text.count("\n") < first_screen.MAX_LINES:
            return text
    return report_files.terminal(
        result, colour=output.colour_wanted(), width=output.width(), full=full
    )


def exit_code(result: RunResult, run: StoredRun, *, is_stated: bool = False) -> int:
    """Returns 0, or 3 with a sentence: nothing valid was measured, or a target was lost.

    is_stated: the text that was printed has the reason.
    """
    if not result.run.trials.valid:
        from nephoscope.core.naming import failure_text
        from nephoscope.store.trialfile import DAMAGED

        reasons = [reason for trial in result.invalid for reason in trial.reasons]
        stated = reasons[:0] if is_stated else reasons[:1]
        reason = "".join(f" {failure_text(text).removesuffix('.')}." for text in stated)
        is_damaged = any(record.failure_name == DAMAGED for record in run.records())
        step = f" Run `nephoscope verify {run.id}`." if is_damaged else ""
        output.warn(f"No valid trial.{reason}{step}")
        return NOTHING_VALID
    lost = run.manifest.lost
    for name, sentence in lost.items():
        output.warn(f"{name} was lost during the run: {sentence} Completed trials are kept.")
    return TARGET_LOST if lost else 0
