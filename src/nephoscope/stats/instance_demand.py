"""The instances that a scaled service needs at a rate, and its response times in equilibrium.

Source: Allen, Probability, Statistics, and Queueing Theory (1990), section 6.3 (waits of G/G/c by
those of M/M/c, after Allen and Cunneen).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from nephoscope.stats.elasticity import StepFunction
from nephoscope.stats.queueing import ResponseObjective, fewest_workers, response


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledService:
    """A service and the delays of its scaling, in seconds.

    services_per_s: requests that an instance serves while it is busy. boot_s, warm_up_s: from the
    decision until an instance is started, and from there until it serves. lag_s: age of the newest
    metric at a decision. window_s: over which metrics are averaged. interval_s: between decisions.
    billed_s: unit of the bill, 0 for the time itself. backlog: waiting requests that are accepted;
    others connect again after a timeout. start_count: instances at the start; None begins with the
    minimum for the first rate. first_decision_s: from the start; None: interval_s. first_value_s:
    end of the first window; None: windows end with each decision, less the lag. arrivals_cv,
    service_cv: coefficients of variation of the times between arrivals and of service times.
    cpu_ratio: CPU time that an instance uses over that of its work, as its metric shows it.
    shared_queue: all instances serve one queue; otherwise a request stays with the instance to
    which it was sent, the one with the shortest queue.
    """

    services_per_s: float
    objective: ResponseObjective
    boot_s: float = 60.0
    warm_up_s: float = 0.0
    lag_s: float = 0.0
    window_s: float = 60.0
    interval_s: float = 60.0
    billed_s: float = 0.0
    backlog: float = math.inf
    start_count: int | None = None
    first_decision_s: float | None = None
    first_value_s: float | None = None
    arrivals_cv: float = 1.0
    service_cv: float = 1.0
    cpu_ratio: float = 1.0
    shared_queue: bool = True

    @property
    def wait_ratio(self) -> float:
        """Waits relative to those of M/M/c (Allen and Cunneen)."""
        return (self.arrivals_cv**2 + self.service_cv**2) / 2


@lru_cache(maxsize=200_000)
def equilibrium(service: ScaledService, ready: int, rate_per_s: float) -> tuple[float, float]:
    """Returns the mean response time in equilibrium, and the share beyond the objective's limit."""
    service_s, limit_s = 1 / service.services_per_s, service.objective.limit_s
    mean_s, beyond = response(ready, service.services_per_s, rate_per_s, limit_s)
    if math.isinf(mean_s) or service.arrivals_cv == service.service_cv == 1:
        return mean_s, beyond
    wait_s = service.wait_ratio * (mean_s - service_s)
    if wait_s <= 0 or limit_s <= service_s:
        return service_s + wait_s, 0.0 if service_s <= limit_s else 1.0
    # Waits are 0 or exponential, as those of M/M/c; service times count as equal.
    spare = ready * service.services_per_s - rate_per_s
    waits = (mean_s - service_s) * spare
    return service_s + wait_s, waits * math.exp(-spare * (limit_s - service_s) / service.wait_ratio)


@lru_cache(maxsize=200_000)
def fewest_instances(service: ScaledService, rate_per_s: float) -> int:
    """Returns the fewest instances that meet the objective at a rate; 0 without requests.

    Raises Refused where no number does.
    """
    count = fewest_workers(service.services_per_s, rate_per_s, service.objective)
    if count and service.wait_ratio > 1:
        while not service.objective.is_met(*equilibrium(service, count, rate_per_s)):
            count += 1
    elif service.wait_ratio < 1:
        while count > 1 and service.objective.is_met(*equilibrium(service, count - 1, rate_per_s)):
            count -= 1
    return count


def demand_of(service: ScaledService, rate: StepFunction) -> StepFunction:
    """Returns the minimum number of instances with which the objective is met at each rate."""
    return StepFunction(
        rate.times_s, tuple(float(fewest_instances(service, each)) for each in rate.counts)
    )
