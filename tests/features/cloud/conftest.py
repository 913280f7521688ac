"""The commands of rented machines, on a cloud in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from features.cloud.toy import PlantedCloud, PlantedRecord
from nephoscope import catalog
from nephoscope.measure import plans
from nephoscope.measure.cloud import providers
from nephoscope.measure.plans.survey import from_values
from nephoscope.measure.runs import rented_environment as rented
from nephoscope.measure.targets.kinds import KINDS

SMALL = {
    "version": 1,
    "name": "small",
    "benchmarks": [{"benchmark": "null", "timeout": "10s"}],
    "repeat": {"min": 1, "max": 1},
    "warmup": 0,
}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PlantedCloud]:
    """Makes the cloud that the commands then speak to."""
    (tmp_path / "cloud").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setitem(KINDS, "planted", PlantedRecord)
    small = from_values(SMALL, catalog.load(), lambda _: "small: ")
    monkeypatch.setattr(plans, "census", lambda *_, **__: small)

    def make(**given: Any) -> PlantedCloud:
        cloud = PlantedCloud(tmp_path / "cloud", **given)
        for module in (providers, rented):
            monkeypatch.setattr(module, "open_provider", lambda settings: cloud)
        return cloud

    return make
