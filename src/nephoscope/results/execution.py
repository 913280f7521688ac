"""How a run was executed: where its time went, how far apart sides started, what its loads did,
which targets were lost. A pure function of the records.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from nephoscope.core.model import TrialRecord, TrialStatus
from nephoscope.measure.runs.trials.failure_names import LOST
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts
from nephoscope.store import RunManifest

PHASES = ("prepare", "start", "measure", "stop", "clean")
MOST_SKEW_NS = 1_000_000
"""Sides on one machine that start further apart than this are warned of."""


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One phase of all trials of a benchmark. n: trials; failed: trials that ended in it."""

    benchmark: str
    phase: str
    n: int
    total_ns: int
    median_ns: float
    longest_ns: int
    failed: int


@dataclass(frozen=True, slots=True)
class Skew:
    """Start skew of trials whose sides were to start at one moment.

    values_ns: one for each such trial, ascending. n: how many. over: how many above 1 ms.
    """

    n: int
    median_ns: float
    largest_ns: int
    over: int
    values_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoadUse:
    """One background on one target. n: trials that it loaded; died: trials that it failed.

    covered_least: the least part of a measured time during which it ran; None where unknown.
    """

    name: str
    benchmark: str
    target: str
    n: int
    died: int
    covered_least: float | None


@dataclass(frozen=True, slots=True)
class LostTarget:
    """A target that did not answer. is_abandoned: it was not tried again; trials: that it cost."""

    target: str
    is_abandoned: bool
    trials: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ControllerSummary:
    """Load of the controller. cpu_s: its CPU time; trials_s: time of the trials, summed, of which
    `overhead_ratio` is its share. late_ns: longest time for which it answered nothing."""

    trials: int
    cpu_s: float
    trials_s: float
    late_ns: float
    peak_memory_bytes: float

    @property
    def overhead_ratio(self) -> float | None:
        """Returns CPU time by time of the trials; None where nothing was measured."""
        return self.cpu_s / self.trials_s if self.trials_s > 0 else None


@dataclass(frozen=True, slots=True)
class ExecutionSummary:
    """All of it; see the module. tried_again: trials that needed more than one attempt."""

    phases: tuple[PhaseTime, ...]
    skew: Skew | None
    loads: tuple[LoadUse, ...]
    lost: tuple[LostTarget, ...]
    tried_again: int
    warnings: tuple[str, ...]
    controller: ControllerSummary | None = None


def analyse(data: RunData) -> ExecutionSummary | None:
    """Returns what the records state; None where they have no timelines (imports, old runs)."""
    timed = [record for record in data.records if record.timeline or record.failure_name == LOST]
    if not timed:
        return None
    skew = _skew(timed)
    warnings = []
    if skew is not None and skew.over:
        warnings.append(
            f"{skew.over} of {skew.n} common starts were more than 1 ms apart, the worst "
            f"{skew.largest_ns / 1e6:.2f} ms: their first moments were measured with fewer sides."
        )
    loads = _loads(timed)
    warnings += [
        f"The load '{load.name}' on {load.target} did not last through {load.died} of {load.n} "
        "trials; they do not count."
        for load in loads
        if load.died
    ]
    warnings += _shared_cpus(data, timed)
    return ExecutionSummary(
        phases=_phases(timed),
        skew=skew,
        loads=loads,
        lost=_lost(data.manifest, timed),
        tried_again=sum(record.attempt > 1 for record in timed),
        warnings=tuple(warnings),
        controller=_controller(data.manifest),
    )


def _controller(manifest: RunManifest) -> ControllerSummary | None:
    known = manifest.controller
    keys = [attribute.name for attribute in fields(ControllerSummary)]
    if not all(key in known for key in keys):
        return None  # a run of an earlier version, or one that has not ended
    return ControllerSummary(int(known["trials"]), *(float(known[key]) for key in keys[1:]))


def _shared_cpus(data: RunData, records: Sequence[TrialRecord]) -> list[str]:
    """Returns a sentence for each load that may run on the CPUs of the trials that it loads."""
    pairs = {
        (str(load["name"]), str(load["target"]), record.key.target)
        for record in records
        for load in record.loads
    }
    sentences = []
    for name, loaded_from, target in sorted(pairs):
        shared = _cpus(data, target) & _cpus(data, loaded_from)
        if shared and _machine(data, target) == _machine(data, loaded_from):
            cpus = ", ".join(str(cpu) for cpu in sorted(shared))
            sentences.append(
                f"The load '{name}' on {loaded_from} and the trials on {target} may both run on "
                f"CPU {cpus}: they compete for it, besides what else the load takes."
            )
    return sentences


def _cpus(data: RunData, target: str) -> set[int]:
    return set(facts.items(data.fingerprints.get(target), "topology.allowed_cpus") or ())


def _machine(data: RunData, target: str) -> str:
    """Returns the identity of the machine; a name of its own where that is unknown."""
    known = facts.text(data.fingerprints.get(target), "identity.machine_id_hash")
    return known or f"unknown machine of {target}"


def _phases(records: Sequence[TrialRecord]) -> tuple[PhaseTime, ...]:
    spans_of: dict[tuple[str, str], list[tuple[int, bool]]] = {}
    for record in records:
        reached = [phase for phase in PHASES if phase in record.timeline]
        for phase in reached:
            start_ns, end_ns = record.timeline[phase]
            failed = record.status is TrialStatus.FAILED and phase == reached[-1]
            spans_of.setdefault((record.benchmark, phase), []).append((end_ns - start_ns, failed))
    return tuple(
        PhaseTime(
            benchmark=benchmark,
            phase=phase,
            n=len(spans),
            total_ns=sum(span for span, _ in spans),
            median_ns=statistics.median(span for span, _ in spans),
            longest_ns=max(span for span, _ in spans),
            failed=sum(failed for _, failed in spans),
        )
        for (benchmark, phase), spans in spans_of.items()
    )


def _skew(records: Sequence[TrialRecord]) -> Skew | None:
    # Targets that started together share one skew: it counts once.
    starts = {
        (record.key.round, record.key.setting, record.started_at): record.skew_ns
        for record in records
        if record.skew_ns is not None
    }
    values = sorted(value for value in starts.values() if value is not None)
    if not values:
        return None
    return Skew(
        n=len(values),
        median_ns=statistics.median(values),
        largest_ns=values[-1],
        over=sum(value > MOST_SKEW_NS for value in values),
        values_ns=tuple(values),
    )


def _loads(records: Sequence[TrialRecord]) -> tuple[LoadUse, ...]:
    trials_of: dict[
        tuple[str, str, str], dict[tuple[int, int, float], tuple[bool, float | None]]
    ] = {}
    for record in records:
        once = (record.key.round, record.key.setting, record.started_at)
        for load in record.loads:
            key = (str(load["name"]), str(load["benchmark"]), str(load["target"]))
            who = f"the load '{key[0]}' ({key[1]} on {key[2]})"
            died = any(reason.startswith(who) for reason in record.reasons)
            trials_of.setdefault(key, {})[once] = (died, load.get("covered_ratio"))
    uses = []
    for (name, benchmark, target), trials in trials_of.items():
        covered = [ratio for died, ratio in trials.values() if ratio is not None and not died]
        uses.append(
            LoadUse(
                name,
                benchmark,
                target,
                n=len(trials),
                died=sum(died for died, _ in trials.values()),
                covered_least=min(covered, default=None),
            )
        )
    return tuple(uses)


def _lost(manifest: RunManifest, records: Sequence[TrialRecord]) -> tuple[LostTarget, ...]:
    abandoned: Mapping[str, str] = manifest.lost
    trials: dict[str, int] = {}
    words: dict[str, str] = dict(abandoned)
    for record in records:
        if record.failure_name != LOST or not record.reasons:
            continue
        # "in phase start: b is gone: …", "not tried: b is gone: …"
        _, _, rest = record.reasons[0].partition(": ")
        name, separator, sentence = rest.partition(" is gone: ")
        if separator:
            trials[name] = trials.get(name, 0) + 1
            words.setdefault(name, sentence)
    return tuple(
        LostTarget(name, name in abandoned, trials.get(name, 0), sentence)
        for name, sentence in words.items()
    )
