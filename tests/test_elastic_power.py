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

QUIET = [0.100, 0.101, 0.099, 0.102, 0.098, 0.100, 0.103, 0.097, 0.101, 0.099]


def test_what_the_noise_lets_be_told() -> None:
    assert decided(QUIET, 10, 1.2, 40, seed=1) == {"worse": 40}
    assert not {"better", "worse"} & decided(QUIET, 10, 1.0, 40, seed=1).keys()
    loud = [share * (1 + 5 * (place % 2)) for place, share in enumerate(QUIET)]
    assert decided(loud, 10, 1.2, 40, seed=1).get("worse", 0) < 20


def test_few_recorded_rounds_are_refused(tmp_path: Path) -> None:
    run = stored.make(tmp_path)
    with pytest.raises(ValueError, match="3 rounds are recorded, and 10 are needed"):
        recorded(Store(tmp_path), [run.id], "")
    with pytest.raises(ValueError, match="no autoscaler another that is judged"):
        recorded(Store(tmp_path), [run.id], "another")
