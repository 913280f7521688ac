"""Settings without any figure, because every one of their trials was excluded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core.model import InvalidTrial, MetricResult, RunResult, factors_key
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class ExcludedSetting:
    """A setting whose trials were all excluded. reason: that of its first trial."""

    benchmark: str
    target: str
    factors: Mapping[str, Any]
    trials: int
    reason: str

    @property
    def label(self) -> str:
        """Returns its name in a sentence: `disk.io (queue_depth=32)`."""
        return line_name(self.benchmark, self.benchmark, self.factors)

    def is_setting_of(self, line: MetricResult) -> bool:
        """Returns whether a line, of whatever target, is of this setting."""
        return line.benchmark == self.benchmark and self.factors.items() <= line.factors.items()


def excluded_settings(result: RunResult) -> list[ExcludedSetting]:
    """Returns the settings that no table of results can show, in the order of their trials."""
    groups: dict[tuple[str, str, str], list[InvalidTrial]] = {}
    for trial in result.invalid:
        key = (trial.benchmark, trial.target, factors_key(trial.factors))
        groups.setdefault(key, []).append(trial)
    settings = [
        ExcludedSetting(benchmark, target, own[0].factors, len(own), own[0].reasons[0])
        for (benchmark, target, _), own in groups.items()
    ]
    return [
        setting
        for setting in settings
        if not any(
            line.target == setting.target and setting.is_setting_of(line) for line in result.metrics
        )
    ]
