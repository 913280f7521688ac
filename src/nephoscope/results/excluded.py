"""Settings without any figure, because every one of their trials was excluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.model import InvalidTrial, RunResult, factors_key


@dataclass(frozen=True, slots=True)
class ExcludedSetting:
    """A setting whose trials were all excluded. reason: that of its first trial."""

    benchmark: str
    target: str
    factors: Mapping[str, Any]
    trials: int
    reason: str


def excluded_settings(result: RunResult) -> list[ExcludedSetting]:
    """Returns the settings that no table of results can show, in the order of their trials."""
    groups: dict[tuple[str, str, str], list[InvalidTrial]] = {}
    for trial in result.invalid:
        key = (trial.benchmark, trial.target, factors_key(trial.factors))
        groups.setdefault(key, []).append(trial)
    return [
        ExcludedSetting(benchmark, target, own[0].factors, len(own), own[0].reasons[0])
        for (benchmark, target, _), own in groups.items()
        if not any(
            line.benchmark == benchmark
            and line.target == target
            and own[0].factors.items() <= line.factors.items()
            for line in result.metrics
        )
    ]
