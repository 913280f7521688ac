"""Volumes in a plan: which ones, what they cost, and what is refused before anything is rented."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from tests.contract.toy_cloud import ToyCloud

from nephoscope import catalog
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.reading.fields import BY_HAND
from nephoscope.measure.cloud.model import StoragePrices
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.plans import Plan, expand
from nephoscope.measure.runs import rented_environment
from nephoscope.measure.runs.rented_environment import price_of
from nephoscope.measure.runs.volume_specs import check, volume_specs
from nephoscope.measure.targets.kinds.rented import RentedRecord

RENTED = {"kind": "rented", "provider": "toy", "region": "east", "type": "small", "image": "plain"}
TWO = [{"size": "1GiB", "type": "slow"}, {"size": "2GiB", "directory": "/data"}]


def plan(volumes: Any, *entries: dict[str, Any], **more: Any) -> Plan:
    return Plan.model_validate(
        {
            "name": "volumes",
            "targets": [{**RENTED, "name": "m", "volumes": volumes, **more}],
            "benchmarks": [{"benchmark": "null"}, *entries],
            "budget": "50min",
            "money": {"limit": 5},
        },
        context=BY_HAND,
    )


def restore(**more: Any) -> dict[str, Any]:
    return {"benchmark": "volume.restore", **more}


def checked(wanted: Plan) -> None:
    check(wanted, expand(wanted, catalog.load()))


def specs(wanted: Plan) -> list[tuple[str, bool]]:
    (target,) = wanted.targets
    assert isinstance(target, RentedRecord)
    return [(spec.directory, spec.is_copied) for spec in volume_specs(wanted, target)]


def test_each_volume_has_a_directory_and_some_are_copied() -> None:
    assert specs(plan(TWO)) == [("/mnt/volume-1", False), ("/data", False)]
    copied = plan(TWO, restore(params={"directory": "/data"}))
    assert specs(copied) == [("/mnt/volume-1", False), ("/data", True)]
    both = plan(TWO, restore(factors={"directory": ["/data", "/mnt/volume-1"]}))
    assert specs(both) == [("/mnt/volume-1", True), ("/data", True)]
    assert specs(plan(TWO[:1], restore())) == [("/mnt/volume-1", True)]
    for wanted in (copied, both):
        checked(wanted)


@pytest.mark.parametrize(
    ("volumes", "entry", "words"),
    [
        ([], restore(), "'m' has no volume at ''"),
        (TWO, restore(), "'m' has 2 volumes."),
        (TWO, restore(params={"directory": "/no"}), "no volume at '/no'"),
        (
            TWO[:1],
            restore(params={"data_bytes": "3GiB"}),
            "3GiB do not fit on a volume of 1GiB",
        ),
    ],
)
def test_a_restoration_of_what_is_not_there_is_one_sentence(
    volumes: Any, entry: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        checked(plan(volumes, entry))


def test_only_rented_machines_have_volumes_that_are_restored() -> None:
    wanted = Plan.model_validate({"name": "here", "benchmarks": [restore()]})
    with pytest.raises(PlanError, match="'local' is of kind local"):
        checked(wanted)


@pytest.mark.parametrize(
    ("volumes", "words"),
    [
        ([{"size": "0B"}], "size"),
        ([{"size": "1"}], "unit"),
        ([{"size": "1GiB", "directory": "mnt"}], "'mnt' is no directory"),
        ([{"size": "1GiB", "directory": "/a/;b"}], "is no directory"),
        ([{"size": "1GiB", "directory": "/d"}] * 2, "Two volumes are to be mounted at /d"),
        ([{"size": "1GiB", "sort": "x"}], "sort"),
    ],
)
def test_a_volume_that_is_none_is_refused(volumes: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        plan(volumes)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyCloud:
    (tmp_path / "cloud").mkdir()
    toy = ToyCloud(tmp_path / "cloud")

    def opened(settings: CloudSettings) -> ToyCloud:
        return toy

    monkeypatch.setattr(rented_environment, "open_provider", opened)
    return toy


def per_h(wanted: Plan) -> float:
    quote = asyncio.run(price_of(wanted)).quote
    assert quote is not None
    return quote.per_h


def test_volumes_and_their_copies_are_in_the_price(
    cloud: ToyCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = {"slow": StoragePrices(0.1, 0.01), "": StoragePrices(0.2, None)}
    monkeypatch.setattr(cloud, "storage_prices", lambda region, type: prices[type])
    assert per_h(plan([])) == pytest.approx(1.0)
    assert per_h(plan(TWO)) == pytest.approx(1.0 + 0.1 + 2 * 0.2)
    copied = plan(TWO, restore(params={"directory": "/mnt/volume-1"}))
    assert per_h(copied) == pytest.approx(1.0 + 3 * 0.1 + 0.01 + 2 * 0.2)
    # The price of the machine is the user's own; that of its volumes is the list's.
    assert per_h(plan(TWO, per_hour=0.5)) == pytest.approx(0.5 + 0.1 + 2 * 0.2)
    with pytest.raises(UsageError, match=r"snapshots of volumes \(default type\) in east is unkn"):
        per_h(plan(TWO, restore(params={"directory": "/data"})))
    monkeypatch.setattr(cloud, "storage_prices", lambda region, type: None)
    with pytest.raises(UsageError, match=r"The price of volumes \(slow\) in east is unknown"):
        per_h(plan(TWO))
    own = [{"size": "4GiB", "per_gib_hour": 0.5}]
    assert per_h(plan(own, restore())) == pytest.approx(1.0 + 4 * 4 * 0.5)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [((), "toy makes no volumes that could be"), (("volume",), "toy makes no snapshots of vol")],
)
def test_a_cloud_without_volumes_says_so(
    cloud: ToyCloud, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...], words: str
) -> None:
    traits = replace(
        ToyCloud.traits, kinds=frozenset(kind for kind in ToyCloud.traits.kinds if kind in kinds)
    )
    monkeypatch.setattr(cloud, "traits", traits, raising=False)
    with pytest.raises(UsageError, match=words):
        per_h(plan(TWO[:1], restore()))


def test_the_plan_of_the_guide_is_a_plan() -> None:
    guide = Path(__file__).parents[3] / "docs" / "how-to" / "cloud-experiments.md"
    (text,) = re.findall(r"```yaml\n(.*?)```", guide.read_text("utf-8"), re.S)
    values = {"name": "guide", "budget": "1h", **yaml.safe_load(text)}
    wanted = Plan.model_validate(values, context=BY_HAND)
    assert specs(wanted) == [("/mnt/volume-1", True), ("/mnt/old", True)]
    checked(wanted)
