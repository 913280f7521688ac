"""Trials with load balancers, made up."""

from __future__ import annotations

from collections.abc import Sequence

from tests.store.factory import trial_record

from nephoscope.core.model import Sample, TrialRecord
from nephoscope.features.balance.trials import BackgroundSamples, BalancedTrial

MS = 1_000_000
BEGAN_NS = 1_700_000_000 * 1000 * MS


def record(params: dict[str, object]) -> TrialRecord:
    return trial_record(
        1,
        "client1",
        benchmark="http.load",
        params=params,
        started_at=BEGAN_NS / 1e9,
        elapsed_ns=4000 * MS,
        timeline={"measure": (0, 4000 * MS)},
    )


def counter(
    name: str, benchmark: str, samples: Sequence[Sample], **params: object
) -> BackgroundSamples:
    started = Sample("started_wall_ns", float(BEGAN_NS))
    return BackgroundSamples(
        name, benchmark, {"address": "10.0.0.9", "port": 80, **params}, [*samples, started]
    )


def failing_trial(down_ms: Sequence[float]) -> BalancedTrial:
    """A server that answers for 1 s, is away for 2 s, and answers again half a second later."""
    answered = [*range(0, 1000, 100), *range(3500, 4000, 100)]
    web = counter(
        "web1",
        "http.nginx",
        [
            Sample("failure_wall_ns", float(BEGAN_NS + 1000 * MS)),
            Sample("recovery_wall_ns", float(BEGAN_NS + 3000 * MS)),
            *(Sample("interval_served_count", 10.0, at_ns=at * MS) for at in answered),
        ],
        failure="dies",
    )
    balancer = counter(
        "haproxy",
        "lb.haproxy",
        [
            Sample("failed_count", 4.0),
            Sample("retries_count", 7.0),
            *(
                Sample(
                    "server_down_count",
                    1.0,
                    at_ns=round(at * MS),
                    factors={"server": "10.0.0.9:80"},
                )
                for at in down_ms
            ),
            Sample("server_down_count", 1.0, at_ns=1001 * MS, factors={"server": "10.0.0.8:80"}),
        ],
    )
    own = [
        Sample("sent_count", 400.0),
        Sample("completed_count", 396.0),
        Sample("errors_count", 3.0, factors={"kind": "reset"}),
        Sample("errors_count", 1.0, factors={"kind": "timeout"}),
        Sample("errors_count", 4.0, factors={"kind": "any"}),
        Sample("latency_ns", 2e6, 395),
        Sample("latency_ns", 9e8, 1),
        *(Sample("interval_requests_per_s", 99.0, at_ns=(n + 1) * 100 * MS) for n in range(40)),
        Sample("interval_errors_count", 4.0, at_ns=1100 * MS),
    ]
    params = {"connections": 10, "arrivals": "constant", "interval_ns": 100 * MS}
    return BalancedTrial(1, "haproxy", [record(params)], [own], {"web1": web, "haproxy": balancer})
