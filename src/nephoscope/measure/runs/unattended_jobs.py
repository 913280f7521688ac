"""What machines without a controller have to do: a plan, cut into the batches of each machine.

Order, seeds and names of the trials are those of a run of the plan. What a run decides between
trials, nobody decides here: every setting gets its least number of rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nephoscope.catalog import FINGERPRINT, NATIVE, BenchmarkSpec, Catalog
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Setting
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.result_bucket import SignedAddress
from nephoscope.measure.plans import Plan, warmup_rounds
from nephoscope.measure.runs.schedule.groups import Group, Work, groups_of, in_order
from nephoscope.measure.runs.trials.seeds import with_seed
from nephoscope.measure.targets.probe import storage
from nephoscope.measure.targets.probe.target import START_S

OPENING = "fingerprint"
"""Name of a machine's first trial, which says what the machine is: the fingerprint that a run
takes when it opens a target."""

MAX_BATCHES = 60
"""Of a machine, besides the first: a signed address has half a kilobyte."""


@dataclass(frozen=True, slots=True)
class JobTrial:
    """A trial of a machine. name: that of its file in a run. work: None for the opening."""

    name: str
    benchmark: str
    params: Mapping[str, Any]
    timeout_s: float
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class JobBatch:
    """Trials whose output becomes one object."""

    name: str
    trials: tuple[JobTrial, ...]


def with_fixed_rounds(plan: Plan) -> Plan:
    """Returns the plan with the least number of rounds of each entry as their number."""
    entries = []
    for number, entry in enumerate(plan.benchmarks):
        rounds = plan.repeat_of(number).min
        fixed = entry.repeat.model_copy(update={"min": rounds, "max": rounds})
        entries.append(entry.model_copy(update={"repeat": fixed}))
    repeat = plan.repeat.model_copy(update={"max": plan.repeat.min, "until": "narrow"})
    return plan.model_copy(
        update={"benchmarks": tuple(entries), "repeat": repeat, "budget_s": None, "money": None}
    )


def refuse_unfit(plan: Plan, settings: Sequence[Setting], catalog: Catalog) -> None:
    """Raises UsageError for a plan that machines cannot carry out each for itself."""
    for why in _unfit(plan, settings, catalog):
        raise UsageError(
            f"The plan {plan.name} cannot be left to its machines: {why}.",
            "Measure it over a connection: `nephoscope run` with targets of kind rented.",
        )


def _unfit(plan: Plan, settings: Sequence[Setting], catalog: Catalog) -> Iterator[str]:
    of_plan = {
        "it has a lab": plan.lab is not None,
        "its design makes machines anew": plan.design.nest is not None,
        "its design goes around a baseline": bool(plan.design.baseline),
        "it ends by comparisons of machines, and no machine knows of another": (
            plan.repeat.until == "decided"
        ),
    }
    yield from (why for why, is_so in of_plan.items() if is_so)
    for setting in settings:
        name = setting.benchmark
        spec = catalog.benchmark(name)
        of_setting = {
            "has loads or hooks beside it": setting.backgrounds or setting.before or setting.after,
            "needs two machines at the same time": (
                setting.peer or setting.client or setting.together
            ),
            "varies conditions of a lab": setting.conditions,
            f"is no benchmark of the probe but of kind {spec.kind}": spec.kind != NATIVE,
            "needs another program beside it": spec.load or spec.wants_peer(setting.params),
            "needs credentials, which no machine gets": (
                storage.credentials(name, setting.params) is not None
            ),
        }
        yield from (f"{name} {why}" for why, is_so in of_setting.items() if is_so)


def batches_of(
    plan: Plan, settings: Sequence[Setting], catalog: Catalog, seed: int
) -> dict[str, list[JobBatch]]:
    """Returns the batches of each target in the order of their execution; the same for the same
    seed. The first has the fingerprint alone, each further one a round or several."""
    planned: dict[str, list[list[JobTrial]]] = {target.name: [] for target in plan.targets}
    most = max(plan.repeat_of(setting.entry).min for setting in settings)
    for number in (*warmup_rounds(plan.warmup), *range(1, most + 1)):
        pairs = [
            (setting.index, target)
            for setting in settings
            for target in setting.targets
            if _is_due(number, plan.repeat_of(setting.entry).min)
        ]
        of_round: dict[str, list[JobTrial]] = {}
        for group in in_order(seed, number, groups_of(pairs, settings)):
            trial = _trial(Work(number, group), catalog, seed)
            of_round.setdefault(group.targets[0], []).append(trial)
        for target, trials in of_round.items():
            planned[target].append(trials)
    return {target: _cut(rounds) for target, rounds in planned.items()}


def _is_due(number: int, rounds: int) -> bool:
    """As in `Progress.begin_round`: what needs a single trial needs no warm-up."""
    return rounds > 1 if number < 1 else number <= rounds


def _trial(work: Work, catalog: Catalog, seed: int) -> JobTrial:
    group: Group = work.group
    setting, target = group.setting, group.targets[0]
    spec: BenchmarkSpec = catalog.benchmark(setting.benchmark)
    params = with_seed(setting, setting.params, spec, target, seed=seed, round=work.round)
    return JobTrial(work.keys[0].name, spec.id, params, setting.timeout_s, work)


def _cut(rounds: Sequence[Sequence[JobTrial]]) -> list[JobBatch]:
    """Joins rounds where there are more than batches."""
    opening = JobTrial(OPENING, FINGERPRINT, {}, START_S)
    each = -(-len(rounds) // MAX_BATCHES)
    parts = [rounds[first : first + each] for first in range(0, len(rounds), max(1, each))]
    return [
        JobBatch("b000", (opening,)),
        *(
            JobBatch(f"b{number:03d}", tuple(trial for trials in part for trial in trials))
            for number, part in enumerate(parts, 1)
        ),
    ]


def job_document(
    machine: str,
    batches: Sequence[JobBatch],
    addresses: Mapping[str, SignedAddress],
    report: SignedAddress,
    *,
    work_s: float,
    gap_meter: bool,
) -> dict[str, Any]:
    """Returns the job of a machine for `nephoscope-probe unattended`. addresses: by batch. work_s:
    after which no trial begins."""
    return {
        "machine": machine,
        "work_s": work_s,
        "report": report.document(),
        "batches": [
            {
                "name": batch.name,
                "to": addresses[batch.name].document(),
                "trials": [
                    {
                        "name": trial.name,
                        "benchmark": trial.benchmark,
                        "params": dict(trial.params),
                        "timeout_s": trial.timeout_s,
                        "gap_meter": gap_meter and trial.work is not None,
                    }
                    for trial in batch.trials
                ],
            }
            for batch in batches
        ],
    }
