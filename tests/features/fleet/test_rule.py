"""The rule of the fleet check: false alarms over simulated fleets, and what it finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nephoscope.features.fleet import rule
from nephoscope.stats.statistics.values import Refused

TARGETS, METRICS = 20, 8
PACKETS = 600

Draw = Callable[[np.random.Generator], np.ndarray]

HEALTHY: dict[str, Draw] = {
    "normal": lambda rng: rng.standard_normal((METRICS, TARGETS)),
    "heavy tails": lambda rng: rng.standard_t(5, (METRICS, TARGETS)),
    "skewed": lambda rng: rng.gamma(4, 0.5, (METRICS, TARGETS)),
    "dependent metrics": lambda rng: np.repeat(rng.standard_t(5, (1, TARGETS)), METRICS, axis=0),
}


def alarms(rng: np.random.Generator, draw: Draw, spread: float, rate: float = 0.05) -> bool:
    """Whether a fleet of equal targets raises an alarm in any metric or in its losses."""
    alpha = rate / (METRICS + 1)
    for numbers in draw(rng):
        values = {str(at): 100 * float(np.exp(spread * x)) for at, x in enumerate(numbers)}
        if rule.odd_values(values, alpha=alpha, margin=0.0):
            return True
    losses = {str(at): (int(rng.binomial(PACKETS, 0.01)), PACKETS) for at in range(TARGETS)}
    return bool(rule.odd_losses(losses, alpha=alpha))


@pytest.mark.parametrize("name", HEALTHY)
def test_at_most_5_percent_of_200_healthy_fleets_raise_an_alarm(name: str) -> None:
    rng = np.random.default_rng(14)
    # Without a margin, which would hide most of them.
    assert sum(alarms(rng, HEALTHY[name], 0.05) for _ in range(200)) <= 10


def test_the_rate_is_a_parameter() -> None:
    rng = np.random.default_rng(15)
    often = sum(alarms(rng, HEALTHY["heavy tails"], 0.05, rate=0.4) for _ in range(200))
    assert 40 <= often <= 80
    scores = [rule.critical_score(20, alpha) for alpha in (0.05, 0.01, 0.001)]
    assert scores == sorted(scores)


def fleet(**planted: float) -> dict[str, float]:
    rng = np.random.default_rng(3)
    values = {f"node{at}": 100 * float(np.exp(0.03 * rng.standard_normal())) for at in range(20)}
    return {**values, **planted}


def test_planted_values_are_found_in_both_directions() -> None:
    found = rule.odd_values(fleet(node3=50.0, node7=300.0), alpha=0.005)
    assert set(found) == {"node3", "node7"}
    assert found["node3"].typical == pytest.approx(100, rel=0.05)
    assert found["node3"].score > found["node3"].critical


def test_a_difference_within_the_margin_is_none_however_clear() -> None:
    equal = dict.fromkeys(map(str, range(20)), 100.0)
    assert not rule.odd_values({**equal, "3": 109.0}, alpha=0.005)
    assert set(rule.odd_values({**equal, "3": 112.0}, alpha=0.005)) == {"3"}


def test_values_of_both_signs_are_compared_as_they_are() -> None:
    values = {str(at): float(at % 5) for at in range(20)}
    assert not rule.odd_values(values, alpha=0.05)
    assert set(rule.odd_values({**values, "x": -500.0}, alpha=0.05)) == {"x"}


def test_too_few_targets_are_refused() -> None:
    with pytest.raises(Refused, match="5 targets do not show"):
        rule.odd_values(dict.fromkeys("abcde", 1.0), alpha=0.05)


def test_one_lossy_path_is_found_and_equal_loss_is_not() -> None:
    clean = {str(at): (0, PACKETS) for at in range(20)}
    assert set(rule.odd_losses({**clean, "4": (12, PACKETS)}, alpha=0.005)) == {"4"}
    assert not rule.odd_losses({**clean, "4": (2, PACKETS)}, alpha=0.005)
    lossy = {str(at): (30, PACKETS) for at in range(20)}
    assert not rule.odd_losses(lossy, alpha=0.005)
    assert not rule.odd_losses({"a": (0, 0), "b": (5, 10)}, alpha=0.005)


def test_facts_need_a_majority() -> None:
    facts: dict[str, object] = dict.fromkeys(map(str, range(10)), 1500)
    assert rule.odd_facts({**facts, "3": 1400}) == (1500, {"3": 1400})
    assert rule.odd_facts({**facts, "3": None}) == (1500, {})
    halves = {str(at): at % 2 for at in range(10)}
    assert rule.odd_facts(halves) == (None, {})
    assert rule.odd_facts({"a": 1, "b": 2}) == (None, {})
