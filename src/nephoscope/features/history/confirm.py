"""Confirms a change by an interleaved repetition, and judges repetitions that are in the store.

A repetition is a run with labels: REPETITION names the run behind the change, AGAINST a run before
it whose setting can still be measured (another version of a command, another target). Without
AGAINST the benchmark is repeated in random order with a reference: another benchmark of the same
plan whose own series has no change then. What changed for good is still there; a reference that
differs from its level shows that the target is disturbed now, and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from nephoscope import catalog
from nephoscope.core.errors import NephoscopeError, UnknownName, UsageError
from nephoscope.core.model import Better, Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.compaction.reading import AGAINST as AGAINST
from nephoscope.features.compaction.reading import REPETITION, StoredSummaries
from nephoscope.features.comparison import interleaving
from nephoscope.features.comparison.deciding import plans_of
from nephoscope.features.comparison.result import ComparisonRules
from nephoscope.features.comparison.stored import of_stored_runs
from nephoscope.features.history.records import ChangePoint, ConfirmingRun, Status
from nephoscope.features.history.result import MIN_CHANGE, scaled, shift_text, times
from nephoscope.features.history.series import HistoryPoint, Series, read
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.files.load import from_values
from nephoscope.report import wording
from nephoscope.stats.change_points import detection, step_test
from nephoscope.stats.statistics.means import t_quantile
from nephoscope.store import Store, StoredRun

NAME = "repetition"
LEVEL_POINTS = 40
"""Points before a change that describe the level."""
MINIMUM_LEVEL = 10
MINIMUM_ROUNDS = 10


def repetition_plan(run: StoredRun, series: Series, reference: Series | None) -> Plan:
    """Returns the plan that repeats a series' benchmark on its target beside a reference.

    run: whose plan is repeated. Raises UsageError for a run without a plan that can be repeated.
    """
    plan = plans.plan_of(run.id, run.manifest.plan)
    target = next((point.target for point in series.points if point.run == run.id), "")
    if plan is None or not target:
        raise UsageError(f"Run {run.id} has no plan that can be run again.", "Name another run.")
    wanted = [series.benchmark, *([reference.benchmark] if reference else [])]
    entries = [
        entry.model_copy(update={"on": (target,)})
        for entry in plan.benchmarks
        if entry.benchmark in wanted and (not entry.on or target in entry.on)
    ]
    if not {entry.benchmark for entry in entries} >= set(wanted):
        raise UsageError(
            f"The plan of run {run.id} does not list {series.benchmark}.", "Name another run."
        )
    rounds = max(MINIMUM_ROUNDS, plan.repeat.min)
    repeat = plan.repeat.model_copy(
        update={"allocation": "even", "min": rounds, "max": max(rounds, plan.repeat.max)}
    )
    repeated = plan.model_copy(
        update={
            "name": NAME,
            "question": "",
            "seed": None,
            "repeat": repeat,
            "benchmarks": tuple(entries),
        }
    )
    return from_values(plans.plan_values(repeated), catalog.load(), lambda _: "")


def pair_plan(store: Store, against: str, run: str) -> Plan:
    """Returns the plan that interleaves the settings of two runs, before and behind a change."""
    return interleaving.interleave(*_sides(store, against, run))


def _sides(store: Store, against: str, run: str) -> tuple[Plan, Plan]:
    def refuse(target: object) -> Plan:
        raise UsageError("A repetition compares stored runs only.", "Name a stored run.")

    return plans_of(against, run, store, None, refuse)


def reference_of(
    run: StoredRun, series: Series, runs: StoredSummaries, confidence: float
) -> Series | None:
    """Returns a series of another benchmark of the run's plan that has no change point.

    Of the benchmarks in the plan's order the first headline metric with enough points; None if no
    benchmark has one.
    """
    target = next((point.target for point in series.points if point.run == run.id), "")
    unwatched = set(run.manifest.benchmarks)
    for benchmark in sorted(unwatched - {series.benchmark}):
        for metric in run.spec(benchmark).metrics:
            if not metric.headline or metric.better is Better.NONE:
                continue
            try:
                matching, _ = read(
                    runs, metric.id, targets=[target], benchmarks=[benchmark], confidence=confidence
                )
            except NephoscopeError:
                continue
            for candidate in matching:
                if _is_steady(candidate, run.id):
                    return candidate
    return None


def _is_steady(series: Series, run: str) -> bool:
    at_s = times(series.points)
    has_run = any(point.run == run for point in series.points)
    if not has_run or not step_test.is_testable(at_s):
        return False
    values, is_ratio = scaled(series.points)
    smallest = math.log1p(MIN_CHANGE) if is_ratio else 0.0
    return not detection.detect(at_s, values, smallest=smallest)


@dataclass
class Judge:
    """Judges the repetitions in a store. runs: all that may be read. margin: see Settings."""

    store: Store
    runs: StoredSummaries
    margin: float
    confidence: float
    _of_run: dict[str, list[StoredRun]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for run in sorted(self.runs.repetitions(), key=lambda run: run.started_s):
            repeated = run.labels.get(REPETITION)
            if repeated:
                self._of_run.setdefault(repeated, []).append(run)

    def __call__(
        self,
        series: Series,
        before: Sequence[HistoryPoint],
        behind: Sequence[HistoryPoint],
        change: ChangePoint,
    ) -> list[ConfirmingRun]:
        """Returns the repetitions of the runs behind a change, judged, oldest first.

        before: points of the level before the change; behind: those up to the next change.
        """
        out = []
        for point in behind:
            for run in self._of_run.get(point.run, ()):
                against = run.labels.get(AGAINST, "")
                try:
                    if against:
                        judged = self._pair(run, against, point.run, series, change)
                    else:
                        judged = self._repetition(run, series, before, change)
                except NephoscopeError as error:
                    judged = ConfirmingRun(run.id, "undecided", f"{error}", None, "", None)
                if judged is not None:
                    out.append(judged)
        return out

    def _repetition(
        self, run: StoredRun, series: Series, before: Sequence[HistoryPoint], change: ChangePoint
    ) -> ConfirmingRun | None:
        repeated = self._value(run, series)
        if repeated is None:
            return None  # a repetition of another metric
        if len(before) < 2:  # two changes lie next to each other
            why = "Too few runs before the change describe the level"
            return ConfirmingRun(run.id, "undecided", f"{why}.", None, "", None)
        shift = _shift(before, repeated, change.is_ratio, self.confidence)
        reference = self._reference(run, series)
        again = self._value(run, reference) if reference else None
        level = [] if reference is None else list(reference.points)
        if reference is None or again is None or len(level) < MINIMUM_LEVEL:
            status, why = _status(shift, change, is_disturbed=False)
            return ConfirmingRun(run.id, status, f"{why}; without a reference.", shift, "", None)
        is_ratio = scaled([*level, again])[1]
        moved = _shift(level, again, is_ratio, self.confidence)
        is_disturbed = _differs(moved, is_ratio)
        status, why = _status(shift, change, is_disturbed=is_disturbed)
        name = wording.full_name(reference.benchmark, reference.metric)
        state = "differs from its level" if is_disturbed else "is at its level"
        sentence = f"{why}; the reference {name} {state} ({shift_text(moved, is_ratio)})."
        return ConfirmingRun(run.id, status, sentence, shift, name, moved)

    def _value(self, run: StoredRun, series: Series) -> HistoryPoint | None:
        """The series' metric at its setting in a repetition; None where it has none."""
        try:
            matching, _ = read(
                [run],
                series.metric,
                benchmarks=[series.benchmark],
                confidence=self.confidence,
                repetitions=True,
            )
        except UnknownName:
            return None
        names = {point.target for point in series.points}
        for candidate in matching:
            setting = candidate.factors, candidate.params
            is_same = setting == (series.factors, series.params)
            if is_same and candidate.points[0].target in names:
                return candidate.points[0]
        return None

    def _reference(self, run: StoredRun, series: Series) -> Series | None:
        measured = set(run.manifest.benchmarks)
        if measured <= {series.benchmark}:
            return None
        try:
            subject = self.store.open(run.labels[REPETITION])
        except NephoscopeError:
            return None  # it was removed
        return reference_of(subject, series, self.runs, self.confidence)

    def _pair(
        self, run: StoredRun, against: str, behind: str, series: Series, change: ChangePoint
    ) -> ConfirmingRun | None:
        sides = _sides(self.store, against, behind)
        merged = plans.plan_of(run.id, run.manifest.plan)
        if merged is None:
            return None
        ignored = interleaving.names_of_sides(*sides, merged)
        rules = ComparisonRules(self.margin, self.confidence, metrics=frozenset({series.metric}))
        comparisons = of_stored_runs(self.store, [run.id], rules, ignored=ignored)
        own = [
            compared
            for compared in comparisons.comparisons
            if compared.benchmark == series.benchmark
        ]
        if not own:
            return None
        verdict, ratio = own[0].comparison.verdict, own[0].comparison.ratio
        status: Status = "undecided"
        if verdict.word in ("better", "worse"):
            status = "confirmed" if verdict.word == change.direction else "refuted"
        elif verdict.word in ("equivalent", "different but negligible"):
            status = "refuted"
        return ConfirmingRun(run.id, status, verdict.sentence, ratio, f"run {against}", None)


def _shift(
    level: Sequence[HistoryPoint], repeated: HistoryPoint, is_ratio: bool, confidence: float
) -> Estimate:
    """A repeated value relative to a level, with the variation from run to run in its interval."""
    points = [*level[-LEVEL_POINTS:], repeated]
    values = np.array([point.estimate.value for point in points])
    values = np.log(values) if is_ratio else values
    own, last = values[:-1], float(values[-1])
    n = own.size
    centre, spread = float(np.median(own)), float(np.std(own, ddof=1))
    half = t_quantile(n - 1, confidence) * spread * math.sqrt(1 + 1 / n)
    ends = (last - centre, last - centre - half, last - centre + half)
    value, low, high = (math.exp(end) for end in ends) if is_ratio else ends
    unit = "ratio" if is_ratio else repeated.estimate.unit
    method = f"repeated value relative to the median of {n} runs; Student's t of a further run"
    return Estimate(value, low, high, confidence, n, unit, method)


def _differs(shift: Estimate, is_ratio: bool) -> bool:
    none = 1.0 if is_ratio else 0.0
    assert shift.low is not None
    assert shift.high is not None
    return not shift.low <= none <= shift.high


def _status(shift: Estimate, change: ChangePoint, *, is_disturbed: bool) -> tuple[Status, str]:
    """Judges a repeated value: as behind the change, as before it, or neither for certain."""
    assert shift.low is not None
    assert shift.high is not None
    none = 1.0 if change.is_ratio else 0.0
    text = f"The repetition is {shift_text(shift, change.is_ratio)} from the level before"
    if is_disturbed:
        return "undecided", f"{text}, but the target is disturbed now"
    rises = change.shift.value > none
    if (shift.low > none) if rises else (shift.high < none):
        return "confirmed", text
    holds_change = shift.low <= change.shift.value <= shift.high
    return ("undecided" if holds_change else "refuted"), text
