"""The benchmark of how often two autoscalers are told apart: quiet noise decides, and no noise of
equal rules does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.features.elastic import stored

from nephoscope.store import Store

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from elastic_power import decided, recorded

NOISE = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.03, 0.97, 1.01, 0.99]
QUIET = [(0.1 * noise, 0.1) for noise in NOISE]
LOUD = [(level * first, level * second) for level in (0.1, 0.6) for first, second in QUIET]
"""Noise that both rules of a round share."""


def test_what_the_noise_lets_be_told() -> None:
    assert decided(QUIET, 10, 1.2, 40, seed=1) == {"worse": 40}
    assert not {"better", "worse"} & decided(QUIET, 10, 1.0, 40, seed=1).keys()
    assert decided(LOUD, 10, 1.2, 40, seed=1) == {"worse": 40}
    assert decided(LOUD, 10, 1.2, 40, seed=1, is_paired=False).get("worse", 0) < 20


def test_runs_without_two_equal_rules_are_refused(tmp_path: Path) -> None:
    run = stored.make(tmp_path)
    with pytest.raises(ValueError, match="rate-40 are not two autoscalers that are judged"):
        recorded(Store(tmp_path), [run.id], [])
    with pytest.raises(ValueError, match="one and another are not two autoscalers"):
        recorded(Store(tmp_path), [run.id], ["one", "another"])
