"""The guide's plans are plans: the worked one, and every fragment put over it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests import schemas

from nephoscope import catalog
from nephoscope.core.reading import yamltext
from nephoscope.measure import plans

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "experiments.md"
TEXT = GUIDE.read_text(encoding="utf-8")
TITLED = re.findall(r"^```yaml title=\"([^\"]+)\"\n(.*?)^```$", TEXT, re.M | re.S)
FRAGMENTS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.M | re.S)

FACTORS = {"factors": {"noise": {"path": "backgrounds", "levels": ["none", "burn"]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TITLED:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_worked_plan_is_what_the_guide_says_it_is(folder: Path) -> None:
    known = catalog.load()
    plan = plans.load(folder / "noise.yaml")
    found = plans.expand(plan, known)
    assert len(found) == 2 * 2 * 2 * 2
    assert {one.targets for one in found} == {("victim",)}
    noisy = [one for one in found if one.factors["noise"] == "burn"]
    assert {load.targets for one in noisy for load in one.backgrounds} == {("neighbour",)}
    for one in noisy:
        index, _ = one.baseline["victim"]
        base = found[index]
        assert {**one.factors, "noise": "none"} == base.factors
    values = yamltext.parse(dict(TITLED)["noise.yaml"], "noise.yaml")
    schemas.validate(values, plans.plan_schema())


def test_the_guide_shows_fragments() -> None:
    assert len(FRAGMENTS) >= 5


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda text: text.split(":")[0])
def test_every_fragment_holds_over_the_worked_plan(folder: Path, fragment: str) -> None:
    values = yamltext.parse(fragment, "fragment")
    merged = yamltext.parse(dict(TITLED)["noise.yaml"], "noise.yaml")
    merged = {key: value for key, value in merged.items() if key not in ("factors", "design")}
    if "nest" in values.get("design", {}):
        del merged["repeat"]
    (folder / "base.yaml").write_text(json.dumps(merged), encoding="utf-8")
    text = json.dumps({"include": ["base.yaml"], **FACTORS, **values})
    (folder / "plan.yaml").write_text(text, encoding="utf-8")
    plan = plans.load(folder / "plan.yaml")
    assert plans.expand(plan, catalog.load())
    schemas.validate({**merged, **values}, plans.plan_schema())
