"""From stored trials to victims with their loaded and baseline trials, and the pairs among them."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import CPU_GAPS
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, MetricResult, TrialRecord, factors_key
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass
from nephoscope.features.isolation.records import VictimLine
from nephoscope.results import names
from nephoscope.stats import interference
from nephoscope.stats.interference import Triple
from nephoscope.stats.statistics import histograms
from nephoscope.stats.statistics.histograms import Trial

if TYPE_CHECKING:
    from nephoscope.store.query import TrialHistogram, TrialValue

RESOURCE, INTENSITY, NEIGHBOURS = "resource", "intensity", "neighbours"
LOAD_FACTORS = frozenset({RESOURCE, INTENSITY, NEIGHBOURS})
ACHIEVED = "load_intensity_ratio"
BASELINE_LOAD = "none"
QUOTA = "quota"
"""A treatment without a neighbour: the victim under its own quota (plans/isolation.py)."""
_MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class AppliedLoad:
    """Load beside a trial. intensity: 0..1, requested."""

    resource: str
    intensity: float
    neighbours: int


@dataclass(slots=True)
class WatchedLine:
    """One victim's value in every trial, by the trial's name; histograms where it has them."""

    victim: VictimLine
    values: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, Trial] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paired:
    """Loaded trials with their quiet; names[i] are (loaded, quiet …) of triples[i]."""

    triples: tuple[Triple, ...]
    names: tuple[tuple[str, ...], ...]
    left_out: int
    around: bool


@dataclass(frozen=True, slots=True)
class AnalysedTrials:
    """Trials that all parts of the analysis use. records: trials that count, by name; achieved:
    trial -> what each load beside it reached; shares: trial -> the CPU share of its loops."""

    records: Mapping[str, TrialRecord]
    distributions: Sequence[TrialHistogram]
    achieved: Mapping[str, Sequence[float]]
    shares: Mapping[str, float]
    margin: float
    confidence: float


def load_of(factors: Mapping[str, Any]) -> AppliedLoad | None:
    """The load that a trial's factors name; None for baseline trials and plans without loads."""
    resource = factors.get(RESOURCE)
    if resource is None or resource == BASELINE_LOAD:
        return None
    return AppliedLoad(
        str(resource), _ratio(factors.get(INTENSITY)), _count(factors.get(NEIGHBOURS))
    )


def _ratio(level: Any) -> float:
    """An intensity as a ratio: 0.5, '0.5' and '50%' are the same; full where none is named."""
    text = str(1.0 if level is None else level).strip()
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)


def _count(level: Any) -> int:
    return 1 if level is None else int(float(str(level)))


def watched(
    metrics: Iterable[MetricResult],
    values: Sequence[TrialValue],
    distributions: Sequence[TrialHistogram],
    records: Mapping[str, TrialRecord],
) -> list[WatchedLine]:
    """The lines that are watched: headline metrics, of benchmarks without any all metrics."""
    wanted = _wanted(metrics)
    lines: dict[tuple[str, str, str, str], WatchedLine] = {}
    for row in values:
        line = _line(lines, wanted, row, row.metric)
        if line is not None and row.trial in records:
            line.values[row.trial] = row.value
    for histogram in distributions:
        median = names.percentile_metric(histogram.metric, histogram.unit, _MIDDLE)
        line = _line(lines, wanted, histogram, median)
        if line is not None and histogram.trial in records and any(histogram.counts):
            trial = (histogram.values, histogram.counts)
            line.values[histogram.trial] = histograms.quantile([trial], _MIDDLE)
            line.histograms[histogram.trial] = trial
    return list(lines.values())


def _wanted(metrics: Iterable[MetricResult]) -> set[tuple[str, str]]:
    """(benchmark, metric) of what is watched."""
    able = [
        metric
        for metric in metrics
        if metric.better is not Better.NONE and not _is_auxiliary(metric.factors)
    ]
    headline = {(metric.benchmark, metric.metric) for metric in able if metric.headline}
    with_headline = {benchmark for benchmark, _ in headline}
    return headline | {
        (metric.benchmark, metric.metric)
        for metric in able
        if metric.benchmark not in with_headline
    }


def _is_auxiliary(factors: Mapping[str, Any]) -> bool:
    return bool(names.AUXILIARY_FACTORS & factors.keys())


def _own_factors(factors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: level for name, level in factors.items() if name not in LOAD_FACTORS}


def _line(
    lines: dict[tuple[str, str, str, str], WatchedLine],
    wanted: set[tuple[str, str]],
    row: TrialValue | TrialHistogram,
    metric: str,
) -> WatchedLine | None:
    factors = json.loads(row.factors)
    if (row.benchmark, metric) not in wanted or RESOURCE not in factors or _is_auxiliary(factors):
        return None
    own = _own_factors(factors)
    key = (row.benchmark, metric, row.target, factors_key(own))
    if key not in lines:
        victim = VictimLine(row.benchmark, metric, row.target, own, Better(row.better), row.unit)
        lines[key] = WatchedLine(victim)
    return lines[key]


def tails(
    line: WatchedLine, distributions: Sequence[TrialHistogram]
) -> tuple[str, dict[str, Trial]]:
    """The histograms of times that tell the victim's tail: its own, else the first of the same
    benchmark, target and factors; with the metric's name, '' where there is none."""
    victim = line.victim
    if line.histograms:
        return victim.metric, line.histograms
    telling = [histogram for histogram in distributions if _tells(histogram, victim)]
    metric = telling[0].metric if telling else ""
    return metric, {
        histogram.trial: (histogram.values, histogram.counts)
        for histogram in telling
        if histogram.metric == metric and any(histogram.counts)
    }


def _tells(histogram: TrialHistogram, victim: VictimLine) -> bool:
    place = (histogram.benchmark, histogram.target, histogram.better)
    if place != (victim.benchmark, victim.target, "lower"):
        return False
    factors = json.loads(histogram.factors)
    own = factors_key(_own_factors(factors))
    return not _is_auxiliary(factors) and own == factors_key(victim.factors)


def shares(values: Iterable[TrialValue]) -> dict[str, float]:
    """Trial -> the mean share of a CPU that its loops obtained, where it measured that."""
    covered: dict[str, list[float]] = defaultdict(list)
    for row in values:
        if row.benchmark == CPU_GAPS and row.metric == "cpu_share_ratio":
            covered[row.trial].append(row.value)
    return {trial: statistics.fmean(own) for trial, own in covered.items()}


def achieved(values: Iterable[TrialValue]) -> dict[str, list[float]]:
    """Trial -> what each load beside it reached of what it reaches alone at intensity 1."""
    loads: dict[str, list[float]] = defaultdict(list)
    for row in values:
        if row.metric == ACHIEVED and "load" in json.loads(row.factors):
            loads[row.trial].append(row.value)
    return dict(loads)


def by_load(line: WatchedLine, records: Mapping[str, TrialRecord]) -> dict[AppliedLoad, list[str]]:
    """Load -> the names of the line's trials beside it, in the order of execution."""
    trials = sorted(line.values, key=lambda name: records[name].position)
    groups = group_by(trials, lambda name: load_of(records[name].factors))
    return {load: own for load, own in groups.items() if load is not None}


def baseline_by_round(
    line: WatchedLine, records: Mapping[str, TrialRecord]
) -> dict[int, list[str]]:
    """Round -> the names of the line's baseline trials, in the order of execution."""
    baseline = [name for name in line.values if load_of(records[name].factors) is None]
    baseline.sort(key=lambda name: records[name].position)
    return group_by(baseline, lambda name: records[name].key.round)


def paired(line: WatchedLine, loaded: Sequence[str], records: Mapping[str, TrialRecord]) -> Paired:
    """Loaded trials with the quiet ones right before and after them, as the run noted; where it
    noted none, with the median of their round's baseline trials."""
    of_round = baseline_by_round(line, records)
    triples, used, sides = [], [], 0
    for name in loaded:
        record = records[name]
        neighbours = [str(record.around.get(side, "")) for side in ("before", "after")]
        before, after = (line.values.get(side) for side in neighbours)
        number, value = record.key.round, line.values[name]
        if before is not None or after is not None:
            triples.append(interference.around(number, value, before, after))
            used.append((name, *(side for side in neighbours if side in line.values)))
            sides += 1
        elif number in of_round:
            baseline = statistics.median(line.values[trial] for trial in of_round[number])
            triples.append(Triple(number, value, baseline))
            used.append((name, *of_round[number]))
    return Paired(
        tuple(triples), tuple(used), len(loaded) - len(triples), bool(sides) and sides == len(used)
    )


def label(victim: VictimLine) -> str:
    """A victim's name in a sentence."""
    return line_name(victim.benchmark, victim.metric, victim.factors)
