"""Generators of a trial are merged as if one had sent all requests; logs show a failure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.features.balance.made import failing_trial

from nephoscope.core.model import Sample
from nephoscope.features.balance.failover import failover_of
from nephoscope.features.balance.trials import BalancedTrial
from nephoscope.stats.statistics import histograms


def to_three_digits(values: np.ndarray) -> np.ndarray:
    """The values as a histogram with three significant digits has them."""
    scale = 10.0 ** (np.floor(np.log10(values)) - 3)
    return np.asarray(np.round(values / scale) * scale)


def histogram(values: np.ndarray) -> list[Sample]:
    distinct, counts = np.unique(to_three_digits(values), return_counts=True)
    return [
        Sample("latency_ns", float(value), int(count))
        for value, count in zip(distinct, counts, strict=True)
    ]


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 0.999])
def test_merged_percentiles_of_three_generators_are_those_of_the_pooled_requests(q: float) -> None:
    random = np.random.default_rng(11)
    # Generators with unequal rates and response times: an average of percentiles would be wrong.
    raw = [
        random.lognormal(math.log(mean_ns), 0.8, size=count)
        for mean_ns, count in ((1e6, 40_000), (3e6, 5_000), (20e6, 1_500))
    ]
    values, counts = BalancedTrial(1, "haproxy", [], [histogram(own) for own in raw]).latency
    pooled = np.sort(np.concatenate(raw))
    assert int(counts.sum()) == pooled.size
    merged = histograms.quantile_of_counts(values, counts, q)
    exact = pooled[math.ceil(q * pooled.size) - 1]
    assert merged == pytest.approx(exact, rel=1e-3)
    averaged = np.mean([np.quantile(own, q) for own in raw])
    assert averaged != pytest.approx(exact, rel=1e-2)


def test_a_failover_is_read_off_the_logs() -> None:
    failover = failover_of(failing_trial([200, 1250]))
    assert failover.failure == "dies"
    assert (failover.sent, failover.completed, failover.failed, failover.retries) == (
        400,
        396,
        4,
        7,
    )
    assert failover.errors == {"reset": 3, "timeout": 1}
    assert failover.noticed_s == pytest.approx(0.25)
    assert failover.drained_s is None
    assert failover.returned_s == pytest.approx(0.5)
    assert failover.slowest_s == pytest.approx(0.9)
    assert failover.length_s == pytest.approx(2.0)
    assert len(failover.timeline) == 40
    at_failure = failover.timeline[10]
    assert at_failure.at_s == pytest.approx(0.0, abs=1e-6)
    assert (at_failure.errors, at_failure.failing_served_per_s) == (4.0, 0.0)
    assert failover.timeline[9].failing_served_per_s == pytest.approx(100.0)


def test_a_failure_that_nobody_notices_has_no_time() -> None:
    assert failover_of(failing_trial([200])).noticed_s is None


def test_generators_add_up() -> None:
    trial = failing_trial([])
    both = replace(trial, records=[*trial.records] * 2, samples=[*trial.samples] * 2)
    assert (both.generators, both.connections) == (2, 20)
    assert both.sum("sent_count") == 800
    assert both.mean_ns() == pytest.approx(trial.mean_ns())
