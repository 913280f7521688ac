"""Throughput against round trip: exponents that are set, and paths without dependence."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.features.network import distance
from nephoscope.stats.statistics.values import Refused

RTTS = (6e6, 28e6, 56e6, 120e6, 170e6)


def paths(exponent: float, noise: float) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(6)
    rates = [1e7 * (rtt / 6e6) ** exponent * rng.lognormal(0, noise) for rtt in RTTS]
    return {f"user{at}": pair for at, pair in enumerate(zip(RTTS, rates, strict=True))}


@pytest.mark.parametrize(
    ("exponent", "words"),
    [
        (-1.0, "may be inverse"),
        (-0.5, "more slowly than in inverse"),
        (-2.0, "faster than in inverse"),
        (0.0, "does not show to fall"),
    ],
)
def test_the_exponent_is_found(exponent: float, words: str) -> None:
    found = distance.fit("cloud", paths(exponent, 0.05))
    assert found.exponent.low is not None
    assert found.exponent.high is not None
    assert found.exponent.low < exponent < found.exponent.high
    assert words in found.sentence
    assert found.residual_cv < 0.1


def test_residuals_are_relative_to_the_fit() -> None:
    values = paths(-1.0, 0.0)
    found = distance.fit("cloud", values)
    assert [point.residual_ratio for point in found.points] == pytest.approx([0] * 5, abs=1e-9)
    assert found.explained == pytest.approx(1)


def test_too_few_or_equal_paths_are_refused() -> None:
    with pytest.raises(Refused, match="too few"):
        distance.fit("cloud", {"a": (1.0, 1.0)})
    with pytest.raises(Refused, match="same round trip"):
        distance.fit("cloud", dict.fromkeys("abcd", (1000000.0, 1000000.0)))
