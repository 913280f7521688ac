"""The result of a run, as a pure function of what the store holds: same store, same bytes."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from nephoscope.catalog import FINGERPRINT, SIMULATED, BenchmarkSpec
from nephoscope.core.errors import StoreError, UnknownName
from nephoscope.core.grouping import group_by
from nephoscope.core.model import (
    InvalidTrial,
    LineKey,
    MetricResult,
    RunResult,
    RunSummary,
    TrialCounts,
    TrialRecord,
    TrialStatus,
)
from nephoscope.measure.plans.files.load import plan_of
from nephoscope.results import exclusions, feature, lines, names
from nephoscope.results import findings as judged
from nephoscope.results.lines import LineId, Wanted
from nephoscope.results.partial import partial_reasons, recorded_text
from nephoscope.results.precision import precision
from nephoscope.results.run_data import RunData
from nephoscope.stats.statistics import histograms
from nephoscope.store import StoredRun, counts, query
from nephoscope.store.trialfile import DAMAGED

DEFAULT_CONFIDENCE = 0.95

Histograms = dict[LineKey, tuple[list[float], list[int]]]
"""As RunResult.histograms."""


def build(run: StoredRun, *, confidence: float | None = None) -> RunResult:
    """Analyses a run: estimates, distributions, time lines, findings, and excluded trials.

    confidence: of every interval; the plan's unless given. Raises StoreError when the run cannot
    be read.
    """
    data, refused = _data(run, confidence)
    summary = _summary(run, data.records, data.metrics, data.confidence)
    parts = tuple(_parts(data))
    series = _series(run)
    return RunResult(
        run=summary,
        metrics=tuple(data.metrics),
        findings=judged.findings(
            data.fingerprints, data.metrics, judged.summarise(data.records), parts, series
        ),
        invalid=tuple(
            InvalidTrial(
                trial=record.key.name,
                benchmark=record.benchmark,
                target=record.key.target,
                factors=record.factors,
                status=record.status,
                reasons=record.reasons or ("no reason recorded",),
                cause=record.cause,
            )
            for record in data.records
            if record.status is not TrialStatus.VALID
            # A warm-up trial has no part in the results, but damage to a run is told.
            and (record.key.round > 0 or record.cause == DAMAGED)
        ),
        refused=(*map(str, data.manifest.refused), *refused),
        fingerprints=data.fingerprints,
        histograms=data.histograms,
        series=series,
        parts=parts,
    )


def run_data(run: StoredRun, *, confidence: float | None = None) -> RunData:
    """Returns what analyses read of a run, for those that are made again with other settings."""
    return _data(run, confidence)[0]


def _data(run: StoredRun, confidence: float | None) -> tuple[RunData, list[str]]:
    """The run's data, and the sentences on statistics that cannot be given."""
    manifest = run.manifest
    level = confidence or float(manifest.confidence or DEFAULT_CONFIDENCE)
    records = run.records()
    values, distributions = query.medians_and_histograms(run)
    metrics, merged, refused = _metrics(run, records, values, distributions, level)
    excluded = exclusions.excluded_trials(run, records)
    metrics = exclusions.with_exclusions(
        metrics, excluded, records, confidence=level, rounds_of_boot=_WantedOf(run).rounds_of_boot
    )
    fingerprints = dict(manifest.fingerprints) or _fingerprints(records)
    data = RunData(
        run, records, metrics, values, distributions, merged, fingerprints, level, excluded
    )
    return data, refused


def _parts(data: RunData) -> Iterable[Any]:
    """Yields the record of every feature that has one for this run."""
    for entry in feature.analysed():
        record = feature.load(entry.analyse)(data) if entry.applies(data) else None
        if record is not None:
            yield record


def _metrics(
    run: StoredRun,
    records: Sequence[TrialRecord],
    values: Sequence[query.TrialValue],
    distributions: Sequence[query.TrialHistogram],
    confidence: float,
) -> tuple[list[MetricResult], Histograms, list[str]]:
    """All lines in the plan's order, the merged histograms, and what was refused."""
    place = {record.key.name: record.position for record in records}
    wanted = _WantedOf(run)
    out: list[tuple[tuple[int, int], MetricResult]] = []
    refused: list[str] = []
    models = {str(target["name"]) for target in run.manifest.targets if target.get("kind") == "sim"}
    single = groups = lines.group_scalars(values, place)
    by_key = lines.group_histograms(distributions, place)
    if wanted.rounds_of_boot > 1:
        rounds = wanted.rounds_of_boot
        groups = {key: own.by_boot(rounds, statistics.median) for key, own in single.items()}
        by_key = {key: own.by_boot(rounds, histograms.merge) for key, own in by_key.items()}
    priors = lines.pool_dependence(groups, by_key)
    for key, group in groups.items():
        line = lines.scalar_line(
            key,
            group,
            confidence=confidence,
            wanted=wanted(key, group.trial),
            simulated=key.target in models,
            prior=priors[key],
        )
        if group is not single[key]:
            own = single[key]
            line = replace(line, single_values=tuple(own.values), single_rounds=tuple(own.rounds))
        out.append((wanted.order(key, group.trial), line))
    merged: Histograms = {}
    for key, distribution in by_key.items():
        headline = key.metric in wanted(key, distribution.trial).headline
        metrics, reason = lines.percentile_lines(
            key,
            distribution,
            confidence=confidence,
            headline=headline,
            simulated=key.target in models,
            prior=priors[key],
        )
        median = names.percentile_metric(key.metric, distribution.unit, 0.5)
        if key._replace(metric=median) in groups:
            # Imported: percentiles of single trials, which the files state or few trials have.
            metrics, reason = [], ""
        out.extend((wanted.order(key, distribution.trial), line) for line in metrics)
        refused += [reason] if reason else []
        distinct, numbers = histograms.merge(distribution.values)
        merged[key.benchmark, key.metric, key.target, key.factors] = (
            distinct.tolist(),
            numbers.tolist(),
        )
    out.sort(key=lambda pair: pair[0])
    return [line for _, line in out], merged, refused


class _WantedOf:
    """Precision that the plan asks of a line, by the setting of one of its trials."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._settings: Sequence[Mapping[str, Any]] = run.manifest.settings
        self._plan = plan_of(run.id, run.manifest.plan)
        self._specs: dict[str, BenchmarkSpec | None] = {}
        nest = None if self._plan is None else self._plan.design.nest
        self.rounds_of_boot = nest.rounds if nest is not None and nest.boots > 1 else 1
        """Trials of one alternative that are one repetition, because they share a boot."""

    def __call__(self, key: LineId, trial: str) -> Wanted:
        setting = self._setting(trial)
        levels = json.loads(key.factors).keys()
        parts = names.PARTS & levels and key.benchmark.startswith(SIMULATED)
        if names.AUXILIARY_FACTORS & levels or parts:
            # Repetition stops on the trial's own metrics, never on those of its loads and hooks.
            return lines.wanted_of(None, self._repeat(setting), ())
        return lines.wanted_of(
            self._spec(key.benchmark), self._repeat(setting), setting.get("headline") or ()
        )

    def order(self, key: LineId, trial: str) -> tuple[int, int]:
        """Place among the lines: the plan's settings first, then the spec's metrics."""
        spec = self._spec(key.benchmark)
        positions = spec.positions if spec else {}
        at = positions.get(key.metric, len(positions))
        return int(self._setting(trial).get("index", len(self._settings))), at

    def _spec(self, benchmark: str) -> BenchmarkSpec | None:
        if benchmark not in self._specs:
            try:
                self._specs[benchmark] = self._run.spec(benchmark)
            except UnknownName:
                self._specs[benchmark] = None
        return self._specs[benchmark]

    def _setting(self, trial: str) -> Mapping[str, Any]:
        number = trial.split("-")[1].removeprefix("s").partition("t")[0]
        index = int(number) if number.isdigit() else -1
        return self._settings[index] if 0 <= index < len(self._settings) else {}

    def _repeat(self, setting: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._plan is None or self._run.manifest.imported is not None:
            return {}  # nobody asked another tool for a precision
        entry = setting.get("entry")
        if entry is not None and not 0 <= entry < len(self._plan.benchmarks):
            raise StoreError(
                f"A setting of run {self._run.id} is of entry {entry} of its plan, which has "
                f"{len(self._plan.benchmarks)}.",
                "`nephoscope verify` checks the run; its samples can be exported.",
            )
        repeat = self._plan.repeat if entry is None else self._plan.repeat_of(entry)
        values = repeat.model_dump()
        if self.rounds_of_boot > 1:
            values |= {name: values[name] // self.rounds_of_boot for name in ("min", "max")}
        return values


def _fingerprints(records: Iterable[TrialRecord]) -> dict[str, Any]:
    """The first fingerprint document of each target."""
    fingerprints: dict[str, Any] = {}
    for record in records:
        if record.benchmark == FINGERPRINT and record.documents:
            fingerprints.setdefault(record.key.target, next(iter(record.documents.values())))
    return fingerprints


def _series(run: StoredRun) -> dict[LineKey, list[tuple[str, int, float]]]:
    by_line = group_by(query.series(run), lambda p: (p.benchmark, p.metric, p.target, p.factors))
    return {key: [(p.trial, p.at_ns, p.value) for p in own] for key, own in by_line.items()}


def moment_text(seconds: Any) -> str | None:
    """Returns a time in seconds since the epoch as ISO 8601, UTC; None for what is none."""
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _host(run: StoredRun) -> str:
    """Returns the name of the machine that the local targets of a run are; '' without such one."""
    if all(target.get("kind") != "local" for target in run.manifest.targets):
        return ""
    sessions = [event for event in run.events() if event.get("event") == "session_started"]
    return str(sessions[-1].get("machine") or "") if sessions else ""


def _summary(
    run: StoredRun,
    records: Sequence[TrialRecord],
    metrics: Sequence[MetricResult],
    confidence: float,
) -> RunSummary:
    manifest = run.manifest
    wide = [
        line.label + ("" if len(manifest.targets) == 1 else f" on {line.target}")
        for line in metrics
        if any(warning.startswith(names.NOT_CONVERGED) for warning in line.warnings)
    ]
    real = [record for record in records if record.key.round > 0]
    return RunSummary(
        id=run.id,
        plan=str(manifest.plan_name or manifest.plan.get("name", "")),
        question=str(manifest.question or ""),
        seed=manifest.seed,
        state=run.status,  # type: ignore[arg-type]
        started_at=moment_text(manifest.started_at),
        finished_at=moment_text(manifest.finished_at),
        nephoscope=manifest.nephoscope,
        probe=manifest.probe,
        targets=manifest.target_names,
        host=_host(run),
        directories={
            target: known["directory"]
            for target, known in manifest.fingerprints.items()
            if known.get("directory")
        },
        store=run.store_address,
        path=run.address,
        report=str(run.report_path / "report.html"),
        rounds=max((record.key.round for record in real), default=0),
        trials=TrialCounts(
            valid=sum(counts(record) for record in real),
            invalid=sum(record.status is TrialStatus.INVALID for record in real),
            failed=sum(record.status is TrialStatus.FAILED for record in real),
            warmup=len(records) - len(real),
        ),
        budget_s=manifest.budget_s,
        spent_s=manifest.spent_s,
        converged=not wide,
        not_converged=tuple(wide),
        precision=precision(metrics),
        confidence=confidence,
        margin=float(manifest.margin or 0.03),
        until=(manifest.plan.get("repeat") or {}).get("until", "narrow"),
        partial=partial_reasons(run),
        merged_from=tuple(str(origin["store"]) for origin in manifest.merged_from),
        recorded=recorded_text(run),
    )
