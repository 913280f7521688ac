"""`nephoscope run PLAN`: runs a plan, or resumes its unfinished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import Query, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.options import argument
from nephoscope.core.errors import UsageError
from nephoscope.features.comparison.documents import REPEATS


@dataclass(frozen=True, slots=True)
class _RunArguments:
    plan: Path = argument(options.PATH)
    values: dict[str, str] = options.set_option(
        "Override a value of the plan by its path, e.g. repeat.min=20.", "PATH=VALUE"
    )
    seed: int | None = options.SEED
    budget: float | None = options.BUDGET
    repeat_runs: int = options.REPEAT_RUNS
    gap: float | None = options.GAP
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    full_report: bool = options.FULL_REPORT
    as_json: bool = options.JSON
    fresh: bool = options.FRESH
    dry_run: bool = options.DRY_RUN


@command(
    prints={"": RESULT, "--dry-run": PREVIEW, "--repeat-runs": REPEATS},
    requests=Query(fixed=("--dry-run",)),
    examples=(
        "plan.yaml --dry-run",
        "plan.yaml --budget 10min",
    ),
)
def run(args: _RunArguments) -> int:
    """Run an experiment plan, or resume its unfinished run.

    PLAN is a YAML file; `nephoscope schema plan` prints its keys.
    """
    if str(args.plan).endswith((".js", ".ts")):
        raise UsageError(
            f"{args.plan} is no plan: scripts of k6 are not executed.",
            "`nephoscope load URL -c 10 -d 30s` puts a server under load; `nephoscope import FILE` "
            "reads k6's results.",
        )
    repeat = options.repetition(args.repeat_runs, args.gap)
    if args.seed is not None:
        args.values["seed"] = str(args.seed)
    if args.budget is not None:
        args.values["budget"] = f"{args.budget!r}s"
    from nephoscope import catalog
    from nephoscope.measure import plans
    from nephoscope.results.earlier_runs import times_of_earlier_runs
    from nephoscope.store import Store

    known = catalog.load()
    loaded, place = plans.read(args.plan, args.values, known)
    runs = Store(args.store)
    estimate = plans.estimate(
        loaded, plans.expand(loaded, known), known, times_of_earlier_runs(runs)
    )
    plans.refuse_too_long(loaded, estimate, place)
    if args.dry_run:
        from nephoscope.cli.kit import dry_run as preview

        return preview.of_plan(loaded, runs, as_json=args.as_json)
    if repeat.runs > 1:
        from nephoscope.features.comparison.measure_repeats import measure_repeatedly

        return measure_repeatedly(
            loaded, store=args.store, repeat=repeat, as_json=args.as_json, fresh=args.fresh
        )
    stored = measuring.executed(loaded, runs, fresh=args.fresh)
    return measuring.present(stored, as_json=args.as_json, full=args.full_report)
