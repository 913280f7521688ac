"""Ends and prices of rented machines are noted, and the lives are in the file when all is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.contract.toy_cloud import SETTINGS, ToyCloud, spec

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud import ended_rentals, machine_lives, observation
from nephoscope.measure.cloud.events import EventKind
from nephoscope.measure.cloud.model import Kind, MachinePrices, MachineRequest
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudTraits
from nephoscope.measure.cloud.rental import Rental, Rentals


class SpotCloud(ToyCloud):
    """A toy with a spot market, whose prices a test changes."""

    traits: ClassVar[CloudTraits] = replace(ToyCloud.traits, markets=("on demand", "spot"))
    spot_per_h: float | None = 0.5
    is_silent = False

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`."""
        if self.is_silent:
            raise CloudError(Cause.REFUSED, "toy: no prices.")
        return None if self.spot_per_h is None else MachinePrices(self.spot_per_h, source="toy")


def _spot(name: str) -> Any:
    made = spec(name, contact=False)
    groups = tuple(replace(group, market="spot") for group in made.groups)
    return replace(made, groups=groups)


def _up(tmp_path: Path) -> tuple[SpotCloud, Rentals, Rental]:
    (tmp_path / "cloud").mkdir()
    cloud = SpotCloud(tmp_path / "cloud")
    rentals = Rentals(cloud, SETTINGS, root=tmp_path / "rentals")
    rentals.quote(_spot("r1"))
    return cloud, rentals, asyncio.run(rentals.create(_spot("r1"), say=lambda line: None))


def test_an_interruption_is_a_life_and_a_removal_cuts_one_off(tmp_path: Path) -> None:
    cloud, rentals, rental = _up(tmp_path)
    cloud.delete(rental.machines["a"])
    rental, events = asyncio.run(rentals.events(rental))
    assert [(each.machine, each.kind) for each in events] == [("a", EventKind.INTERRUPTED)]
    asyncio.run(rentals.remove("r1"))
    lives, left_out = machine_lives.read(tmp_path / "machine-lives.jsonl")
    assert {life.region: life.end for life in lives} == {"east": "interrupted", "west": "removed"}
    assert left_out == 0
    assert all(0 <= life.hours < 0.1 for life in lives)


def test_an_interruption_that_nobody_saw_is_noted_at_the_removal(tmp_path: Path) -> None:
    cloud, rentals, rental = _up(tmp_path)
    cloud.delete(rental.machines["b"])
    # Another process removes it, which has seen nothing of it.
    rentals._held.pop("r1").close()
    asyncio.run(Rentals(cloud, SETTINGS, root=tmp_path / "rentals").remove("r1"))
    lives, _ = machine_lives.read(tmp_path / "machine-lives.jsonl")
    assert {life.region: life.end for life in lives} == {"east": "removed", "west": "interrupted"}
    assert cloud.all(Kind.MACHINE) == []


def test_a_changed_price_is_an_event_and_an_unknown_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observation, "PRICES_S", 0.0)
    cloud, rentals, rental = _up(tmp_path)
    said: list[Sequence[str]] = []
    for price, silent in ((0.5, False), (0.75, False), (None, False), (0.75, True), (0.75, False)):
        cloud.spot_per_h, cloud.is_silent = price, silent
        rental, events = asyncio.run(rentals.events(rental))
        said.append([str(each) for each in events])
    change = "is at another price (0.5, now 0.75 USD an hour)."
    assert said == [[], [f"a {change}", f"b {change}"], [], [], []]
    cloud.is_silent = False
    asyncio.run(rentals.remove("r1"))
    (ended,) = ended_rentals.read(tmp_path / "rentals")
    assert ended.price_changes == 2
    assert ended.cost is not None


def test_a_line_that_is_not_whole_is_counted_and_a_missing_file_named(tmp_path: Path) -> None:
    file = tmp_path / "lives.jsonl"
    file.write_text('{"rental": "r"}\nnot json\n')
    assert machine_lives.read(file) == ([], 2)
    with pytest.raises(UsageError, match="there is no such file"):
        machine_lives.read(tmp_path / "none")
