"""From what a group brought back to the records of its trials: which of them count, and why not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import Sample, TrialRecord, TrialStatus
from nephoscope.core.shared_load import UNTIL_FAILURE
from nephoscope.measure.runs.schedule.groups import Group, Work
from nephoscope.measure.runs.trials import validity
from nephoscope.measure.runs.trials.controller_load import ControllerUse
from nephoscope.measure.runs.trials.failure_names import LOST
from nephoscope.measure.runs.trials.phases import Phase, PhaseFailed
from nephoscope.measure.runs.trials.target_pool import TargetLost
from nephoscope.measure.runs.trials.validity import Reason
from nephoscope.measure.targets import Done, TargetTrial
from nephoscope.store.trialfile import AuxiliarySamples


class StoredTrial(NamedTuple):
    """One trial as the store takes it."""

    record: TrialRecord
    samples: Sequence[Sample]
    spec: BenchmarkSpec
    auxiliary: Sequence[AuxiliarySamples] = ()


def make_records(
    work: Work,
    measured: GroupResult,
    spec: BenchmarkSpec,
    accept: Mapping[str, Sequence[str]],
    *,
    position: int,
    spent_s: float,
    attempt: int = 1,
    is_here: bool = False,
) -> list[StoredTrial]:
    """A record for each target of the group; of trials that do not count, with the reasons.

    accept: target -> codes of reasons that do not make its trial invalid. is_here: whether a
    program of it runs on the controller's machine. position: of the first
    trial. spent_s: of the budget, for the whole group.
    """
    group, names = work.group, work.group.targets
    failed = {
        name: PhaseFailed(Phase.MEASURE, trial.failure, name if len(names) > 1 else "")
        for name, trial in measured.trials.items()
        if trial.failure is not None
    }
    stored = []
    for number, name in enumerate(names):
        trial = measured.trials.get(name)
        verdict = _verdict(group, measured, spec, accept, name, failed, is_here)
        own = failed.get(name)
        done = trial.done if trial is not None else None
        record = TrialRecord(
            key=work.keys[number],
            benchmark=group.setting.benchmark,
            params=group.setting.params,
            factors=group.setting.factors,
            status=verdict.status,
            reasons=tuple(reason.sentence for reason in verdict.reasons),
            position=position + number,
            started_at=measured.started_at,
            elapsed_ns=done.elapsed_ns if done else measured.elapsed_ns,
            counters=_counters(group, name, done, measured),
            notes=(*(done.notes if done else ()), *verdict.notes, *measured.notes, *work.notes),
            documents={
                **(trial.documents if trial else {}),
                **(_until_failure(trial, group, spec) if trial else {}),
                **measured.documents.get(name, {}),
            },
            failure_name=verdict.failure_name,
            spent_s=round(spent_s / len(names), 6),
            timeline=_until(measured.timeline, own),
            skew_ns=measured.skew_ns,
            loads=measured.loads,
            arm=group.setting.arm,
            nest=work.nest,
            attempt=attempt,
            around={when: key.name for when, key in group.around(work.round, name).items()},
            reason_codes=tuple(reason.code for reason in verdict.reasons),
        )
        samples = trial.samples if trial is not None else ()
        stored.append(StoredTrial(record, samples, spec, measured.auxiliary.get(name, ())))
    return stored


def _until_failure(trial: TargetTrial, group: Group, spec: BenchmarkSpec) -> dict[str, Any]:
    """Returns what a generator of a shared load had reported until it failed; {} of any other."""
    if not group.sharing or not trial.before_failure:
        return {}
    default = next((param.default for param in spec.params if param.id == "interval_ns"), 0)
    interval_s = group.setting.params.get("interval_ns", default) / 1e9
    sums: defaultdict[str, float] = defaultdict(float)
    for sample in trial.before_failure:
        sums[sample.metric] += sample.value
    return {
        UNTIL_FAILURE: {
            "completed_count": round(sums["interval_requests_per_s"] * interval_s),
            "errors_count": round(sums["interval_errors_count"]),
            "at_ns": max(sample.at_ns for sample in trial.before_failure),
        }
    }


class _Verdict(NamedTuple):
    """What became of one target's trial."""

    status: TrialStatus
    reasons: Sequence[Reason] = ()
    failure_name: str = ""
    notes: Sequence[str] = ()


def _verdict(
    group: Group,
    measured: GroupResult,
    spec: BenchmarkSpec,
    accept: Mapping[str, Sequence[str]],
    name: str,
    failed: Mapping[str, PhaseFailed],
    is_here: bool,
) -> _Verdict:
    """Judges one target's trial."""
    broken = [Reason(*cause) for cause in measured.broken]
    trial = measured.trials.get(name)
    own = measured.failure or failed.get(name)
    if own is not None:
        further_reasons = [] if own is measured.failure else broken
        return _Verdict(
            TrialStatus.FAILED, [Reason(own.name, own.reason), *further_reasons], own.name
        )
    if trial is None or trial.done is None:
        return _Verdict(TrialStatus.FAILED, broken, measured.failure_name)
    reasons, accepted = _reasons(group, measured, spec, accept, name, is_here)
    reasons += broken
    # What was to be measured together was not, when one of them failed.
    reasons += [
        Reason(failure.name, f"it was to run beside {name_of_load}: {failure.reason}")
        for name_of_load, failure in failed.items()
    ]
    notes = [f"Accepted by the plan: {reason.sentence}." for reason in accepted]
    status = TrialStatus.INVALID if reasons else TrialStatus.VALID
    return _Verdict(status, reasons, measured.failure_name, notes)


def _reasons(
    group: Group,
    measured: GroupResult,
    spec: BenchmarkSpec,
    accept: Mapping[str, Sequence[str]],
    name: str,
    is_here: bool,
) -> tuple[list[Reason], list[Reason]]:
    """Returns why a target's trial does not count, and what would be a reason and is accepted."""
    done = measured.trials[name].done
    assert done is not None
    setting, samples = group.setting, measured.trials[name].samples
    reasons = validity.reasons(spec, setting.params, samples, done.counters, done.elapsed_ns)
    judged = [(reason, accept.get(setting.client_of(name), ())) for reason in reasons]
    if setting.client:
        judged = [
            (Reason(code, f"the client {setting.client}: {text}"), codes)
            for (code, text), codes in judged
        ]
        own = validity.reasons_of_server(_counters(group, name, None, measured))
        judged += [(reason, accept.get(name, ())) for reason in own]
    busy = validity.reasons_of_controller(
        measured.controller if is_here else None, measured.announced_late_ns
    )
    judged += [(reason, accept.get(name, ())) for reason in busy]
    return (
        [reason for reason, codes in judged if reason.code not in codes],
        [reason for reason, codes in judged if reason.code in codes],
    )


CLIENT_COUNTERS = ("own_busy_cpus", "busy_ratio", "steal_ratio", "throttled_ratio")
"""Counters of a client on another machine that say whether it, or its server, was the limit."""

OF_CLIENT = "client_"
"""Begins the names of these counters beside those of the server's machine."""


def _counters(
    group: Group, name: str, done: Done | None, measured: GroupResult
) -> Mapping[str, Any]:
    """Returns the counters of the target's own machine over its trial.

    done: of the client. With a client elsewhere the target's own are those of its server, and the
    client's stand beside them.
    """
    own = measured.controller.counters() if done and measured.controller else {}
    if not group.setting.client:
        return {**done.counters, **own} if done else {}
    served = measured.served.get(name)
    client = done.counters if done else {}
    return {
        **(served.counters if served else {}),
        **{f"{OF_CLIENT}{key}": client[key] for key in CLIENT_COUNTERS if key in client},
        **own,
    }


def _until(timeline: Mapping[str, tuple[int, int]], failure: PhaseFailed | None) -> dict[str, Any]:
    """The time line up to the phase in which this target's trial failed."""
    if failure is None:
        return dict(timeline)
    reached = list(Phase)[: list(Phase).index(failure.phase) + 1]
    return {phase: times for phase, times in timeline.items() if phase in reached}


@dataclass(slots=True)
class GroupResult:
    """What a group brought back.

    trials: target -> what it measured; missing where it was not reached. failure: why nothing was
    measured. broken: what happened besides, for which no trial of the group counts: code and
    sentence. auxiliary, documents: of loads and hooks, by the target whose trial keeps them.
    served: target -> the last line of the server of its trial.
    loads, timeline, skew_ns: as in TrialRecord. notes: for every trial of the group. lost: the
    target that did not answer any more. controller: its load meanwhile; None where it is not known.
    announced_late_ns: by how much the sides were told of their common start after it.
    """

    trials: dict[str, TargetTrial] = field(default_factory=dict)
    served: dict[str, Done] = field(default_factory=dict)
    failure: PhaseFailed | None = None
    broken: list[tuple[str, str]] = field(default_factory=list)
    auxiliary: dict[str, list[AuxiliarySamples]] = field(default_factory=dict)
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    loads: tuple[Mapping[str, Any], ...] = ()
    timeline: dict[str, tuple[int, int]] = field(default_factory=dict)
    skew_ns: int | None = None
    notes: list[str] = field(default_factory=list)
    started_at: float = 0.0
    elapsed_ns: int = 0
    lost: TargetLost | None = None
    controller: ControllerUse | None = None
    announced_late_ns: int = 0

    @property
    def failure_name(self) -> str:
        """The name of what went wrong first; empty when nothing did."""
        if self.lost is not None:
            return LOST
        if self.failure is not None:
            return self.failure.name
        failed = [failure.name for failure in self.failures]
        return failed[0] if failed else self.broken[0][0] if self.broken else ""

    @property
    def failures(self) -> list[BenchmarkFailed]:
        """Returns the failures of single targets."""
        return [trial.failure for trial in self.trials.values() if trial.failure]

    def lose(self, lost: TargetLost, when: str) -> None:
        """Takes in that a target does not answer any more. when: in words."""
        self.lost = lost
        self.broken.append((LOST, f"{when}: {lost.name} is gone: {lost}"))

    def keep(self, owner: str, rows: AuxiliarySamples, documents: Mapping[str, Any]) -> None:
        """Keeps what a load or a hook counted with the trial of `owner`."""
        if rows.samples:
            self.auxiliary.setdefault(owner, []).append(rows)
        for name, document in documents.items():
            mark = "/".join(str(value) for value in rows.factors.values())
            key = f"{mark}/{rows.spec.id}/{name}"
            self.documents.setdefault(owner, {})[key] = document
