"""Throughput, added latency and fairness of load balancers, from the trials of a stored run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nephoscope.catalog import instruments
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Better, Estimate
from nephoscope.features.balance import failover
from nephoscope.features.balance.plan import DIRECT
from nephoscope.features.balance.ratios import busy_notes, throughput_ratios
from nephoscope.features.balance.records import (
    AddedLatency,
    Balance,
    GeneratorEffect,
    Sharing,
    Throughput,
)
from nephoscope.features.balance.trials import BalancedTrial, balanced_trials
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare
from nephoscope.stats.statistics import estimates, histograms
from nephoscope.stats.statistics.fairness import jain_of_rounds
from nephoscope.stats.statistics.values import Refused

_P99 = 0.99


def analyse(data: RunData) -> Balance | None:
    """Returns what a run's load balancers delivered; None where no trial of one counts."""
    trials = balanced_trials(data)
    if not trials:
        return None
    failing = [trial for trial in trials if trial.failing is not None]
    regular = [trial for trial in trials if trial.failing is None]
    confidence = data.confidence
    failovers = tuple(failover.failover_of(trial) for trial in failing)
    return Balance(
        client=trials[0].records[0].key.target,
        throughputs=tuple(_throughputs(regular, confidence)),
        latencies=tuple(_latencies(regular, _network(data), confidence)),
        effects=tuple(_effects(regular, confidence)),
        sharings=tuple(_sharings(regular, confidence)),
        failovers=failovers,
        failures=tuple(failover.summaries(failovers, confidence)),
        notes=busy_notes(data.records),
        ratios=throughput_ratios(regular, confidence),
    )


def _throughputs(trials: Sequence[BalancedTrial], confidence: float) -> Iterable[Throughput]:
    closed = group_by(
        (trial for trial in trials if trial.is_closed),
        # The direct server first, then balancers by name.
        lambda t: (t.balancer != DIRECT, t.balancer, t.generators, t.connections),
    )
    for (_, balancer, generators, connections), own in sorted(closed.items()):
        rates = [trial.sum("requests_per_s") for trial in own]
        means_ns = [trial.mean_ns() for trial in own]
        in_flight = [rate * ns / 1e9 for rate, ns in zip(rates, means_ns, strict=True)]
        yield Throughput(
            balancer,
            generators,
            connections,
            _median(rates, "per_s", confidence),
            _mean_response(own, means_ns, confidence),
            _p99(own, confidence),
            _cpu(own, confidence),
            _median([number / connections for number in in_flight], "ratio", confidence),
        )


def _median(values: Sequence[float], unit: str, confidence: float) -> Estimate:
    return estimates.median(values, unit=unit, confidence=confidence)


def _mean_response(
    trials: Sequence[BalancedTrial], means_ns: Sequence[float], confidence: float
) -> Estimate:
    """The median of the mean response times; a lower bound where requests had no answer."""
    median = _median(means_ns, "ns", confidence)
    count, total = (
        sum(int(numbers.sum()) for _, numbers in own)
        for own in ([trial.unanswered for trial in trials], [trial.latency for trial in trials])
    )
    if not count:
        return median
    note = histograms.CENSORED_NOTE.format(count=count, total=total)
    return replace(median, high=None, note=note, censored=True)


def _p99(trials: Sequence[BalancedTrial], confidence: float) -> Estimate | None:
    try:
        return histograms.quantile_of_trials(
            [trial.latency for trial in trials],
            _P99,
            unit="ns",
            confidence=confidence,
            unanswered=[trial.unanswered for trial in trials],
        )
    except Refused:
        return None


def _cpu(trials: Sequence[BalancedTrial], confidence: float) -> Estimate | None:
    """CPU time of the balancer per request that it forwarded."""
    values = [
        trial.forwarder.sum("cpu_ns") / forwarded
        for trial in trials
        if trial.forwarder is not None and (forwarded := trial.forwarder.sum("forwarded_count"))
    ]
    return _median(values, "ns", confidence) if values else None


def _network(data: RunData) -> Mapping[int, float]:
    """Round -> median round trip between a client and the balancer, in ns."""
    return {
        histogram.round: histograms.quantile([(histogram.values, histogram.counts)], 0.5)
        for histogram in data.distributions
        if (histogram.benchmark, histogram.metric) == (instruments.NET_RTT, "rtt_sent_ns")
        and histogram.round > 0
    }


def _latencies(
    trials: Sequence[BalancedTrial], network: Mapping[int, float], confidence: float
) -> Iterable[AddedLatency]:
    opened = group_by(
        (trial for trial in trials if not trial.is_closed),
        lambda trial: (float(trial.params["rate_per_s"]), trial.balancer),
    )
    for (rate, balancer), own in sorted(opened.items()):
        direct = {trial.round: trial for trial in opened.get((rate, DIRECT), ())}
        pairs = [(direct[trial.round], trial) for trial in own if trial.round in direct]
        if balancer == DIRECT or not pairs:
            continue
        before = [trial.mean_service_ns() for trial, _ in pairs]
        after = [trial.mean_service_ns() for _, trial in pairs]
        trips = [(network[t.round], t.mean_service_ns()) for _, t in pairs if t.round in network]
        yield AddedLatency(
            balancer,
            rate,
            _median(before, "ns", confidence),
            _median(after, "ns", confidence),
            compare.paired(
                before,
                after,
                better=Better.LOWER,
                unit="ns",
                confidence=confidence,
                names=(DIRECT, balancer),
            ),
            _median([trip for trip, _ in trips], "ns", confidence) if trips else None,
            _median([2 * trip / mean for trip, mean in trips], "ratio", confidence)
            if trips
            else None,
        )


def _effects(trials: Sequence[BalancedTrial], confidence: float) -> list[GeneratorEffect]:
    """Several generators against one, round by round, corrected over all comparisons (Holm)."""
    closed = group_by(
        (trial for trial in trials if trial.is_closed),
        lambda trial: (trial.balancer, trial.connections, trial.generators),
    )
    effects: list[GeneratorEffect] = []
    for (balancer, connections, generators), own in sorted(closed.items()):
        alone = {t.round: t for t in closed.get((balancer, connections, 1), ())}
        pairs = [(alone[trial.round], trial) for trial in own if trial.round in alone]
        if generators == 1 or not pairs:
            continue
        comparison = compare.paired(
            [trial.sum("requests_per_s") for trial, _ in pairs],
            [trial.sum("requests_per_s") for _, trial in pairs],
            better=Better.HIGHER,
            unit="per_s",
            confidence=confidence,
            names=("1 generator", f"{generators} generators"),
        )
        effects.append(GeneratorEffect(balancer, generators, connections, comparison))
    corrected = compare.over_report(
        [effect.comparison for effect in effects], confidence=confidence
    )
    return [
        replace(effect, comparison=comparison)
        for effect, comparison in zip(effects, corrected, strict=True)
    ]


def _sharings(trials: Sequence[BalancedTrial], confidence: float) -> Iterable[Sharing]:
    balanced = group_by(
        (trial for trial in trials if trial.forwarder is not None and len(trial.servers) > 1),
        lambda trial: trial.balancer,
    )
    for balancer, own in sorted(balanced.items()):
        forwarder = own[0].forwarder
        assert forwarder is not None
        backends = (text.partition(" ") for text in forwarder.params["backends"])
        weights = {address: float(weight or 1) for address, _, weight in backends}
        names = sorted(own[0].servers, key=lambda name: (len(name), name))
        shares = []
        for _, same in sorted(group_by(own, lambda trial: trial.round).items()):
            numbers = [sum(trial.servers[name].served for trial in same) for name in names]
            shares.append([number / sum(numbers) for number in numbers])
        due = [weights.get(own[0].servers[name].address, 1.0) for name in names]
        yield Sharing(
            balancer,
            {
                name: _median([row[at] for row in shares], "ratio", confidence)
                for at, name in enumerate(names)
            },
            {name: weight / sum(due) for name, weight in zip(names, due, strict=True)},
            jain_of_rounds(
                [[part / weight for part, weight in zip(row, due, strict=True)] for row in shares],
                confidence=confidence,
            ),
        )
