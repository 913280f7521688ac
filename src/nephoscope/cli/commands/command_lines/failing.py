"""Decides for `bench --fail-on` whether a command fails against the first one."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.cli.commands.command_lines.plan import LABEL, CommandLine
from nephoscope.cli.commands.command_lines.text import WALL
from nephoscope.core.model import RunResult
from nephoscope.features.comparison.failing import FailOnOutcome, judge
from nephoscope.features.duet.result import Duets
from nephoscope.features.experiments.records import Experiment
from nephoscope.stats.compare import TwoSampleComparison

DEFAULT_CONFIDENCE = 0.95


def check(
    result: RunResult, lines: Sequence[CommandLine], conditions: Sequence[str]
) -> FailOnOutcome:
    """Returns the outcome for all commands but the first one.

    Raises UsageError where there are too few repetitions for a verdict.
    """
    named = _compared(result, lines)
    ratios = [own.ratio for _, own in named if own.ratio is not None]
    confidence = ratios[0].confidence if ratios else DEFAULT_CONFIDENCE
    headline = [True] * len(named)
    return judge(named, headline, conditions, confidence, "command", "compare fewer commands")


def _compared(
    result: RunResult, lines: Sequence[CommandLine]
) -> list[tuple[str, TwoSampleComparison]]:
    """Returns the comparison of each command with the first one."""
    if (duets := result.part(Duets)) is not None:
        return [(lines[1].label, duet.comparison) for duet in duets.duets]
    part = result.part(Experiment)
    return [
        (str(against.factors[LABEL]), against.comparison)
        for against in (part.comparisons if part else ())
        if against.metric == WALL
    ]
