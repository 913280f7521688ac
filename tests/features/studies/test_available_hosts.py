"""Parts of a study on a machine that cannot run every platform."""

from __future__ import annotations

import json

import pytest

from nephoscope import catalog
from nephoscope.core.errors import Lacking
from nephoscope.features.studies import catalogue
from nephoscope.features.studies.available_hosts import without_missing_platforms
from nephoscope.measure import plans
from nephoscope.measure.lab.platforms import PLATFORMS
from nephoscope.measure.plans import Plan

KNOWN = catalog.load()
REASON = Lacking("Guests of this kind cannot run here.", "Use another machine.")


def _part(study: str, part: str) -> Plan:
    reference = catalogue.load(study)
    return catalogue.plan_of(reference, reference.part(part), "small")


@pytest.fixture
def no_uml(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, platform in PLATFORMS.items():
        lacking = REASON if name == "uml" else None
        monkeypatch.setattr(type(platform), "lacking", lambda self, one=lacking: one)


@pytest.mark.usefixtures("no_uml")
@pytest.mark.parametrize(
    ("study", "part", "hosts", "settings"),
    [
        ("nadeem-2015", "cluster", "uml-1, uml-2", 21),
        ("nadeem-2015", "response", "uml", 7),
        ("delgado-2010", "platforms", "uml, uml-beside", 5),
    ],
)
def test_hosts_of_a_platform_that_cannot_run_are_left_out(
    study: str, part: str, hosts: str, settings: int
) -> None:
    plan, sentence = without_missing_platforms(_part(study, part))
    assert sentence == f"Without {hosts}: {REASON}"
    assert "uml" not in json.dumps(plan.model_dump(mode="json", exclude={"question"}))
    assert len(plans.expand(plan, KNOWN)) == settings


@pytest.mark.usefixtures("no_uml")
@pytest.mark.parametrize(
    ("study", "part"), [("nadeem-2015", "platforms"), ("delgado-2010", "isolation")]
)
def test_other_plans_are_unchanged(study: str, part: str) -> None:
    before = _part(study, part)
    assert without_missing_platforms(before) == (before, "")


def test_a_plan_of_which_nothing_would_be_left_is_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for platform in PLATFORMS.values():
        monkeypatch.setattr(type(platform), "lacking", lambda self: REASON)
    before = _part("nadeem-2015", "cluster")
    assert without_missing_platforms(before) == (before, "")
