"""Ramps against a server with one queue whose rate is planted, request by request."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from tests.features.balance.made import BEGAN_NS, record

from nephoscope.core.model import Sample
from nephoscope.features.balance.trials import BalancedTrial
from nephoscope.features.elastic.growth_plan import GrowthRequest, ramp_rates
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure.targets.kinds import parse

S = 1_000_000_000
TEXT = "p99 < 50ms"
REQUEST = GrowthRequest(
    "http://127.0.0.1/", 100, 800, 20.0, LatencyObjective.of(TEXT), TEXT, (parse("local"),)
)
PERIOD_S = 21.0
"""From the begin of a ramp to that of the next one."""
_LONGEST_S = 1.0


@dataclass(frozen=True)
class Planted:
    """rate_per_s: that the server serves, and later_per_s from a second of the run on. service_s:
    that each request takes besides. send_delay_s: by which the generator is late."""

    rate_per_s: float
    later_per_s: float = 0.0
    grows_s: float = math.inf
    connections: int = 400
    service_s: float = 0.001
    send_delay_s: float = 0.0

    def seen_from(self, began_s: float) -> Planted:
        """Returns the server in the time of a ramp."""
        own_s = self.grows_s - began_s
        if 0 < own_s < PERIOD_S:
            return replace(self, grows_s=own_s)
        rate = self.rate_per_s if own_s > 0 else self.later_per_s
        return replace(self, rate_per_s=rate, later_per_s=0.0, grows_s=math.inf)


def ramp(planted: Planted, number: int, generators: int = 1, place: int = 0) -> BalancedTrial:
    """The ramp at a place in the run, of a round."""
    rates = ramp_rates(REQUEST)
    began_s = place * PERIOD_S
    params = {
        "url": REQUEST.url,
        "connections": planted.connections // generators,
        "step_rates_per_s": rates,
        "duration_ns": round(REQUEST.ramp_s * 1e9),
        "interval_ns": round(REQUEST.ramp_s / len(rates) * 1e9),
    }
    made = replace(
        record(params),
        timeline={"measure": (0, round(REQUEST.ramp_s * 1e9))},
        started_at=BEGAN_NS / 1e9 + began_s,
    )
    samples = _samples(planted.seen_from(began_s))
    # What several generators report is parts of equal size; one of them stands for all here.
    rest: list[list[Sample]] = [[] for _ in range(generators - 1)]
    return BalancedTrial(number, "127.0.0.1", [made] * generators, [samples, *rest])


@cache
def _samples(planted: Planted) -> list[Sample]:
    """What the generator reports of one ramp."""
    rates = ramp_rates(REQUEST)
    length_s = REQUEST.ramp_s / len(rates)
    dues = [
        step * length_s + k / rate
        for step, rate in enumerate(rates)
        for k in range(int(rate * length_s))
    ]
    free_s = 0.0
    busy: list[float] = []
    latency: Counter[int] = Counter()
    service: Counter[int] = Counter()
    by_step: list[list[float]] = [[] for _ in rates]
    failed = [0] * len(rates)
    for due_s in dues:
        sent_s = due_s + planted.send_delay_s
        if len(busy) >= planted.connections:
            sent_s = max(sent_s, heapq.heappop(busy))
        step = min(int(due_s / length_s), len(rates) - 1)
        if free_s - sent_s > _LONGEST_S:
            failed[step] += 1
            continue
        rate = planted.rate_per_s if sent_s < planted.grows_s else planted.later_per_s
        free_s = max(free_s, sent_s) + 1 / rate
        done_s = free_s + planted.service_s
        heapq.heappush(busy, done_s)
        by_step[step].append(done_s - due_s)
        latency[round(1e6 * (done_s - due_s)) * 1000] += 1
        service[round(1e6 * (done_s - sent_s)) * 1000] += 1
    samples = [Sample("due_count", len(dues))]
    for metric, counted in (("latency_ns", latency), ("service_time_ns", service)):
        samples += [Sample(metric, float(value), count) for value, count in counted.items()]
    samples += [Sample("send_delay_ns", planted.send_delay_s * 1e9, len(dues))]
    for kind in ("status", "any"):
        samples.append(Sample("errors_count", sum(failed), factors={"kind": kind}))
    for step, own in enumerate(by_step):
        samples += _interval(step, length_s, own, failed[step])
    return samples


def _interval(step: int, length_s: float, own: Sequence[float], failed: int) -> list[Sample]:
    at_ns = round((step + 1) * length_s * 1e9)
    samples = [
        Sample("interval_requests_per_s", len(own) / length_s, at_ns=at_ns),
        Sample("interval_errors_count", float(failed), at_ns=at_ns),
    ]
    if own:
        ranked = sorted(own)[min(len(own) - 1, int(0.99 * len(own)))]
        samples.append(Sample("interval_latency_p99_ns", 1e9 * ranked, at_ns=at_ns))
    return samples
