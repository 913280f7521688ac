"""One victim beside one load: its factors, recovery and whose doing the slowdown is."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nephoscope.core.model import Estimate
from nephoscope.features.isolation import recovery, trial_pairs
from nephoscope.features.isolation.records import BY_NEIGHBOUR, BY_ROUND, Cell, VictimLine
from nephoscope.features.isolation.trial_pairs import (
    AnalysedTrials,
    AppliedLoad,
    Paired,
    WatchedLine,
    label,
)
from nephoscope.measure.plans import resources
from nephoscope.results import names
from nephoscope.stats import attribution, compare, interference
from nephoscope.stats.statistics import dependence, estimates, histograms
from nephoscope.stats.statistics.histograms import Trial
from nephoscope.stats.statistics.values import Array, Refused

TAIL = 0.99


def pairs_by_load(line: WatchedLine, run: AnalysedTrials) -> dict[AppliedLoad, Paired]:
    """Returns the loaded trials of one victim, each with its baseline, by load."""
    return {
        load: trial_pairs.paired(line, trials, run.records)
        for load, trials in trial_pairs.by_load(line, run.records).items()
    }


def pool_dependence(pairs: Iterable[tuple[WatchedLine, Mapping[AppliedLoad, Paired]]]) -> Array:
    """Returns the distribution of the autocorrelation that all ratios of a run share."""
    groups: dict[tuple[str, str, AppliedLoad, str], list[list[float]]] = defaultdict(list)
    for line, by_load in pairs:
        # Metrics of one benchmark come from the same trials and share their noise.
        trials = line.victim.target, line.victim.benchmark
        for load, own in by_load.items():
            ratios = [triple.loaded / triple.baseline for triple in own.triples if triple.baseline]
            after = [
                triple.after / triple.before
                for triple in own.triples
                if triple.before and triple.after
            ]
            groups[*trials, load, "loaded"].append(ratios)
            groups[*trials, load, "after"].append(after)
    return dependence.shared([values for values in group if values] for group in groups.values())


def cells(
    line: WatchedLine,
    by_load: Mapping[AppliedLoad, Paired],
    run: AnalysedTrials,
    prior: Array,
    notes: list[str],
) -> list[Cell]:
    """The cells of one victim, in the order of resources; what has none leaves a note."""
    tail_metric, tails = trial_pairs.tails(line, run.distributions)
    result = []
    for load, pairs in by_load.items():
        if not pairs.triples:
            notes.append(
                f"{label(line.victim)} with load on {load.resource}: no adjacent baseline trial."
            )
            continue
        try:
            result.append(_cell(line.victim, load, pairs, run, (tail_metric, tails), prior))
        except Refused as reason:
            notes.append(f"{label(line.victim)} with load on {load.resource}: {reason}")
    return sorted(result, key=_order)


def _order(cell: Cell) -> tuple[int, str, int, float]:
    known = list(resources.RESOURCES)
    place = known.index(cell.resource) if cell.resource in known else len(known)
    return place, cell.resource, cell.neighbours, cell.intensity


def _cell(
    victim: VictimLine,
    load: AppliedLoad,
    pairs: Paired,
    run: AnalysedTrials,
    tail: tuple[str, Mapping[str, Trial]],
    prior: Array,
) -> Cell:
    better, level, triples = victim.better, run.confidence, pairs.triples
    comparison = interference.factor(
        triples, better=better, margin=run.margin, confidence=level, prior=prior
    )
    setting = str(sorted(victim.factors.items()))
    place = (victim.benchmark, victim.metric, victim.target, setting, load.resource)
    seed = names.seed_of(*place, str(load.intensity), str(load.neighbours))
    notes: list[str] = []
    factor = interference.turned(comparison.ratio, better)
    of_means = partial(interference.factor_of_means, triples, better=better, confidence=level)
    by_mean = _or_note(notes, of_means)
    by_tail = _or_note(notes, partial(_tail_factor, pairs, tail[1], level, seed))
    loaded = tuple(used[0] for used in pairs.names)
    return Cell(
        victim=victim,
        resource=load.resource,
        intensity=load.intensity,
        neighbours=load.neighbours,
        comparison=comparison,
        factor=factor,
        factor_mean=by_mean,
        factor_p99=by_tail,
        p99_metric=tail[0] if by_tail else "",
        variation=_variation(pairs, level, seed),
        recovery=recovery.recovery(
            triples, better=better, margin=run.margin, confidence=level, prior=prior
        ),
        achieved=_achieved(loaded, run),
        attribution=_attributed(
            factor, interference.turned(comparison.equivalence, better), pairs, run
        ),
        rounds=triples,
        trials=loaded,
        rounds_left_out=pairs.left_out,
        pairing=BY_NEIGHBOUR if pairs.around else BY_ROUND,
        notes=tuple(notes),
    )


def _or_note(notes: list[str], make: Callable[[], Estimate]) -> Estimate | None:
    try:
        return make()
    except Refused as reason:
        notes.append(str(reason))
        return None


def _tail_factor(
    pairs: Paired, tails: Mapping[str, Trial], confidence: float, seed: int
) -> Estimate:
    if not tails:
        raise Refused("No p99: the victim reports one value per trial and no histogram.")
    rounds = []
    for loaded, *baseline in pairs.names:
        calm = [tails[name] for name in baseline if name in tails]
        if loaded in tails and calm:
            rounds.append((histograms.merge(calm), tails[loaded]))
    return interference.factor_of_percentile(rounds, TAIL, confidence=confidence, seed=seed)


def _variation(pairs: Paired, confidence: float, seed: int) -> interference.Variation:
    baseline: dict[str, float] = {}
    for used, triple in zip(pairs.names, pairs.triples, strict=True):
        # One baseline trial is the one after a load and the one before the next: it counts once.
        baseline |= dict(zip(used[1:], triple.sides or [triple.baseline], strict=False))
    loaded = [triple.loaded for triple in pairs.triples]
    return interference.variation_factor(
        list(baseline.values()), loaded, rounds=len(loaded), confidence=confidence, seed=seed
    )


def _achieved(trials: Sequence[str], run: AnalysedTrials) -> Estimate | None:
    """Returns what the loads reached, the mean over the neighbours of each trial, then over
    trials."""
    means = [statistics.fmean(run.achieved[name]) for name in trials if run.achieved.get(name)]
    if not means:
        return None
    return estimates.median(means, unit="ratio", confidence=run.confidence)


def _attributed(
    factor: Estimate | None, equivalence: Estimate | None, pairs: Paired, run: AnalysedTrials
) -> attribution.Attribution | None:
    """Whose doing the slowdown is, by what was read beside the trials themselves."""
    if factor is None:
        return None
    loaded = [_reading(used[0], run) for used in pairs.names]
    baseline = [_reading(used[1], run) for used in pairs.names]
    return attribution.attribute(
        factor,
        baseline,
        loaded,
        paired=True,
        confidence=run.confidence,
        margin=run.margin,
        equivalence=equivalence,
    )


def _reading(trial: str, run: AnalysedTrials) -> dict[str, Any]:
    counters = dict(run.records[trial].counters)
    if trial in run.shares:
        counters["own_gap_ratio"] = 1 - run.shares[trial]
    return counters


def corrected(cells: Sequence[Cell], confidence: float) -> list[Cell]:
    """Holm's correction of the verdicts over all cells but those of idle neighbours."""
    comparisons = (cell.comparison for cell in cells if cell.resource != resources.IDLE)
    verdicts = iter(compare.over_report(list(comparisons), confidence=confidence))
    return [
        cell if cell.resource == resources.IDLE else replace(cell, comparison=next(verdicts))
        for cell in cells
    ]
