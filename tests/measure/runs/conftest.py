"""A benchmark that loads, so that these tests depend on none that measures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nephoscope import catalog
from nephoscope.catalog import BenchmarkSpec, MetricSpec, ParamSpec
from nephoscope.core.model import Better, Shape
from nephoscope.measure.runs.trials import target_pool as pool

LOAD = BenchmarkSpec(
    id="test.load",
    summary="Loads nothing",
    params=(ParamSpec("duration_ns", "int", "ns", 1, "How long.", 0, 10**12),),
    metrics=(MetricSpec("load_ratio", "ratio", Better.NONE, Shape.SCALAR, True, "Its part."),),
    overhead="none",
    source="a test",
    two_sided=False,
    page="",
    load=True,
)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> BenchmarkSpec:
    """The catalogue has `test.load` besides what it has."""
    known = catalog.load()
    larger = replace(known, benchmarks={**known.benchmarks, LOAD.id: LOAD})
    monkeypatch.setattr(catalog, "load", lambda: larger)
    return LOAD


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PAUSE_S", 0.0)
