"""Computes the summary of a run from its trials, once, and reads it afterwards.

What only the computation needs is imported by it: reading takes less time than these imports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any, NamedTuple

from nephoscope import __version__
from nephoscope.catalog import FINGERPRINT
from nephoscope.core.errors import StoreError
from nephoscope.core.model import Estimate, Shape, TrialRecord, factors_key
from nephoscope.results import lines, names
from nephoscope.results.run_settings import VERSIONS, facts_of
from nephoscope.stats import facts
from nephoscope.stats.statistics import estimates, histograms
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import RUNNING, StoredRun, counts, packing, query, summary
from nephoscope.store.summary import MetricSummary, RunMeasurements, TargetSummary

CONFIDENCE = 0.95
"""Confidence of the estimates that a summary holds; others are computed from its histograms."""
QUANTILES = tuple(sorted({*lines.PERCENTILES, 0.25, 0.75, 0.95}))
"""Quantiles of histograms whose estimates a summary holds."""
MACHINE = "machine"
COMMAND = "argv"
"""Parameter of a labelled command that may change from version to version."""


def summary_of(run: StoredRun) -> RunMeasurements:
    """Returns the summary of a run; computes and writes it where its files changed since.

    That of a run that is not over is computed each time. A summary that cannot be written, as in a
    store of another user, is computed again next time. Raises StoreError for a run that cannot be
    read.
    """
    known = stored_summary(run)
    if known is not None:
        return known
    stamp = summary.stamp_of(run.path)
    run.reread()
    if run.state == RUNNING:
        return _computed(run)
    new = replace(_computed(run), stamp=stamp)
    with contextlib.suppress(StoreError):
        # What changed meanwhile has another stamp: the summary would never be read.
        if summary.stamp_of(run.path) == stamp:
            summary.write(run.path, new)
    return new


def stored_summary(run: StoredRun) -> RunMeasurements | None:
    """Returns the summary that was written for the files of a run as they are; reads no other one.

    None where there is none. Raises StoreError for a run that is not there.
    """
    known = summary.read(run.path)
    if known is None or known.nephoscope != __version__:
        return None
    return known if known.stamp == summary.stamp_of(run.path) else None


class LineAbout(NamedTuple):
    """Declaration and setting of a metric: see MetricSummary."""

    shape: Shape
    share: bool
    params: str
    command: str


def _computed(run: StoredRun) -> RunMeasurements:
    records = run.records()
    place = {record.key.name: record.position for record in records}
    metrics = metrics_of(*query.medians_and_histograms(run), place, about_lines(run))
    return head_of(run, {metric.target: None for metric in metrics}, tuple(metrics))


def head_of(
    run: StoredRun, targets: Mapping[str, None], metrics: tuple[MetricSummary, ...]
) -> RunMeasurements:
    """Returns the summary of a run with these metrics. targets: of them, in their order."""
    from nephoscope.store.trialfile import DAMAGED

    manifest = run.manifest
    records = run.records()
    valid = {record.key.name: record for record in records if counts(record)}
    kinds = {str(target["name"]): str(target["kind"]) for target in manifest.targets}
    damaged = [
        reason for record in records if record.failure_name == DAMAGED for reason in record.reasons
    ]
    return RunMeasurements(
        run=run.id,
        started_s=run.started_s,
        plan=str(manifest.plan_name or ""),
        plan_hash=str(manifest.plan_hash),
        state=run.status,
        labels=run.labels,
        trials=len(records),
        confidence=CONFIDENCE,
        targets={
            name: _target(run, name, kinds.get(name, ""), valid) for name in {**kinds, **targets}
        },
        benchmarks=manifest.benchmarks,
        metrics=metrics,
        damaged=(*damaged, *run.journal_problems()),
        created_s=float(manifest.created_at or 0.0),
    )


def about_lines(run: StoredRun) -> Callable[[str, str, str], LineAbout]:
    """Returns a function of benchmark, metric and trial to what a summary states of the metric."""
    records = {record.key.name: record for record in run.records()}
    declared = run.metrics_of_shape(Shape.SCALAR) | run.metrics_of_shape(Shape.HISTOGRAM)

    @cache
    def setting(trial: str) -> tuple[str, str]:
        record = records[trial]
        fixed = {k: v for k, v in record.params.items() if k not in record.factors and k != "seed"}
        command = ""
        if fixed.get("label"):
            command = " ".join(map(str, fixed.pop(COMMAND, None) or ()))
        return factors_key(fixed), command

    def about(benchmark: str, metric: str, trial: str) -> LineAbout:
        spec = declared[benchmark, metric]
        return LineAbout(spec.shape, spec.share, *setting(trial))

    return about


def metrics_of(
    values: Iterable[query.TrialValue],
    distributions: Iterable[query.TrialHistogram],
    place: Mapping[str, int],
    about: Callable[[str, str, str], LineAbout],
) -> list[MetricSummary]:
    """Returns the summary of each metric in these rows. place: of each trial in the run."""
    groups: list[tuple[lines.LineId, lines.Group | lines.Histograms]] = [
        *lines.group_scalars(values, place).items(),
        *lines.group_histograms(distributions, place).items(),
    ]
    return [
        _metric(key, group, about(key.benchmark, key.metric, group.trial)) for key, group in groups
    ]


def _metric(
    key: lines.LineId, group: lines.Group | lines.Histograms, about: LineAbout
) -> MetricSummary:
    """Returns the summary of a metric. about: of its first trial."""
    pack: Any = packing.pack_values if about.shape is Shape.SCALAR else packing.pack_histograms
    metric = MetricSummary(
        *key,
        about.params,
        about.command,
        group.unit,
        group.better,
        about.shape,
        {},
        pack(group.values),
        about.share,
        pack(group.unanswered) if group.unanswered else "",
    )
    return replace(metric, estimates=dict(_estimates(metric, group)))


def _estimates(
    metric: MetricSummary, group: lines.Group | lines.Histograms
) -> Iterator[tuple[str, Estimate | str]]:
    quantiles: Sequence[float | None] = (None,)
    trials: Sequence[Any] = group.values
    if metric.shape is Shape.HISTOGRAM:
        quantiles, trials = QUANTILES, histograms.pooled(trials)
    for quantile in quantiles:
        name = metric.metric
        if quantile is not None:
            name = names.percentile_metric(metric.metric, metric.unit, quantile)
        try:
            own = trials, group.unanswered
            yield name, estimate_of(metric, *own, quantile, name, CONFIDENCE)
        except Refused as refusal:
            yield name, str(refusal)


def estimate_of(
    metric: MetricSummary,
    trials: Sequence[Any],
    unanswered: Sequence[Any],
    quantile: float | None,
    name: str,
    confidence: float,
) -> Estimate:
    """Returns the median of the trials' values, or a quantile of their merged histograms.

    trials: `metric.values()` or `metric.histograms()`, also of several runs. unanswered:
    `metric.unanswered()` of the same trials, or nothing. quantile: None for values. name: of the
    estimate. Raises Refused.
    """
    if quantile is None:
        return estimates.median(trials, unit=metric.unit, confidence=confidence)
    return histograms.quantile_of_trials(
        trials,
        quantile,
        unit=metric.unit,
        confidence=confidence,
        unanswered=unanswered,
        seed=names.seed_of(metric.benchmark, metric.metric, metric.target, metric.factors, name),
    )


def _target(
    run: StoredRun, target: str, kind: str, records: Mapping[str, TrialRecord]
) -> TargetSummary:
    own = [record for record in records.values() if record.key.target == target]
    return TargetSummary(_facts(run, target, own), _steal(own), kind == "lab")


def _facts(run: StoredRun, target: str, records: Sequence[TrialRecord]) -> dict[str, str]:
    from nephoscope.features.comparison.history import machine_of

    document: Any = run.manifest.fingerprints.get(target)
    if not document:
        documents = [
            document
            for record in records
            if record.benchmark == FINGERPRINT
            for document in record.documents.values()
        ]
        document = documents[0] if documents else {}
    versions = {title: getattr(run.manifest, key) for key, title in VERSIONS.items()}
    known = facts_of(document) | versions | {MACHINE: machine_of(run, target)}
    return {title: value for title, value in known.items() if value}


def _steal(records: Sequence[TrialRecord]) -> float | None:
    values = [facts.number(record.counters, "steal_ratio") for record in records]
    known = [value for value in values if value is not None]
    return median(known) if known else None
