"""The spread behind a CPU model: planted speeds are separated, equal ones are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nephoscope.features.market.spread_analysis import analyse
from nephoscope.features.market.spread_section import spread_section
from nephoscope.report import terminal_output
from nephoscope.store.market.records import ServerType


def types(model: str, provider: str, count: int) -> list[ServerType]:
    return [ServerType(provider, f"{model}-{number}", cpu_model=model) for number in range(count)]


def test_two_speeds_at_two_providers_are_found() -> None:
    rng = np.random.default_rng(3)
    servers = [*types("X", "a", 30), *types("X", "b", 10), *types("Y", "a", 3)]
    rates = [
        *(1000 * np.exp(0.01 * rng.standard_normal(30))),
        *(1500 * np.exp(0.01 * rng.standard_normal(10))),
        1.0,
        math.nan,
        2.0,
    ]
    record = analyse(servers, [float(rate) for rate in rates], "work", "per_s")
    (model,) = record.models
    assert (record.models_left_out, record.machines_left_out) == (1, 2)
    assert [group.machines for group in model.groups] == [30, 10]
    assert model.between is not None
    assert model.between.low is not None
    assert model.between.low < 1.5 < (model.between.high or math.inf)
    # A quarter of the machines: 11 launches until one is there with 95 %.
    assert model.launches_to_know is not None
    assert model.launches_to_know.value == 11
    low, high = model.launches_to_know.low, model.launches_to_know.high
    assert low is not None
    assert high is not None
    assert low < 11 < high
    assert [each.machines for each in model.providers] == [30, 10]
    page = terminal_output.render("", [spread_section(record)], colour=False, width=100)
    assert "X has 2 speeds: the 95th percentile of its rates is" in page


def test_one_speed_is_one() -> None:
    rng = np.random.default_rng(4)
    rates = 1000 * np.exp(0.05 * rng.standard_normal(60))
    (model,) = analyse(types("X", "a", 60), rates.tolist(), "work", "per_s").models
    assert len(model.groups) == 1
    assert model.launches_to_know is None
    assert model.variation.low is not None
    assert model.variation.low < 0.05 < (model.variation.high or 0)


@pytest.mark.slow
def test_a_single_speed_is_rarely_taken_for_several() -> None:
    """Silverman's test is conservative: at most 5 % of 100 samples, 3 standard errors above 12."""
    rng = np.random.default_rng(5)
    several = 0
    for _ in range(100):
        rates = 1000 * np.exp(0.05 * rng.standard_normal(40))
        (model,) = analyse(types("X", "a", 40), rates.tolist(), "work", "per_s").models
        several += len(model.groups) > 1
    assert several <= 12
