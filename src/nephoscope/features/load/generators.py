"""What became of every request of generators that share a load, also of those that failed.

Counted over all trials, those that do not count included, because the server saw their requests
too. Of a generator that ended early, only what it had reported by then is known; the rest of its
part of the schedule is lost: sent or not, answered or not.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from nephoscope.core.model import Factors, TrialRecord, TrialStatus, stated
from nephoscope.core.records import dataclass
from nephoscope.core.shared_load import STARTED, UNTIL_FAILURE
from nephoscope.stats.statistics import histograms
from nephoscope.store.trialfile import is_auxiliary

if TYPE_CHECKING:
    import pyarrow as pa

SUM = "any"
"""The kind of error that stands for all of them."""
NO_REQUEST = "unasked_bytes"
"""The kind of error that is no request."""
NOT_STATED = "not stated"
"""Kind of the errors that a generator had reported until it failed."""

_COLUMNS = ("metric", "value", "count", "factors")
_SCALARS = frozenset(
    {
        *("due_count", "sent_count", "completed_count", "requests_per_s", "offered_per_s"),
        *("pace_ratio", "generator_busy_ratio", "late_sends_ratio"),
    }
)
_DUE, _COMPLETED = "due_count", "completed_count"
_MEASURE = "measure"
"""The phase of a trial in which requests are sent."""


@dataclass(frozen=True, slots=True)
class GeneratorTrial:
    """One trial of one generator. values: of its scalar metrics without factors.

    errors_count: failed requests by kind, without their sum. unasked_count: times that the server
    sent bytes which no request had asked for. latency: histogram of latency_ns.
    """

    record: TrialRecord
    values: Mapping[str, float]
    errors_count: Counter[str]
    unasked_count: int
    latency: histograms.Trial

    @classmethod
    def of(cls, record: TrialRecord, table: pa.Table) -> GeneratorTrial:
        """Reads the samples of a trial; those of loads beside it are left out."""
        values: dict[str, float] = {}
        errors: Counter[str] = Counter()
        latency: tuple[list[float], list[int]] = ([], [])
        columns = (table.column(name).to_pylist() for name in _COLUMNS)
        for metric, value, count, text in zip(*columns, strict=True):
            if metric == "latency_ns" and not is_auxiliary(text):
                latency[0].append(value)
                latency[1].append(count)
            elif metric == "errors_count" and not is_auxiliary(text):
                errors[json.loads(text)["kind"]] += int(value)
            elif metric in _SCALARS and not is_auxiliary(text):
                values[metric] = value
        unasked = errors.pop(NO_REQUEST, 0)
        errors.pop(SUM, None)
        return cls(record, values, errors, unasked, latency)

    @property
    def has_begun(self) -> bool:
        """Returns whether it may have sent something."""
        return _MEASURE in self.record.timeline


@dataclass(frozen=True, slots=True)
class GeneratorCounts:
    """Counts of one generator over all trials, warm-up included.

    due_count: requests of its part of the schedule: answered (completed_count), failed
    (errors_count, by kind), or lost with it when it failed (lost_count; None where a closed loop
    has no schedule that tells). failures: why its trials failed, each with the number of trials.
    requests_per_s: median over its trials; latency_…_ns: of all its requests, where it has any.
    busy_ratio, late_sends_ratio: the largest of its trials. late_start_ns, clock_offset_ns: the
    largest time by which it began after the first generator, and by which its clock appeared ahead
    of the controller's (with the delay of the message that showed it).
    """

    name: str
    trials: int
    failed_trials: int
    due_count: int
    sent_count: int
    completed_count: int
    errors_count: Mapping[str, int]
    lost_count: int | None
    requests_per_s: float | None
    latency_p50_ns: float | None
    latency_p99_ns: float | None
    busy_ratio: float | None
    late_sends_ratio: float | None
    late_start_ns: int | None
    clock_offset_ns: int | None
    failures: Mapping[str, int] = field(default_factory=dict)

    @stated
    def failed_count(self) -> int:
        """Returns the requests that failed, of all kinds."""
        return sum(self.errors_count.values())


@dataclass(frozen=True, slots=True)
class SharedLoadCounts:
    """Counts of generators that share one load, one for each of them, and their sums.

    scheduled_count: requests of the whole schedule over all trials, computed from rate and
    duration; None where these do not tell. is_lost_estimated: the lost requests are the parts of
    generators that did not fail, because the schedule is random. excluded_trials: trials that do
    not count, because one of the generators failed or was invalid. latency_…_ns: percentiles of
    the added histograms of all generators and trials.
    """

    benchmark: str
    target: str
    factors: Factors
    generators: tuple[GeneratorCounts, ...]
    trials: int
    excluded_trials: int
    scheduled_count: int | None
    is_lost_estimated: bool
    latency_p50_ns: float | None = None
    latency_p99_ns: float | None = None

    @stated
    def due_count(self) -> int:
        """Returns the requests that were due, over all generators."""
        return sum(generator.due_count for generator in self.generators)

    @stated
    def completed_count(self) -> int:
        """Returns the valid responses, over all generators."""
        return sum(generator.completed_count for generator in self.generators)

    @stated
    def failed_count(self) -> int:
        """Returns the requests that failed, over all generators."""
        return sum(generator.failed_count for generator in self.generators)

    @stated
    def lost_count(self) -> int | None:
        """Returns the requests without a known outcome; None where their number is unknown."""
        lost = [generator.lost_count for generator in self.generators]
        return None if None in lost else sum(filter(None, lost))

    @stated
    def is_conserved(self) -> bool | None:
        """States whether due = answered + failed + lost, and due is what the schedule has.

        None where a number is unknown.
        """
        if self.lost_count is None:
            return None
        ended = self.completed_count + self.failed_count + self.lost_count
        return ended == self.due_count and self.scheduled_count in (None, self.due_count)


def shared_counts(
    target: str,
    names: Sequence[str],
    trials: Iterable[GeneratorTrial],
    defaults: Mapping[str, Any],
) -> SharedLoadCounts:
    """Returns the counts of one setting.

    target: name of all generators together. names: theirs, in the order of their parts.
    defaults: of the benchmark's parameters.
    """
    by_round: dict[tuple[int, int], dict[str, GeneratorTrial]] = {}
    for trial in trials:
        key = trial.record.key
        by_round.setdefault((key.round, key.repeat_index), {})[key.target] = trial
    any_trial = next(iter(next(iter(by_round.values())).values()))
    record = any_trial.record
    params = {**defaults, **record.params}
    scheduled = _scheduled(params)
    begun = sum(any(each.has_begun for each in trials.values()) for trials in by_round.values())
    own = {
        name: [
            _GeneratorOutcome.of(together, name, part, is_open=params["arrivals"] != "closed")
            for together in by_round.values()
            if name in together
        ]
        for name, part in zip(names, _parts(scheduled, len(names)), strict=True)
    }
    outcomes = [outcome for every in own.values() for outcome in every]
    return SharedLoadCounts(
        record.benchmark,
        target,
        record.factors,
        tuple(_of_generator(name, every) for name, every in own.items()),
        trials=len(by_round),
        excluded_trials=sum(
            any(each.record.status is not TrialStatus.VALID for each in together.values())
            for together in by_round.values()
        ),
        scheduled_count=None if scheduled is None else scheduled * begun,
        is_lost_estimated=any(outcome.is_estimated for outcome in outcomes),
        latency_p50_ns=_quantile(outcomes, 0.5),
        latency_p99_ns=_quantile(outcomes, 0.99),
    )


def _parts(scheduled: int | None, generators: int) -> list[int | None]:
    """Returns the requests of each generator: they take every n-th one of the schedule."""
    if scheduled is None:
        return [None] * generators
    return [(scheduled + generators - 1 - number) // generators for number in range(generators)]


def _scheduled(params: Mapping[str, Any]) -> int | None:
    """Returns the requests of one trial's schedule: those due before its end."""
    if params["arrivals"] != "constant" or not params["duration_ns"]:
        return None
    if params["step_rates_per_s"] or params["ramp_end_per_s"]:
        return None
    rate_per_s = float(params["rate_per_s"])
    end_ns = int(params["warmup_ns"] + params["duration_ns"])
    count = math.ceil(end_ns * rate_per_s / 1e9)
    # A request that is due at the very end is one of rounding, which is that of the generator.
    while count > 0 and _due_ns(count - 1, rate_per_s) >= end_ns:
        count -= 1
    while _due_ns(count, rate_per_s) < end_ns:
        count += 1
    return count


def _due_ns(number: int, rate_per_s: float) -> int:
    """Returns when the request of a number, from 0, is due; see arrivals.rs of the probe."""
    return int(2.0 * number / (rate_per_s + math.sqrt(rate_per_s * rate_per_s)) * 1e9)


@dataclass(frozen=True, slots=True)
class _GeneratorOutcome:
    """What became of the part of one generator in one trial."""

    trial: GeneratorTrial
    due: int
    completed: int
    errors: Mapping[str, int]
    lost: int | None
    is_estimated: bool = False

    @classmethod
    def of(
        cls, trials: Mapping[str, GeneratorTrial], name: str, part: int | None, *, is_open: bool
    ) -> _GeneratorOutcome:
        """Returns that of one generator. trials: of all that started together. part: requests of
        its part of the schedule; None where it is unknown."""
        trial = trials[name]
        if _DUE in trial.values:
            due, completed = (round(trial.values[metric]) for metric in (_DUE, _COMPLETED))
            return cls(trial, due, completed, trial.errors_count, 0)
        if not trial.has_begun:
            return cls(trial, 0, 0, {}, 0)
        reported = trial.record.documents.get(UNTIL_FAILURE) or {}
        completed, failed = (int(reported.get(key, 0)) for key in (_COMPLETED, "errors_count"))
        errors = {NOT_STATED: failed} if failed else {}
        ended = completed + failed
        is_estimated = part is None
        if part is None:
            counted = [each.values[_DUE] for each in trials.values() if _DUE in each.values]
            if not counted or not is_open:
                return cls(trial, ended, completed, errors, None)
            part = max(round(fmean(counted)), ended)
        return cls(trial, part, completed, errors, part - ended, is_estimated)


def _quantile(outcomes: Sequence[_GeneratorOutcome], q: float) -> float | None:
    """Returns a quantile of all requests of these trials; None without any."""
    values, counts = histograms.merge([outcome.trial.latency for outcome in outcomes])
    return histograms.quantile_of_counts(values, counts, q) if counts.sum() else None


def _of_generator(name: str, outcomes: Sequence[_GeneratorOutcome]) -> GeneratorCounts:
    errors: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for outcome in outcomes:
        errors.update(outcome.errors)
        record = outcome.trial.record
        if record.status is TrialStatus.FAILED:
            failures[record.reasons[0] if record.reasons else "no reason recorded"] += 1
    lost = [outcome.lost for outcome in outcomes]
    starts = [outcome.trial.record.documents.get(STARTED) or {} for outcome in outcomes]

    def of(metric: str) -> list[float]:
        known = [outcome.trial.values.get(metric) for outcome in outcomes]
        return [value for value in known if value is not None]

    rates = sorted(of("requests_per_s"))
    return GeneratorCounts(
        name,
        trials=len(outcomes),
        failed_trials=sum(failures.values()),
        due_count=sum(outcome.due for outcome in outcomes),
        sent_count=round(sum(of("sent_count"))),
        completed_count=sum(outcome.completed for outcome in outcomes),
        errors_count={kind: count for kind, count in sorted(errors.items()) if count},
        lost_count=None if None in lost else sum(filter(None, lost)),
        requests_per_s=rates[len(rates) // 2] if rates else None,
        latency_p50_ns=_quantile(outcomes, 0.5),
        latency_p99_ns=_quantile(outcomes, 0.99),
        busy_ratio=max(of("generator_busy_ratio"), default=None),
        late_sends_ratio=max(of("late_sends_ratio"), default=None),
        late_start_ns=max((start["late_ns"] for start in starts if start), default=None),
        clock_offset_ns=max(
            (start["clock_offset_ns"] for start in starts if start), key=abs, default=None
        ),
        failures=dict(failures),
    )
