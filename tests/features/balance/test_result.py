"""Throughput, shares and comparisons from trials, and the sections that show them."""

from __future__ import annotations

import pytest
from tests.features.balance.made import counter, failing_trial, record

from nephoscope.core.model import Sample
from nephoscope.features.balance import failover, section
from nephoscope.features.balance.findings import RULES
from nephoscope.features.balance.records import Balance
from nephoscope.features.balance.result import (
    _effects,
    _latencies,
    _mean_response,
    _sharings,
    _throughputs,
)
from nephoscope.features.balance.trials import BalancedTrial
from nephoscope.report import wording
from nephoscope.report.blocks import Chart, Table

ROUNDS = 8


def trial(
    number: int,
    balancer: str,
    rate: float,
    *,
    generators: int = 1,
    mean_ns: float = 1e6,
    arrivals: str = "closed",
) -> BalancedTrial:
    """One of a round: 12 connections in all, shared by 2 to 1 over two servers."""
    own = [
        Sample("requests_per_s", rate / generators),
        Sample("latency_ns", mean_ns, 1000),
        Sample("service_time_ns", mean_ns, 1000),
    ]
    params = {"connections": 12 // generators, "arrivals": arrivals, "rate_per_s": 500.0}
    counters = {}
    if balancer != "direct":
        backends = ["10.0.0.9:80 1", "10.0.0.8:80 1"]
        forwarded = [Sample("forwarded_count", 3000.0), Sample("cpu_ns", 6e7 + number)]
        counters = {
            "web1": counter("web1", "http.serve", [Sample("answered_count", 2000.0)]),
            "web2": counter(
                "web2", "http.serve", [Sample("answered_count", 1000.0)], address="10.0.0.8"
            ),
            balancer: counter(balancer, "lb.haproxy", forwarded, backends=backends),
        }
    records = [record(params)] * generators
    return BalancedTrial(number, balancer, records, [own] * generators, counters)


TRIALS = [
    one
    for number in range(1, ROUNDS + 1)
    for one in (
        trial(number, "direct", 20_000 + number),
        trial(number, "haproxy", 12_000 + number),
        trial(number, "haproxy", 15_000 + 2 * number, generators=3),
        trial(number, "direct", 500, mean_ns=1e5 + number, arrivals="constant"),
        trial(number, "haproxy", 500, mean_ns=3e5 + 2 * number, arrivals="constant"),
    )
]


def balance() -> Balance:
    failovers = tuple(failover.failover_of(failing_trial([1250])) for _ in range(6))
    return Balance(
        client="client1",
        throughputs=tuple(_throughputs(TRIALS, 0.95)),
        latencies=tuple(_latencies(TRIALS, {1: 2e4, 2: 2e4}, 0.95)),
        effects=tuple(_effects(TRIALS, 0.95)),
        sharings=tuple(_sharings(TRIALS, 0.95)),
        failovers=failovers,
        failures=tuple(failover.summaries(failovers, 0.95)),
    )


def test_throughput_is_the_sum_of_the_generators() -> None:
    by_key = {(one.balancer, one.generators): one for one in balance().throughputs}
    assert set(by_key) == {("direct", 1), ("haproxy", 1), ("haproxy", 3)}
    three = by_key["haproxy", 3]
    assert three.throughput.value == pytest.approx(15_009)
    assert three.throughput.low is not None
    assert three.cpu_per_request is not None
    assert three.cpu_per_request.value == pytest.approx(20_000, rel=1e-3)
    assert by_key["direct", 1].cpu_per_request is None
    # 12,004.5 requests a second of 1 ms each are 12 in flight.
    assert by_key["haproxy", 1].in_flight_ratio.value == pytest.approx(1.0, abs=1e-3)


def test_three_generators_are_paired_with_one() -> None:
    (effect,) = balance().effects
    assert (effect.balancer, effect.generators, effect.connections) == ("haproxy", 3, 12)
    assert effect.comparison.verdict.word == "better"
    assert effect.comparison.ratio is not None
    assert effect.comparison.ratio.value == pytest.approx(1.25, abs=0.01)


def test_added_response_time_is_paired_and_has_the_share_of_the_network() -> None:
    (latency,) = balance().latencies
    assert latency.comparison.difference is not None
    assert latency.comparison.difference.value == pytest.approx(2e5, rel=1e-3)
    assert latency.network_ratio is not None
    assert latency.network_ratio.value == pytest.approx(2 * 2e4 / 3e5, rel=1e-3)


def test_shares_are_those_of_the_servers_counters() -> None:
    (sharing,) = balance().sharings
    assert sharing.shares["web1"].value == pytest.approx(2 / 3)
    assert sharing.due == {"web1": 0.5, "web2": 0.5}
    assert sharing.fairness.value == pytest.approx(0.9)  # (2 + 1)^2 / (2 (4 + 1))


class Result:
    """A result with one record."""

    def part(self, kind: type[Balance]) -> Balance:
        return balance()


class Case(Result):
    target = "client1"


def test_every_table_has_its_columns_and_every_chart_its_curves() -> None:
    built = section.build(Result())  # type: ignore[arg-type]
    assert built is not None
    charts = [block for block in built.blocks if isinstance(block, Chart)]
    assert [chart.id for chart in charts] == [
        "balance-throughput",
        "balance-response",
        "balance-sharing",
        "balance-failover-haproxy-dies",
    ]
    tables = [block for block in built.blocks if isinstance(block, Table)]
    for table in [*tables, *(chart.table for chart in charts)]:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_first_screen_has_each_balancer_and_what_it_adds() -> None:
    tiles = section.headline(Result())  # type: ignore[arg-type]
    shown = {(tile.label, tile.setting): tile.value for tile in tiles}
    for line in balance().throughputs:
        others = [one for one in balance().throughputs if one.balancer == line.balancer]
        highest = max((one.throughput for one in others), key=lambda estimate: estimate.value)
        assert shown["Highest throughput", line.balancer] == wording.estimate_cells(highest)[0]
    added = {latency.balancer for latency in balance().latencies}
    assert {name for label, name in shown if label.startswith("Added")} == added
    assert added


def test_findings_name_what_a_person_should_act_on() -> None:
    found = [finding for rule in RULES for finding in rule(Case())]  # type: ignore[arg-type]
    ids = [finding.id for finding in found]  # type: ignore[union-attr]
    # 20,000 requests a second of 1 ms each are not 12 connections.
    assert ids == ["uneven_shares", "failover_dies", "generator_limit", "littles_law"]


def test_the_mean_response_is_a_lower_bound_where_requests_had_no_answer() -> None:
    samples = [Sample("latency_ns", 1e6, 90), Sample("latency_ns", 5e8, 10)]
    whole = BalancedTrial(1, "haproxy", [record({})], [samples])
    known = _mean_response([whole] * 6, [50e6, 51e6, 52e6] * 2, 0.95)
    assert not known.censored
    overloaded = BalancedTrial(
        1, "haproxy", [record({})], [[*samples, Sample("unanswered_ns", 5e8, 10)]]
    )
    least = _mean_response([overloaded] * 6, [50e6, 51e6, 52e6] * 2, 0.95)
    assert (least.censored, least.high, least.value) == (True, None, 51e6)
    assert least.note == "60 of 600 requests had no answer: a lower bound."
