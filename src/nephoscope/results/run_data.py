"""What the analyses of a run read: its samples, metric lines and plan, loaded once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from nephoscope.core.model import LineKey, MetricResult, TrialRecord
from nephoscope.core.records import dataclass
from nephoscope.results.exclusions import NONE, ExcludedTrials
from nephoscope.store import RunManifest, StoredRun
from nephoscope.store.query import TrialHistogram, TrialValue


@dataclass(frozen=True)
class RunData:
    """A stored run with its metric lines.

    values, distributions: the rows of store.query.trial_medians and histograms. histograms: merged,
    as RunResult.histograms. fingerprints: target -> document. confidence: of every interval.
    excluded: trials that were excluded for a cause that may depend on what they measured.
    """

    run: StoredRun
    records: Sequence[TrialRecord]
    metrics: Sequence[MetricResult]
    values: Sequence[TrialValue]
    distributions: Sequence[TrialHistogram]
    histograms: Mapping[LineKey, tuple[list[float], list[int]]]
    fingerprints: Mapping[str, Any]
    confidence: float
    excluded: ExcludedTrials = NONE

    @property
    def manifest(self) -> RunManifest:
        """Returns the run's manifest."""
        return self.run.manifest

    @cached_property
    def benchmarks(self) -> frozenset[str]:
        """Returns the benchmarks of the run's trials and of its metric lines."""
        of_trials = {record.benchmark for record in self.records}
        return frozenset(of_trials | {line.benchmark for line in self.metrics})

    @cached_property
    def factors(self) -> frozenset[str]:
        """Returns the names of the factors of the run's settings."""
        settings = self.manifest.settings
        return frozenset(name for setting in settings for name in setting.get("factors") or {})

    @cached_property
    def has_design(self) -> bool:
        """States whether the plan asks for more than its settings one by one."""
        plan = self.manifest.plan
        design = plan.get("design") or {}
        has_arrangement = any(design.get(key) for key in ("baseline", "a_a", "nest"))
        return bool(
            has_arrangement or plan.get("factors") or str(design.get("fraction", "1")) != "1"
        )
