"""States the largest effects of an experiment in sentences, for the summary."""

from __future__ import annotations

import math

from nephoscope.core.model import RunResult
from nephoscope.features.experiments import section
from nephoscope.features.experiments.records import Against, Experiment, FactorEffect
from nephoscope.report import wording
from nephoscope.stats.compare import TwoSampleComparison

MAX_ANSWERS = 3
"""Effects that the summary states."""
_ANSWERED_BY_OTHERS = frozenset({"resource", "autoscaler", "balancer"})
"""Factors whose own features answer the question: loads (isolation), autoscalers (elasticity), load
balancers. Other figures of the generator beside another autoscaler are no verdict on either."""


def answer(result: RunResult) -> list[str]:
    """Returns the largest effects of factors, else the largest differences from the baseline."""
    experiment = result.part(Experiment)
    if experiment is None or any(
        _ANSWERED_BY_OTHERS & design.levels.keys() for design in experiment.designs
    ):
        return []
    effects = [
        (effect.effect.comparison, _effect_sentence(effect))
        for effect in section.headline_lines(experiment.effects)
    ]
    against = [
        (comparison.comparison, _against_sentence(comparison))
        for comparison in section.headline_lines(experiment.comparisons)
    ]
    known = [
        (comparison, text)
        for comparison, text in effects or against
        if comparison.ratio is not None
    ]
    sentences = [text for _, text in sorted(known, key=lambda pair: _size(pair[0]), reverse=True)]
    largest = sentences[:MAX_ANSWERS]
    if len(sentences) > MAX_ANSWERS:
        largest[-1] += f" The section Effects lists {len(sentences) - MAX_ANSWERS} more."
    return largest


def _size(comparison: TwoSampleComparison) -> tuple[bool, float]:
    """Sorts effects that are decided before the others, then by their size."""
    ratio = comparison.ratio
    size = abs(math.log(ratio.value)) if ratio is not None and ratio.value > 0 else 0.0
    return comparison.verdict.word in ("better", "worse"), size


def _effect_sentence(line: FactorEffect) -> str:
    effect = line.effect
    return _sentence(
        wording.line_name(line.benchmark, line.metric, line.fixed),
        section.level_text(effect.factor, effect.level),
        section.level_text(effect.factor, effect.reference),
        effect.comparison,
    )


def _against_sentence(line: Against) -> str:
    what = wording.full_name(line.benchmark, line.metric)
    return _sentence(what, section.change_text(line), "the baseline", line.comparison)


def _sentence(what: str, level: str, reference: str, comparison: TwoSampleComparison) -> str:
    if comparison.ratio is None:
        return ""
    ratio = wording.estimate_text(wording.plain(comparison.ratio))
    verdict: str = comparison.verdict.word
    low, high = comparison.ratio.low, comparison.ratio.high
    excludes_one = (low is not None and low > 1) or (high is not None and high < 1)
    if verdict == "inconclusive" and excludes_one and comparison.p_holm is not None:
        # The interval is that of this comparison alone; the verdict holds among all of the report.
        verdict += f" among all comparisons (p = {comparison.p_holm:.2g} after Holm)"
    return f"{what}: {level} gives {ratio} times the value of {reference}: {verdict}."
