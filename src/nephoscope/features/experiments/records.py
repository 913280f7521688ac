"""The records of what an experiment says."""

from __future__ import annotations

from typing import Any

from nephoscope.core.model import Estimate, Factors, stated
from nephoscope.core.records import dataclass
from nephoscope.features.experiments.designs import FactorialDesign
from nephoscope.features.experiments.effects import LevelEffect
from nephoscope.features.experiments.nested import Nested
from nephoscope.stats.compare import TwoSampleComparison


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
    comparison: TwoSampleComparison
    interference: Estimate | None

    @property
    def changed(self) -> dict[str, Any]:
        """Returns what differs from the baseline: factor -> level here."""
        return {
            name: level
            for name, level in self.factors.items()
            if self.baseline_factors.get(name) != level
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

    @stated
    def sentence(self) -> str:
        """Returns what the control says about the experiment."""
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
    effect: LevelEffect


@dataclass(frozen=True, slots=True)
class Components:
    """Components of the variation of one line."""

    benchmark: str
    metric: str
    headline: bool
    target: str
    factors: Factors
    nested: Nested


@dataclass(frozen=True, slots=True)
class Experiment:
    """All that the design of a run allows to say. notes: what was not given, and why."""

    designs: tuple[FactorialDesign, ...]
    comparisons: tuple[Against, ...]
    controls: Controls | None
    effects: tuple[FactorEffect, ...]
    components: tuple[Components, ...]
    notes: tuple[str, ...]
