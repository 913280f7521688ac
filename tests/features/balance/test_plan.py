"""The plan of `balance`: who runs where, what differs between levels, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nephoscope import catalog
from nephoscope.core.errors import UsageError
from nephoscope.features.balance.plan import BalanceRequest, plan_balance, variants
from nephoscope.measure import plans
from nephoscope.measure.targets.kinds import parse

REQUEST = BalanceRequest(generators=(1, 3), concurrency=(12, 48), rounds=6)


def test_generators_share_the_connections_and_start_together() -> None:
    settings = plans.expand(plan_balance(REQUEST), catalog.load())
    closed = [s for s in settings if "rate_per_s" not in s.params and s.benchmark == "http.load"]
    sizes = {(len(s.targets), s.together, s.params["connections"]) for s in closed}
    assert sizes == {(1, False, 12), (1, False, 48), (3, True, 4), (3, True, 16)}
    levels = {tuple(load.name for load in s.backgrounds) for s in closed}
    webs = ("web1", "web2", "web3")
    assert levels == {("direct",), (*webs, "haproxy"), (*webs, "nginx")}
    assert all(s.served_by == (*webs, "direct") for s in closed)
    assert len({s.params["url"] for s in closed}) == 1
    network = [s for s in settings if s.benchmark == "net.rtt"]
    assert len(network) == 1


def test_a_failure_is_of_one_server_and_checked_by_haproxy() -> None:
    plan = plan_balance(replace(REQUEST, failure="hangs"))
    failing = [load for load in plan.backgrounds if load.params.get("failure") == "hangs"]
    assert [load.name for load in failing] == ["web1"]
    balancers = {load.name: load.params for load in plan.backgrounds if load.name[:3] != "web"}
    assert balancers["haproxy"]["check_ns"] > 0
    assert balancers["nginx"]["retry_after_ns"] == 2_000_000_000
    assert plan.benchmarks[0].params["arrivals"] == "constant"


def test_variants_are_named_by_what_differs() -> None:
    request = replace(
        REQUEST,
        balancers=("haproxy",),
        algorithms=("round_robin", "least_connections"),
        server_keep_alive=(True, False),
    )
    assert list(variants(request)) == [
        "haproxy-round-robin",
        "haproxy-round-robin-close",
        "haproxy-least-connections",
        "haproxy-least-connections-close",
    ]
    plan_balance(request)


def test_a_balancer_that_runs_already_needs_no_lab() -> None:
    targets = (parse("local"), parse("local"))
    request = replace(REQUEST, url="http://127.0.0.1:80/", targets=targets, generators=(1, 2))
    plan = plan_balance(request)
    assert plan.lab is None
    assert [target.name for target in plan.targets] == ["generator-1", "generator-2"]


def test_weights_stand_behind_the_addresses() -> None:
    plan = plan_balance(replace(REQUEST, weights=(3, 2, 1)))
    params = {load.name: load.params for load in plan.backgrounds}
    assert [text.split(" ")[1] for text in params["haproxy"]["backends"]] == ["3", "2", "1"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"servers": 0}, "0 servers are out of range"),
        ({"weights": (1, 2)}, "2 weights for 3 servers"),
        ({"concurrency": ()}, "list of concurrency"),
        ({"concurrency": (10,)}, "cannot be shared evenly"),
        ({"generators": (1, 1)}, "twice"),
        ({"service_times_ns": (1, 1, 1), "server": "nginx"}, "native servers"),
        ({"slow_start_ns": 5}, "no slow start"),
        ({"failure": "dies", "servers": 1}, "two servers"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan_balance(replace(REQUEST, **changes))
