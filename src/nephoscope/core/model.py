"""The records that travel between the rooms. Frozen, plain, without I/O.

The words are those of docs/architecture.md: target, benchmark, metric, sample, trial, factor,
round, run, estimate, verdict, finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from nephoscope.core.naming import line_name

PartType = TypeVar("PartType")

INTERNAL: Mapping[str, Any] = {"internal": True}
"""Metadata of a field that stays out of JSON documents (see core/documents.py)."""

if TYPE_CHECKING:
    stated = property
else:

    class stated(property):  # noqa: N801
        """A property that is part of the record's JSON document (see core/documents.py)."""


RunState = Literal[
    "running", "not started", "interrupted", "killed", "measured", "finished", "failed"
]
ConsistencyWord = Literal["steady", "variable", "erratic", "unknown"]
VerdictWord = Literal["better", "worse", "equivalent", "different but negligible", "inconclusive"]

Factors = Mapping[str, Any]
"""Factor name -> level (a JSON scalar). Order has no meaning; see `factors_key`."""


class Better(StrEnum):
    """Direction of a metric that is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"


class Shape(StrEnum):
    """Meaning of the samples of one trial (see `Shape` in crates/wire)."""

    SCALAR = "scalar"
    SERIES = "series"
    HISTOGRAM = "histogram"
    DOCUMENT = "document"


class TrialStatus(StrEnum):
    """Outcome of a trial."""

    VALID = "valid"
    INVALID = "invalid"  # measured, but a rule says that the numbers cannot be believed
    FAILED = "failed"  # no numbers: the benchmark said why


AUXILIARY_FACTORS = frozenset({"load", "hook"})
"""Factors that mark the samples of loads and hooks, which are kept with the trial; benchmarks have
none of these names."""


def factors_key(factors: Factors) -> str:
    """Canonical text of factors: JSON, keys sorted, no spaces. Equal factors, equal text."""
    return json.dumps(dict(factors), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One observed value of a metric.

    value: in the metric's unit. count: how often it was seen (histograms), else 1.
    at_ns: nanoseconds since the trial began. factors: what it depends on inside the trial.
    """

    metric: str
    value: float
    count: int = 1
    at_ns: int = 0
    factors: Factors = field(default_factory=dict)


RECORDED: Final = "recorded"
"""Kind of a target that answers from a recording, and label of a run that has such targets."""

SELF = "self"
"""In place of a peer's name: each target serves itself."""


@dataclass(frozen=True, slots=True)
class Background:
    """A load that runs on `targets` from before a trial's start to after its end.

    peer: as in `Setting`.
    """

    name: str
    benchmark: str
    params: Mapping[str, Any]
    targets: tuple[str, ...]
    peer: str = ""
    settle_s: float = 0.2

    def server_of(self, target: str) -> str:
        """Returns the target that serves this load on `target`; '' where none does."""
        return target if self.peer == SELF else self.peer


@dataclass(frozen=True, slots=True)
class Hook:
    """A benchmark that runs before or after a trial; target '' is the trial's own."""

    benchmark: str
    params: Mapping[str, Any]
    timeout_s: float
    target: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One benchmark under one combination of levels: what a trial executes.

    index: position in the expanded plan. params: every parameter given by the plan, factors
    included. factors: what the plan varies, parameters and conditions alike (the levels of this
    setting). headline: metrics on which repetition stops; empty = the spec's headline metrics.
    entry: which entry of the plan's `benchmarks` it comes from. targets: names of the targets that
    run it. together: all of them at one moment, else each by itself. served_by: backgrounds that
    answer its requests. peer: target that serves the far side, SELF where each of `targets` does;
    '' where there is none. client: target that runs the benchmark for each of `targets`, one after
    the other; '' where they run it themselves. conditions:
    path -> value in the topology's own units, applied before the trial ('links.wan.delay' -> 0.05).
    arm: 'a' or 'b' in an A/A control, else ''.
    block: trials of one block follow one another within a round (a level that is dear to change).
    baseline: target -> (index, target) of the trial of the same round that it is held against.
    """

    index: int
    benchmark: str
    params: Mapping[str, Any]
    factors: Factors
    timeout_s: float
    headline: tuple[str, ...] = ()
    entry: int = 0
    targets: tuple[str, ...] = ("local",)
    together: bool = False
    served_by: tuple[str, ...] = ()
    peer: str = ""
    client: str = ""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    backgrounds: tuple[Background, ...] = ()
    before: tuple[Hook, ...] = ()
    after: tuple[Hook, ...] = ()
    arm: str = ""
    block: str = ""
    baseline: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def client_of(self, target: str) -> str:
        """Returns the target that runs the benchmark in a trial of `target`."""
        return self.client or target

    def server_of(self, target: str) -> str:
        """Returns the target that serves in a trial of `target`; '' where none does."""
        return target if self.peer == SELF else self.peer

    def servers(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yields which benchmarks are served, loads too, and the targets that serve them."""
        for benchmark, served, targets in (
            (self.benchmark, self.server_of, self.targets),
            *((load.benchmark, load.server_of, load.targets) for load in self.backgrounds),
        ):
            if names := tuple(filter(None, map(served, targets))):
                yield benchmark, names

    def executions(self) -> Iterator[tuple[str, Mapping[str, Any], tuple[str, ...]]]:
        """Yields what its trials execute, loads and hooks too: benchmark, parameters, targets."""
        yield self.benchmark, self.params, (self.client,) if self.client else self.targets
        for load in self.backgrounds:
            yield load.benchmark, load.params, load.targets
        for hook in (*self.before, *self.after):
            yield hook.benchmark, hook.params, (hook.target,) if hook.target else self.targets


def stored_ends(settings: Sequence[Mapping[str, Any]]) -> Callable[[int, str], tuple[str, str]]:
    """Returns a function from a setting's index and a target to the client and the server of that
    trial; the server is '' where none is known. settings: of a run's manifest."""
    known = {
        setting["index"]: Setting(
            setting["index"],
            str(setting.get("benchmark") or ""),
            {},
            {},
            0.0,
            peer=str(setting.get("peer") or ""),
            client=str(setting.get("client") or ""),
        )
        for setting in settings
        if isinstance(setting.get("index"), int)
    }

    def ends(index: int, target: str) -> tuple[str, str]:
        setting = known.get(index)
        if setting is None:
            return target, ""
        # A client of a service that ran already has no other server than the target.
        server = setting.server_of(target) or (target if setting.client else "")
        return setting.client_of(target), server

    return ends


@dataclass(frozen=True, slots=True)
class TrialKey:
    """Identity of a trial in a run: deterministic, so that a resumed run knows what it has.

    round: 1, 2, …; warm-up rounds are 0, -1, … (kept, never analysed). repeat_index: 0, or 1, 2, …
    for further trials of the same alternative in that round (the quiet ones of a design that goes
    around its baseline).
    """

    round: int
    setting: int
    target: str
    repeat_index: int = 0

    @property
    def name(self) -> str:
        """File-system name, unique in the run, sorted like the schedule of rounds."""
        mark = f"r{self.round:04d}" if self.round > 0 else f"w{-self.round:04d}"
        repeat = f"t{self.repeat_index:03d}" if self.repeat_index else ""
        return f"{mark}-s{self.setting:03d}{repeat}-{self.target}"


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Record of one finished trial, without its samples.

    position: 0-based place in the order in which the run executed its trials; where all is
    simulated, and several run at once, the number of the round.
    started_at: seconds since the epoch. elapsed_ns: as the probe measured it.
    counters: of the machine over the trial (steal, pressure, throttling); null where hidden.
    notes: sentences of the benchmark that a reader has to know. documents: metric -> JSON.
    reasons: why the trial is invalid or failed; empty when valid. failure_name: the benchmark's
    stable name of its failure; '' when it did not fail. spent_s: seconds of the run's budget that
    this trial took, from the end of the trial before it.
    timeline: phase (prepare, start, measure, stop, clean) -> [start_ns, end_ns] since the trial
    began; the last one there is where a failure happened. skew_ns: how far apart the sides that
    were to start at one moment did start; None for a trial that started alone. loads: one object
    for each background and target: name, benchmark, target, load (whether it runs until it is
    stopped), covered_ratio (part of the measured time during which it ran), trials (how often it
    ran to its end). arm: 'a' or 'b' of an A/A control. nest: instance and boot, 0-based, in a
    nested design. attempt: 1, or more where the plan declares retries. around: of a noisy trial in
    a design that goes around its baseline, `before` and `after`: the names of the baseline trials
    (TrialKey.name) on both sides of it. reason_codes: stable name of each of `reasons`; empty in
    runs of earlier versions.
    """

    key: TrialKey
    benchmark: str
    params: Mapping[str, Any]
    factors: Factors
    status: TrialStatus
    reasons: tuple[str, ...]
    position: int
    started_at: float
    elapsed_ns: int
    counters: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    documents: Mapping[str, Any] = field(default_factory=dict)
    failure_name: str = ""
    spent_s: float = 0.0
    timeline: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    skew_ns: int | None = None
    loads: tuple[Mapping[str, Any], ...] = ()
    arm: str = ""
    nest: Mapping[str, int] = field(default_factory=dict)
    attempt: int = 1
    around: Mapping[str, str] = field(default_factory=dict)
    reason_codes: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """Returns the code of the first reason for which it does not count; '' where none has."""
        return next(filter(None, (*self.reason_codes, self.failure_name)), "")


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """One statistic with what it takes to believe it; value, low and high share the unit.

    low, high: None where the interval does not exist on that side (too few repetitions); `note`
    has the reason. n: repetitions (trials), not requests. method: statistic, interval, resamples
    and seed in words. autocorrelation: estimate of the correlation of consecutive repetitions that
    the interval allows for. effective_n: how many independent repetitions the n are worth. Both
    None where the interval does not depend on the order. censored: the value and `low` are lower
    bounds of a statistic that requests without an answer reach; `high` is None then.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    n: int
    unit: str
    method: str
    note: str = ""
    autocorrelation: float | None = None
    effective_n: float | None = None
    censored: bool = False

    @property
    def half_width_ratio(self) -> float | None:
        """Half the interval's width relative to the value; None where that has no meaning."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    def __str__(self) -> str:
        """Returns value, interval and n: '11.2 GB/s [11.0, 11.4] (n = 12)'."""
        from nephoscope.core.estimate_text import estimate_text

        return estimate_text(self)

    def __repr__(self) -> str:
        """Returns what `str` does, with the confidence and the name of the class."""
        return f"<Estimate {self}, {100 * self.confidence:.4g} % confidence>"

    def _repr_html_(self) -> str:
        """Returns the estimate for a notebook, with the method below it."""
        from html import escape

        below = f"{100 * self.confidence:.4g} % confidence; {self.method}"
        note = f"<br><small>{escape(self.note)}</small>" if self.note else ""
        return f"<b>{escape(str(self))}</b><br><small>{escape(below)}</small>{note}"


@dataclass(frozen=True, slots=True)
class Consistency:
    """Variation of a metric from trial to trial; ratios, 0.05 is 5 %.

    robust_cv: 1.4826 MAD / median. cv: s / mean, None where refused. quartile_dispersion:
    (Q3 - Q1) / (Q3 + Q1). low, high: interval of robust_cv. word: of robust_cv: steady below 2 %,
    variable to 10 %, erratic above. certain: whether the whole interval has that word. All None
    when there are too few trials.
    """

    robust_cv: float | None
    cv: float | None
    quartile_dispersion: float | None
    low: float | None
    high: float | None
    word: ConsistencyWord
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Trials of a line that were excluded for a reason that may depend on what they measured.

    by_cause: words of the reason -> number of trials. trials: all of the line, excluded ones among
    them. values, rounds: as `MetricResult.trial_values` and `rounds`, with the excluded trials that
    have a value. slow_rounds: rounds of those that ran into their time limit and so have none.
    """

    by_cause: Mapping[str, int] = field(default_factory=dict)
    trials: int = 0
    values: tuple[float, ...] = ()
    rounds: tuple[int, ...] = ()
    slow_rounds: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Returns the number of excluded trials."""
        return sum(self.by_cause.values())


NO_EXCLUSIONS = Exclusions()


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One line of a result: a metric at one setting on one target.

    metric: the metric's name; of a histogram with the percentile in it (`latency_p99_ns`).
    warnings: sentences (not converged, dependent repetitions, skewed).
    trial_values: one value a trial in order of execution, for plots and comparison; of a
    percentile, that of each trial, or none where a trial alone has too few values for it (the
    estimate itself comes from the merged histogram). rounds: the round of each trial value. In a
    nested design a value is the median of a boot's trials and its round the boot's first, because
    trials of one boot are no independent repetitions; single_values and single_rounds are then
    those of the single trials.
    simulated: each trial is a replication with chance of its own; they cannot depend on each other.
    exclusions: its trials that were excluded for a reason that may depend on what they measured.
    """

    benchmark: str
    metric: str
    target: str
    factors: Factors
    better: Better
    estimate: Estimate
    consistency: Consistency
    headline: bool = False
    warnings: tuple[str, ...] = ()
    trial_values: tuple[float, ...] = field(default=(), metadata=INTERNAL)
    rounds: tuple[int, ...] = field(default=(), metadata=INTERNAL)
    simulated: bool = field(default=False, metadata=INTERNAL)
    single_values: tuple[float, ...] = field(default=(), metadata=INTERNAL)
    single_rounds: tuple[int, ...] = field(default=(), metadata=INTERNAL)
    exclusions: Exclusions = field(default=NO_EXCLUSIONS, metadata=INTERNAL)

    @stated
    def label(self) -> str:
        """Returns the line's name in a sentence."""
        return line_name(self.benchmark, self.metric, self.factors)

    @property
    def by_round(self) -> dict[int, float]:
        """Round -> its value; the median where a round has several (a baseline gone around)."""
        import statistics

        by_number: dict[int, list[float]] = {}
        for round, value in zip(self.rounds, self.trial_values, strict=False):
            by_number.setdefault(round, []).append(value)
        return {round: statistics.median(values) for round, values in by_number.items()}


BUSY_MACHINE = "busy_machine"
"""Identifier of the finding that other programs ran on the measured machine."""


class Severity(StrEnum):
    """Importance of a finding to the user of the machine."""

    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim about the machine, in one plain sentence, with its evidence and the next step."""

    id: str
    severity: Severity
    sentence: str
    evidence: tuple[str, ...]
    next_step: str = ""

    @property
    def is_grave(self) -> bool:
        """Returns whether it is more than information."""
        return self.severity is not Severity.INFO


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings by severity; those of one severity keep their order."""
    rising = list(Severity)
    return sorted(findings, key=lambda finding: -rising.index(finding.severity))


@dataclass(frozen=True, slots=True)
class InvalidTrial:
    """An excluded trial of a measured round (warm-up rounds are never used), with the reasons.

    cause: code of the first reason, such as `throttled` or `deadline`; '' where none is known.
    """

    trial: str
    benchmark: str
    target: str
    factors: Factors
    status: TrialStatus
    reasons: tuple[str, ...]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A conclusion in words, with the estimates that carry it and one sentence."""

    word: VerdictWord
    sentence: str
    estimates: tuple[Estimate, ...] = field(default=(), metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """Number of a run's trials by what became of them; warm-up trials are counted apart."""

    valid: int = 0
    invalid: int = 0
    failed: int = 0
    warmup: int = 0


@dataclass(frozen=True, slots=True)
class Precision:
    """Number of headline metrics, and how many have an interval within ±2, ±5 and ±10 %.

    The rest is wider, or has no interval or no relative width (a value of 0).
    """

    metrics: int = 0
    within_2_percent: int = 0
    within_5_percent: int = 0
    within_10_percent: int = 0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Identity, state and extent of a run.

    started_at, finished_at: ISO 8601, UTC. nephoscope, probe: versions. host: name of the machine
    that the local targets are; '' without one. directories: target -> where programs started and
    relative paths begin. store, path, report: where its files are. rounds:
    measured rounds, without warm-up. not_converged: lines whose interval stayed wider than the plan
    asked; converged: there are none. precision: headline metrics by the width of their intervals.
    confidence: of every interval.
    margin: relative difference that counts as equivalent. until: what ended repetition, as in
    the plan's `repeat`. partial: why the run has a part of what
    its plan asked for only; empty for a whole one. merged_from: stores from which the run was
    copied, oldest first. recorded: a sentence on the targets that answered from a recording, whose
    results are no new measurement; empty where none did.
    """

    id: str = ""
    plan: str = ""
    question: str = ""
    seed: int | None = None
    state: RunState = "finished"
    started_at: str | None = None
    finished_at: str | None = None
    nephoscope: str | None = None
    probe: str | None = None
    targets: tuple[str, ...] = ()
    host: str = ""
    directories: Mapping[str, str] = field(default_factory=dict)
    store: str = ""
    path: str = ""
    report: str | None = None
    rounds: int = 0
    trials: TrialCounts = TrialCounts()
    budget_s: float | None = None
    spent_s: float | None = None
    converged: bool = True
    not_converged: tuple[str, ...] = ()
    precision: Precision = Precision()
    confidence: float = 0.95
    margin: float = 0.03
    until: Literal["narrow", "decided"] = "narrow"
    partial: tuple[str, ...] = ()
    merged_from: tuple[str, ...] = ()
    recorded: str = ""


LineKey = tuple[str, str, str, str]
"""Benchmark, metric, target and `factors_key` of a line's factors."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The analysis of one run, read by the terminal, the report and `--json` alike.

    refused: sentences on statistics that were asked for and not given. fingerprints: target ->
    fingerprint document. histograms: merged (values, counts) for plots. series: list of (trial,
    at_ns, value) for timelines. parts: the records of the features that have something to
    state about this run, at most one of a type (see results/feature.py).
    """

    run: RunSummary
    metrics: tuple[MetricResult, ...]
    findings: tuple[Finding, ...]
    invalid: tuple[InvalidTrial, ...]
    refused: tuple[str, ...] = ()
    fingerprints: Mapping[str, Any] = field(default_factory=dict, metadata=INTERNAL)
    histograms: Mapping[LineKey, tuple[list[float], list[int]]] = field(
        default_factory=dict, metadata=INTERNAL
    )
    series: Mapping[LineKey, list[tuple[str, int, float]]] = field(
        default_factory=dict, metadata=INTERNAL
    )
    parts: tuple[Any, ...] = field(default=(), metadata=INTERNAL)

    def part(self, kind: type[PartType]) -> PartType | None:
        """Returns the part of this type; None where the run has none."""
        return part_of(self.parts, kind)


def part_of(parts: Iterable[Any], kind: type[PartType]) -> PartType | None:
    """Returns the first of these records that is of a type; None without one."""
    return next((part for part in parts if isinstance(part, kind)), None)
