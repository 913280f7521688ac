"""The records of what an experiment says, and how each is told in the `--json` output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nephoscope.analysis.compare import Comparison, estimate_json
from nephoscope.experiments.designs import Design
from nephoscope.experiments.effects import Effect
from nephoscope.experiments.nested import Nested
from nephoscope.model import Estimate, Factors


@dataclass(frozen=True, slots=True)
class Against:
    """One line held against its baseline, round by round.

    interference: how much worse than the baseline, so that above 1 is worse whatever the metric:
    the ratio of times, or the inverse ratio of rates; None where there is no ratio.
    """

    benchmark: str
    metric: str
    headline: bool
    target: str
    factors: Factors
    baseline_target: str
    baseline_factors: Factors
    comparison: Comparison
    interference: Estimate | None

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the baseline: factor -> level here."""
        return {
            name: level
            for name, level in self.factors.items()
            if self.baseline_factors.get(name) != level
        }

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "headline": self.headline,
            "target": self.target,
            "factors": dict(self.factors),
            "baseline_target": self.baseline_target,
            "baseline_factors": dict(self.baseline_factors),
            "interference": _json(self.interference),
            **_told(self.comparison),
        }


@dataclass(frozen=True, slots=True)
class Controls:
    """The A/A control: arms that differ in nothing, compared like everything else.

    cells: comparisons with an interval. outside: those whose interval excludes 1, which chance
    alone gives `expected` times. chance: probability of so many or more by chance alone, if the
    cells were independent (metrics of one trial are not quite).
    """

    cells: int
    outside: int
    expected: float
    chance: float
    arms: tuple[Against, ...]

    @property
    def sentence(self) -> str:
        """What the control says about the experiment."""
        head = (
            f"A/A control: {self.outside} of {self.cells} intervals between identical arms "
            f"exclude 1; {self.expected:.1f} are expected by chance."
        )
        if not self.cells:
            return "A/A control: no comparison has enough rounds for an interval."
        if self.chance < SUSPICIOUS:
            return (
                f"{head} That is too many: a difference between trials of a round appears as an "
                "effect. Do not rely on small differences of this run."
            )
        return f"{head} The experiment reports no false differences."

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "cells": self.cells,
            "outside": self.outside,
            "expected": self.expected,
            "chance": self.chance,
            "sentence": self.sentence,
            "arms": [one.to_json() for one in self.arms],
        }


SUSPICIOUS = 0.01
"""So many by chance alone would be seen in one experiment of a hundred."""


@dataclass(frozen=True, slots=True)
class FactorEffect:
    """The main effect of one level of a factor on a line."""

    benchmark: str
    metric: str
    headline: bool
    target: str
    fixed: Factors
    """What the benchmark itself varied within a trial."""
    effect: Effect

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "headline": self.headline,
            "target": self.target,
            "fixed": dict(self.fixed),
            "factor": self.effect.factor,
            "level": self.effect.level,
            "reference": self.effect.reference,
            "cells": self.effect.cells,
            "rounds_left_out": self.effect.rounds_left_out,
            **_told(self.effect.comparison),
        }


@dataclass(frozen=True, slots=True)
class Components:
    """Where the variation of one line comes from."""

    benchmark: str
    metric: str
    headline: bool
    target: str
    factors: Factors
    nested: Nested

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "headline": self.headline,
            "target": self.target,
            "factors": dict(self.factors),
            "mean": estimate_json(self.nested.mean),
            "components": [
                {name: getattr(one, name) for name in one.__slots__}
                for one in self.nested.components
            ],
        }


@dataclass(frozen=True, slots=True)
class Experiment:
    """All that the design of a run allows to say. notes: what was not given, and why."""

    designs: tuple[Design, ...]
    comparisons: tuple[Against, ...]
    controls: Controls | None
    effects: tuple[FactorEffect, ...]
    components: tuple[Components, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output (contracts/result.schema.json)."""
        return {
            "designs": [one.to_json() for one in self.designs],
            "comparisons": [one.to_json() for one in self.comparisons],
            "a_a": self.controls.to_json() if self.controls else None,
            "effects": [one.to_json() for one in self.effects],
            "components": [one.to_json() for one in self.components],
            "notes": list(self.notes),
        }


def _json(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate_json(estimate)


def _told(comparison: Comparison) -> dict[str, Any]:
    """What of a comparison an experiment prints."""
    return {
        "better": comparison.better.value,
        "margin": comparison.margin,
        "n": comparison.n_a,
        "ratio": _json(comparison.ratio),
        "difference": _json(comparison.difference),
        "p": comparison.p,
        "p_holm": comparison.p_holm,
        "verdict": {
            "word": comparison.verdict.word,
            "sentence": comparison.verdict.sentence,
        },
        "warnings": list(comparison.warnings),
    }
