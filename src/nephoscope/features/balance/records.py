"""Records of load balancers: throughput, added latency, sharing, failures."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.stats.compare import TwoSampleComparison


@dataclass(frozen=True, slots=True)
class Throughput:
    """A closed loop of one or more generators, over the rounds.

    connections: of all generators together. cpu_per_request: CPU time of the balancer.
    in_flight_ratio: throughput times mean response time over connections (Little's law): 1 where
    each connection always waits for a response.
    """

    balancer: str
    generators: int
    connections: int
    throughput: Estimate
    response_mean: Estimate
    response_p99: Estimate | None
    cpu_per_request: Estimate | None
    in_flight_ratio: Estimate


@dataclass(frozen=True, slots=True)
class AddedLatency:
    """Response times of an open loop through a balancer and directly, in the same rounds.

    Times count from the moment at which a request left, so that a generator that sends late adds
    nothing to them.

    network: median round trip of a datagram. network_ratio: two of them over the mean response time
    through the balancer, an upper bound of the network's share, because a round trip contains the
    wake-up of both programs. None where it was not measured.
    """

    balancer: str
    rate_per_s: float
    direct: Estimate
    through: Estimate
    comparison: TwoSampleComparison
    network: Estimate | None
    network_ratio: Estimate | None


@dataclass(frozen=True, slots=True)
class GeneratorEffect:
    """Throughput of several generators over that of one, at the same number of connections."""

    balancer: str
    generators: int
    connections: int
    comparison: TwoSampleComparison


@dataclass(frozen=True, slots=True)
class ThroughputRatio:
    """Throughput of a balancer over that of the reference, paired by round, at one load."""

    balancer: str
    reference: str
    generators: int
    connections: int
    comparison: TwoSampleComparison


@dataclass(frozen=True, slots=True)
class Sharing:
    """Requests by server, from the servers' own counters: share of each, and Jain's index.

    due: share of each server by its weight. fairness: of requests over weight.
    """

    balancer: str
    shares: Mapping[str, Estimate]
    due: Mapping[str, float]
    fairness: Estimate


@dataclass(frozen=True, slots=True)
class ResponseInterval:
    """Responses to the clients in a part of a trial; at_s since the failure began."""

    at_s: float
    responses_per_s: float
    errors: float
    failing_served_per_s: float


@dataclass(frozen=True, slots=True)
class Failover:
    """One trial in which a server failed.

    noticed_s: from the failure to the moment at which the balancer's log states it. drained_s: from
    the failure to the last response of the failing server before it worked again. returned_s: from
    the moment at which it worked again to its first response. None where that did not happen.
    errors: failed requests of the clients by kind. failed: the balancer's own count of them.
    slowest_s: longest response time that a client saw.
    """

    balancer: str
    failure: str
    round: int
    length_s: float
    sent: int
    completed: int
    errors: Mapping[str, int]
    failed: int
    retries: int
    noticed_s: float | None
    drained_s: float | None
    returned_s: float | None
    slowest_s: float
    timeline: tuple[ResponseInterval, ...]


@dataclass(frozen=True, slots=True)
class FailoverSummary:
    """Failovers of one balancer and failure over the rounds; errors per failure."""

    balancer: str
    failure: str
    noticed: Estimate | None
    returned: Estimate | None
    slowest: Estimate
    errors: Estimate
    trials: int


@dataclass(frozen=True, slots=True)
class Balance:
    """Results of a run with load balancers. client: target of its first generator.

    ratios: every two alternatives. notes: what a reader has to know about the excluded trials.
    """

    client: str
    throughputs: tuple[Throughput, ...]
    latencies: tuple[AddedLatency, ...]
    effects: tuple[GeneratorEffect, ...]
    sharings: tuple[Sharing, ...]
    failovers: tuple[Failover, ...]
    failures: tuple[FailoverSummary, ...]
    notes: tuple[str, ...] = ()
    ratios: tuple[ThroughputRatio, ...] = ()
