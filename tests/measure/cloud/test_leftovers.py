"""Which leftovers a sweep removes, and which it leaves alone."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.toy_cloud import SETTINGS, ToyCloud, spec

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud import ended_rentals
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.leftovers import SweepScope, sweep_leftovers
from nephoscope.measure.cloud.model import KeyPairRequest, Kind, Tags
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.sweep import Swept
from nephoscope.measure.provisioning import Quote


@pytest.fixture
def cloud(tmp_path: Path) -> ToyCloud:
    (tmp_path / "cloud").mkdir()
    return ToyCloud(tmp_path / "cloud")


def rentals(cloud: ToyCloud, tmp_path: Path) -> Rentals:
    return Rentals(cloud, SETTINGS, root=tmp_path / "rentals")


def swept(rentals: Rentals, is_dry: bool = False, **scope: object) -> Swept:
    wanted = SweepScope(owner="tests", **scope)  # type: ignore[arg-type]
    return asyncio.run(sweep_leftovers(rentals, wanted, say=lambda line: None, is_dry=is_dry))


def left_by_somebody(cloud: ToyCloud, run: str, owner: str, expires_s: float) -> None:
    cloud.create(KeyPairRequest("west", Tags(run, owner, int(expires_s), run), "ssh-x"))


def test_what_has_expired_goes_and_nothing_else(cloud: ToyCloud, tmp_path: Path) -> None:
    now = time.time()
    left_by_somebody(cloud, "expired", "tests", now - 60)
    left_by_somebody(cloud, "current", "tests", now + 3600)
    left_by_somebody(cloud, "elsewhere", "another", now - 60)
    preview = swept(rentals(cloud, tmp_path), is_dry=True)
    assert [one.tags.run for one in preview.remaining] == ["expired"]
    assert len(cloud.all()) == 3
    result = swept(rentals(cloud, tmp_path))
    assert [one.tags.run for one in result.removed] == ["expired"]
    assert sorted(one.tags.run for one in result.spared) == ["current", "elsewhere"]
    assert result.is_clean
    everything = swept(rentals(cloud, tmp_path), everything=True)
    assert [one.tags.run for one in everything.removed] == ["current"]
    named = SweepScope(run="elsewhere")
    result = asyncio.run(sweep_leftovers(rentals(cloud, tmp_path), named, say=lambda line: None))
    assert [one.tags.run for one in result.removed] == ["elsewhere"]
    assert cloud.all() == []


def test_a_name_that_two_owners_took_is_removed_for_one_of_them(
    cloud: ToyCloud, tmp_path: Path
) -> None:
    for owner in ("ann", "bob"):
        tags = Tags("bench", owner, int(time.time()) + 3600, owner)
        cloud.create(KeyPairRequest("west", tags, "ssh-x"))
    named = SweepScope(run="bench")
    with pytest.raises(UsageError, match="Rentals named bench belong to ann and bob"):
        asyncio.run(sweep_leftovers(rentals(cloud, tmp_path), named, say=lambda line: None))
    result = asyncio.run(
        sweep_leftovers(
            rentals(cloud, tmp_path), SweepScope(owner="ann", run="bench"), say=lambda line: None
        )
    )
    assert [one.tags.owner for one in result.removed] == ["ann"]
    assert [one.tags.owner for one in cloud.all()] == ["bob"]


def test_a_rental_in_use_stays_and_one_whose_process_ended_goes(
    cloud: ToyCloud, tmp_path: Path
) -> None:
    used = rentals(cloud, tmp_path)
    asyncio.run(used.create(spec("used", contact=False), say=lambda line: None))
    assert swept(rentals(cloud, tmp_path)).removed == []
    assert swept(rentals(cloud, tmp_path), everything=True).removed == []
    with pytest.raises(UsageError, match="Another process is using the rental used"):
        swept(rentals(cloud, tmp_path), run="used")
    # The process ends: its lock goes with it.
    used._held.pop("used").close()
    result = swept(rentals(cloud, tmp_path))
    assert {one.kind for one in result.removed} == {Kind.MACHINE, Kind.KEY_PAIR}
    assert cloud.all() == []
    assert not (tmp_path / "rentals" / "used").exists()


def test_a_rental_that_is_kept_stays_until_it_expires(cloud: ToyCloud, tmp_path: Path) -> None:
    first = rentals(cloud, tmp_path)
    asyncio.run(first.create(spec("stays", contact=False, is_kept=True), say=lambda line: None))
    assert swept(rentals(cloud, tmp_path)).removed == []
    folder = RentalFolder("stays", tmp_path / "rentals")
    folder.write({**folder.read(), "expires_s": time.time() - 1})
    assert len(swept(rentals(cloud, tmp_path)).removed) == 4
    assert cloud.all() == []


def test_a_rental_that_ended_is_noted_with_its_quote(cloud: ToyCloud, tmp_path: Path) -> None:
    used = rentals(cloud, tmp_path)
    wanted = asyncio.run(used.checked(spec("noted", contact=False)))
    assert used.quote(wanted) is not None
    asyncio.run(used.create(wanted, say=lambda line: None))
    asyncio.run(used.remove("noted"))
    (ended,) = ended_rentals.read(tmp_path / "rentals")
    assert (ended.name, ended.provider, ended.machines) == ("noted", "toy", 2)
    hours = (ended.ended_s - ended.began_s) / 3600
    # Two machines at 1 an hour, begun seconds of which are billed.
    assert ended.cost == pytest.approx(Quote(2.0, step_h=1 / 3600).cost(hours))
    with (tmp_path / "ended-rentals.jsonl").open("a") as file:
        file.write('{"name": "cut o')
    assert len(ended_rentals.read(tmp_path / "rentals")) == 1


def test_folders_of_another_cloud_stay(cloud: ToyCloud, tmp_path: Path) -> None:
    another = Rentals(
        cloud, replace(SETTINGS, endpoint="http://192.0.2.1"), root=tmp_path / "rentals"
    )
    asyncio.run(another.create(spec("far", contact=False), say=lambda line: None))
    another._held.pop("far").close()
    for resource in cloud.all():
        cloud.delete(resource)
    swept(rentals(cloud, tmp_path))
    assert (tmp_path / "rentals" / "far").exists()


def test_a_removal_spares_what_another_owner_made_under_its_name(
    cloud: ToyCloud, tmp_path: Path
) -> None:
    used = rentals(cloud, tmp_path)
    asyncio.run(used.create(spec("bench", contact=False), say=lambda line: None))
    left_by_somebody(cloud, "bench", "another", time.time() + 3600)
    asyncio.run(used.remove("bench"))
    assert [one.tags.owner for one in cloud.all()] == ["another"]
