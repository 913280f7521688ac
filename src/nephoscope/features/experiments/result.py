"""What an experiment says: against the baseline, arm against arm, factor by factor, level by level.

Every comparison pairs values of the same round. A run whose plan has no design (no baseline, no
arms, no nesting, no factors of its own) has no such part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nephoscope.core.grouping import group_by
from nephoscope.core.model import MetricResult, factors_key
from nephoscope.core.naming import full_name
from nephoscope.features.experiments import designs, effects, nested
from nephoscope.features.experiments.designs import FactorialDesign, Line
from nephoscope.features.experiments.effects import DesignCell
from nephoscope.features.experiments.records import (
    Against,
    Components,
    Controls,
    Experiment,
    FactorEffect,
)
from nephoscope.measure.plans import Plan, nest_of
from nephoscope.measure.plans.files.load import plan_of
from nephoscope.results.lines import pool_comparisons
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare, interference
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.verdicts import Band

ARMS = ("a", "b")


def analyse(data: RunData) -> Experiment | None:
    """Returns the experiment in a run's manifest and lines; None where the plan has no design."""
    values = data.manifest.plan
    settings = designs.settings_of(data.manifest)
    if not values or not settings or not data.has_design:
        return None
    plan = plan_of(str(data.manifest.id), values)
    assert plan is not None
    lines = designs.lines_of(data.metrics, settings)
    notes: list[str] = []
    rules = _Rules(plan.margin, data.confidence, plan.repeat.until == "decided")
    return Experiment(
        designs=tuple(designs.designs(plan, settings)),
        comparisons=tuple(_baselines(lines, rules, notes)),
        controls=_controls(lines, rules) if plan.design.a_a else None,
        effects=tuple(_corrected_effects(list(_effects(plan, lines, rules, notes)), rules)),
        components=tuple(_components(plan, lines, rules, notes)),
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    margin: float
    confidence: float
    is_anytime: bool


def _baselines(lines: Sequence[Line], rules: _Rules, notes: list[str]) -> list[Against]:
    pairs = []
    at = {line.place: line for line in lines}
    for line in lines:
        pair = line.setting.baseline.get(line.result.target)
        if pair is None:
            continue
        baseline = at.get(line.place_of(int(pair[0]), str(pair[1])))
        if baseline is None:
            notes.append(f"{line.result.label}: its baseline has no values.")
            continue
        pairs.append((baseline.result, line.result))
    held = _held(pairs, rules, notes)
    corrected = _corrected(
        [comparison.comparison for comparison in held],
        [comparison.headline for comparison in held],
        rules,
    )
    return [
        replace(comparison, comparison=own) for comparison, own in zip(held, corrected, strict=True)
    ]


def _held(
    pairs: Sequence[tuple[MetricResult, MetricResult]], rules: _Rules, notes: list[str]
) -> list[Against]:
    """Each line against its baseline, as far as they can be compared; notes name the others."""
    sides = [compare.shared_rounds(base, line) for base, line in pairs]
    priors = pool_comparisons(
        {
            (
                line.benchmark,
                line.metric,
                line.target,
                factors_key(line.factors),
            ): compare.round_shifts(*side)
            for (base, line), side in zip(pairs, sides, strict=True)
            if not (base.simulated and line.simulated)
        }
    )
    held = []
    for (base, line), (baseline, values) in zip(pairs, sides, strict=True):
        try:
            comparison = compare.paired(
                baseline,
                values,
                better=line.better,
                margin=rules.margin,
                unit=line.estimate.unit,
                confidence=rules.confidence,
                names=("the baseline", "it"),
                replications=base.simulated and line.simulated,
                prior=priors.get(line.benchmark, ASSUMED),
                is_anytime=rules.is_anytime,
            )
        except Refused as reason:
            notes.append(f"{line.label}: {reason}")
            continue
        held.append(
            Against(
                benchmark=line.benchmark,
                metric=line.metric,
                headline=line.headline,
                target=line.target,
                factors=line.factors,
                baseline_target=base.target,
                baseline_factors=base.factors,
                comparison=comparison,
                interference=interference.turned(comparison.ratio, line.better),
            )
        )
    return held


def _corrected(
    comparisons: Sequence[TwoSampleComparison], headline: Sequence[bool], rules: _Rules
) -> list[TwoSampleComparison]:
    """Holm's correction over the headline lines, and over the others by themselves."""
    out = list(comparisons)
    for part in (True, False):
        places = [i for i, is_headline in enumerate(headline) if is_headline is part]
        corrected = compare.over_report([out[i] for i in places], confidence=rules.confidence)
        for i, comparison in zip(places, corrected, strict=True):
            out[i] = comparison
    return out


def _controls(lines: Sequence[Line], rules: _Rules) -> Controls:
    """Arm b against arm a of every cell."""
    from scipy.special import bdtrc

    at = {line.place: line for line in lines}
    twins = {
        designs.without_arm(line.setting): line.setting.index
        for line in lines
        if line.setting.arm == ARMS[0]
    }
    pairs = []
    for line in lines:
        if line.setting.arm != ARMS[1]:
            continue
        twin = twins.get(designs.without_arm(line.setting))
        control = None if twin is None else at.get(line.place_of(twin, line.result.target))
        pairs += [(control.result, line.result)] if control else []
    arms = _held(pairs, rules, [])
    ratios = (comparison.comparison.ratio for comparison in arms)
    decided = [
        Band(r.low, r.high) for r in ratios if r and r.low is not None and r.high is not None
    ]
    outside = sum(band.excludes_one for band in decided)
    alpha = 1 - rules.confidence
    chance = float(bdtrc(outside - 1, len(decided), alpha)) if outside else 1.0
    return Controls(len(decided), outside, alpha * len(decided), chance, tuple(arms))


def _effects(
    plan: Plan, lines: Sequence[Line], rules: _Rules, notes: list[str]
) -> Iterable[FactorEffect]:
    groups = group_by(
        lines, lambda line: (line.setting.entry, line.result.metric, line.result.target, line.inner)
    )
    known = {
        design.entry: design for design in designs.designs(plan, [line.setting for line in lines])
    }
    contrasts: list[tuple[Line, effects.Contrast]] = []
    for group in groups.values():
        design = known[group[0].setting.entry]
        if not design.levels:
            continue
        if not design.tells_main_effects:
            notes.append(f"{group[0].result.benchmark}: no main effects, because {design.why_not}.")
            continue
        contrasts += [(group[0], contrast) for contrast in _contrasts(group, design, notes)]
    priors = pool_comparisons(
        {
            (line.result.benchmark, line.result.metric, line.result.target, text): contrast.shifts
            for line, contrast in contrasts
            for text in [
                factors_key({**dict(line.inner), "effect": [contrast.factor, contrast.level]})
            ]
        }
    )
    for line, contrast in contrasts:
        first = line.result
        effect = contrast.effect(
            better=first.better,
            margin=rules.margin,
            confidence=rules.confidence,
            prior=priors.get(first.benchmark, ASSUMED),
        )
        yield FactorEffect(
            first.benchmark, first.metric, first.headline, first.target, dict(line.inner), effect
        )


def _contrasts(
    group: Sequence[Line], design: FactorialDesign, notes: list[str]
) -> Iterable[effects.Contrast]:
    first = group[0].result
    name = full_name(first.benchmark, first.metric)
    cells = [DesignCell(line.setting.factors, line.result.by_round) for line in group]
    if len(cells) != design.settings:
        notes.append(
            f"{name}: no main effects. {design.settings - len(cells)} of {design.settings} "
            f"combinations have no values."
        )
        return
    for factor, levels in design.levels.items():
        try:
            yield from effects.contrasts(cells, factor, design.reference.get(factor, levels[0]))
        except Refused as reason:
            notes.append(f"{name}: no effect of {factor}. {reason}")


def _corrected_effects(tested: Sequence[FactorEffect], rules: _Rules) -> list[FactorEffect]:
    corrected = _corrected(
        [effect.effect.comparison for effect in tested],
        [effect.headline for effect in tested],
        rules,
    )
    return [
        replace(effect, effect=replace(effect.effect, comparison=own))
        for effect, own in zip(tested, corrected, strict=True)
    ]


def _components(
    plan: Plan, lines: Sequence[Line], rules: _Rules, notes: list[str]
) -> Iterable[Components]:
    nest = plan.design.nest
    if nest is None or nest.boots == 1:
        return
    for line in lines:
        result = line.result
        rounds = result.single_rounds or result.rounds
        places = [nest_of(nest, number) for number in rounds]
        try:
            components = nested.components(
                result.single_values or result.trial_values,
                [place["instance"] for place in places],
                [place["boot"] for place in places],
                unit=result.estimate.unit,
                confidence=rules.confidence,
            )
        except Refused as reason:
            notes.append(f"{result.label}: no components of variance. {reason}")
            continue
        yield Components(
            result.benchmark,
            result.metric,
            result.headline,
            result.target,
            result.factors,
            components,
        )
