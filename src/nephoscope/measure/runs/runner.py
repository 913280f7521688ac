"""A plan is measured: the top of the road, from a plan to a measured run in the store."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence

from nephoscope import __version__
from nephoscope import catalog as catalogue
from nephoscope.catalog import Catalog
from nephoscope.core.errors import Interrupted, NephoscopeError
from nephoscope.core.model import RECORDED, Setting
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs import volume_specs
from nephoscope.measure.runs.environments import environment_of
from nephoscope.measure.runs.execution import EnvironmentOf, RunExecution
from nephoscope.measure.runs.observer import Observer
from nephoscope.measure.runs.schedule import cells
from nephoscope.measure.runs.trials.target_pool import Factory
from nephoscope.store import MEASURED, Store, StoredRun, counts

_SEEDS = 2**32
_REFUSED = (2, 4)
"""Exit codes of what was asked wrongly, and of what the machine lacks."""


def execute(
    plan: Plan,
    store: Store,
    observer: Observer | None = None,
    *,
    fresh: bool = False,
    labels: Mapping[str, str] | None = None,
    targets: Factory = lambda record: record.make(),
    environment: EnvironmentOf = environment_of,
    absent: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> StoredRun:
    """Measures a plan into the store; goes on with an unfinished run of it, unless `fresh`.

    labels: of the run; those of a run that is resumed are kept where these do not replace them.
    absent: target -> reason for which it is not tried; with this mapping, even an empty one, the
    others are measured although a target cannot be opened. limit_s: see `RunExecution.measure`.

    A new run that is refused leaves nothing in the store: an error before its first trial, or a
    first trial that its target refuses (wrong parameters, missing programs).

    The run that is returned is `measured`: every trial is stored, nothing is reported yet. Raises
    Interrupted on Ctrl-C, SIGTERM and SIGHUP (what was measured is kept, the same command goes
    on), TargetError and Lacking when a target cannot be used, StoreError when the store cannot be
    written or the run is being measured by another process, BenchmarkFailed when not one trial of
    the run counts, PlanError when the plan boots what cannot be booted from here. Targets that were
    given up stand in the manifest under `lost`; what the others measured is there.
    """
    catalog = catalogue.load()
    labels = {**_own_labels(plan), **(labels or {})}
    settings = plans.expand(plan, catalog)
    cells.check(plan, settings)
    volume_specs.check(plan, settings)
    with contextlib.ExitStack() as stack:
        with store.choosing():
            run, resumed = _choose(plan, store, catalog, settings, fresh, labels)
            stack.enter_context(run.lock())
        if resumed and labels:
            run.update(labels={**run.labels, **labels})
        if run.state == MEASURED:
            return run
        stack.enter_context(_removing_if_refused(run, store, resumed))
        execution = RunExecution(
            run, plan, settings, catalog, observer or Observer(), targets, environment, absent
        )
        recorder = execution.recorder
        execution.begin(resumed)
        try:
            asyncio.run(execution.measure(limit_s))
        except (asyncio.CancelledError, KeyboardInterrupt):
            recorder.note_end("interrupted")
            raise Interrupted(
                f"Interrupted after {recorder.trials} trials; they are kept in run {run.id}.",
                "The same command goes on from there.",
            ) from None
        except BaseException as error:
            recorder.note_end(f"{type(error).__name__}: {error}")
            raise
        execution.finish()
    return run


@contextlib.contextmanager
def _removing_if_refused(run: StoredRun, store: Store, resumed: bool) -> Iterator[None]:
    """Removes a new run that ends in an error without anything that was measured.

    Trials that failed while they were measured stay: their reasons can be read with `show`.
    """
    try:
        yield
    except Interrupted:
        raise
    except NephoscopeError as error:
        records = list(run.records())
        refused = error.exit_code in _REFUSED and not any(map(counts, records))
        if not resumed and (refused or not records):
            store.discard(run)
        raise


def _own_labels(plan: Plan) -> dict[str, str]:
    """Returns the label that tells a replay from a measurement wherever runs are listed."""
    recorded = sum(target.traits().is_recorded for target in plan.targets)
    if not recorded:
        return {}
    return {RECORDED: "all" if recorded == len(plan.targets) else "some"}


def _choose(
    plan: Plan,
    store: Store,
    catalog: Catalog,
    settings: Sequence[Setting],
    fresh: bool,
    labels: Mapping[str, str] | None,
) -> tuple[StoredRun, bool]:
    """The run to go on with, or a new one; and whether it is an old one."""
    if not fresh:
        old = store.resumable(plans.plan_hash(plan))
        if old is not None and _same_program(old, catalog):
            return old, True
    seed = plan.seed if plan.seed is not None else secrets.randbelow(_SEEDS)
    every = [*settings, *cells.Cells(plan, settings).settings()]
    return store.create(plan, seed, catalog=catalog, settings=every, labels=labels), False


def _same_program(run: StoredRun, catalog: Catalog) -> bool:
    """Trials of another version are no repetitions of ours."""
    manifest = run.manifest
    return (manifest.nephoscope, manifest.probe, manifest.protocol) == (
        __version__,
        catalog.probe,
        catalog.protocol,
    )
