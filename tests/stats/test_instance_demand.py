"""Instances that a service needs, and its response times in equilibrium."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nephoscope.stats.elasticity import StepFunction
from nephoscope.stats.instance_demand import ScaledService, demand_of, equilibrium
from nephoscope.stats.queueing import ResponseObjective

SERVICE = ScaledService(services_per_s=10.0, objective=ResponseObjective(0.5, 0.95))


def test_regular_arrivals_and_services_wait_less() -> None:
    regular = replace(SERVICE, arrivals_cv=0.0, service_cv=0.0)
    half = replace(SERVICE, service_cv=0.0)
    means_s = [equilibrium(service, 4, 30.0)[0] for service in (regular, half, SERVICE)]
    # M/M/4 at 3 Erlangs: C = 0.5094. Nothing waits below saturation where all is regular; with
    # equal service times requests wait half as long (M/D/4).
    wait_s = 0.5094 / 10
    assert means_s == [pytest.approx(0.1 + part * wait_s, rel=1e-3) for part in (0, 0.5, 1)]


def test_the_demand_follows_from_the_variation() -> None:
    rate = StepFunction((0.0, 1.0), (39.0, 0.0))
    uneven = replace(SERVICE, service_cv=3.0)
    regular = replace(SERVICE, arrivals_cv=0.0, service_cv=0.0)
    assert demand_of(regular, rate).counts == (4.0, 0.0)
    assert demand_of(SERVICE, rate).counts == (5.0, 0.0)
    assert demand_of(uneven, rate).counts[0] > 5
    for service in (regular, SERVICE, uneven):
        (count, _) = map(int, demand_of(service, rate).counts)
        assert service.objective.is_met(*equilibrium(service, count, 39.0))
        assert not service.objective.is_met(*equilibrium(service, count - 1, 39.0))
