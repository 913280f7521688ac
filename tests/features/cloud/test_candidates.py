"""Searches on a cloud in this process: what is kept outlives the search, all else is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from contract.toy_cloud import SETTINGS
from features.cloud.toy import PlantedCloud, PlantedRecord
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better
from nephoscope.features.cloud.candidates import Candidates, Restarts, Spending
from nephoscope.features.cloud.pick import pick
from nephoscope.features.cloud.picking import MachineSearch, SpeedMix
from nephoscope.features.cloud.speeds import SpeedLine
from nephoscope.measure.cloud.model import Kind, Machine
from nephoscope.measure.cloud.provider import CloudTraits
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.provisioning import UP, Quote
from nephoscope.measure.targets.kinds import KINDS
from nephoscope.measure.targets.kinds.record import TargetRecord

SPEED = {"Epyc 7571": 1.0, "Xeon 8259CL": 1.25, "Xeon 8175M": 1.8}
LINE = SpeedLine("cpu.pi", "pi_digits_per_s", "{}", "{}", Better.HIGHER)
MIX = SpeedMix((1.0,) * 15 + (0.8,) * 9 + (1 / 1.8,) * 6, "30 stored machines")
SEARCH = MachineSearch(hours=100.0, trial_h=0.001, at_most=5, price_per_h=1.0)


class PlantedMeasure:
    """Values of the planted models; `silent` machines have none."""

    line = LINE

    def __init__(self, silent: int = 0) -> None:
        self._silent, self._asked = silent, 0

    def __call__(
        self, hosts: Mapping[str, TargetRecord], machines: Mapping[str, Machine]
    ) -> Mapping[str, Sequence[float]]:
        self._asked += 1
        if self._asked == self._silent:
            return {}
        return {
            name: [SPEED[one.target["model"]] * (1 + step / 1000) for step in range(3)]
            for name, one in machines.items()
        }


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PlantedCloud]:
    monkeypatch.setitem(KINDS, "planted", PlantedRecord)

    def make(seed: int, **given: int) -> PlantedCloud:
        folder = tmp_path / f"cloud{seed}"
        folder.mkdir()
        return PlantedCloud(folder, seed=seed, **given)

    return make


def source(
    cloud: PlantedCloud, tmp_path: Path, kind: type[Candidates] = Candidates, **more: object
) -> Candidates:
    rentals = Rentals(cloud, SETTINGS, root=tmp_path / "rentals")
    spec = RentalSpec(
        f"pick{len(list(tmp_path.iterdir()))}",
        (MachineGroup("m", "east", "small", "plain"),),
        hours=100.5,
        contact=False,
    )
    limit = more.pop("limit", 1000.0)
    spending = Spending(Quote(1.0), 100.5, 0.001, limit)  # type: ignore[arg-type]
    return kind(rentals, spec, PlantedMeasure(**more), LINE, spending, lambda line: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("recall", [True, False])
def test_only_the_kept_machine_is_left_and_it_stays(
    cloud: Callable[..., PlantedCloud], tmp_path: Path, recall: bool
) -> None:
    for seed in range(4):
        made = cloud(seed)
        found = source(made, tmp_path)
        search = replace(SEARCH, recall=recall)
        outcome = asyncio.run(pick(found, search, MIX, Quote(1.0), lambda line: None, 0.95))
        kept = outcome.searched.selected
        assert kept is not None
        assert [one.id for one in made.all(Kind.MACHINE)] == [kept.id]
        (rental,) = Rentals(made, SETTINGS, root=tmp_path / "rentals").existing()
        assert (rental.name, rental.state) == (kept.rental, UP)
        # With recall nothing slower than the fastest model ends the search before the last launch;
        # without, the last machine is the only one that can be kept.
        seen = outcome.searched.candidates
        fastest = [one.seconds < 0.6 for one in seen]
        assert fastest.count(True) <= 1
        assert fastest[-1] or len(fastest) == 5 if recall else kept is seen[-1]
        assert outcome.saving is not None
        assert outcome.predicted is not None
        first = outcome.searched.candidates[0]
        truth = 100 * (first.seconds - kept.seconds) / MIX.mean_s - found.removed_cost
        assert outcome.saving.value == pytest.approx(truth)
        asyncio.run(Rentals(made, SETTINGS, root=tmp_path / "rentals").remove(kept.rental))
        assert made.all() == []


def test_a_stop_and_start_gives_the_same_machine_another_host(
    cloud: Callable[..., PlantedCloud], tmp_path: Path
) -> None:
    made = cloud(5, hosts=50)
    found = source(made, tmp_path, Restarts)
    outcome = asyncio.run(
        pick(found, replace(SEARCH, recall=False), MIX, Quote(1.0), lambda line: None, 0.95)
    )
    seen = outcome.searched.candidates
    assert len(seen) > 1
    assert len({one.id for one in seen}) == 1
    assert [one.host for one in seen] == [one.host for one in made.made]
    assert outcome.searched.selected is seen[-1]
    assert [one.id for one in made.all(Kind.MACHINE)] == [seen[-1].id]


def test_a_machine_without_a_valid_trial_is_named_removed_and_not_kept(
    cloud: Callable[..., PlantedCloud], tmp_path: Path
) -> None:
    made = cloud(6)
    found = source(made, tmp_path, silent=1)
    outcome = asyncio.run(pick(found, SEARCH, None, Quote(1.0), lambda line: None, 0.95))
    assert (outcome.searched.launches, len(outcome.searched.candidates)) == (5, 4)
    assert "gave no valid trial" in found.problems[0]
    assert len(made.all(Kind.MACHINE)) == 1


def test_money_is_checked_before_each_launch_with_the_hours_of_the_kept_machine(
    cloud: Callable[..., PlantedCloud], tmp_path: Path
) -> None:
    made = cloud(7)
    with pytest.raises(UsageError, match=r"100\.5 h would make 100\.5 USD, more than the limit"):
        asyncio.run(
            pick(source(made, tmp_path, limit=50.0), SEARCH, MIX, Quote(1.0), lambda _: None, 0.95)
        )
    assert made.made == []


def test_a_cloud_that_cannot_stop_a_machine_is_named(
    cloud: Callable[..., PlantedCloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = cloud(8)
    monkeypatch.setattr(made, "traits", CloudTraits(kinds=frozenset({Kind.MACHINE})), raising=False)
    with pytest.raises(UsageError, match="toy cannot stop and start a machine"):
        source(made, tmp_path, Restarts)
