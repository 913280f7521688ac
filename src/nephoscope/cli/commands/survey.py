"""`nephoscope survey`: measures a machine by a built-in plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import measuring, options
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import RESULT
from nephoscope.core.errors import UsageError
from nephoscope.features.comparison.documents import REPEATS


@dataclass(frozen=True, slots=True)
class SurveyArguments:
    """Arguments of `nephoscope survey`."""

    quick: bool = options.flag("--quick", "Run a reduced survey that takes less than one minute.")
    full: bool = options.flag("--full", "Run all benchmarks at full resolution (about 20 minutes).")
    targets: Sequence[str] = options.TARGETS
    budget: float | None = options.BUDGET
    repeat_runs: int = options.REPEAT_RUNS
    gap: float | None = options.GAP
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    full_report: bool = options.FULL_REPORT
    as_json: bool = options.JSON
    fresh: bool = options.FRESH


@command(prints={"": RESULT, "--repeat-runs": REPEATS}, requests=MEASURES)
def survey(arguments: SurveyArguments) -> int:
    """Measure CPU, memory, disk and network of a machine.

    Writes a report as HTML, Markdown and JSON. TARGET is local, ssh:[user@]host[:port] or
    lab:LAB/HOST.
    """
    if arguments.quick and arguments.full:
        raise UsageError("--quick and --full exclude each other.", "Use only one of them.")
    repeat = options.repetition(arguments.repeat_runs, arguments.gap)
    from nephoscope.measure import plans

    plan = plans.survey(
        "quick" if arguments.quick else "full" if arguments.full else "standard",
        arguments.budget,
        arguments.seed,
    )
    if arguments.targets:
        plan = measuring.fitted(plan, arguments.targets)
    if repeat.runs > 1:
        from nephoscope.features.comparison.measure_repeats import measure_repeatedly

        return measure_repeatedly(
            plan,
            store=arguments.store,
            repeat=repeat,
            as_json=arguments.as_json,
            fresh=arguments.fresh,
        )
    return measuring.measure(
        plan,
        store=arguments.store,
        as_json=arguments.as_json,
        full=arguments.full_report,
        fresh=arguments.fresh,
    )
