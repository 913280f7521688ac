"""Progress of a load: a line for each trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from nephoscope.cli.kit.progress import ProgressDisplay
from nephoscope.core import units
from nephoscope.core.model import Sample, TrialRecord, TrialStatus
from nephoscope.core.naming import plural
from nephoscope.core.shared_load import GENERATORS
from nephoscope.stats.statistics import histograms
from nephoscope.store import StoredRun


class LoadProgress(ProgressDisplay):
    """Adds rate, percentiles and errors of each trial to the progress of a run.

    run: the run once it began.
    """

    run: StoredRun | None = None

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._parts: list[Sample] = []
        self._generators = self._failed = 0

    def run_started(self, run: StoredRun, resumed: bool, trials: int) -> None:
        """Remembers the run, and says which it is."""
        self.run = run
        super().run_started(run, resumed, trials)

    def trial_measured(self, record: TrialRecord, samples: Sequence[Sample]) -> None:
        """Shows the figures of a trial, of all its generators together; percentiles only where it
        has enough requests."""
        self._parts += samples
        self._generators += 1
        self._failed += record.status is TrialStatus.FAILED
        if self._generators < record.params.get(GENERATORS, 1):
            return
        failed = f", {plural(self._failed, 'generator')} failed" if self._failed else ""
        samples, self._parts, self._generators, self._failed = self._parts, [], 0, 0
        if any(sample.metric == "requests_per_s" for sample in samples):
            self.say(f"trial {record.key.round}: {line(samples)}{failed}")


def line(samples: Sequence[Sample]) -> str:
    """Returns '998/s, p50 1.20 ms, p99 4.31 ms, max 9.80 ms, no errors'."""
    per_s = sum(sample.value for sample in samples if sample.metric == "requests_per_s")
    whole, unanswered = (histogram_of(samples, name) for name in ("latency_ns", "unanswered_ns"))
    merged, counts = histograms.merge([whole])
    total = int(counts.sum())
    parts = [units.format_value(per_s, "per_s")]
    for name, q in (("p50", 0.5), ("p99", 0.99)):
        if total * (1 - q) >= 1:
            value = histograms.quantile_of_counts(merged, counts, q)
            least = "≥ " if histograms.is_censored(whole, unanswered, q) else ""
            parts.append(f"{name} {least}{units.format_value(value, 'ns')}")
    if total:
        least = "≥ " if unanswered[1] else ""
        parts.append(f"max {least}{units.format_value(float(merged[-1]), 'ns')}")
    failed: Counter[str] = Counter()
    for sample in samples:
        if sample.metric == "errors_count" and sample.factors["kind"] != "any":
            failed[sample.factors["kind"]] += round(sample.value)
    parts += [f"{count} {kind}" for kind, count in failed.items()]
    return ", ".join(parts if failed else [*parts, "no errors"])


def histogram_of(samples: Sequence[Sample], metric: str) -> tuple[list[float], list[int]]:
    """Returns the values of a histogram's samples, and how often each was seen."""
    own = [sample for sample in samples if sample.metric == metric]
    return [sample.value for sample in own], [sample.count for sample in own]
