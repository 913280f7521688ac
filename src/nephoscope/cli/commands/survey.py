"""`nephoscope survey`: measures a machine by a built-in plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from nephoscope.cli.kit import measuring, options
from nephoscope.core.errors import UsageError


@click.command()
@options.flag("--quick", "Run a reduced survey that takes less than one minute.")
@options.flag("--full", "Run all benchmarks at full resolution (about 20 minutes).")
@options.TARGETS
@options.BUDGET
@options.REPEAT_RUNS
@options.GAP
@options.SEED
@options.LABELS
@options.STORE
@options.FULL_REPORT
@options.JSON
@options.FRESH
def survey(
    quick: bool,
    full: bool,
    targets: Sequence[str],
    budget: float | None,
    repeat_runs: int,
    gap: float | None,
    seed: int | None,
    store: Path | None,
    full_report: bool,
    as_json: bool,
    fresh: bool,
) -> int:
    """Measure CPU, memory, disk and network of a machine.

    Writes a report as HTML, Markdown and JSON. TARGET is local, ssh:[user@]host[:port] or
    lab:LAB/HOST.
    """
    if quick and full:
        raise UsageError("--quick and --full exclude each other.", "Use only one of them.")
    repeat = options.repetition(repeat_runs, gap)
    from nephoscope.measure import plans
    from nephoscope.store import Store

    plan = plans.survey("quick" if quick else "full" if full else "standard", budget, seed)
    if targets:
        plan = measuring.fitted(plan, targets)
    if repeat.runs > 1:
        from nephoscope.features.comparison.measure_repeats import measure_repeatedly

        return measure_repeatedly(plan, store=store, repeat=repeat, as_json=as_json, fresh=fresh)
    run = measuring.executed(plan, Store(store), fresh=fresh)
    return measuring.present(run, as_json=as_json, full=full_report)
