"""`nephoscope history`: how did a metric change over time, when, and what is expected?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument, duration, flag, option, ratio
from nephoscope.cli.kit.run_filters import RunFilters
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.features.compaction.reading import StoredSummaries
    from nephoscope.features.history.records import History
    from nephoscope.features.history.series import Series
    from nephoscope.store import Store, StoredRun
    from nephoscope.store.summary import RunMeasurements

REGRESSION = 1
"""Exit code of --check where a metric is worse."""
UNTESTED = 5
"""Exit code of --check where none is worse, and the newest runs of a series are not tested."""


@dataclass(frozen=True, slots=True)
class _HistoryArguments:
    metric: str = argument()
    filters: RunFilters = options.group(RunFilters)
    false_alarms: float = option(
        "--false-alarms",
        ratio(0.01, 0.2),
        "Probability of a change point in 200 runs of a stationary series.",
        default="5%",
    )
    margin: float = option(
        "--margin",
        ratio(0.0, 0.99),
        "Largest relative change for the worse that does not count as a regression.",
        default="3%",
    )
    min_change: float = option(
        "--min-change",
        ratio(0.0, 0.99),
        "Smallest relative change that is reported.",
        default="1%",
    )
    confidence: float = options.CONFIDENCE
    window_s: float | None = option(
        "--window",
        duration("1 s", "366 d"),
        "Merge the trials of all runs within this time into one point, e.g. 1h.",
    )
    check: bool = flag(
        "--check",
        "Exit with code 1 on a regression, 5 if runs are not tested; print regressions only.",
        is_local=True,
    )
    forecast: bool = flag(
        "--forecast", "Predict the next week, and the last one beside its values."
    )
    back_test: bool = flag("--back-test", "Test predictions of all past weeks.")
    confirm: str | None = option(
        "--confirm",
        RUN,
        "Repeat RUN interleaved with a reference, to confirm the change before it.",
        is_local=True,
    )
    against: str | None = option(
        "--against",
        RUN,
        "Run before the change, to interleave with instead of a reference.",
        is_local=True,
    )
    budget: float | None = options.BUDGET.local()
    to: Path | None = options.REPORT_FILE
    engine: str | None = options.ENGINE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("history", ".features.history.records:History"),
    requests=Query(),
    examples=(
        "hash_bytes_per_s",
        "hash_bytes_per_s --since 2026-11-01 --check",
    ),
)
def history(args: _HistoryArguments) -> int:
    """Print a metric over time: change points, forecasts.

    METRIC is a metric of `nephoscope show RUN`, such as latency_p99_ns. Change points are
    suspected until an interleaved repetition confirms them (--confirm).
    """
    if (args.against or args.budget) and not args.confirm:
        raise UsageError("--against and --budget are for a repetition.", "Add --confirm RUN.")
    if args.window_s and args.confirm:
        raise UsageError("--confirm repeats a run, and a window has several.", "Omit --window.")
    from nephoscope.core.model import RECORDED
    from nephoscope.features.compaction.reading import StoredSummaries
    from nephoscope.features.history import series
    from nephoscope.features.history.result import HistorySettings
    from nephoscope.features.history.section import section
    from nephoscope.features.history.stored import of_series
    from nephoscope.store import Store
    from nephoscope.store.engines import opened

    run_store = Store(args.store)
    settings = HistorySettings(args.false_alarms, args.margin, args.confidence, args.min_change)
    # A machine may have had another name before: `read` selects its whole series.
    wanted = replace(args.filters, targets=()).selection()
    runs = StoredSummaries(run_store, wanted, engine=opened(args.engine, str(run_store.path)))
    if not any(_has_target(run, args.filters.targets) for run in runs):
        _log_problems(runs)
        raise UsageError(
            f"No run in {run_store.address} meets the conditions.",
            "`nephoscope runs` shows them all.",
        )
    read = partial(
        series.read,
        metric=args.metric,
        targets=args.filters.targets,
        benchmarks=args.filters.benchmarks,
        confidence=args.confidence,
        replays=RECORDED in wanted.labels,
    )
    if args.confirm:
        repetition = _repeated(
            run_store,
            runs,
            read(runs)[0],
            args.metric,
            args.confirm,
            args.against,
            args.budget,
            args.confidence,
        )
        runs = StoredSummaries(run_store, wanted, [repetition])
    every, notes = read(runs, window_s=args.window_s)
    analysis = of_series(
        run_store, runs, every, notes, args.metric, settings, args.forecast, args.back_test
    )
    _log_problems(runs)
    code = _exit_code(analysis) if args.check else 0
    if args.check and not args.as_json and args.to is None:
        _print_check(analysis)
        return code
    page = section(analysis)
    source = ", ".join(dict.fromkeys(entry.target for entry in analysis.series))
    present(analysis, page, as_json=args.as_json, to=args.to, source=source)
    return code


def _exit_code(analysis: History) -> int:
    if analysis.regressions:
        return REGRESSION
    return UNTESTED if analysis.untested else 0


def _print_check(analysis: History) -> None:
    """Prints the regressions, and on standard error what else a check found."""
    for sentence in analysis.regressions:
        output.say(sentence)
    for series in analysis.untested:
        output.warn(f"{series.target}, {series.label}: {series.untested}")
    for series in analysis.series:
        for change in series.noise_changes:
            output.log(change.sentence)
        for moved in series.changes:
            if moved.cost_shift or (moved.went_away and moved.direction == "worse"):
                output.log(moved.sentence)
    tested = len(analysis.series) - len(analysis.untested)
    if not analysis.regressions and tested:
        output.log(f"No regression in {tested} series.")


def _log_problems(runs: StoredSummaries) -> None:
    for sentence in runs.problems:
        output.warn(sentence)


def _has_target(run: StoredRun | RunMeasurements, wanted: Sequence[str]) -> bool:
    """Whether a run measured a wanted target; a run that cannot be read may have done so."""
    from nephoscope.store import StoredRun

    return not wanted or isinstance(run, StoredRun) or not run.targets.keys().isdisjoint(wanted)


def _repeated(
    store: Store,
    runs: StoredSummaries,
    every_series: Sequence[Series],
    metric: str,
    name: str,
    against: str | None,
    budget_s: float | None,
    confidence: float,
) -> StoredRun:
    """Measures the repetition of a run now; returns it."""
    from nephoscope.features.comparison.deciding import require_repeatable
    from nephoscope.features.history import confirm
    from nephoscope.features.history.series import REPETITION

    run = store.open(name)
    series = _series_of(run, every_series, metric)
    require_repeatable(run, run.manifest.target_names[0])
    labels = {REPETITION: run.id}
    if against:
        labels[confirm.AGAINST] = store.open(against).id
        plan = confirm.pair_plan(store, labels[confirm.AGAINST], run.id)
    else:
        reference = confirm.reference_of(run, series, runs, confidence)
        if reference is None:
            output.warn(
                "No other benchmark of this plan has a steady history, so the "
                "repetition has no reference."
            )
        plan = confirm.repetition_plan(run, series, reference)
    if budget_s is not None:
        plan = plan.model_copy(update={"budget_s": budget_s})
    repetition = measuring.executed(plan, store, fresh=True, labels=labels)
    measuring.reported(repetition)
    return repetition


def _series_of(run: StoredRun, every_series: Sequence[Series], metric: str) -> Series:
    """The series that a run is a point of. UsageError where it is of none or of several."""
    from nephoscope.features.history.result import name_of

    own = [entry for entry in every_series if any(point.run == run.id for point in entry.points)]
    if not own:
        raise UsageError(
            f"Run {run.id} is no point of a series of {metric}.", "Name a run behind a change."
        )
    if len({(entry.benchmark, entry.target) for entry in own}) > 1:
        names = "; ".join(map(name_of, own))
        raise UsageError(
            f"Run {run.id} is a point of {len(own)} series: {names}.",
            "Select one with --target and --benchmark.",
        )
    return own[0]
