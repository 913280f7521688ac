"""The checks of links: their arithmetic, and that a wrong setting does not pass."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests import hardware
from tests.hardware import Feature

from nephoscope.core.errors import RunFailed
from nephoscope.core.model import Sample
from nephoscope.measure.lab import files
from nephoscope.measure.labcheck import frame, network
from nephoscope.measure.labcheck.frame import Check
from nephoscope.measure.targets.base import Done, TargetTrial

needs_root = hardware.needs(Feature.ROOT, os.geteuid() == 0)


def trial(samples: Sequence[Sample]) -> TargetTrial:
    return TargetTrial(tuple(samples), {}, Done(1, len(samples)), None)


def test_headers_of_full_segments() -> None:
    # 1448 bytes of payload in 1514 on the wire, and 8948 in 9014.
    assert network.tcp_share() == pytest.approx(1448 / 1514)
    assert network.tcp_share(9000) == pytest.approx(8948 / 9014)


def test_quantiles_count_and_keep_directions_apart() -> None:
    samples = [
        Sample("delay_ns", 30.0, 1, 0, {"direction": "up"}),
        Sample("delay_ns", 10.0, 8, 0, {"direction": "up"}),
        Sample("delay_ns", 20.0, 1, 0, {"direction": "up"}),
        Sample("delay_ns", 99.0, 500, 0, {"direction": "down"}),
    ]
    seen = trial(samples)
    found = [network.quantile(seen, "delay_ns", q, "up") for q in (0, 0.8, 0.81, 0.9, 0.91, 1)]
    assert found == [10, 10, 20, 20, 30, 30]
    with pytest.raises(RunFailed):
        network.quantile(seen, "rtt_ns", 0.5, "up")


def test_half_the_width_of_an_even_spread() -> None:
    samples = [
        Sample("delay_ns", 1000.0 + at, 1, 0, {"direction": "down"}) for at in range(-500, 501)
    ]
    assert network.half_width(trial(samples), "down") == pytest.approx(500, rel=0.01)


def test_one_value_is_one_value() -> None:
    seen = trial([Sample("sent_count", 5.0), Sample("sent_count", 6.0)])
    with pytest.raises(RunFailed, match="2 values of sent_count"):
        network.single_value(seen, "sent_count")
    with pytest.raises(RunFailed, match="0 values"):
        network.single_value(seen, "loss_ratio", "up")


@pytest.mark.parametrize("check", network.CHECKS, ids=lambda check: check.id)
def test_every_topology_can_be_built_and_every_bound_holds_what_is_set(check: Check) -> None:
    values = {"version": 1, "name": "chk", **check.topology}
    assert set(files.from_values(values).hosts) == {"a", "b"}
    assert check.low <= check.set <= check.high
    assert check.how.endswith(".")


def test_a_topology_s_links_give_their_own_checks() -> None:
    values = {
        "version": 1,
        "name": "t",
        "hosts": {"a": {}, "b": {}},
        "links": {
            "wan": {
                "between": ["a", "lan"],
                "rate": "30Mbit/s",
                "delay": "12ms",
                "jitter": "3ms",
                "ingress": "40Mbit/s",
                "up": {"loss": "3%"},
                "down": {"delay": "20ms"},
            }
        },
    }
    link = files.from_values(values).links["wan"]
    assert {check.id for check in network.of_link(link)} == {
        "link.ingress-40",
        "link.rate-30",
        "link.delay-12",
        "link.delay-20",
        "link.jitter-3",
        "link.loss-3",
    }


slow = pytest.mark.slow

# Each is a right check on a link that is set otherwise: if it passed, it would tell nothing.
WRONG = [
    (network.rate_check(50e6), {"rate": "46Mbit/s"}),
    (network.delay_check(0.005), {"delay": "6ms"}),
    (network.jitter_check(0.020, 0.004), {"delay": "20ms", "jitter": "5ms"}),
    (network.loss_check(0.02), {"loss": "4%"}),
]


@pytest.mark.alone
@needs_root
@pytest.mark.parametrize(
    ("check", "link"),
    [
        # The quickest of them in `make test`.
        pytest.param(check, link, id=check.id, marks=[] if "delay" in check.id else slow)
        for check, link in WRONG
    ],
)
def test_a_wrong_setting_fails(check: Check, link: dict[str, str]) -> None:
    links = {**check.topology["links"], "wan": {"between": ["a", "lan"], **link}}
    wrong = replace(check, topology={**check.topology, "links": links}, attempts=1)
    outcome = asyncio.run(frame.run(wrong, lambda line: None))
    assert outcome.verdict == frame.FAILS, outcome
    assert outcome.measured is not None


def test_a_median_has_the_interval_of_its_order_statistics() -> None:
    samples = [Sample("delay_ns", float(at), 1, 0, {"direction": "up"}) for at in range(1, 101)]
    seen = network._median(trial(samples), "delay_ns", "up")
    # n = 100: ranks 40 and 61 hold the median with at least 95 % (binomial, exactly 96.5 %).
    assert (seen.value, seen.low, seen.high, seen.n) == (50, 40, 61, 100)
    spread = network._half_width(trial(samples), "up")
    assert spread.low is not None
    assert spread.high is not None
    assert spread.low < spread.value < spread.high
