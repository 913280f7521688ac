"""`nephoscope run PLAN`: runs a plan, or resumes its unfinished run."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.cli.kit import measuring, options


@click.command()
@click.argument("plan", type=options.PATH)
@options.set_option("Override a value of the plan by its path, e.g. repeat.min=20.", "PATH=VALUE")
@options.SEED
@options.BUDGET
@options.REPEAT_RUNS
@options.GAP
@options.LABELS
@options.STORE
@options.FULL_REPORT
@options.JSON
@options.FRESH
@options.DRY_RUN
def run(
    plan: Path,
    values: dict[str, str],
    seed: int | None,
    budget: float | None,
    repeat_runs: int,
    gap: float | None,
    store: Path | None,
    full_report: bool,
    as_json: bool,
    fresh: bool,
    dry_run: bool,
) -> int:
    """Run an experiment plan, or resume its unfinished run.

    PLAN is a YAML file; `nephoscope schema plan` prints its keys.
    """
    repeat = options.repetition(repeat_runs, gap)
    if seed is not None:
        values["seed"] = str(seed)
    if budget is not None:
        values["budget"] = f"{budget!r}s"
    from nephoscope import catalog
    from nephoscope.measure import plans
    from nephoscope.results.past import past
    from nephoscope.store import Store

    known = catalog.load()
    loaded, place = plans.read(plan, values, known)
    runs = Store(store)
    estimate = plans.estimate(loaded, plans.expand(loaded, known), known, past(runs))
    plans.refuse_too_long(loaded, estimate, place)
    if dry_run:
        from nephoscope.cli.kit import dry_run as preview

        return preview.of_plan(loaded, runs, as_json=as_json)
    if repeat.runs > 1:
        from nephoscope.features.comparison.measure_repeats import measure_repeatedly

        return measure_repeatedly(loaded, store=store, repeat=repeat, as_json=as_json, fresh=fresh)
    return measuring.measure(loaded, store=store, as_json=as_json, full=full_report, fresh=fresh)
