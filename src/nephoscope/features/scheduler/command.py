"""`nephoscope scheduler`: what takes the CPU away, and by which rule? A built-in plan, 8.5 s."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import measuring, options

if TYPE_CHECKING:
    from nephoscope.core.model import RunResult


@click.command()
@options.TARGETS
@options.option(
    "--duration duration_s",
    options.duration("5 s", "1 h"),
    "Time that all observations take together, 5s to 1h [default: 8.5s].",
)
@options.SEED
@options.LABELS
@options.STORE
@options.JSON
def scheduler(
    targets: Sequence[str],
    duration_s: float | None,
    seed: int | None,
    store: Path | None,
    as_json: bool,
) -> int:
    """Infer the hypervisor's CPU scheduling policy (takes 9 s).

    A longer TIME decides what 9 s leave unclear: long periods, and shares near 0 or 100 %.

    TARGET is local, ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO].
    """
    from nephoscope.features.scheduler import plan as scheduler_plan
    from nephoscope.store import Store

    plan = scheduler_plan.scheduler(seed, duration_s=duration_s)
    if targets:
        plan = plan.model_copy(update={"targets": tuple(options.targets(targets))})
    # Always a new run: what a machine was yesterday says nothing of now.
    run = measuring.executed(plan, Store(store), fresh=True)
    return measuring.present(run, as_json=as_json, text_of=_text)


def _text(result: RunResult) -> str:
    from nephoscope.features.scheduler import text
    from nephoscope.features.scheduler.inference.verdict import SchedulerVerdicts

    verdicts = result.part(SchedulerVerdicts)
    return text.text(verdicts.targets if verdicts is not None else ())
