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
"""Share of a trial without any response from which the service counts as down."""
_SILENT_REQUESTS = 10
"""Requests that were due in such a time at least: a few of them may be answered by chance later."""
MAXIMUM = "maximum"


def death_of(own: ElasticTrial) -> str:
    """Returns that the service was down at the end of a trial, in a sentence; empty if it was not.

    The generator runs out of connections then, which is no fault of its own.
    """
    silent = _silences(own)
    if not silent or silent[-1][1] < own.timeline[-1].at_s:
        return ""
    since_s = silent[-1][0]
    since = f"after {since_s:.0f} s" if since_s else "at any time"
    return f"The service died: no request was answered {since}."


def _silences(own: ElasticTrial) -> list[tuple[float, float]]:
    """Returns begin and end of each time without a response that is long and had requests."""
    silences: list[tuple[float, float]] = []
    begin_s = before_s = due = 0.0
    for place, interval in enumerate(own.timeline):
        if not interval.responses_per_s:
            due += interval.offered_per_s * (interval.at_s - before_s)
        before_s = interval.at_s
        if interval.responses_per_s or place == len(own.timeline) - 1:
            end_s = own.timeline[place - 1].at_s if interval.responses_per_s else interval.at_s
            is_long = end_s - begin_s >= _SILENT_RATIO * own.duration_s
            if is_long and due >= _SILENT_REQUESTS:
                silences.append((begin_s, end_s))
            begin_s, due = interval.at_s, 0.0
    return silences


def problems_of(own: ElasticTrial) -> Iterator[str]:
    """Yields a sentence for each reason not to judge the autoscaler by a trial."""
    if death := death_of(own):
        yield death
    levels = [count for _, count in own.demand]
    if len(set(levels)) == 1:
        yield (
            f"The demand was {plural(int(levels[0]), 'instance')} throughout: "
            "nothing had to be scaled. Use a higher --high."
        )
    elif not own.changes:
        yield (
            "The autoscaler never changed the number of instances, while the demand went from "
            f"{min(levels):g} to {max(levels):g}."
        )


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
    if late := late_sender(trial, LatencyObjective.of(str(scaler.params["objective"]))):
        yield late


def late_sender(trial: BalancedTrial, objective: LatencyObjective) -> str:
    """Returns that the generators of a trial sent late, beside an objective's limit; else empty.

    As many of the requests count as may miss the objective.
    """
    delays = [
        (sample.value, sample.count)
        for samples in trial.samples
        for sample in samples
        if sample.metric == "send_delay_ns"
    ]
    late_ns = _percentile(delays, objective.share_ratio)
    if late_ns <= _LATE_RATIO * objective.limit_ns:
        return ""
    return (
        f"The load generator was at its limit: it sent "
        f"{100 * (1 - objective.share_ratio):.2g} % of the requests more than "
        f"{units.format_value(late_ns, 'ns')} late, which the objective cannot tell from "
        "the service. Use a machine with free CPUs for it."
    )


def _percentile(counted: Sequence[tuple[float, int]], share_ratio: float) -> float:
    """Returns a percentile of counted values; 0 without any."""
    if not counted:
        return 0.0
    values, counts = zip(*counted, strict=True)
    return histograms.quantile([(list(values), list(counts))], share_ratio)


def notes_of(own: ElasticTrial, scaler: BackgroundSamples) -> Iterator[str]:
    """Yields what a trial's figures have to be read with: caps, machines that died."""
    capped = [decision for decision in own.decisions if decision.reason == MAXIMUM]
    if capped:
        wanted = max(decision.wanted for decision in capped)
        yield (
            f"The cap of {plural(capped[0].desired, 'instance')} was reached: the rule wanted up "
            f"to {wanted}."
        )
    died, failed = (
        sum(
            sample.metric == "steps_count" and sample.factors["step"] == step
            for sample in scaler.samples
        )
        for step in ("died", "failed")
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
    if failed:
        yield f"{plural(failed, 'start')} of a machine failed, because its control did not answer."
    for begin_s, end_s in _silences(own):
        if end_s < own.timeline[-1].at_s:
            yield f"No request was answered from {begin_s:.0f} s to {end_s:.0f} s."
