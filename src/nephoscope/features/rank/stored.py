"""Alternatives of stored runs: their targets, the levels of a factor, or whole runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import combinations
from pathlib import Path

from nephoscope.core.errors import UnknownName, UsageError
from nephoscope.core.model import Better, InvalidTrial, MetricResult, RunResult, factors_key
from nephoscope.core.naming import level_name
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.records import dataclass
from nephoscope.features.comparison import between_runs
from nephoscope.features.comparison.history import LineHistory, machine_of
from nephoscope.features.comparison.prior import prior_of
from nephoscope.features.comparison.settings import measured_otherwise, settings_of
from nephoscope.features.rank.pairs import Pair, of_comparison
from nephoscope.features.rank.rows import Alternatives, Measurement
from nephoscope.results import analyse_run, run_settings
from nephoscope.stats.statistics.values import Array
from nephoscope.store import Store, StoredRun
from nephoscope.store.engines.question import Engine, size_of

ADDRESSES = frozenset({"url", "address", "host"})
"""Factors that name an alternative's own address, and so may differ between alternatives."""


TARGET = "target"
"""In place of a factor: the targets of a run are its alternatives, as without a factor."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """Run that a word of the command names. name: '' where targets or levels name alternatives."""

    name: str
    run: str
    target: str


def named(word: str) -> NamedRun:
    """Returns the parts of [NAME=]RUN[:TARGET]."""
    name, equals, rest = word.rpartition("=")
    run, _, target = rest.partition(":")
    if (equals and not name.strip()) or not run:
        raise UsageError(f"'{word}' names no run.", "Use RUN, RUN:TARGET or NAME=RUN:TARGET.")
    return NamedRun(name.strip(), run, target)


@dataclass
class StoredAlternatives(Alternatives):
    """Alternatives of one or several runs. _gaps: reason by alternative, benchmark and setting."""

    _runs: list[StoredRun] = field(default_factory=list)
    _histories: list[LineHistory] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _gaps: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _settings: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    _machines: set[str] = field(default_factory=set)

    def compare(self, a: Measurement, b: Measurement, prior: Array) -> Pair:
        """Compares two lines; of separate runs the interval includes the variance between runs."""
        if a.source == b.source or (a.line.simulated and b.line.simulated):
            return super().compare(a, b, prior)
        targets = (a.line.target, b.line.target)
        runs = (self._runs[a.source], self._runs[b.source])
        machines = [machine_of(run, target) for run, target in zip(runs, targets, strict=True)]
        key = (a.line.benchmark, a.line.metric, factors_key(a.line.factors))
        histories = [
            self._histories[side.source](key, target)
            for side, target in zip((a, b), targets, strict=True)
        ]
        kin = [
            group
            for side, target in zip((a, b), targets, strict=True)
            for group in self._histories[side.source].kin(key, target)
        ]
        comparison = between_runs.separate_runs(
            a.line.trial_values,
            b.line.trial_values,
            *histories,
            prior=prior_of(a.line.benchmark, a.line.metric),
            same_machine=machines[0] == machines[1] != "",
            better=Better.NONE,
            confidence=self.confidence,
            dependence=prior,
            kin=list({tuple(group): group for group in kin}.values()),
        )
        return of_comparison(comparison, a.line, b.line)

    def reason(self, alternative: str, line: MetricResult) -> str:
        """Returns why an alternative has no such line."""
        of_setting = self._gaps.get((alternative, line.benchmark, factors_key(line.factors)))
        return of_setting or super().reason(alternative, line)

    def add(
        self,
        item: NamedRun,
        run: StoredRun,
        result: RunResult,
        *,
        store: Store,
        by: str,
        metrics: Collection[str],
    ) -> None:
        """Adds the alternatives of one run. result: of it. UsageError where it names none."""
        targets = list(dict.fromkeys(line.target for line in result.metrics))
        if item.target and item.target not in targets:
            raise UnknownName(
                f"Run {item.run} has no target '{item.target}'.", f"Targets: {', '.join(targets)}."
            )
        lines = [line for line in result.metrics if item.target in ("", line.target)]
        labelled = list(labelled_lines(lines, by, metrics))
        levels = list(dict.fromkeys(name for name, _ in labelled))
        if not levels:
            raise _nothing(item.run, result, by, metrics)
        if item.name and len(levels) > 1:
            raise UsageError(
                f"'{item.name}' names {len(levels)} alternatives of run {item.run}: "
                f"{', '.join(levels)}.",
                "Select one as NAME=RUN:TARGET, or omit NAME.",
            )
        source = len(self._runs)
        otherwise = self._otherwise(run, {line.benchmark for _, line in labelled})
        for alternative, line in labelled:
            label = item.name or alternative
            if label not in self.names:
                self.names.append(label)
            if line.benchmark in otherwise:
                self.reasons[label, line.benchmark, ""] = otherwise[line.benchmark]
            else:
                self.measurements.append(Measurement(label, source, line))
        for trial in result.invalid:
            if item.target in ("", trial.target):
                self._note_gap(trial, by, item.name)
        for target in dict.fromkeys(line.target for _, line in labelled):
            self._settings[run.id, target] = run_settings.settings_of(run.manifest, target)
            self._machines.add(machine_of(run, target) or f"{run.id} {target}")
        self._runs.append(run)
        self._ids.add(run.id)
        # None of the ranked runs belongs to the history of another; the set grows with them.
        self._histories.append(LineHistory(store, run, self._ids))

    def _otherwise(self, run: StoredRun, benchmarks: Collection[str]) -> dict[str, str]:
        """Benchmarks that an earlier run measured with other parameters, each with the sentence."""
        own = settings_of(run.records())
        return {
            name: f"measured with other parameters than in run {earlier.id}"
            for earlier in self._runs
            for name in measured_otherwise(settings_of(earlier.records()), own) & set(benchmarks)
        }

    def _note_gap(self, trial: InvalidTrial, by: str, name: str) -> None:
        if by and by not in trial.factors:
            return
        alternative = name or (level_name(trial.factors[by]) if by else trial.target)
        if alternative not in self.names:
            self.names.append(alternative)
        reason = "; ".join(trial.reasons)
        factors = _without(trial.factors, by)
        self._gaps.setdefault((alternative, trial.benchmark, factors_key(factors)), reason)
        # A trial does not have the factors inside it, such as the kernel of mem.stream.
        self.reasons.setdefault((alternative, trial.benchmark, ""), reason)

    def check_separate(self) -> None:
        """Warns where alternatives come from separate runs, or were measured otherwise."""
        compared = run_settings.OF_MACHINE if len(self._machines) > 1 else ()
        self.hidden_settings = run_settings.hidden_settings(self._settings.values(), compared)
        sources: dict[str, set[int]] = {}
        for item in self.measurements:
            sources.setdefault(item.alternative, set()).add(item.source)
        if any(not a & b for a, b in combinations(sources.values(), 2)):
            self.warnings.append(
                "Some alternatives come from separate runs, so any change over time counts as a "
                "difference; measure all in one plan to exclude it."
            )


def of_runs(
    words: Sequence[str],
    store: Store,
    by: str,
    metrics: Collection[str],
    confidence: float,
    engine: Engine,
) -> Alternatives:
    """Returns the alternatives that the words of the command name. by: a factor, '' or TARGET.

    engine: analyses the runs.
    """
    by = "" if by == TARGET else by
    alternatives = StoredAlternatives(confidence)
    items = [named(word) for word in words]
    runs = [store.open(item.run) for item in items]
    results = engine.each(
        partial(_result, confidence),
        [run.path for run in runs],
        size_bytes=sum(map(size_of, runs)),
    )
    for item, run, result in zip(items, runs, results, strict=True):
        alternatives.add(item, run, result, store=store, by=by, metrics=metrics)
    known = {item.line.metric for item in alternatives.measurements}
    for metric in metrics:
        if metric not in known:
            raise UnknownName(
                f"No run has the metric '{metric}'{did_you_mean(metric, known)}.",
                "`nephoscope show RUN` prints the metrics of a run.",
            )
    alternatives.check_separate()
    return alternatives


def _result(confidence: float, path: Path) -> RunResult:
    return analyse_run.build(StoredRun(path), confidence=confidence)


def labelled_lines(
    lines: Sequence[MetricResult], by: str, metrics: Collection[str]
) -> Iterator[tuple[str, MetricResult]]:
    """Yields alternative and line; the line without the factor that names the alternative.

    metrics: names; the headline metrics when empty.
    """
    for line in lines:
        wanted = line.metric in metrics if metrics else line.headline
        if not wanted or line.better is Better.NONE or not line.trial_values:
            continue
        if not by:
            yield line.target, line
        elif by in line.factors:
            factors = _without(line.factors, by)
            yield level_name(line.factors[by]), replace(line, factors=factors)


def _without(factors: object, by: str) -> dict[str, object]:
    assert isinstance(factors, dict)
    return {name: level for name, level in factors.items() if name != by and name not in ADDRESSES}


def _nothing(run: str, result: RunResult, by: str, metrics: Collection[str]) -> UsageError:
    """The error of a run that has no alternative."""
    if metrics:
        return UsageError(f"Run {run} has none of the metrics asked for.", "Omit --metric.")
    factors = sorted({name for line in result.metrics for name in line.factors})
    if by and by not in factors:
        known = f"It varies {', '.join(factors)}." if factors else "It varies no factor."
        return UsageError(f"Run {run} has no factor '{by}'{did_you_mean(by, factors)}.", known)
    return UsageError(f"Run {run} has no valid trial of a headline metric.", "Measure it again.")
