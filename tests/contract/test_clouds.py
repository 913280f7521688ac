"""One suite over every provider of rented machines; see `Provider`."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest
from tests.tools import needs

from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.model import (
    Action,
    CloudResource,
    KeyPairRequest,
    Kind,
    Machine,
    MachineRequest,
    PlacementGroupRequest,
    ResourceState,
    SecurityGroupRequest,
    SnapshotRequest,
    Tags,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, Provider
from nephoscope.measure.cloud.sweep import sweep

from .cloud_cases import CLOUDS, TESTS, CloudCase
from .toy_cloud import ToyCloud


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test over every cloud, but for what the table says is not exercised."""
    if "case" not in metafunc.fixturenames:
        return
    test = metafunc.function.__name__.removeprefix("test_")
    names = [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.slow] if line.slow else []),
                *([needs(*line.programs)] if line.programs else []),
            ],
        )
        for name, line in CLOUDS.items()
        if not {test, "all"} & line.not_exercised.keys()
    ]
    metafunc.parametrize("case", names, indirect=True)


@pytest.fixture
def cloud_toy(tmp_path: Path) -> CloudCase:
    return CloudCase(
        lambda: ToyCloud(tmp_path),
        region="east",
        type="small",
        image="plain",
        zone="east-a",
        other_type="large",
        impossible=lambda request: replace(request, count=1000, at_least=1000),
    )


@pytest.fixture
def case(request: pytest.FixtureRequest) -> CloudCase:
    found: CloudCase = request.getfixturevalue(f"cloud_{request.param}")
    return found


@pytest.fixture
def cloud(case: CloudCase) -> Provider:
    return case.open()


@pytest.fixture
def tags(case: CloudCase, cloud: Provider) -> Iterator[Tags]:
    """Tags of this test; whatever carries them goes."""
    made = Tags(f"c{secrets.token_hex(4)}", "contract", int(time.time()) + 3600, token())
    yield made
    clear(cloud, case, made)


def token() -> str:
    return secrets.token_hex(16)


def clear(cloud: Provider, case: CloudCase, tags: Tags) -> None:
    swept = asyncio.run(
        sweep(
            CloudCalls(cloud),
            (case.region,),
            run=tags.run,
            wanted=lambda one: True,
            settled_s=lambda: 0.0,
            say=lambda line: None,
            patience_s=120,
        )
    )
    assert swept.is_clean, swept


def request_of(case: CloudCase, cloud: Provider, tags: Tags, count: int = 1) -> MachineRequest:
    return MachineRequest(
        case.region,
        case.type,
        cloud.image(case.region, case.image),
        tags,
        zone=case.zone,
        count=count,
        at_least=count,
        network=case.network,
        user_data="#!/bin/sh\n" if cloud.traits.user_data else "",
        name="contract",
    )


def listed(cloud: Provider, case: CloudCase, tags: Tags, kind: Kind) -> list[CloudResource]:
    found = cloud.resources(case.region, tags.run)
    return [one for one in found if one.kind is kind and one.state is not ResourceState.GONE]


def until_state(
    cloud: Provider, case: CloudCase, tags: Tags, *states: ResourceState, count: int = 1
) -> list[Machine]:
    """Waits until so many machines are in one of the states; 'gone' is not being listed."""
    until = time.monotonic() + case.ready_s
    while True:
        found = [one for one in listed(cloud, case, tags, Kind.MACHINE) if isinstance(one, Machine)]
        if len([one for one in found if one.state in states]) >= count:
            return found
        if ResourceState.GONE in states and not found:
            return []
        assert time.monotonic() < until, found
        time.sleep(0.1)


def ready(cloud: Provider, case: CloudCase, tags: Tags, count: int = 1) -> list[Machine]:
    cloud.create(request_of(case, cloud, tags, count))
    return until_state(cloud, case, tags, ResourceState.READY, count=count)


def acted(
    cloud: Provider, case: CloudCase, machine: Machine, action: Action, value: str = ""
) -> None:
    """Acts as the program does: again while the cloud is busy with what came before."""
    until = time.monotonic() + case.ready_s
    while True:
        try:
            return cloud.act(machine, action, value)
        except CloudError as error:
            if not error.passes or time.monotonic() > until:
                raise
        time.sleep(0.2)


def refused(call: object) -> CloudError:
    with pytest.raises(CloudError) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
    assert len(caught.value.message) < 500
    return caught.value


def public_key() -> str:
    return asyncssh.generate_private_key("ssh-ed25519").export_public_key("openssh").decode()


def test_account(case: CloudCase, cloud: Provider) -> None:
    account = cloud.account()
    assert account.id
    for used, limit in account.quotas.values():
        assert used is None or used >= 0
        assert limit is None or limit >= 0


def test_names(case: CloudCase, cloud: Provider) -> None:
    assert case.region in cloud.regions()
    zones = cloud.zones(case.region)
    assert not case.zone or case.zone in zones
    types = {one.name: one for one in cloud.types(case.region)}
    if case.lists_types:
        assert types[case.type].vcpus > 0
        assert types[case.type].memory_bytes > 0
    else:
        assert types == {}
    assert cloud.image(case.region, case.image)


def test_unknown_names(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    assert refused(lambda: cloud.image(case.region, "no-such-image")).cause is Cause.UNKNOWN
    wrong = replace(request_of(case, cloud, tags), type="no-such-type")
    assert refused(lambda: cloud.create(wrong)).cause in (Cause.UNKNOWN, Cause.REFUSED)
    assert listed(cloud, case, tags, Kind.MACHINE) == []


def test_machine(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """Made, found by its tags and by no others', ready, gone; a second removal is no error."""
    (made,) = cloud.create(request_of(case, cloud, tags))
    (machine,) = until_state(cloud, case, tags, ResourceState.READY)
    assert (machine.id, machine.kind, machine.region) == (made.id, Kind.MACHINE, case.region)
    assert (machine.tags.run, machine.tags.owner) == (tags.run, tags.owner)
    assert machine.tags.expires_s == tags.expires_s
    assert machine.type == case.type
    everything = [one.id for one in cloud.resources(case.region)]
    assert made.id in everything
    assert cloud.resources(case.region, "another-run") == []
    cloud.delete(machine)
    until_state(cloud, case, tags, ResourceState.GONE)
    cloud.delete(machine)


def test_same_token(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """Where the cloud knows tokens, a repeated call returns what the first one made."""
    request = request_of(case, cloud, tags)
    first = cloud.create(request)
    if cloud.traits.tokens:
        assert [one.id for one in cloud.create(request)] == [one.id for one in first]
        assert len(until_state(cloud, case, tags, ResourceState.READY)) == 1
    machines = until_state(cloud, case, tags, ResourceState.READY)
    assert {one.tags.token for one in machines} == {tags.token}
    other = replace(request, tags=replace(tags, token=token()))
    cloud.create(other)
    assert len(until_state(cloud, case, tags, ResourceState.READY, count=2)) == 2


def test_count(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    made = cloud.create(request_of(case, cloud, tags, 3))
    machines = until_state(cloud, case, tags, ResourceState.READY, count=3)
    assert sorted(one.id for one in machines) == sorted(one.id for one in made)
    assert len(made) == 3


def test_impossible(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """More than there is: a refusal with a cause, or machines that fail; and nothing stays."""
    assert case.impossible is not None
    request = case.impossible(request_of(case, cloud, tags))
    refusal = None
    try:
        cloud.create(request)
    except CloudError as error:
        refusal = error
    if refusal is None:
        failed = until_state(cloud, case, tags, ResourceState.FAILED)
        assert any(one.problem for one in failed)
        return
    assert refusal.cause in (Cause.QUOTA, Cause.CAPACITY)
    assert "\n" not in str(refusal)
    # A provider that has to take some back again may need a moment until they are gone.
    assert until_state(cloud, case, tags, ResourceState.GONE) == []


def test_key_pair(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    (made,) = cloud.create(KeyPairRequest(case.region, tags, public_key()))
    (found,) = listed(cloud, case, tags, Kind.KEY_PAIR)
    assert (found.id, found.tags.run) == (made.id, tags.run)
    cloud.delete(made)
    assert listed(cloud, case, tags, Kind.KEY_PAIR) == []
    cloud.delete(made)


def test_firewall(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """A machine uses it, so that it goes after the machine."""
    (made,) = cloud.create(
        SecurityGroupRequest(case.region, tags, "192.0.2.7/32", network=case.network)
    )
    (found,) = listed(cloud, case, tags, Kind.SECURITY_GROUP)
    assert (found.id, found.tags.run) == (made.id, tags.run)
    cloud.create(replace(request_of(case, cloud, tags), security_group=made.id))
    until_state(cloud, case, tags, ResourceState.READY)
    clear(cloud, case, tags)
    assert cloud.resources(case.region, tags.run) == [] or not listed(
        cloud, case, tags, Kind.SECURITY_GROUP
    )
    cloud.delete(made)


def test_admission(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """Addresses elsewhere, said again and replaced; what it means is measured on the double."""
    (made,) = cloud.create(
        SecurityGroupRequest(case.region, tags, "192.0.2.7/32", network=case.network)
    )
    two = ["192.0.2.9", "2001:db8::9" if case.has_ipv6 else "192.0.2.11"]
    for sources in (two, two, ["192.0.2.10"], []):
        cloud.admit(made, sources)
    if not case.has_ipv6:
        refusal = refused(lambda: cloud.admit(made, ["2001:db8::9"]))
        assert refusal.cause is Cause.REFUSED
        assert "no rules for IPv6" in refusal.message
    (found,) = listed(cloud, case, tags, Kind.SECURITY_GROUP)
    assert (found.id, found.state) == (made.id, ResourceState.READY)
    clear(cloud, case, tags)
    assert listed(cloud, case, tags, Kind.SECURITY_GROUP) == []


def test_placement_group(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """Made once for each token, and removed after the machine in it."""
    request = PlacementGroupRequest(case.region, tags, "spread")
    assert "spread" in cloud.traits.placements
    (made,) = cloud.create(request)
    assert [one.id for one in cloud.create(request)] == [made.id]
    (found,) = listed(cloud, case, tags, Kind.PLACEMENT_GROUP)
    assert (found.id, found.tags.run) == (made.id, tags.run)
    cloud.create(replace(request_of(case, cloud, tags), placement_group=made.id))
    until_state(cloud, case, tags, ResourceState.READY)
    clear(cloud, case, tags)
    assert listed(cloud, case, tags, Kind.PLACEMENT_GROUP) == []
    cloud.delete(made)


def until_ready(cloud: Provider, case: CloudCase, tags: Tags, made: CloudResource) -> None:
    until = time.monotonic() + case.ready_s
    while {one.state for one in listed(cloud, case, tags, made.kind) if one.id == made.id} != {
        ResourceState.READY
    }:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_volume(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    (machine,) = ready(cloud, case, tags)
    request = VolumeRequest(case.region, case.zone, replace(tags, token=token()), 1 << 30)
    (made,) = cloud.create(request)
    (second,) = cloud.create(replace(request, tags=replace(tags, token=token())))
    for volume in (made, second):
        until_ready(cloud, case, tags, volume)
        cloud.attach(machine, volume)
    cloud.detach(made)
    clear(cloud, case, tags)
    assert listed(cloud, case, tags, Kind.VOLUME) == []


def test_snapshot(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    request = VolumeRequest(case.region, case.zone, replace(tags, token=token()), 1 << 30)
    (volume,) = cloud.create(request)
    (made,) = cloud.create(SnapshotRequest(case.region, replace(tags, token=token()), volume.id))
    assert [one.id for one in listed(cloud, case, tags, made.kind)] == [made.id]
    clear(cloud, case, tags)
    assert listed(cloud, case, tags, made.kind) == []


def test_restore(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """A volume of a snapshot, which a repeated call makes once where the cloud knows tokens."""
    size = 1 << 30
    request = VolumeRequest(case.region, case.zone, replace(tags, token=token()), size)
    (volume,) = cloud.create(request)
    until_ready(cloud, case, tags, volume)
    (copy,) = cloud.create(SnapshotRequest(case.region, replace(tags, token=token()), volume.id))
    until_ready(cloud, case, tags, copy)
    again = replace(request, tags=replace(tags, token=token()), snapshot=copy.id)
    (restored,) = cloud.create(again)
    if cloud.traits.tokens:
        assert [one.id for one in cloud.create(again)] == [restored.id]
    until_ready(cloud, case, tags, restored)
    volumes = listed(cloud, case, tags, Kind.VOLUME)
    assert sorted(one.id for one in volumes) == sorted((volume.id, restored.id))
    assert {one.tags.token for one in volumes if one.id == restored.id} == {again.tags.token}
    clear(cloud, case, tags)
    assert cloud.storage_prices(case.region, "no-such-type") is None


def test_stop_and_start(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    assert {Action.STOP, Action.START} <= cloud.traits.actions
    (machine,) = ready(cloud, case, tags)
    acted(cloud, case, machine, Action.STOP)
    until_state(cloud, case, tags, ResourceState.STOPPED)
    acted(cloud, case, machine, Action.START)
    (again,) = until_state(cloud, case, tags, ResourceState.READY)
    assert again.id == machine.id


def test_reboot(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    assert Action.REBOOT in cloud.traits.actions
    (machine,) = ready(cloud, case, tags)
    acted(cloud, case, machine, Action.REBOOT)
    (again,) = until_state(cloud, case, tags, ResourceState.READY)
    assert again.id == machine.id


def test_resize(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    assert Action.RESIZE in cloud.traits.actions
    (machine,) = ready(cloud, case, tags)
    acted(cloud, case, machine, Action.STOP)
    until_state(cloud, case, tags, ResourceState.STOPPED)
    acted(cloud, case, machine, Action.RESIZE, case.other_type)
    acted(cloud, case, machine, Action.START)
    until = time.monotonic() + case.ready_s
    while [one.type for one in until_state(cloud, case, tags, ResourceState.READY)] != [
        case.other_type
    ]:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_console(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    (machine,) = ready(cloud, case, tags)
    assert isinstance(cloud.console(machine), str)


def test_extend(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    (machine,) = ready(cloud, case, tags)
    cloud.extend(machine, tags.expires_s + 600)
    (again,) = until_state(cloud, case, tags, ResourceState.READY)
    assert again.tags.expires_s == tags.expires_s + 600
    assert again.tags.run == tags.run


def test_paging(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """What lies on a second page is found too."""
    assert case.page
    made = cloud.create(request_of(case, cloud, tags, case.page + 1))
    machines = until_state(cloud, case, tags, ResourceState.READY, count=case.page + 1)
    assert len(machines) == len(made) == case.page + 1


def test_wrong_credentials(case: CloudCase, cloud: Provider) -> None:
    assert case.wrong is not None
    wrong = case.wrong
    error = refused(lambda: wrong().account())
    assert error.cause is Cause.CREDENTIALS
    assert error.hint
    assert not case.secret or case.secret not in f"{error}{error.__cause__!r}"


def test_no_answer(case: CloudCase) -> None:
    assert case.down is not None
    down = case.down
    began = time.monotonic()
    assert refused(lambda: down().account()).cause in (Cause.UNREACHABLE, Cause.UNANSWERED)
    assert time.monotonic() - began < 40


def test_sweep(case: CloudCase, cloud: Provider, tags: Tags) -> None:
    """Everything that a rental makes goes, in an order that the cloud takes."""
    kinds = cloud.traits.kinds
    more: dict[str, str] = {}
    if Kind.KEY_PAIR in kinds:
        more["key_pair"] = cloud.create(KeyPairRequest(case.region, tags, public_key()))[0].id
    if Kind.SECURITY_GROUP in kinds:
        group = SecurityGroupRequest(case.region, tags, "192.0.2.7/32", network=case.network)
        more["security_group"] = cloud.create(group)[0].id
    cloud.create(replace(request_of(case, cloud, tags, 2), **more))
    clear(cloud, case, tags)
    left = cloud.resources(case.region, tags.run)
    assert [one for one in left if one.state is not ResourceState.GONE] == []


def test_each_cell_is_exercised_or_has_a_reason() -> None:
    made = [name for name in globals() if name.startswith("test_")]
    assert [f"test_{test}" for test in TESTS] == made[: len(TESTS)]
    for name, line in CLOUDS.items():
        assert set(line.not_exercised) <= {*TESTS, "all"}, name
        assert all(len(reason) > 10 for reason in line.not_exercised.values())


def test_the_page_has_this_table() -> None:
    root = Path(__file__).resolve().parents[2]
    words = [sys.executable, str(root / "tools" / "cloud_contract_table.py"), "--check"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
