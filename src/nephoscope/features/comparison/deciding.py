"""Names the measurement that decides what two separate runs leave open, and finds its plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.reading.sentences import choices
from nephoscope.features.comparison.history import machine_of
from nephoscope.features.comparison.settings import measured_otherwise, settings_of
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.targets.kinds import KINDS, parse
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.store import Store, StoredRun

NOT_REPEATABLE = (
    "measure both settings alternately in one run (`nephoscope compare --interleave A.yaml "
    "B.yaml`), because results that were imported cannot be measured again."
)
REPEATED, GAP_MIN = 3, 10
REPEATS = f"--repeat-runs {REPEATED} --gap {GAP_MIN}min"
SURVEY = "survey-"


def next_step(
    runs: tuple[StoredRun, StoredRun], targets: tuple[str, str], alike: bool, store: Path | None
) -> str:
    """Returns the command that decides between two runs, in a sentence.

    alike: both measured one machine in the same way, so that time alone is between them.
    """
    records = [_record(run, target) for run, target in zip(runs, targets, strict=True)]
    places = [record.traits().place for record in records if record is not None]
    if len(places) < len(records):
        return NOT_REPEATABLE
    on_store = f" --store {store}" if store is not None else ""
    a, b = (f"{run.id}:{target}" for run, target in zip(runs, targets, strict=True))
    if alike:
        plan = str(runs[0].manifest.plan_name)
        again = f"run {plan}.yaml"
        if plan.startswith(SURVEY):
            level = plan.removeprefix(SURVEY)
            again = "survey" if level == "standard" else f"survey --{level}"
        on = f" --target {places[0]}" if places[0] != "local" and plan.startswith(SURVEY) else ""
        return (
            f"`nephoscope {again}{on} {REPEATS}{on_store}`, then "
            f"`nephoscope compare {a} {b}{on_store}` again: more runs of this machine "
            "show its variation from run to run."
        )
    if places[0] == places[1] and machine_of(runs[0], targets[0]) != machine_of(
        runs[1], targets[1]
    ):
        return (
            f"`nephoscope compare --interleave local ssh:HOST{on_store}` with the address of the "
            "other machine: both runs were made where they measured."
        )
    return f"`nephoscope compare --interleave {a} {b}{on_store}`"


def plans_of(
    a: str, b: str, store: Store, folder: Path | None, survey: Callable[[TargetRecord], Plan]
) -> tuple[Plan, Plan]:
    """Returns the plans that two words of --interleave name: each a target, a plan file or a run.

    A target takes the benchmarks of the other side; two targets take those of `survey`.
    """
    (left, left_run), (right, right_run) = (_source(text, store) for text in (a, b))
    if left_run and right_run:
        _refuse_alike(left_run, right_run, folder)
    plan = next((side for side in (left, right) if isinstance(side, Plan)), None)

    def on_target(side: Plan | TargetRecord) -> Plan:
        if isinstance(side, Plan):
            return side
        return survey(side) if plan is None else plan.model_copy(update={"targets": (side,)})

    return on_target(left), on_target(right)


def _source(text: str, store: Store) -> tuple[Plan | TargetRecord, tuple[StoredRun, str] | None]:
    """The target or plan that a word names; of a run, also the run and its target."""
    if text.partition(":")[0] in KINDS:
        return parse(text), None
    if Path(text).is_file():
        return plans.load(text), None
    if "/" in text or Path(text).suffix:
        raise UsageError(f"There is no plan '{text}'.", "Name a plan file, a target or a run id.")
    run, target = _run_of(text, store)
    record = require_repeatable(run, target)
    try:
        plan = Plan.model_validate(run.manifest.plan)
    except ValidationError:
        raise UsageError(
            f"Run {run.id} has no plan that can be run again.", "Name a plan file instead."
        ) from None
    return plan.model_copy(update={"targets": (record,)}), (run, target)


def require_repeatable(run: StoredRun, target: str) -> TargetRecord:
    """Returns a target of a run; UsageError where it cannot be measured again."""
    record = _record(run, target)
    if record is None:
        why = (
            "its results were imported"
            if run.manifest.imported is not None
            else "another version of nephoscope made it, whose targets this version does not know"
        )
        raise UsageError(
            f"Run {run.id} cannot be measured again: {why}.",
            "Name a plan file, a target or another run.",
        )
    return record


def _run_of(text: str, store: Store) -> tuple[StoredRun, str]:
    """The run and the target that a word names."""
    name, _, target = text.partition(":")
    run = store.open(name)
    known = list(run.manifest.target_names)
    if not target and len(known) == 1:
        target = known[0]
    if target not in known:
        raise UnknownName(
            f"Run {run.id} has no target '{target}'."
            if target
            else f"Run {run.id} has {len(known)} targets.",
            choices("Write RUN:TARGET; targets", known, "Name another run."),
        )
    return run, target


def _record(run: StoredRun, name: str) -> TargetRecord | None:
    """The target of a run; None where it cannot be measured again, as that of an imported run."""
    entry = next(entry for entry in run.manifest.targets if entry["name"] == name)
    kind = KINDS.get(entry["kind"])
    if kind is None:
        return None
    try:
        # An older version may have stored keys of other kinds too.
        return kind.model_validate({key: entry[key] for key in entry if key in kind.model_fields})
    except ValidationError:
        return None


def _refuse_alike(a: tuple[StoredRun, str], b: tuple[StoredRun, str], folder: Path | None) -> None:
    """Raises UsageError where a new run would measure one thing twice."""
    records = [_record(*side) for side in (a, b)]
    places = [record and record.traits().place for record in records]
    otherwise = measured_otherwise(*(settings_of(run.records()) for run, _ in (a, b)))
    if places[0] != places[1] or otherwise:
        return
    machines = {machine_of(*side) for side in (a, b)}
    step = next_step((a[0], b[0]), (a[1], b[1]), len(machines) == 1, folder)
    what = "measured one machine in the same way" if len(machines) == 1 else "have one address"
    raise UsageError(f"Both runs {what}, so one run cannot tell them apart.", f"Run {step}")
