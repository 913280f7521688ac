"""Volumes and snapshots of a rental: made once, followed, removed with their surplus."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from tests.contract.toy_cloud import ToyCloud

from nephoscope.core.errors import RunFailed
from nephoscope.measure.cloud import volumes as module
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import (
    CloudResource,
    Kind,
    Machine,
    Request,
    ResourceState,
    SnapshotRequest,
    Tags,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudTraits
from nephoscope.measure.cloud.volumes import Volumes
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.target import Target

GIB = 1 << 30
MACHINE = Machine(Kind.MACHINE, "machine-1", "east", Tags("r1", "tests", 2**31), zone="east-a")


class Forgetful(ToyCloud):
    """A cloud whose snapshots know no tokens. lost: answers to calls that make one, which are lost
    after they were made, and show `lag_s` later."""

    traits: ClassVar[CloudTraits] = replace(
        ToyCloud.traits, tokenless=frozenset({Kind.SNAPSHOT}), settle_s=0.3
    )
    lost = 0

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`."""
        if not isinstance(request, SnapshotRequest):
            return super().create(request)
        made = self._make(Kind.SNAPSHOT, request)
        if self.lost:
            self.lost -= 1
            raise CloudError(Cause.UNANSWERED, "toy: no answer.")
        return made


@pytest.fixture
def cloud(tmp_path: Path) -> Forgetful:
    (tmp_path / "cloud").mkdir()
    return Forgetful(tmp_path / "cloud")


@pytest.fixture
def volumes(cloud: Forgetful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Volumes:
    monkeypatch.setattr(module, "LISTED_S", 0.01)
    monkeypatch.setattr(module, "LOOKED_S", 0.01)
    folder = RentalFolder("r1", tmp_path)
    folder.path.mkdir()
    return Volumes(CloudCalls(cloud), folder, MACHINE)


def test_a_volume_is_made_in_the_zone_of_its_machine(volumes: Volumes, cloud: Forgetful) -> None:
    made = asyncio.run(volumes.create(GIB, "fast"))
    assert (made.kind, made.zone, made.tags.run) == (Kind.VOLUME, "east-a", "r1")
    asyncio.run(volumes.delete(made))
    assert cloud.all() == []


def test_a_snapshot_whose_answer_is_lost_is_found_and_not_made_again(
    volumes: Volumes, cloud: Forgetful
) -> None:
    source = asyncio.run(volumes.create(GIB, ""))
    cloud.lost = 1
    made = asyncio.run(volumes.snapshot(source, 10))
    assert [one.id for one in cloud.all(Kind.SNAPSHOT)] == [made.id]


def test_a_snapshot_that_was_made_twice_goes_with_the_other(
    volumes: Volumes, cloud: Forgetful
) -> None:
    """Its cloud showed the first one later than it promises."""
    source = asyncio.run(volumes.create(GIB, ""))
    cloud.lost, cloud._lag_s = 1, 1.0
    made = asyncio.run(volumes.snapshot(source, 10))
    first, second = cloud.all(Kind.SNAPSHOT)
    assert first.tags.token == second.tags.token == made.tags.token
    cloud._lag_s = 0.0
    asyncio.run(volumes.delete(made))
    assert cloud.all(Kind.SNAPSHOT) == []
    assert [one.id for one in cloud.all(Kind.VOLUME)] == [source.id]


def test_what_fails_is_removed(
    volumes: Volumes, cloud: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Forgetful):
        def _make(self, kind: Kind, request: Request) -> list[CloudResource]:
            (made,) = super()._make(kind, request)
            self._write(made, state="failed")
            return [replace(made, state=ResourceState.PENDING)]

    monkeypatch.setattr(cloud, "__class__", Failing)
    with pytest.raises(RunFailed, match=r"volume-.* in east is failed"):
        asyncio.run(volumes.create(GIB, ""))
    assert cloud.all() == []


class Guest(Target):
    """A guest with the disks of `names`, each of a GiB."""

    def __init__(self, *names: str) -> None:
        super().__init__("guest", LocalChannel("guest"))
        self.names = list(names)

    async def command(self, words: Sequence[str], timeout_s: float = 30.0) -> Ended:
        """See `Target.command`."""
        text = "".join(f"disk\t{name}\t{GIB // 512}\t\t0\t\n" for name in self.names)
        return Ended(0, text.encode(), "")


def test_a_volume_is_attached_and_detached(
    volumes: Volumes, cloud: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Guest("/dev/vda")
    lost = iter([Cause.UNANSWERED, Cause.REFUSED])

    def attach(machine: Machine, volume: CloudResource) -> None:
        guest.names.append("/dev/vdb")
        # The first answer is lost; the second call is refused, for it is attached already.
        raise CloudError(next(lost), "toy: no.")

    monkeypatch.setattr(cloud, "attach", attach)
    monkeypatch.setattr(cloud, "detach", lambda volume: guest.names.clear())
    made = asyncio.run(volumes.create(GIB, ""))
    guest.names = guest.names[:1]
    device, seconds = asyncio.run(volumes.attach(made, GIB, guest))
    assert device.path == "/dev/vdb"
    assert 0 < seconds < 10
    asyncio.run(volumes.detach(made, device, guest))


def test_a_guest_that_shows_no_device_is_one_sentence(
    volumes: Volumes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DEVICE_S", 0.1)
    made = asyncio.run(volumes.create(GIB, ""))
    with pytest.raises(RunFailed, match=r"the guest shows no new device after 0\.1 s"):
        asyncio.run(volumes.attach(made, GIB, Guest("/dev/vda")))


def test_a_refusal_to_attach_is_final(
    volumes: Volumes, cloud: Forgetful, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attach(machine: Machine, volume: CloudResource) -> None:
        raise CloudError(Cause.REFUSED, "toy: another zone.")

    monkeypatch.setattr(cloud, "attach", attach)
    made = asyncio.run(volumes.create(GIB, ""))
    with pytest.raises(CloudError, match="another zone"):
        asyncio.run(volumes.attach(made, GIB, Guest("/dev/vda")))
