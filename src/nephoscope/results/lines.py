"""From samples to the lines of a result: one metric at one setting on one target."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.model import Better, Estimate, LineKey, MetricResult
from nephoscope.core.naming import line_name, plural
from nephoscope.results import names
from nephoscope.results.precision import relative_half_width
from nephoscope.stats import stopping
from nephoscope.stats.statistics import estimates, histograms, variation
from nephoscope.stats.statistics.dependence import ASSUMED, INDEPENDENT, pooled_by_family
from nephoscope.stats.statistics.histograms import Trial
from nephoscope.stats.statistics.values import Array, Refused

if TYPE_CHECKING:
    from nephoscope.store.query import TrialHistogram, TrialMetric, TrialValue

PERCENTILES = (0.5, 0.9, 0.99, 0.999)


_COMPANIONS = frozenset(names.UNANSWERED.values())


class LineId(NamedTuple):
    """Identity of a line; `factors` is the canonical JSON text of model.factors_key."""

    benchmark: str
    metric: str
    target: str
    factors: str


_Value = TypeVar("_Value", float, Trial)


@dataclass(slots=True)
class TrialGroup(Generic[_Value]):
    """The value or the histogram of each trial of one key, in the order of execution.

    trial: name of the first of them. unanswered: of a histogram, for each trial those of its
    observations that are lower bounds (`names.UNANSWERED`); empty where no trial has any.
    """

    unit: str
    better: Better
    trial: str
    values: list[_Value] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    unanswered: list[_Value] = field(default_factory=list)

    def by_boot(self, rounds: int, merge: Callable[[list[_Value]], _Value]) -> TrialGroup[_Value]:
        """Returns one value a boot: that of its trials merged, in the boot's first round.

        rounds: of each boot. Trials of one boot share what the boot drew (memory layout,
        placement), so that boots are the independent repetitions.
        """
        firsts = [1 + (number - 1) // rounds * rounds for number in self.rounds]

        def merged(values: list[_Value]) -> list[_Value]:
            boots: dict[int, list[_Value]] = {}
            for value, first in zip(values, firsts, strict=True):
                boots.setdefault(first, []).append(value)
            return [merge(own) for own in boots.values()]

        return replace(
            self,
            values=merged(self.values),
            rounds=list(dict.fromkeys(firsts)),
            unanswered=merged(self.unanswered) if self.unanswered else [],
        )


Group = TrialGroup[float]
Histograms = TrialGroup[Trial]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Precision that the plan requests for a benchmark's headline metrics.

    relative_half_width: None where nobody requested one, as of results of other tools.
    """

    n_min: int
    n_max: int
    relative_half_width: float | None
    headline: frozenset[str]


def group_scalars(rows: Iterable[TrialValue], place: Mapping[str, int]) -> dict[LineId, Group]:
    """Rows of store.query.trial_medians, by key; place: trial name -> position in the run."""
    return _grouped(((row, row.value) for row in rows), place)


def group_histograms(
    rows: Iterable[TrialHistogram], place: Mapping[str, int]
) -> dict[LineId, Histograms]:
    """Rows of store.query.histograms, by key; those of unanswered requests join all requests."""
    groups = _grouped(((row, (row.values, row.counts)) for row in rows), place)
    joined = {key: group for key, group in groups.items() if key.metric not in _COMPANIONS}
    for key, group in joined.items():
        name = names.UNANSWERED.get(key.metric)
        own = groups.get(key._replace(metric=name)) if name else None
        if own is not None:
            by_round = dict(zip(own.rounds, own.values, strict=True))
            group.unanswered = [by_round.get(number, ((), ())) for number in group.rounds]
    return joined


def _grouped(
    rows: Iterable[tuple[TrialMetric, _Value]], place: Mapping[str, int]
) -> dict[LineId, TrialGroup[_Value]]:
    groups: dict[LineId, TrialGroup[_Value]] = {}
    for row, value in sorted(rows, key=lambda row: place[row[0].trial]):
        key = LineId(row.benchmark, row.metric, row.target, row.factors)
        group = groups.setdefault(key, TrialGroup(row.unit, Better(row.better), row.trial))
        group.values.append(value)
        group.rounds.append(row.round)
    return {key: groups[key] for key in sorted(groups)}


def pool_dependence(
    groups: Mapping[LineId, Group], distributions: Mapping[LineId, Histograms]
) -> dict[LineId, Array]:
    """Returns the distribution of the autocorrelation that each line starts from.

    See `dependence.pooled_by_family`; a target is a machine. Histograms count by their medians.
    """
    series = {key: group.values for key, group in groups.items()} | {
        key: trial_percentiles(group.values, 0.5, 0.95, group.unanswered)
        for key, group in distributions.items()
    }
    priors: dict[LineId, Array] = {}
    for target in {key.target for key in series}:
        priors |= pooled_by_family(
            {key: values for key, values in series.items() if key.target == target},
            family=lambda key: key.benchmark,
            setting=lambda key: (key.benchmark, key.factors),
        )
    return priors


def pool_comparisons(series: Mapping[LineKey, Array]) -> dict[str, Array]:
    """Returns, by benchmark, the distribution of the autocorrelation that comparisons start from.

    series: what each comparison is judged by, such as the log ratios of its rounds. The target of
    a key tells the comparisons of the same factors from one another.
    """
    priors = pooled_by_family(
        {key: values for key, values in series.items() if np.all(np.isfinite(values))},
        family=lambda key: key[0],
        setting=lambda key: (key[0], *key[2:]),
    )
    return {key[0]: prior for key, prior in priors.items()}


def scalar_line(
    key: LineId,
    group: Group,
    *,
    confidence: float,
    wanted: Wanted,
    simulated: bool = False,
    prior: Array = ASSUMED,
) -> MetricResult:
    """The median over trials with its rank interval, its consistency and its warnings.

    simulated: see MetricResult. prior: of the autocorrelation of its trials (`pool_dependence`).
    """
    headline = key.metric in wanted.headline
    if simulated:
        prior = INDEPENDENT
        estimate = estimates.median_of_replications(
            group.values, unit=group.unit, confidence=confidence
        )
    else:
        # Where the widths of a run decide how long it goes on, they allow for those decisions.
        stops_early = headline and wanted.n_min < wanted.n_max
        level = stopping.level(confidence, len(group.values)) if stops_early else confidence
        estimate = estimates.median(group.values, unit=group.unit, confidence=level, prior=prior)
        estimate = replace(estimate, confidence=confidence)
    warnings = _convergence(group.values, estimate, confidence, wanted, prior) if headline else []
    return MetricResult(
        benchmark=key.benchmark,
        metric=key.metric,
        target=key.target,
        factors=json.loads(key.factors),
        better=group.better,
        estimate=estimate,
        consistency=variation.consistency(
            group.values, confidence=confidence, seed=names.seed_of(*key)
        ),
        headline=headline,
        warnings=tuple(warnings),
        trial_values=tuple(group.values),
        rounds=tuple(group.rounds),
        simulated=simulated,
    )


def percentile_lines(
    key: LineId,
    group: Histograms,
    *,
    confidence: float,
    headline: bool,
    simulated: bool = False,
    prior: Array = ASSUMED,
) -> tuple[list[MetricResult], str]:
    """A line for each percentile that the gates allow, and one sentence on those they refuse.

    simulated, prior: as of `scalar_line`.
    """
    lines, refused = [], []
    factors = json.loads(key.factors)
    trials = histograms.pooled(group.values)
    for quantile in PERCENTILES:
        metric = names.percentile_metric(key.metric, group.unit, quantile)
        seed = names.seed_of(*key, metric)
        try:
            estimate = histograms.quantile_of_trials(
                trials,
                quantile,
                unit=group.unit,
                confidence=confidence,
                seed=seed,
                prior=INDEPENDENT if simulated else prior,
                unanswered=group.unanswered,
            )
        except Refused as reason:
            refused.append((quantile, str(reason)))
            continue
        of_trials = trial_percentiles(trials, quantile, confidence, group.unanswered)
        if estimate.censored:
            of_trials = []
        lines.append(
            MetricResult(
                benchmark=key.benchmark,
                metric=metric,
                target=key.target,
                factors=factors,
                better=group.better,
                estimate=estimate,
                consistency=variation.consistency(of_trials, confidence=confidence, seed=seed),
                headline=headline and quantile == PERCENTILES[0],
                trial_values=tuple(of_trials),
                rounds=tuple(group.rounds) if of_trials else (),
                simulated=simulated,
            )
        )
    return lines, _refusal(line_name(key.benchmark, key.metric, factors), group, refused)


def _refusal(label: str, group: Histograms, refused: Sequence[tuple[float, str]]) -> str:
    """One sentence on all percentiles that a histogram does not get; empty when it gets all."""
    if not refused:
        return ""
    words = ", ".join(f"p{100 * quantile:g}" for quantile, _ in refused)
    if len(refused) == len(PERCENTILES):
        return f"{label}: no percentiles. {refused[0][1]}"
    total = sum(sum(counts) for _, counts in group.values)
    return f"{label}: no {words} of {total} observations. {refused[0][1]}"


def trial_percentiles(
    trials: Sequence[Trial], quantile: float, confidence: float, unanswered: Sequence[Trial] = ()
) -> list[float]:
    """The percentile of each trial; none at all unless every trial alone has enough values, and
    none of them a percentile that unanswered requests reach: that is no value."""
    need = estimates.minimum_n(quantile, confidence)
    trials = histograms.pooled(trials)
    if np.any(trials.totals < need):
        return []
    pairs = zip(trials, unanswered, strict=True) if unanswered else ()
    if any(histograms.is_censored(*pair, quantile) for pair in pairs):
        return []
    return trials.quantiles(quantile).tolist()  # type: ignore[no-any-return]


def _convergence(
    values: Sequence[float], estimate: Estimate, confidence: float, wanted: Wanted, prior: Array
) -> list[str]:
    if wanted.relative_half_width is None:
        return []
    decision = stopping.decide(
        values,
        n_min=wanted.n_min,
        n_max=wanted.n_max,
        relative_half_width=wanted.relative_half_width,
        confidence=confidence,
        prior=prior,
    )
    ratio = relative_half_width(estimate)
    least = max(wanted.n_min, stopping.LEAST_N)
    narrow = ratio is not None and ratio <= wanted.relative_half_width
    if narrow and len(values) >= least:
        return []
    # Digits enough that the width reached never reads as the width wanted.
    reached = f"±{100 * (ratio or 0.0):.1f} %"
    if ratio is not None and not narrow and round(ratio, 3) <= wanted.relative_half_width:
        reached = f"±{100 * ratio:.4g} %"
    if ratio is None:
        return [f"{names.NOT_CONVERGED}: no interval after {plural(len(values), 'trial')}."]
    noise = ""
    if decision.noise_ratio is not None and len(values) > 1:
        noise = f", noise of one trial {100 * decision.noise_ratio:.1f} %"
    wished = f"at least {least} trials" if narrow else f"±{wanted.relative_half_width * 100:g} %"
    return [
        f"{names.NOT_CONVERGED}: {reached} after {plural(len(values), 'trial')}, wanted "
        f"{wished}{noise}."
    ]


def wanted_of(
    spec: BenchmarkSpec | None, repeat: Mapping[str, Any], headline: Iterable[str]
) -> Wanted:
    """Returns what the plan asked of a benchmark; without headlines of its own, the spec's.

    repeat: empty of a run without a plan, which did not stop by the width of its intervals.
    """
    own = frozenset(headline)
    if not own and spec is not None:
        own = spec.headline_metrics
    if not repeat or repeat.get("until") == "decided":
        # Of a run that ended by its comparison nobody requested a width.
        return Wanted(0, 0, None, own)
    return Wanted(
        n_min=int(repeat.get("min", 10)),
        n_max=int(repeat.get("max", 100)),
        relative_half_width=float(repeat.get("relative_half_width", 0.02)),
        headline=own,
    )
