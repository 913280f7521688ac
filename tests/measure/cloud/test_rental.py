"""Rentals on a cloud that fails, lags and grants too little: nothing is made twice or left."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.toy_cloud import SETTINGS, ToyCloud, spec

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.login_network import login_network
from nephoscope.measure.cloud.model import (
    CloudResource,
    KeyPairRequest,
    Kind,
    Machine,
    MachineRequest,
    ResourceState,
    Tags,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudTraits
from nephoscope.measure.cloud.rental import Rental, Rentals
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.cloud.sweep import Swept, sweep
from nephoscope.measure.provisioning import SpendingLimit, create_within

TAGS = Tags("run1", "tests", 2_000_000_000)


@pytest.fixture
def cloud(tmp_path: Path) -> ToyCloud:
    (tmp_path / "cloud").mkdir()
    return ToyCloud(tmp_path / "cloud")


def rentals(cloud: ToyCloud, tmp_path: Path, patience_s: float = 20.0) -> Rentals:
    return Rentals(cloud, SETTINGS, root=tmp_path / "rentals", patience_s=patience_s)


def create(rentals: Rentals, wanted: RentalSpec) -> tuple[Rental, list[str]]:
    said: list[str] = []
    return asyncio.run(rentals.create(wanted, say=said.append)), said


def with_group(group: MachineGroup, **more: object) -> RentalSpec:
    return replace(spec("run1", contact=False), groups=(group,), **more)  # type: ignore[arg-type]


def folder(tmp_path: Path) -> RentalFolder:
    made = RentalFolder("run1", tmp_path)
    made.path.mkdir()
    return made


def make(calls: CloudCalls, request: object, folder: RentalFolder) -> Sequence[CloudResource]:
    return asyncio.run(calls.make(request, folder))  # type: ignore[arg-type]


def test_a_call_whose_answer_is_lost_makes_nothing_twice(tmp_path: Path, cloud: ToyCloud) -> None:
    for seed in range(6):
        flaky = ToyCloud(tmp_path / "cloud", fail=0.6, seed=seed)
        request = MachineRequest("east", "small", "plain", replace(TAGS, run=f"r{seed}"), count=3)
        folder = RentalFolder(f"r{seed}", tmp_path)
        folder.path.mkdir()
        made = make(CloudCalls(flaky, 30.0), request, folder)
        mine = [one.id for one in cloud.all() if one.tags.run == f"r{seed}"]
        assert sorted(one.id for one in made) == sorted(mine)
        assert len(mine) == 3


class Tokenless(ToyCloud):
    """It knows no tokens: each call makes new machines, and the first answer is lost."""

    traits = CloudTraits(kinds=ToyCloud.traits.kinds, tokens=False, settle_s=0.4, user_data=False)
    lost = 1

    def create(self, request: object) -> Sequence[CloudResource]:
        made = self._make(Kind.MACHINE, request)  # type: ignore[arg-type]
        if self.lost:
            self.lost -= 1
            raise CloudError(Cause.UNANSWERED, "toy: no answer.")
        return made


def test_without_tokens_what_was_made_is_found_in_the_list(tmp_path: Path, cloud: ToyCloud) -> None:
    tokenless = Tokenless(tmp_path / "cloud", lag_s=0.2)
    request = MachineRequest("east", "small", "plain", TAGS, count=2)
    made = make(CloudCalls(tokenless, 20.0), request, folder(tmp_path))
    assert len(made) == len(cloud.all()) == 2


def test_a_call_that_a_cloud_may_have_forgotten_is_not_made_again(
    tmp_path: Path, cloud: ToyCloud
) -> None:
    class Forgetful(Tokenless):
        traits = replace(Tokenless.traits, forgets=True)
        asked = 0

        def create(self, request: object) -> Sequence[CloudResource]:
            self.asked += 1
            raise CloudError(Cause.UNANSWERED, "toy: no answer.")

    forgetful, folder_ = Forgetful(tmp_path / "cloud"), folder(tmp_path)
    with pytest.raises(CloudError, match="no answer"):
        make(CloudCalls(forgetful, 20.0), MachineRequest("east", "small", "plain", TAGS), folder_)
    assert forgetful.asked == 1
    assert [intent.what for intent in folder_.intents()] == ["create", "failed"]


def test_the_intent_is_on_the_disk_before_the_call(tmp_path: Path, cloud: ToyCloud) -> None:
    kept = folder(tmp_path)

    class Watched(ToyCloud):
        def create(self, request: object) -> Sequence[CloudResource]:
            (intent,) = kept.intents()
            assert (intent.what, intent.kind, intent.region) == ("create", "key pair", "east")
            assert intent.token == request.tags.token  # type: ignore[attr-defined]
            return super().create(request)  # type: ignore[arg-type]

    make(CloudCalls(Watched(tmp_path / "cloud")), KeyPairRequest("east", TAGS, "ssh-x"), kept)
    assert [intent.what for intent in kept.intents()] == ["create", "made"]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    kept = folder(tmp_path)
    kept.note("create", "machine", "east", token="t", count=2)
    with (kept.path / "intents.jsonl").open("a") as file:
        file.write('{"at_s": 17')
    (intent,) = kept.intents()
    assert (intent.token, intent.count) == ("t", 2)
    assert kept.settled_s(20, 120) == intent.at_s + 120


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([("create", "a", ""), ("made", "a", "")], 20),
        ([("create", "a", ""), ("failed", "a", Cause.QUOTA)], 20),
        ([("create", "a", ""), ("failed", "a", Cause.UNANSWERED)], 120),
        ([("create", "a", "")], 120),
        # The first attempt had no answer, whatever became of the second one.
        ([("create", "a", ""), ("create", "a", ""), ("made", "a", "")], 120),
        ([("create", "a", ""), ("create", "b", ""), ("made", "a", ""), ("made", "b", "")], 20),
    ],
)
def test_a_call_without_an_answer_may_be_carried_out_late(
    tmp_path: Path, lines: list[tuple[str, str, str]], seconds: float
) -> None:
    kept = folder(tmp_path)
    assert kept.settled_s(20, 120) is None
    for what, token, reason in lines:
        kept.note(what, "machine", "east", token=token, reason=reason)
    settled_s = kept.settled_s(20, 120)
    # From when it was noted, some time before now.
    assert settled_s == pytest.approx(time.time() + seconds, abs=20)


@pytest.mark.parametrize(
    ("group", "said"),
    [
        (
            MachineGroup("a", "north", "small", "plain"),
            "toy has no region 'north'. It has: east, west.",
        ),
        (
            MachineGroup("a", "east", "tiny", "plain"),
            "toy in east has no type 'tiny'. It has: small, large.",
        ),
        (MachineGroup("a", "east", "small", "plain", count=9), "8 machines are free"),
        (
            MachineGroup("a", "east", "small", "plain", market="spot"),
            "toy rents no machines on the market 'spot'",
        ),
    ],
)
def test_what_the_cloud_refuses_leaves_nothing_and_is_one_sentence(
    tmp_path: Path, cloud: ToyCloud, group: MachineGroup, said: str
) -> None:
    small = ToyCloud(tmp_path / "cloud", capacity=8)
    with pytest.raises((CloudError, UsageError)) as caught:
        create(rentals(small, tmp_path), with_group(group))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert cloud.all() == []
    assert not (tmp_path / "rentals" / "run1").exists()


def test_fewer_machines_are_enough_where_the_user_says_so(tmp_path: Path, cloud: ToyCloud) -> None:
    small = ToyCloud(tmp_path / "cloud", capacity=3)
    group = MachineGroup("a", "east", "small", "plain", count=5, at_least=2)
    rental, _ = create(rentals(small, tmp_path), with_group(group, replace=0))
    assert list(rental.machines) == ["a-1", "a-2", "a-3"]


def test_of_hedged_launches_only_those_that_are_wanted_stay(
    tmp_path: Path, cloud: ToyCloud
) -> None:
    group = MachineGroup("a", "east", "small", "plain", count=2, hedge=3)
    rental, _ = create(rentals(cloud, tmp_path), with_group(group))
    machines = [one.id for one in cloud.all(Kind.MACHINE)]
    assert sorted(one.id for one in rental.machines.values()) == sorted(machines)
    assert len(machines) == 2


def test_a_machine_that_fails_is_replaced(tmp_path: Path, cloud: ToyCloud) -> None:
    class Failing(ToyCloud):
        failed = 0

        def resources(
            self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
        ) -> Sequence[CloudResource]:
            found = list(super().resources(region, run, kinds))
            first = min((one.id for one in found if one.kind is Kind.MACHINE), default="")
            self.first = getattr(self, "first", first) or first
            return [
                replace(one, state=ResourceState.FAILED, problem="no valid host")  # type: ignore[call-arg]
                if isinstance(one, Machine) and one.id == self.first
                else one
                for one in found
            ]

    failing = Failing(tmp_path / "cloud")
    group = MachineGroup("a", "east", "small", "plain", count=2)
    rental, said = create(rentals(failing, tmp_path), with_group(group))
    assert len(rental.machines) == len(cloud.all(Kind.MACHINE)) == 2
    assert any("is failed: no valid host" in line for line in said)
    with pytest.raises(RunFailed, match=r"1 of 2 machines of group b became ready.*no valid host"):
        create(
            rentals(Failing(tmp_path / "cloud"), tmp_path),
            replace(
                with_group(replace(group, name="b"), replace=0),
                name="run2",
            ),
        )


def test_a_removal_waits_until_a_lagging_list_must_show_everything(tmp_path: Path) -> None:
    (tmp_path / "cloud").mkdir()
    lagging = ToyCloud(tmp_path / "cloud", lag_s=1.0)
    kept = folder(tmp_path)
    make(CloudCalls(lagging), MachineRequest("east", "small", "plain", TAGS), kept)
    began = kept.settled_s(0.0, 0.0)
    assert began is not None
    swept = asyncio.run(
        sweep(
            CloudCalls(lagging),
            ("east",),
            run="run1",
            wanted=lambda one: True,
            settled_s=lambda: began + 1.2,
            say=lambda line: None,
        )
    )
    assert [one.kind for one in swept.removed] == [Kind.MACHINE]
    assert lagging.all() == []
    assert time.time() >= began + 1.2


def test_what_stays_is_named_with_the_clouds_words(tmp_path: Path, cloud: ToyCloud) -> None:
    class Stubborn(ToyCloud):
        def delete(self, resource: CloudResource) -> None:
            raise CloudError(Cause.IN_USE, "toy: it is in use.")

        def resources(
            self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
        ) -> Sequence[CloudResource]:
            if region == "west":
                raise CloudError(Cause.CREDENTIALS, "toy: the credentials have expired.")
            return super().resources(region, run, kinds)

    stubborn = Stubborn(tmp_path / "cloud")
    (made,) = make(CloudCalls(stubborn), KeyPairRequest("east", TAGS, "k"), folder(tmp_path))
    swept: Swept = asyncio.run(
        sweep(
            CloudCalls(stubborn),
            ("east", "west"),
            run=None,
            wanted=lambda one: True,
            settled_s=lambda: 0.0,
            say=lambda line: None,
            patience_s=0.5,
        )
    )
    with pytest.raises(RunFailed) as caught:
        swept.require_clean("nephoscope cloud sweep")
    assert f"{made} (toy: it is in use)" in caught.value.message
    assert "region west (toy: the credentials have expired)" in caught.value.message


def test_an_unknown_price_is_refused_and_a_known_one_is_held_to_the_limit(
    tmp_path: Path, cloud: ToyCloud
) -> None:
    def rent(cloud: ToyCloud, wanted: RentalSpec, limit: float) -> Rental:
        return asyncio.run(
            create_within(
                rentals(cloud, tmp_path),
                wanted,
                hours=wanted.hours,
                limit=SpendingLimit(limit),
                say=lambda line: None,
            )
        )

    group = MachineGroup("a", "east", "small", "plain", count=3)
    unpriced = ToyCloud(tmp_path / "cloud", price=None)
    with pytest.raises(UsageError, match=r"price of small \(on demand\) in east is unknown"):
        rent(unpriced, with_group(group), 100)
    with pytest.raises(UsageError, match=r"costs up to 3\.00 USD"):
        rent(cloud, with_group(group), 2.9)
    assert cloud.all() == []
    assert len(rent(cloud, with_group(group), 3.0).machines) == 3


@pytest.mark.parametrize("seed", range(4))
def test_kills_at_drawn_moments_leave_nothing_after_a_sweep(
    tmp_path: Path, cloud: ToyCloud, probe: Path, seed: int
) -> None:
    """With 10 % of all calls failing; the removal is killed too."""
    words = [sys.executable, "-m", "tests.contract.toy_cloud", str(tmp_path), "run1", "0.1", "end"]
    child = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while not (tmp_path / "rentals" / "run1").exists():
        time.sleep(0.005)
        assert child.poll() is None
    time.sleep(random.Random(seed).uniform(0, 0.6))
    child.kill()
    child.wait()
    machines = cloud.all(Kind.MACHINE)
    assert len({one.tags.token for one in machines}) == len(machines)  # one a group
    asyncio.run(rentals(cloud, tmp_path).remove("run1"))
    assert cloud.all() == []
    assert not (tmp_path / "rentals" / "run1").exists()


def test_logins_are_let_in_from_the_controllers_own_address_only() -> None:
    assert login_network("", "http://127.0.0.1:8773") == "127.0.0.1/32"
    assert login_network("203.0.113.7", "") == "203.0.113.7/32"
    assert login_network("", "", is_public=False).endswith("/32")
    with pytest.raises(UsageError, match="'home' is no network"):
        login_network("home", "")
