"""`nephoscope scheduler`: what takes the CPU away, and by which rule? A built-in plan, 8.5 s."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.commands import measuring, output

if TYPE_CHECKING:
    from nephoscope.plans import Plan
    from nephoscope.store import StoredRun


def run(
    *,
    targets: Sequence[str],
    seed: int | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Looks at this machine's CPUs, or at those of `targets`, and names what schedules them.

    Returns the exit code. Always a new run: what a machine was yesterday says nothing of now.
    """
    from nephoscope.scheduler import plan as scheduler_plan
    from nephoscope.store import Store

    plan = scheduler_plan.scheduler(seed)
    if targets:
        plan = _elsewhere(plan, targets)
    return present(measuring.executed(plan, Store(store), fresh=True), as_json=as_json)


def _elsewhere(plan: Plan, texts: Sequence[str]) -> Plan:
    from nephoscope.errors import UsageError
    from nephoscope.targets.kinds import parse

    records = [parse(text) for text in texts]
    names = [record.name for record in records]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"Two targets have the name '{twice[0]}'.",
            "Name each target once, or write a plan that names them.",
        )
    return plan.model_copy(update={"targets": tuple(records)})


def present(run: StoredRun, *, as_json: bool) -> int:
    """Analyses the run, writes its report, prints the verdicts; the exit code."""
    from nephoscope import capabilities, runs
    from nephoscope.scheduler import text as scheduler_text
    from nephoscope.scheduler.inference import SchedulerVerdicts

    result = measuring.finished(capabilities.build(run))
    found = result.part(SchedulerVerdicts)
    paths = capabilities.write(result, run.report_path)
    runs.mark_reported(run)
    if as_json:
        output.document(capabilities.document(result))
        output.log(f"Report: {paths.html}")
    else:
        output.say(scheduler_text.text(found.targets if found is not None else ()))
        output.say(str(paths.html))
    return measuring.exit_code(result, run)
