"""`null` yields what it is told to."""

from __future__ import annotations

import pytest
from trials import run

pytestmark = pytest.mark.together


@pytest.mark.truth("null", "null_ns", "null_per_s", "null_latency_ns")
def test_the_values_are_those_that_were_asked_for() -> None:
    trial = run("null", {"value": 123.0, "samples": 4})
    assert trial.series("null_ns") == trial.series("null_per_s") == [123.0] * 4
    assert trial.histogram("null_latency_ns") == (4, 123.0)
