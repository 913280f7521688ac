"""Runs in a store whose every sample the test sets: the truth that results are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.store.factory import record

from nephoscope import catalog
from nephoscope.core.model import MetricResult, Sample, Setting, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.files.load import from_text
from nephoscope.results.run_data import RunData
from nephoscope.store import FINISHED, RunManifest, Store, StoredRun
from nephoscope.store.trialfile import AuxiliarySamples

Sampler = Callable[[Setting, int, str], Sequence[Sample]]
"""(setting, round, target) -> what the trial observed."""


def make_run(
    store: Path,
    plan_text: str | Plan,
    sampler: Sampler,
    *,
    rounds: int = 10,
    invalid: Sequence[int] = (),
    cause_of: Callable[[int, str], str] = lambda number, target: "",
    machine: str = "abc",
    state: str = FINISHED,
    one_by_one: bool = False,
    counters: Mapping[str, Any] | None = None,
    timeline: Mapping[str, tuple[int, int]] | None = None,
    auxiliary: Callable[[int], Sequence[AuxiliarySamples]] = lambda number: (),
    labels: Mapping[str, str] | None = None,
) -> StoredRun:
    """A run with one warm-up round and so many rounds; `invalid` rounds do not count.

    cause_of: (round, target) -> code of the reason for which the trial does not count; '' where it
    does. A trial over its deadline has no samples.

    one_by_one: whether its trials are stored with their events, as while a run is measured, which
    takes longer. counters, timeline: of each trial. auxiliary: samples of the loads of a round.
    """
    known = catalog.load()
    is_text = isinstance(plan_text, str)
    plan = from_text(plan_text, "plan.yaml", {}, known) if is_text else plan_text
    settings = plans.expand(plan, known)
    run = Store(store).create(plan, 7, catalog=known, settings=settings, labels=labels)
    trials = []
    for number in range(rounds + 1):
        for setting in settings:
            for target in setting.targets:
                cause = cause_of(number, target) or ("test" if number in invalid else "")
                status = TrialStatus.INVALID if cause else TrialStatus.VALID
                samples = sampler(setting, number, target)
                if cause == "deadline":
                    status, samples = TrialStatus.FAILED, []
                trial = record(
                    setting,
                    number,
                    len(trials),
                    target,
                    status=status,
                    reasons=("the test says so",) if cause else (),
                    reason_codes=(cause,) if cause else (),
                    failure_name=cause if cause == "deadline" else "",
                    started_at=float(len(trials)),
                    counters=counters or {},
                    timeline=timeline or {},
                )
                spec = known.benchmark(setting.benchmark)
                trials.append((trial, samples, spec, auxiliary(number)))
    if one_by_one:
        for trial_and_samples in trials:
            run.append(*trial_and_samples)
    else:
        run.store_all(trials)
    fingerprint = {"identity": {"machine_id_hash": machine}}
    run.update(fingerprints={target.name: fingerprint for target in plan.targets})
    run.finish(state)
    return run


NULL_PLAN = """
version: 1
name: made
question: Is the truth found?
margin: 3%
repeat: {min: 10, max: 50, relative_half_width: 2%}
benchmarks:
  - benchmark: "null"
"""

TWO_TARGETS = (
    NULL_PLAN
    + """
targets:
  - {name: one, kind: local}
  - {name: two, kind: local}
"""
)


def manifest_of(values: Mapping[str, Any]) -> RunManifest:
    """A manifest with these values, the others those of a finished run of nothing."""
    empty: dict[str, Any] = {"plan": {}, "settings": [], "specs": [], "targets": []}
    known = {"version": 2, "id": "made", "state": "finished", "plan_hash": ""}
    return RunManifest.of({**known, **empty, **values})


def run_data(
    records: Sequence[TrialRecord] = (),
    metrics: Sequence[MetricResult] = (),
    manifest: Mapping[str, Any] | None = None,
    *,
    confidence: float = 0.95,
    histograms: Mapping[Any, tuple[list[float], list[int]]] | None = None,
    fingerprints: Mapping[str, Any] | None = None,
) -> RunData:
    """The data of a run that is not stored, without the rows of its trials."""
    run = cast(StoredRun, SimpleNamespace(manifest=manifest_of(manifest or {})))
    return RunData(run, records, metrics, (), (), histograms or {}, fingerprints or {}, confidence)
