"""Failures of a server behind a load balancer: errors, time to notice, recovery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from nephoscope.catalog.adapters.http_nginx import INTERVAL_NS
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate
from nephoscope.features.balance.records import Failover, FailoverSummary, ResponseInterval
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial
from nephoscope.stats.statistics import estimates

_RATE, _ERRORS = "interval_requests_per_s", "interval_errors_count"


def failover_of(trial: BalancedTrial) -> Failover:
    """Returns what a trial shows in which a server failed. All logs are of one clock."""
    failing, forwarder = trial.failing, trial.forwarder
    assert failing is not None
    assert forwarder is not None
    failed_ns = int(failing.sum("failure_wall_ns"))
    works_ns = int(failing.sum("recovery_wall_ns")) or None
    noticed = _first(forwarder.times_ns("server_down_count", server=failing.address), failed_ns)
    answers = failing.times_ns("interval_served_count")
    # An interval is named by its beginning: what is served in that of a moment is after it.
    drained = [at for at in answers if failed_ns <= at + INTERVAL_NS and at < (works_ns or at + 1)]
    returned = _first(answers, works_ns - INTERVAL_NS) if works_ns else None
    latencies, _ = trial.latency
    return Failover(
        balancer=trial.balancer,
        failure=str(failing.params["failure"]),
        round=trial.round,
        length_s=((works_ns or failed_ns) - failed_ns) / 1e9,
        sent=int(trial.sum("sent_count")),
        completed=int(trial.sum("completed_count")),
        errors=trial.errors(),
        failed=int(forwarder.sum("failed_count")),
        retries=int(forwarder.sum("retries_count")),
        noticed_s=_since(noticed, failed_ns),
        drained_s=_since(max(drained), failed_ns) if drained else None,
        returned_s=_since(returned, works_ns) if works_ns else None,
        slowest_s=float(latencies[-1]) / 1e9,
        timeline=tuple(_timeline(trial, failing, failed_ns)),
    )


def _first(moments: Sequence[int], since_ns: int) -> int | None:
    return next((moment for moment in moments if moment >= since_ns), None)


def _since(moment: int | None, begin_ns: int) -> float | None:
    return None if moment is None else max(0.0, (moment - begin_ns) / 1e9)


def _timeline(
    trial: BalancedTrial, failing: BackgroundSamples, failed_ns: int
) -> Iterable[ResponseInterval]:
    """The clients' intervals, with the responses of the failing server in each of them."""
    record = trial.records[0]
    begun_ns = int(record.started_at * 1e9) + record.timeline["measure"][0]
    length_ns = int(trial.params["interval_ns"])
    rates: dict[int, float] = defaultdict(float)
    errors: dict[int, float] = defaultdict(float)
    own: dict[int, float] = defaultdict(float)
    for samples in trial.samples:
        for sample in samples:
            place = round(sample.at_ns / length_ns) - 1  # reported when it is over
            if sample.metric == _RATE:
                rates[place] += sample.value
            elif sample.metric == _ERRORS:
                errors[place] += sample.value
    started_ns = int(failing.sum("started_wall_ns"))
    for sample in failing.samples:
        if sample.metric == "interval_served_count":
            own[(started_ns + sample.at_ns - begun_ns) // length_ns] += sample.value
    for place in sorted(rates):
        at_s = (begun_ns + place * length_ns - failed_ns) / 1e9
        yield ResponseInterval(at_s, rates[place], errors[place], own[place] * 1e9 / length_ns)


def summaries(failovers: Sequence[Failover], confidence: float) -> Iterable[FailoverSummary]:
    """Returns medians over the rounds, by balancer and failure."""
    groups = group_by(failovers, lambda failover: (failover.balancer, failover.failure))

    def median(values: Iterable[float | None], unit: str) -> Estimate | None:
        known = [value for value in values if value is not None]
        return estimates.median(known, unit=unit, confidence=confidence) if known else None

    for (balancer, failure), own in sorted(groups.items()):
        slowest = median((failover.slowest_s * 1e9 for failover in own), "ns")
        errors = median((float(sum(failover.errors.values())) for failover in own), "count")
        assert slowest is not None
        assert errors is not None
        yield FailoverSummary(
            balancer,
            failure,
            median((_ns(failover.noticed_s) for failover in own), "ns"),
            median((_ns(failover.returned_s) for failover in own), "ns"),
            slowest,
            errors,
            len(own),
        )


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9
