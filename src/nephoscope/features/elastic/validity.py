"""What forbids a judgement of an autoscaler, and what its figures have to be read with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nephoscope.core import units
from nephoscope.core.naming import plural
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial
from nephoscope.features.elastic.records import ElasticTrial
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.stats.statistics import histograms

_UNSENT_RATIO = 0.01
"""Share of requests for which the generator had no free connection, from which it is the limit."""
_LATE_RATIO = 0.1
"""Delay of the generator, as a share of the objective's limit, that is its own limit."""
_SILENT_RATIO = 0.1
"""Share of a trial at its end in which nothing is answered, from which the service is down."""
MAXIMUM = "maximum"


def problems_of(
    own: ElasticTrial, trial: BalancedTrial, scaler: BackgroundSamples
) -> Iterator[str]:
    """Yields a sentence for each reason not to judge the autoscaler by a trial."""
    levels = [count for _, count in own.demand]
    if len(set(levels)) == 1:
        yield (
            f"The demand was {plural(int(levels[0]), 'instance')} throughout: "
            "nothing had to be scaled. Use a higher --high."
        )
    elif len(own.supply) == 1:
        yield (
            "The autoscaler never changed the number of instances, while the demand went from "
            f"{min(levels):g} to {max(levels):g}."
        )
    tail = [
        interval
        for interval in own.timeline
        if interval.at_s > (1 - _SILENT_RATIO) * own.duration_s
    ]
    if tail and not any(interval.responses_per_s for interval in tail):
        answered = [interval.at_s for interval in own.timeline if interval.responses_per_s]
        since = f"after {answered[-1]:.0f} s" if answered else "at any time"
        yield f"The service died: no request was answered {since}."


def disturbances_of(
    own: ElasticTrial, trial: BalancedTrial, scaler: BackgroundSamples
) -> Iterator[str]:
    """Yields a sentence for each reason to leave a round out: what was measured is not the
    autoscaler but the generator or the observer."""
    yield from _generator_limits(own, trial, scaler)
    failures = [
        str(sample.factors["failure"])
        for sample in scaler.samples
        if sample.metric == "unobserved_count"
    ]
    if failures:
        yield (
            f"The number of instances was not observed all the time: the command failed "
            f"{plural(len(failures), 'time')} ({failures[0]})."
        )


def _generator_limits(
    own: ElasticTrial, trial: BalancedTrial, scaler: BackgroundSamples
) -> Iterator[str]:
    unsent = trial.errors().get("unsent", 0)
    if unsent > _UNSENT_RATIO * own.due:
        yield (
            f"The load generator was at its limit: {unsent:,} of {own.due:,} requests found no "
            f"free connection of {trial.connections:,}. Use more connections (-c)."
        )
    limit_ns = LatencyObjective.of(str(scaler.params["objective"])).limit_ns
    delays = [
        (sample.value, sample.count)
        for samples in trial.samples
        for sample in samples
        if sample.metric == "send_delay_ns"
    ]
    late_ns = _p99(delays)
    if late_ns > _LATE_RATIO * limit_ns:
        yield (
            f"The load generator was at its limit: it sent 1 % of the requests more than "
            f"{units.format_value(late_ns, 'ns')} late, which the objective cannot tell from "
            "the service. Use a machine with free CPUs for it."
        )


def _p99(counted: Sequence[tuple[float, int]]) -> float:
    """The 99th percentile of counted values; 0 without any."""
    if not counted:
        return 0.0
    values, counts = zip(*counted, strict=True)
    return histograms.quantile([(list(values), list(counts))], 0.99)


def notes_of(own: ElasticTrial, trial: BalancedTrial, scaler: BackgroundSamples) -> Iterator[str]:
    """Yields what a trial's figures have to be read with: caps, machines that died."""
    capped = [decision for decision in own.decisions if decision.reason == MAXIMUM]
    if capped:
        wanted = max(decision.wanted for decision in capped)
        yield (
            f"The cap of {plural(capped[0].desired, 'instance')} was reached: the rule wanted up "
            f"to {wanted}."
        )
    died = sum(
        sample.metric == "steps_count" and sample.factors["step"] == "died"
        for sample in scaler.samples
    )
    deviations = [
        (sample.at_ns, str(sample.factors["text"]))
        for sample in scaler.samples
        if sample.metric == "deviations_count"
    ]
    if deviations:
        yield (
            f"{plural(len(deviations), 'decision')} of {len(own.decisions)} did not follow from "
            f"the documented rules: {min(deviations)[1]}."
        )
    if died:
        yield f"{plural(died, 'machine')} died; the autoscaler replaced what its rule wanted."
