"""Rules of the double for machines, each from the provider's documentation."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from .double import Double
from .helpers import image, launch, refused, states


def test_a_token_makes_machines_once(cloud: Double, client: Any) -> None:
    ec2 = client()
    first = launch(ec2, MinCount=2, MaxCount=3, ClientToken="one")
    assert launch(ec2, MinCount=2, MaxCount=3, ClientToken="one") == first
    assert len(first) == 3
    with refused("IdempotentParameterMismatch"):
        launch(ec2, MinCount=3, MaxCount=3, ClientToken="one")
    # "You can use the same client token for the same request across different regions."
    assert launch(client("eu-west-1"), MinCount=2, MaxCount=3, ClientToken="one") != first
    assert len(cloud.live("instance")) == 6
    ec2.terminate_instances(InstanceIds=first)
    cloud.advance(10)
    with refused("IdempotentInstanceTerminated"):
        launch(ec2, MinCount=2, MaxCount=3, ClientToken="one")
    with refused("InvalidParameterValue"):
        launch(ec2, ClientToken="x" * 65)


def test_a_refused_request_uses_up_no_token(cloud: Double, client: Any) -> None:
    ec2 = client()
    cloud.fault("no-capacity", next=1)
    with refused("InsufficientInstanceCapacity"):
        launch(ec2, ClientToken="one")
    assert launch(ec2, ClientToken="one")


def test_counts_are_granted_as_far_as_there_is_room(cloud: Double, client: Any) -> None:
    ec2 = client()
    place = {"AvailabilityZone": "us-east-1b"}
    cloud.capacity("us-east-1b", "t3.micro", 3)
    assert len(launch(ec2, MinCount=1, MaxCount=5, Placement=place)) == 3
    with refused("InsufficientInstanceCapacity"):
        launch(ec2, Placement=place)
    assert launch(ec2)  # another zone has room
    with refused("InvalidParameterValue"):
        launch(ec2, MinCount=2, MaxCount=1)
    cloud.capacity("us-east-1b", "t3.micro", 5)
    with refused("InsufficientInstanceCapacity"):
        launch(ec2, MinCount=3, MaxCount=3, Placement=place)
    assert len(launch(ec2, MinCount=1, MaxCount=3, Placement=place)) == 2


def test_quotas_count_virtual_cpus_by_market_and_region(cloud: Double, client: Any) -> None:
    ec2 = client()
    cloud.quota("L-1216C47A", 4)
    (first, _) = launch(ec2, MinCount=2, MaxCount=9)
    with refused("VcpuLimitExceeded"):
        launch(ec2)
    launch(ec2, InstanceMarketOptions={"MarketType": "spot"})
    launch(client("eu-west-1"))
    cloud.quota("L-34B43A08", 3)
    with refused("MaxSpotInstanceCountExceeded"):
        launch(ec2, InstanceMarketOptions={"MarketType": "spot"})
    # What was terminated may count for some time.
    cloud.settings(quota_release_s=100)
    ec2.terminate_instances(InstanceIds=[first])
    cloud.advance(50)
    with refused("VcpuLimitExceeded"):
        launch(ec2)
    cloud.advance(60)
    launch(ec2)


def test_one_wrong_id_fails_a_whole_batch(cloud: Double, client: Any) -> None:
    ec2 = client()
    ids = launch(ec2, MinCount=2, MaxCount=2)
    with refused("InvalidInstanceID.NotFound"):
        ec2.terminate_instances(InstanceIds=[*ids, "i-0123456789abcdef0"])
    cloud.advance(10)
    assert set(states(ec2).values()) == {"running"}
    with refused("InvalidInstanceID.NotFound"):
        ec2.describe_instances(InstanceIds=[ids[0], "i-0123456789abcdef0"])


def test_a_protected_machine_saves_those_of_its_zone(cloud: Double, client: Any) -> None:
    ec2 = client()
    (a,), (b,), (c,) = (
        launch(
            ec2, Placement={"AvailabilityZone": f"us-east-1{z}"}, DisableApiTermination=protected
        )
        for z, protected in (("a", True), ("a", False), ("b", False))
    )
    cloud.advance(5)
    with refused("OperationNotPermitted"):
        ec2.terminate_instances(InstanceIds=[a, b, c])
    assert states(ec2) == {a: "running", b: "running", c: "shutting-down"}
    ec2.modify_instance_attribute(InstanceId=a, DisableApiTermination={"Value": False})
    ec2.terminate_instances(InstanceIds=[a, b])
    ec2.terminate_instances(InstanceIds=[a, b])


def test_terminated_machines_stay_listed_for_an_hour(cloud: Double, client: Any) -> None:
    ec2 = client()
    (one,) = launch(ec2)
    ec2.terminate_instances(InstanceIds=[one])
    assert states(ec2) == {one: "shutting-down"}
    cloud.advance(5)
    assert states(ec2) == {one: "terminated"}
    cloud.advance(3500)
    assert states(ec2) == {one: "terminated"}
    cloud.advance(200)
    assert states(ec2) == {}


def test_what_is_made_shows_late_and_not_in_every_answer(cloud: Double, client: Any) -> None:
    ec2 = client()
    cloud.settings(lag_s=30)
    key = "ssh-ed25519 AAAA x"
    ec2.import_key_pair(KeyName="k", PublicKeyMaterial=key.encode())
    with refused("InvalidKeyPair.NotFound"):
        launch(ec2, KeyName="k")
    with refused("InvalidKeyPair.Duplicate"):
        ec2.import_key_pair(KeyName="k", PublicKeyMaterial=key.encode())
    (one,) = launch(ec2)
    assert states(ec2) == {}
    with refused("InvalidInstanceID.NotFound"):
        ec2.terminate_instances(InstanceIds=[one])
    cloud.advance(15)
    seen = [one in states(ec2) for _ in range(40)]
    assert True in seen
    assert False in seen
    cloud.advance(15)
    assert all(one in states(ec2) for _ in range(40))
    # An end shows late too.
    ec2.terminate_instances(InstanceIds=[one])
    cloud.advance(15)
    assert {states(ec2)[one] for _ in range(40)} >= {"running", "terminated"}


def test_volumes_and_addresses_outlive_their_machine(cloud: Double, client: Any) -> None:
    ec2 = client()
    disks = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 5}}]
    (one,) = launch(ec2, BlockDeviceMappings=disks)
    cloud.advance(5)
    address = ec2.allocate_address()["AllocationId"]
    ec2.associate_address(AllocationId=address, InstanceId=one)
    with refused("InvalidIPAddress.InUse"):
        ec2.release_address(AllocationId=address)
    volume = next(v for v in ec2.describe_volumes()["Volumes"] if v["Size"] == 5)["VolumeId"]
    with refused("VolumeInUse"):
        ec2.delete_volume(VolumeId=volume)
    ec2.terminate_instances(InstanceIds=[one])
    cloud.advance(5)
    assert {each["id"] for each in cloud.live()} == {volume, address}
    ec2.delete_volume(VolumeId=volume)
    ec2.release_address(AllocationId=address)
    assert cloud.live() == []


def test_groups_and_snapshots_in_use_stay(cloud: Double, client: Any) -> None:
    ec2 = client()
    group = ec2.create_security_group(GroupName="g", Description="d")["GroupId"]
    with refused("InvalidGroup.Duplicate"):
        ec2.create_security_group(GroupName="g", Description="d")
    (one,) = launch(ec2, SecurityGroupIds=[group])
    cloud.advance(5)
    made = ec2.create_image(InstanceId=one, Name="img")["ImageId"]
    cloud.advance(10)
    snapshot = ec2.describe_snapshots()["Snapshots"][0]["SnapshotId"]
    with refused("InvalidSnapshot.InUse"):
        ec2.delete_snapshot(SnapshotId=snapshot)
    with refused("DependencyViolation"):
        ec2.delete_security_group(GroupId=group)
    ec2.terminate_instances(InstanceIds=[one])
    with refused("DependencyViolation"):
        ec2.delete_security_group(GroupId=group)
    cloud.advance(5)
    ec2.delete_security_group(GroupId=group)
    ec2.deregister_image(ImageId=made)
    assert [each["id"] for each in cloud.live()] == [snapshot]


def test_powering_off_stops_or_terminates(cloud: Double, client: Any) -> None:
    ec2 = client()
    (stops,) = launch(ec2)
    (ends,) = launch(ec2, InstanceInitiatedShutdownBehavior="terminate")
    cloud.advance(5)
    cloud.power_off(stops)
    cloud.power_off(ends)
    cloud.advance(5)
    assert states(ec2) == {stops: "stopped", ends: "terminated"}
    with refused("IncorrectInstanceState"):
        ec2.reboot_instances(InstanceIds=[stops])


def test_a_start_moves_a_machine_to_another_address(cloud: Double, client: Any) -> None:
    ec2 = client()
    (one,) = launch(ec2)
    cloud.advance(5)
    before = cloud.live("instance")[0]["address"]
    with refused("IncorrectInstanceState"):
        ec2.modify_instance_attribute(InstanceId=one, InstanceType={"Value": "m5.large"})
    ec2.stop_instances(InstanceIds=[one])
    cloud.advance(5)
    ec2.modify_instance_attribute(InstanceId=one, InstanceType={"Value": "m5.large"})
    ec2.start_instances(InstanceIds=[one])
    cloud.advance(5)
    assert states(ec2) == {one: "running"}
    assert cloud.live("instance")[0]["address"] != before


def test_an_interruption_has_its_notice_two_minutes_before(cloud: Double, client: Any) -> None:
    ec2 = client()
    spot = {"MarketType": "spot"}
    (one,) = launch(ec2, InstanceMarketOptions=spot, MetadataOptions={"HttpTokens": "required"})
    cloud.advance(5)
    asks = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    status, token = cloud.metadata(one, "api/token", "PUT", asks)
    assert status == 200
    with_token = {"X-aws-ec2-metadata-token": token}
    where = "meta-data/spot/instance-action"
    assert cloud.metadata(one, where)[0] == 401
    assert cloud.metadata(one, where, headers=with_token)[0] == 404
    assert cloud.metadata(one, "api/token", "PUT", asks | {"X-Forwarded-For": "a"})[0] == 403
    cloud.interrupt(one)
    status, text = cloud.metadata(one, where, headers=with_token)
    assert status == 200
    assert '"action": "terminate"' in text
    cloud.advance(110)
    assert states(ec2) == {one: "running"}
    cloud.advance(15)
    assert states(ec2) == {one: "terminated"}
    described = ec2.describe_instances()["Reservations"][0]["Instances"][0]
    assert described["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    assert cloud.oracle()[0]["cost"] == 0.0  # not charged in the first hour
    with refused("UnsupportedOperation"):
        (two,) = launch(ec2, InstanceMarketOptions=spot)
        cloud.advance(5)
        ec2.stop_instances(InstanceIds=[two])


def test_tokens_are_optional_where_the_launch_says_so(cloud: Double, client: Any) -> None:
    (one,) = launch(client(), UserData="#!/bin/sh\n")
    assert cloud.metadata(one, "user-data") == (200, "#!/bin/sh\n")
    assert cloud.metadata(one, "meta-data/no-such")[0] == 404


def test_the_bill_counts_seconds_from_the_sixtieth_on(cloud: Double, client: Any) -> None:
    ec2 = client()
    cloud.settings(boot_s=0, stop_s=0, shutdown_s=0)
    (one,) = launch(ec2, InstanceType="m5.large")
    cloud.advance(10)
    ec2.terminate_instances(InstanceIds=[one])
    hourly = 0.096 + 0.005
    (seen,) = (each for each in cloud.oracle() if each["id"] == one)
    assert seen["cost"] == pytest.approx(hourly / 60, rel=0.01)
    (two,) = launch(ec2, InstanceType="m5.large")
    cloud.advance(1800)
    ec2.stop_instances(InstanceIds=[two])
    cloud.advance(3600)
    ec2.start_instances(InstanceIds=[two])
    cloud.advance(1800)
    ec2.terminate_instances(InstanceIds=[two])
    cloud.advance(7200)
    (seen,) = (each for each in cloud.oracle() if each["id"] == two)
    assert seen["cost"] == pytest.approx(hourly, rel=0.01)
    (disk,) = (each for each in cloud.oracle() if each["kind"] == "volume" and each["cost"] > 1e-4)
    assert disk["cost"] == pytest.approx(8 * 0.08 / 730 * 2, rel=0.01)


UNKNOWN = {
    "InvalidAMIID.NotFound": {"ImageId": "ami-0123456789abcdef0"},
    "InvalidParameterValue": {"InstanceType": "t9.nano"},
    "InvalidKeyPair.NotFound": {"KeyName": "nobody"},
    "InvalidGroup.NotFound": {"SecurityGroupIds": ["sg-0123"]},
    "InvalidPlacementGroup.Unknown": {"Placement": {"GroupName": "nobody"}},
}


@pytest.mark.parametrize("code", UNKNOWN)
def test_unknown_names_make_nothing(cloud: Double, client: Any, code: str) -> None:
    with refused(code):
        launch(client(), **UNKNOWN[code])
    assert cloud.oracle() == []


def test_a_type_may_be_missing_in_a_region(cloud: Double, client: Any) -> None:
    assert launch(client(), InstanceType="m1.small")
    ec2 = client("eu-west-1")
    with refused("InvalidParameterValue"):
        launch(ec2, InstanceType="m1.small")
    assert image(ec2) != image(client())
    with refused("InvalidAMIID.NotFound"):
        launch(ec2, ImageId=image(client()))


def test_user_data_is_limited(cloud: Double, client: Any) -> None:
    with refused("InvalidParameterValue"):
        launch(client(), UserData="x" * 16385)
    assert base64.b64decode(base64.b64encode(b"x"))


def test_long_lists_come_in_pages(cloud: Double, client: Any) -> None:
    ec2 = client()
    cloud.quota("L-1216C47A", 1000)
    ids = launch(ec2, MinCount=13, MaxCount=13)
    pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5})
    sizes = [sum(len(r["Instances"]) for r in page["Reservations"]) for page in pages]
    assert sizes == [5, 5, 3]
    mine = [{"Name": "instance-id", "Values": [ids[0][:6] + "*"]}]
    assert ids[0] in states(ec2, Filters=mine)
    with refused("InvalidParameterValue"):
        states(ec2, Filters=[{"Name": "no-such", "Values": ["x"]}])
