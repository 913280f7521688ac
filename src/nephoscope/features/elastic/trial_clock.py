"""Times of what an autoscaler logs, in seconds since the generator of its trial began."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core.model import Sample
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial
from nephoscope.stats.elasticity import StepFunction


class TrialClock:
    """Seconds since the generator began, of samples of the autoscaler. All clocks are one."""

    def __init__(self, trial: BalancedTrial, scaler: BackgroundSamples) -> None:
        record = trial.records[0]
        begun_ns = int(record.started_at * 1e9) + record.timeline["measure"][0]
        self._shift_ns = int(scaler.sum("started_wall_ns")) - begun_ns
        self._samples = scaler.samples

    def series(self, metric: str, **factors: str) -> list[tuple[float, Sample]]:
        """Returns the samples of a metric with these factors, and their times, ascending."""
        own = [
            ((self._shift_ns + sample.at_ns) / 1e9, sample)
            for sample in self._samples
            if sample.metric == metric
            and all(sample.factors.get(name) == value for name, value in factors.items())
        ]
        return sorted(own, key=lambda pair: pair[0])

    def counts(self, state: str) -> StepFunction | None:
        """Returns the number of instances in a state from the trial's begin on; None if unknown."""
        series = self.series("instances_count", state=state)
        if not series:
            return None
        before = [sample.value for at_s, sample in series if at_s <= 0]
        levels = {0.0: before[-1] if before else series[0][1].value}
        levels |= {at_s: sample.value for at_s, sample in series if at_s > 0}
        return changes_only(levels)


def changes_only(levels: Mapping[float, float]) -> StepFunction:
    """Returns the step function of levels by time, without those that change nothing."""
    times, counts = list(levels), list(levels.values())
    places = [n for n, count in enumerate(counts) if n == 0 or count != counts[n - 1]]
    return StepFunction(tuple(times[n] for n in places), tuple(counts[n] for n in places))
