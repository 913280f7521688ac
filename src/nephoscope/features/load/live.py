"""Progress of a load: a line for each trial."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.cli.kit.progress import ProgressDisplay
from nephoscope.core import units
from nephoscope.core.model import Sample, TrialRecord, TrialStatus
from nephoscope.stats.statistics import histograms
from nephoscope.store import StoredRun


class LoadProgress(ProgressDisplay):
    """Adds rate, percentiles and errors of each trial to the progress of a run.

    run: the run once it began.
    """

    run: StoredRun | None = None

    def run_started(self, run: StoredRun, resumed: bool, trials: int) -> None:
        """Remembers the run, and says which it is."""
        self.run = run
        super().run_started(run, resumed, trials)

    def trial_measured(self, record: TrialRecord, samples: Sequence[Sample]) -> None:
        """Shows the figures of a trial; percentiles only where it has enough requests."""
        if record.status is not TrialStatus.FAILED:
            self.say(f"trial {record.key.round}: {line(samples)}")


def line(samples: Sequence[Sample]) -> str:
    """Returns '998/s, p50 1.20 ms, p99 4.31 ms, max 9.80 ms, no errors'."""
    values = {sample.metric: sample.value for sample in samples if not sample.factors}
    whole, unanswered = (histogram_of(samples, name) for name in ("latency_ns", "unanswered_ns"))
    merged, counts = histograms.merge([whole])
    total = int(counts.sum())
    parts = [units.format_value(values["requests_per_s"], "per_s")]
    for name, q in (("p50", 0.5), ("p99", 0.99)):
        if total * (1 - q) >= 1:
            value = histograms.quantile_of_counts(merged, counts, q)
            least = "≥ " if histograms.is_censored(whole, unanswered, q) else ""
            parts.append(f"{name} {least}{units.format_value(value, 'ns')}")
    if total:
        least = "≥ " if unanswered[1] else ""
        parts.append(f"max {least}{units.format_value(float(merged[-1]), 'ns')}")
    failed = [
        sample
        for sample in samples
        if sample.metric == "errors_count" and sample.factors["kind"] != "any"
    ]
    parts += [f"{sample.value:g} {sample.factors['kind']}" for sample in failed]
    return ", ".join(parts if failed else [*parts, "no errors"])


def histogram_of(samples: Sequence[Sample], metric: str) -> tuple[list[float], list[int]]:
    """Returns the values of a histogram's samples, and how often each was seen."""
    own = [sample for sample in samples if sample.metric == metric]
    return [sample.value for sample in own], [sample.count for sample in own]
