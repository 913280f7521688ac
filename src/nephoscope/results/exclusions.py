"""Excluded trials by cause: which causes may depend on what the trial measured, and its values.

A rule on the instrument (a stepped clock, a program that died) excludes trials whatever they
measured. A rule that the slow trials of a machine break more often than its fast ones leaves the
fast ones to stand for it, so comparisons are made with and without such trials
(`analysis.exclusions`).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nephoscope.core.model import Exclusions, MetricResult, TrialRecord, TrialStatus, factors_key
from nephoscope.measure.runs.trials.failure_names import DEADLINE, LOST
from nephoscope.results import lines, names
from nephoscope.results.lines import LineId
from nephoscope.stats.statistics import histograms
from nephoscope.store import StoredRun, counts, query
from nephoscope.store.trialfile import DAMAGED

OUTCOME_CAUSES: Mapping[str, str] = {
    "throttled": "throttled by a CPU quota",
    "swapped": "memory in swap",
    "load_identity": "load generator too slow",
    "late_sends": "sent late",
    DEADLINE: "over the time limit",
}
"""Codes of causes that depend on the speed of the machine, in the words of a sentence."""

INSTRUMENT_CAUSES: Mapping[str, str] = {
    "clock_step": "clock stepped",
    "controller_busy": "controller too busy",
    "load_ended": "background load ended early",
    "unequal_counts": "counts of both sides differ",
    LOST: "target did not answer",
    DAMAGED: "file damaged",
}
"""Codes of causes in the instrument, whatever the trial measured."""

FAILED, UNKNOWN = "failed", "cause not recorded"


def cause_words(cause: str, status: TrialStatus) -> str:
    """Returns the words for the cause of an excluded trial."""
    known = OUTCOME_CAUSES.get(cause) or INSTRUMENT_CAUSES.get(cause)
    return known or (FAILED if status is TrialStatus.FAILED else UNKNOWN)


def may_depend_on_outcome(record: TrialRecord) -> bool:
    """Returns whether a trial of a measured round was excluded, perhaps for what it measured.

    A measured trial whose cause is not recorded (runs of earlier versions) may have been.
    """
    if record.status is TrialStatus.VALID or record.key.round <= 0:
        return False
    if record.cause in OUTCOME_CAUSES:
        return True
    return record.status is TrialStatus.INVALID and record.cause not in INSTRUMENT_CAUSES


@dataclass(frozen=True)
class ExcludedTrials:
    """Trials of a run that were excluded for a cause that may depend on what they measured.

    values, distributions: rows of the store, as of `RunData`, with those trials among them.
    """

    records: Sequence[TrialRecord]
    values: Sequence[query.TrialValue]
    distributions: Sequence[query.TrialHistogram]


NONE = ExcludedTrials((), (), ())


def excluded_trials(run: StoredRun, records: Iterable[TrialRecord]) -> ExcludedTrials:
    """Reads the excluded trials of a run; `NONE` where it has none."""
    excluded = [record for record in records if may_depend_on_outcome(record)]
    if not excluded:
        return NONE
    trials = {record.key.name for record in excluded}

    def is_counted(record: TrialRecord) -> bool:
        return counts(record) or record.key.name in trials

    return ExcludedTrials(excluded, *query.medians_and_histograms(run, trials=is_counted))


def with_exclusions(
    metrics: Sequence[MetricResult],
    excluded: ExcludedTrials,
    records: Sequence[TrialRecord],
    *,
    confidence: float,
    rounds_of_boot: int = 1,
) -> list[MetricResult]:
    """Returns the lines, each with its excluded trials."""
    if not excluded.records:
        return list(metrics)
    measured = _measured(excluded, records, confidence, rounds_of_boot)
    real = [record for record in records if record.key.round > 0]
    return [
        replace(line, exclusions=_exclusions_of(line, excluded.records, real, measured))
        for line in metrics
    ]


Measured = Mapping[LineId, tuple[Sequence[float], Sequence[int]]]
"""Values and rounds of a line, with its excluded trials."""


def _measured(
    excluded: ExcludedTrials,
    records: Sequence[TrialRecord],
    confidence: float,
    rounds_of_boot: int,
) -> Measured:
    place = {record.key.name: record.position for record in records}
    groups = lines.group_scalars(excluded.values, place)
    by_key = lines.group_histograms(excluded.distributions, place)
    if rounds_of_boot > 1:
        groups = {k: own.by_boot(rounds_of_boot, statistics.median) for k, own in groups.items()}
        by_key = {k: own.by_boot(rounds_of_boot, histograms.merge) for k, own in by_key.items()}
    measured: dict[LineId, tuple[Sequence[float], Sequence[int]]] = {
        key: (group.values, group.rounds) for key, group in groups.items()
    }
    for key, group in by_key.items():
        trials = histograms.pooled(group.values)
        for quantile in lines.PERCENTILES:
            metric = names.percentile_metric(key.metric, group.unit, quantile)
            values = lines.trial_percentiles(trials, quantile, confidence)
            measured[key._replace(metric=metric)] = (values, group.rounds if values else ())
    return measured


def _exclusions_of(
    line: MetricResult,
    excluded: Sequence[TrialRecord],
    records: Sequence[TrialRecord],
    measured: Measured,
) -> Exclusions:
    own = [record for record in excluded if _is_of(record, line)]
    if not own:
        return line.exclusions
    key = LineId(line.benchmark, line.metric, line.target, factors_key(line.factors))
    values, rounds = measured.get(key, ((), ()))
    return Exclusions(
        Counter(cause_words(record.cause, record.status) for record in own),
        sum(_is_of(record, line) for record in records),
        tuple(values),
        tuple(rounds),
        tuple(record.key.round for record in own if record.cause == DEADLINE),
    )


def _is_of(record: TrialRecord, line: MetricResult) -> bool:
    return (
        record.benchmark == line.benchmark
        and record.key.target == line.target
        and record.factors.items() <= line.factors.items()
    )
