"""The provider `ec2` on the double: what it makes, finds, changes, removes; its errors."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from nephoscope.measure.cloud.model import (
    Action,
    KeyPairRequest,
    Kind,
    MachineRequest,
    PlacementGroupRequest,
    ResourceState,
    SecurityGroupRequest,
    SnapshotRequest,
    Tags,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudSettings
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.cloud.providers.ec2 import Ec2
from nephoscope.measure.cloud.providers.ec2_policy import policy

from .double import KEY as KEY_ID
from .double import Double
from .helpers import IMAGE_NAME

REGION = "us-east-1"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA test"


def tags(token: str = "t1", run: str = "r1") -> Tags:
    return Tags(run, "anna", int(time.time()) + 3600, token)


@pytest.fixture(scope="module")
def opened() -> dict[str, Ec2]:
    return {}


@pytest.fixture
def ec2(cloud: Double, opened: dict[str, Ec2]) -> Ec2:
    """One provider for all tests: to read the descriptions of the services takes a second."""
    if cloud.endpoint not in opened:
        provider = open_provider(CloudSettings("ec2", cloud.endpoint))
        assert isinstance(provider, Ec2)
        opened[cloud.endpoint] = provider
    return opened[cloud.endpoint]


def request(ec2: Ec2, token: str = "m1", **given: object) -> MachineRequest:
    image = ec2.image(REGION, IMAGE_NAME)
    usual: dict[str, object] = {"region": REGION, "type": "t3.micro", "image": image}
    return MachineRequest(**{**usual, "tags": tags(token), **given})  # type: ignore[arg-type]


def test_whatever_is_made_has_its_tags_from_the_first_moment(cloud: Double, ec2: Ec2) -> None:
    group = ec2.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))[0]
    key = ec2.create(KeyPairRequest(REGION, tags("k"), KEY))[0]
    zone = ec2.zones(REGION)[0]
    volume = ec2.create(VolumeRequest(REGION, zone, tags("v"), 3 << 30))[0]
    asked = request(ec2, zone=zone, key_pair=key.id, security_group=group.id, market="spot")
    machine = ec2.create(asked)[0]
    ec2.create(SnapshotRequest(REGION, tags("s"), machine.id))
    made = cloud.live()
    assert {each["kind"] for each in made} == {
        "instance", "volume", "security-group", "key-pair", "snapshot",
    }  # fmt: skip
    assert all(Tags.from_mapping(each["tags_at_creation"]) for each in made)
    assert {each.id for each in ec2.resources(REGION)} == {
        each.get("name") if each["kind"] == "key-pair" else each["id"] for each in made
    }
    assert ec2.resources(REGION, "another-run") == []
    assert ec2.resources("eu-west-1") == []
    (seen,) = cloud.live("security-group")
    assert seen["rules"] == [["tcp", 22, 22, "203.0.113.7/32"], ["-1", None, None, group.id]]
    (seen,) = cloud.live("instance")
    assert seen["metadata"]["HttpTokens"] == "required"
    assert seen["on_shutdown"] == "terminate"
    assert volume.zone == zone


def test_a_call_with_the_token_of_another_returns_what_that_made(cloud: Double, ec2: Ec2) -> None:
    requests = [
        request(ec2, count=2),
        SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"),
        KeyPairRequest(REGION, tags("k"), KEY),
        VolumeRequest(REGION, f"{REGION}a", tags("v"), 3 << 30),
    ]
    for each in requests:
        assert [r.id for r in ec2.create(each)] == [r.id for r in ec2.create(each)]
    volume = cloud.live("volume")[-1]["id"]
    snapshot = SnapshotRequest(REGION, tags("s"), volume)
    assert ec2.create(snapshot)[0].id == ec2.create(snapshot)[0].id
    assert len(cloud.live("instance")) == 2


@pytest.mark.parametrize("fault", ["internal-after", "drop-after", "truncate"])
def test_a_lost_answer_is_reported_as_one_and_the_next_call_finds_it(
    cloud: Double, ec2: Ec2, fault: str
) -> None:
    asked = request(ec2)
    ec2.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))
    cloud.fault(fault, next=1, actions=["RunInstances"])
    with pytest.raises(CloudError) as caught:
        ec2.create(asked)
    assert caught.value.cause is Cause.UNANSWERED
    made = ec2.create(asked)
    assert [each.id for each in made] == [each["id"] for each in cloud.live("instance")]


def test_removal_is_asked_for_once_more_without_an_error(cloud: Double, ec2: Ec2) -> None:
    group = ec2.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))[0]
    machine = ec2.create(request(ec2, security_group=group.id))[0]
    ec2.create(KeyPairRequest(REGION, tags("k"), KEY))
    with pytest.raises(CloudError) as caught:
        ec2.delete(group)
    assert caught.value.cause is Cause.IN_USE
    ec2.delete(machine)
    assert [each.state for each in ec2.resources(REGION) if each.id == machine.id] == [
        ResourceState.LEAVING
    ]
    cloud.advance(5)
    assert [each.state for each in ec2.resources(REGION) if each.id == machine.id] == [
        ResourceState.GONE
    ]
    for each in ec2.resources(REGION):
        ec2.delete(each)
        ec2.delete(each)
    assert cloud.live() == []


def test_every_kind_is_listed_and_removed(cloud: Double, ec2: Ec2, client) -> None:  # type: ignore[no-untyped-def]
    """Also kinds that others made with our tags: addresses, images, templates, ports, balancers."""
    api, mine = client(), [{"Key": k, "Value": v} for k, v in tags().as_mapping().items()]

    def spec(kind: str) -> list[dict[str, object]]:
        return [{"ResourceType": kind, "Tags": mine}]

    machine = ec2.create(request(ec2))[0]
    cloud.advance(5)
    api.allocate_address(TagSpecifications=spec("elastic-ip"))
    api.create_image(
        InstanceId=machine.id, Name="img", TagSpecifications=spec("image") + spec("snapshot")
    )
    data = {"InstanceType": "t3.micro"}
    api.create_launch_template(
        LaunchTemplateName="tpl", LaunchTemplateData=data, TagSpecifications=spec("launch-template")
    )
    api.create_network_interface(SubnetId="subnet-0", TagSpecifications=spec("network-interface"))
    ec2.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))
    ec2.create(KeyPairRequest(REGION, tags("k"), KEY))
    ec2.create(PlacementGroupRequest(REGION, tags("p"), "cluster"))
    for number in range(23):
        client(service="elbv2").create_load_balancer(
            Name=f"b{number}", Tags=mine if number else [{"Key": "a", "Value": "b"}]
        )
    found = ec2.resources(REGION)
    assert {each.kind for each in found} == set(ec2.traits.kinds)
    for kind in Kind:
        for each in found:
            if each.kind is kind and kind is not Kind.VOLUME:
                ec2.delete(each)
        cloud.advance(5)
    assert [each["name"] for each in cloud.live()] == ["b0"]


def test_a_machine_is_stopped_resized_started_and_given_a_volume(cloud: Double, ec2: Ec2) -> None:
    machine = ec2.create(request(ec2, zone=f"{REGION}a"))[0]
    assert machine.state is ResourceState.PENDING
    cloud.advance(5)
    (up,) = (each for each in ec2.resources(REGION) if each.kind is Kind.MACHINE)
    assert (up.state, up.address) == (ResourceState.READY, cloud.live("instance")[0]["address"])  # type: ignore[attr-defined]
    ec2.act(machine, Action.REBOOT)
    ec2.act(machine, Action.STOP)
    with pytest.raises(CloudError) as caught:
        ec2.act(machine, Action.RESIZE, "m5.large")
    assert caught.value.cause is Cause.IN_USE
    cloud.advance(5)
    ec2.act(machine, Action.RESIZE, "m5.large")
    ec2.act(machine, Action.START)
    cloud.advance(5)
    assert cloud.live("instance")[0]["type"] == "m5.large"
    volume = ec2.create(VolumeRequest(REGION, f"{REGION}a", tags("v"), 3 << 30))[0]
    cloud.advance(5)
    ec2.attach(machine, volume)
    ec2.attach(machine, volume)
    assert any(
        each.get("instance") == machine.id and each["size"] == 3 for each in cloud.live("volume")
    )
    ec2.detach(volume)
    ec2.detach(volume)
    assert ec2.console(machine) == ""
    ec2.extend(machine, 4102444800)
    assert ec2.resources(REGION)[0].tags.expires_s == 4102444800


def test_prices_are_those_of_the_list_and_of_the_spot_market(cloud: Double, ec2: Ec2) -> None:
    listed = ec2.prices(request(ec2, type="m5.large"))
    assert listed is not None
    assert (listed.per_h, listed.address_h, listed.minimum_s) == (0.096, 0.005, 60.0)
    # Traffic between zones is billed at both ends.
    assert (listed.egress_gib, listed.zones_gib) == (0.09, 0.02)
    assert listed.storage_gib_h == pytest.approx(0.08 / 730)
    quote = listed.quote(2)
    assert quote is not None
    # The disk of the image is billed too.
    assert quote.per_h == pytest.approx(2 * (0.096 + 0.005 + 8 * 0.08 / 730))
    spot = ec2.prices(request(ec2, type="m5.large", market="spot", zone=f"{REGION}b"))
    anywhere = ec2.prices(request(ec2, type="m5.large", market="spot"))
    assert spot is not None
    assert anywhere is not None
    assert spot.per_h <= anywhere.per_h < listed.per_h
    cloud.settings(unpriced=["m5.large"])
    assert ec2.prices(request(ec2, type="m5.large")) is None


def test_the_account_names_itself_and_its_quotas(ec2: Ec2) -> None:
    account = ec2.account()
    assert (account.id, account.name) == ("000000000042", "user/tester")
    assert account.quotas["on-demand vCPUs (standard types), us-east-1"] == (None, 64.0)
    assert ec2.regions() == ["ap-south-1", "eu-west-1", "us-east-1"]
    (micro,) = (each for each in ec2.types(REGION) if each.name == "t3.micro")
    assert (micro.vcpus, micro.memory_bytes, len(micro.zones)) == (2, 1 << 30, 3)


def struck(fault: str, call: Any) -> Any:
    """A call that meets a fault."""
    return lambda ec2, cloud: (cloud.fault(fault, next=1), call(ec2))


BAD: dict[str, tuple[Any, Cause]] = {
    "no such image": (lambda e, c: e.image(REGION, "no-such-image"), Cause.UNKNOWN),
    "no such image id": (lambda e, c: e.image(REGION, "ami-0123456789abcdef0"), Cause.UNKNOWN),
    "no such type": (lambda e, c: e.create(request(e, type="t9.nano")), Cause.UNKNOWN),
    "no such zone": (lambda e, c: e.create(request(e, zone=f"{REGION}z")), Cause.UNKNOWN),
    "quota": (lambda e, c: e.create(request(e, count=99, at_least=99)), Cause.QUOTA),
    "bad public key": (lambda e, c: e.create(KeyPairRequest(REGION, tags(), "x")), Cause.REFUSED),
    "capacity": (struck("no-capacity", lambda e: e.create(request(e))), Cause.CAPACITY),
    "throttled": (struck("throttle", Ec2.regions), Cause.THROTTLED),
    "unavailable": (struck("unavailable", Ec2.regions), Cause.UNANSWERED),
    "dropped": (struck("drop-before", Ec2.regions), Cause.UNANSWERED),
    "expired": (struck("expired", Ec2.regions), Cause.CREDENTIALS),
    "withdrawn": (lambda e, c: (c.withdraw(KEY_ID), e.regions()), Cause.CREDENTIALS),
    "closed region": (lambda e, c: e.resources("me-south-1"), Cause.CREDENTIALS),
    "key pair not yet visible": (lambda e, c: e.create(request(e, key_pair="k")), Cause.THROTTLED),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_an_error_has_its_cause_and_one_sentence(cloud: Double, ec2: Ec2, case: str) -> None:
    fails, cause = BAD[case]
    with pytest.raises(CloudError) as caught:
        fails(ec2, cloud)
    assert caught.value.cause is cause
    text = str(caught.value)
    assert text.startswith("EC2: ")
    assert "\n" not in text
    assert "secret" not in text
    assert cloud.live() == []


def test_a_wrong_clock_is_told_from_expired_credentials(
    cloud: Double, ec2: Ec2, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    now = time.time
    monkeypatch.setattr(
        "nephoscope.measure.cloud.providers.ec2_errors.time.time", lambda: now() - 3600
    )
    cloud.fault("skew", next=1)
    with pytest.raises(CloudError) as caught:
        ec2.regions()
    assert caught.value.cause is Cause.CLOCK


def test_nobody_there_is_unreachable(cloud: Double) -> None:
    provider = open_provider(CloudSettings("ec2", "http://127.0.0.1:9"))
    with pytest.raises(CloudError) as caught:
        provider.regions()
    assert caught.value.cause is Cause.UNREACHABLE


def test_a_missing_profile_is_one_sentence(cloud: Double) -> None:
    with pytest.raises(CloudError, match="could not be found") as caught:
        open_provider(CloudSettings("ec2", cloud.endpoint, "nobody"))
    assert caught.value.cause is Cause.CREDENTIALS


@pytest.fixture
def old(cloud: Double, opened: dict[str, Ec2]) -> Ec2:
    """The provider on a double that is like OpenStack's EC2 API."""
    cloud.settings(old=True)
    if "old" not in opened:
        opened["old"] = Ec2(CloudSettings("ec2", cloud.endpoint))
    return opened["old"]


def test_older_clouds_get_their_tags_in_a_second_call(cloud: Double, old: Ec2) -> None:
    assert old.account().name == ""
    assert old.types(REGION) == ()
    assert old.prices(request(old)) is None
    group = old.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))[0]
    key = old.create(KeyPairRequest(REGION, tags("k"), KEY))[0]
    asked = request(old, count=2, key_pair=key.id, security_group=group.id)
    made = old.create(asked)
    assert [each.id for each in old.create(asked)] == [each.id for each in made]
    assert {each.id for each in old.resources(REGION)} >= {group.id, key.id, *(m.id for m in made)}
    assert all(each.tags.run == "r1" for each in old.resources(REGION))
    with pytest.raises(CloudError, match="no spot market"):
        old.create(request(old, "m2", market="spot"))
    for kind in Kind:
        for each in old.resources(REGION):
            if each.kind is kind:
                old.delete(each)
        cloud.advance(10)
    assert cloud.live() == []


@pytest.mark.parametrize("fault", ["internal-before", "drop-before"])
def test_older_clouds_show_what_got_no_tags_any_more(cloud: Double, old: Ec2, fault: str) -> None:
    """The process ends, or the call fails, between the creation and its tags."""
    key = old.create(KeyPairRequest(REGION, tags("k"), KEY))[0]
    cloud.fault(fault, next=9, actions=["CreateTags"])
    with pytest.raises(CloudError):
        old.create(request(old, key_pair=key.id))
    with pytest.raises(CloudError):
        old.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))
    assert {each.kind for each in old.resources(REGION, "r1")} == {
        Kind.KEY_PAIR, Kind.MACHINE, Kind.SECURITY_GROUP,
    }  # fmt: skip


def everything(ec2: Ec2, cloud: Double) -> None:
    """Every call that the provider has."""
    ec2.account()
    ec2.regions()
    ec2.types(REGION)
    ec2.prices(request(ec2))
    ec2.prices(request(ec2, market="spot"))
    group = ec2.create(SecurityGroupRequest(REGION, tags("g"), "203.0.113.7/32"))[0]
    ec2.admit(group, ["203.0.113.9"])
    ec2.admit(group, ["203.0.113.10"])
    place = ec2.create(PlacementGroupRequest(REGION, tags("p"), "spread"))[0]
    key = ec2.create(KeyPairRequest(REGION, tags("k"), KEY))[0]
    given = {"key_pair": key.id, "security_group": group.id, "zone": ec2.zones(REGION)[0]}
    machine = ec2.create(request(ec2, **given))[0]
    ec2.create(request(ec2, "m2", market="spot", **given))
    volume = ec2.create(VolumeRequest(REGION, machine.zone, tags("v"), 1 << 30))[0]
    snapshot = ec2.create(SnapshotRequest(REGION, tags("s"), machine.id))[0]
    cloud.advance(60)
    ec2.create(VolumeRequest(REGION, machine.zone, tags("w"), 8 << 30, snapshot=snapshot.id))
    cloud.advance(60)
    ec2.attach(machine, volume)
    ec2.detach(volume)
    ec2.console(machine)
    ec2.act(machine, Action.REBOOT)
    ec2.act(machine, Action.STOP)
    cloud.advance(60)
    ec2.act(machine, Action.RESIZE, "t3.small")
    ec2.act(machine, Action.START)
    for each in (machine, key, group, place, volume, snapshot):
        ec2.extend(each, int(time.time()) + 7200)
    for kind in Kind:
        for each in ec2.resources(REGION):
            if each.kind is kind:
                ec2.delete(each)
        cloud.advance(60)


def test_the_policy_allows_what_the_provider_calls_and_nothing_else(
    cloud: Double, ec2: Ec2
) -> None:
    cloud.settings(policy=policy("anna"))
    everything(ec2, cloud)
    used = {f"{each['service']}:{each['action']}" for each in cloud.calls()}
    assert {each["code"] for each in cloud.calls()} == {""}
    assert cloud.live() == []
    allowed = {action for each in policy()["Statement"] for action in each["Action"]}
    assert not any("*" in action for action in allowed)
    # The longest that IAM takes, without white space.
    assert len(json.dumps(policy("a" * 63), separators=(",", ":"))) <= 6144
    # Of kinds that the provider removes and does not make, nothing was there to be removed; tags
    # at creation are written by no call of their own.
    removal_only = {
        "ec2:ReleaseAddress",
        "ec2:DeleteNetworkInterface",
        "ec2:DeregisterImage",
        "ec2:DeleteLaunchTemplate",
        "elasticloadbalancing:DeleteLoadBalancer",
        "elasticloadbalancing:DescribeTags",
        "elasticloadbalancing:AddTags",
    }
    assert used == allowed - removal_only


def test_the_policy_keeps_from_what_is_not_ours(cloud: Double, ec2: Ec2, client) -> None:  # type: ignore[no-untyped-def]
    api = client()
    from .helpers import image, launch, refused

    others = launch(api)
    mine = ec2.create(request(ec2))[0]
    cloud.settings(policy=policy("anna"))
    with refused("UnauthorizedOperation"):
        api.terminate_instances(InstanceIds=[mine.id, *others])
    with refused("UnauthorizedOperation"):
        launch(api)
    with refused("UnauthorizedOperation"):
        api.create_tags(Resources=others, Tags=[{"Key": "nephoscope-run", "Value": "r"}])
    with refused("UnauthorizedOperation"):
        # Without tokens for the metadata service.
        made = [{"Key": k, "Value": v} for k, v in tags().as_mapping().items()]
        kinds = ("instance", "volume", "network-interface")
        launch(api, TagSpecifications=[{"ResourceType": kind, "Tags": made} for kind in kinds])
    assert image(api)
    cloud.settings(policy=policy("bert"))
    with pytest.raises(CloudError) as caught:
        ec2.delete(mine)
    assert caught.value.cause is Cause.CREDENTIALS
    assert "cloud policy ec2" in str(caught.value.hint)
