"""Volumes, snapshots and images."""

from __future__ import annotations

from typing import Any

from . import catalogue
from .calls import (
    Call,
    action,
    described,
    need_quota,
    need_zone,
    once,
    tag_list,
    tags_for,
)
from .cloud import Resource
from .errors import ApiError


def add_volume(
    call: Call,
    zone: str,
    size: int,
    *,
    tags: dict[str, str],
    snapshot: str = "",
    token: str = "",
    type: str = "gp2",
) -> Resource:
    used = len(call.all("volume", call.now))
    need_quota(call, "volumes", used, 1, "VolumeLimitExceeded", "volumes")
    volume = call.cloud.add(
        "volume",
        call.region,
        zone=zone,
        tags=tags,
        size=size,
        snapshot=snapshot,
        token=token,
        type=type,
    )
    ready = call.now + call.cloud.settings["volume_s"]
    volume.states = [(call.now, "creating"), (ready, "available")]
    return volume


def _checked_type(type: str, size: int) -> str:
    if type not in catalogue.VOLUME_TYPES:
        raise ApiError(
            "UnknownVolumeType", f"Unsupported volume type '{type}' for volume creation."
        )
    least, most, _ = catalogue.VOLUME_TYPES[type]
    if not least <= size <= most:
        what, bound = (
            ("small", f"minimum is {least}") if size < least else ("large", f"maximum is {most}")
        )
        raise ApiError(
            "InvalidParameterValue",
            f"Volume of {size}GiB is too {what} for volume type {type}; {bound}GiB.",
        )
    return type


def _disks(call: Call) -> Any:
    """The disks of machines that are more than records; None without."""
    machines = call.cloud.machines
    return machines.disks if machines is not None and call.cloud.settings["disk_iops"] else None


def release_volume(volume: Resource, at: float) -> None:
    """Its machine ends at that time: it goes too, or it is free again, and costs on."""
    volume.data["instance"] = ""
    if volume.data.get("goes"):
        volume.gone = at
    else:
        volume.change(at, (0, "available"))


@action("CreateVolume")
def create_volume(call: Call) -> dict[str, Any]:
    def make() -> Resource:
        p = call.p
        zone = need_zone(call, p.get("AvailabilityZone", ""))
        size, snapshot = p.get("Size"), p.get("SnapshotId", "")
        if snapshot:
            source = call.find("snapshot", snapshot)
            size = size or source.data["size"]
            if source.state(call.now) != "completed":
                raise ApiError("IncorrectState", f"Snapshot '{snapshot}' is not 'completed'.")
        if not size:
            raise ApiError(
                "MissingParameter", "The request must contain the parameter size/snapshotId"
            )
        volume = add_volume(
            call, zone, size, tags=tags_for(call, "volume"), snapshot=snapshot,
            token=p.get("ClientToken", ""), type=_checked_type(p.get("VolumeType", "gp2"), size),
        )  # fmt: skip
        if disks := _disks(call):
            disks.make(volume)
        return volume

    return show_volume(once(call, make), call.now)


def show_volume(each: Resource, at: float) -> dict[str, Any]:
    attached = each.data.get("instance")
    return {
        "VolumeId": each.id,
        "Size": each.data["size"],
        "SnapshotId": each.data["snapshot"],
        "AvailabilityZone": each.zone,
        "State": each.state(at),
        "CreateTime": each.created,
        "VolumeType": each.data["type"],
        "Tags": tag_list(each, at),
        "Attachments": [
            {
                "InstanceId": attached,
                "Device": each.data["device"],
                "State": "attached",
                "DeleteOnTermination": each.data["goes"],
            }
        ]
        if attached
        else [],
    }


@action("DescribeVolumes")
def describe_volumes(call: Call) -> dict[str, Any]:
    fields = {
        "status": lambda r, at: r.state(at),
        "availability-zone": lambda r, at: r.zone,
        "volume-id": lambda r, at: r.id,
        "attachment.instance-id": lambda r, at: r.data.get("instance", ""),
    }
    return described(call, "volume", call.p.get("VolumeIds", ()), fields, show_volume, "Volumes")


@action("DeleteVolume")
def delete_volume(call: Call) -> dict[str, Any]:
    each = call.find("volume", call.p["VolumeId"])
    if each.data.get("instance"):
        raise ApiError(
            "VolumeInUse", f"Volume {each.id} is currently attached to {each.data['instance']}"
        )
    if each.state(call.now) == "creating":
        raise ApiError("IncorrectState", f"Volume '{each.id}' is in the 'creating' state.")
    each.gone = call.now
    if disks := _disks(call):
        disks.remove(each)
    return {}


@action("AttachVolume")
def attach_volume(call: Call) -> dict[str, Any]:
    volume, machine = (
        call.find("volume", call.p["VolumeId"]),
        call.find("instance", call.p["InstanceId"]),
    )
    if volume.data.get("instance"):
        raise ApiError("VolumeInUse", f"{volume.id} is already attached to an instance")
    if volume.state(call.now) != "available":
        raise ApiError("IncorrectState", f"Volume '{volume.id}' is not 'available'.")
    if volume.zone != machine.zone:
        raise ApiError(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{volume.id}' is not in the same availability zone as instance "
            f"'{machine.id}'",
        )
    if machine.state(call.now) not in ("running", "stopped"):
        raise ApiError("IncorrectState", f"Instance '{machine.id}' is not 'running'.")
    used = {
        each.data.get("device")
        for each in call.all("volume", call.now)
        if each.data.get("instance") == machine.id
    }
    if call.p["Device"] in used:
        raise ApiError(
            "InvalidParameterValue",
            f"Invalid value '{call.p['Device']}' for unixDevice. Attachment point is in use",
        )
    volume.data |= {"instance": machine.id, "device": call.p["Device"], "goes": False}
    volume.change(call.now, (0, "in-use"))
    if (disks := _disks(call)) and (running := call.cloud.machines.of(machine.id)):
        disks.attach(volume, running)
    return {
        "VolumeId": volume.id,
        "InstanceId": machine.id,
        "Device": call.p["Device"],
        "State": "attaching",
    }


@action("DetachVolume")
def detach_volume(call: Call) -> dict[str, Any]:
    volume = call.find("volume", call.p["VolumeId"])
    machine = volume.data.get("instance")
    if not machine:
        raise ApiError("IncorrectState", f"Volume '{volume.id}' is in the 'available' state.")
    if disks := _disks(call):
        disks.detach(volume, call.cloud.machines.of(machine))
    volume.data["instance"] = ""
    volume.change(call.now, (0, "available"))
    return {"VolumeId": volume.id, "InstanceId": machine, "State": "detaching"}


def _snapshot(call: Call, volume: Resource, tags: dict[str, str]) -> Resource:
    used = len(call.all("snapshot", call.now))
    need_quota(call, "snapshots", used, 1, "SnapshotLimitExceeded", "snapshots")
    made = call.cloud.add(
        "snapshot", call.region, tags=tags, size=volume.data["size"], volume=volume.id
    )
    made.states = [(call.now, "pending"), (call.now + call.cloud.settings["image_s"], "completed")]
    if disks := _disks(call):
        disks.copy(volume, made)
    return made


@action("CreateSnapshot")
def create_snapshot(call: Call) -> dict[str, Any]:
    # No client token: it is in neither list of
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Run_Instance_Idempotency.html
    volume = call.find("volume", call.p["VolumeId"])
    return show_snapshot(_snapshot(call, volume, tags_for(call, "snapshot")), call.now)


def show_snapshot(each: Resource, at: float) -> dict[str, Any]:
    return {
        "SnapshotId": each.id,
        "VolumeId": each.data["volume"],
        "VolumeSize": each.data["size"],
        "State": each.state(at),
        "StartTime": each.created,
        "OwnerId": catalogue.ACCOUNT,
        "Tags": tag_list(each, at),
    }


@action("DescribeSnapshots")
def describe_snapshots(call: Call) -> dict[str, Any]:
    fields = {
        "status": lambda r, at: r.state(at),
        "volume-id": lambda r, at: r.data["volume"],
        "snapshot-id": lambda r, at: r.id,
    }
    ids = call.p.get("SnapshotIds", ())
    return described(call, "snapshot", ids, fields, show_snapshot, "Snapshots")


@action("DeleteSnapshot")
def delete_snapshot(call: Call) -> dict[str, Any]:
    each = call.find("snapshot", call.p["SnapshotId"])
    for image in call.all("image", call.now):
        if image.data["snapshot"] == each.id:
            # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ebs-deleting-snapshot.html
            raise ApiError(
                "InvalidSnapshot.InUse", f"The snapshot {each.id} is currently in use by {image.id}"
            )
    each.gone = call.now
    if disks := _disks(call):
        disks.remove(each)
    return {}


@action("CreateImage")
def create_image(call: Call) -> dict[str, Any]:
    machine, name = call.find("instance", call.p["InstanceId"]), call.p["Name"]
    for each in call.all("image", call.now):
        if each.data["name"] == name and "owner" not in each.data:
            raise ApiError(
                "InvalidAMIName.Duplicate", f"AMI name {name} is already in use by AMI {each.id}"
            )
    root = next(
        each
        for each in call.all("volume", call.now)
        if each.data.get("instance") == machine.id and each.data["device"] == "/dev/xvda"
    )
    snapshot = _snapshot(call, root, tags_for(call, "snapshot"))
    made = call.cloud.add(
        "image", call.region, tags=tags_for(call, "image"), name=name, snapshot=snapshot.id
    )
    made.states = [(call.now, "pending"), (call.now + call.cloud.settings["image_s"], "available")]
    return {"ImageId": made.id}


def show_image(each: Resource, at: float) -> dict[str, Any]:
    return {
        "ImageId": each.id,
        "Name": each.data["name"],
        "OwnerId": each.data.get("owner", catalogue.ACCOUNT),
        "State": each.state(at),
        "CreationDate": each.data.get("made")
        or f"2026-11-27T00:00:{int(each.created) % 60:02d}.000Z",
        "Architecture": "x86_64",
        "PlatformDetails": "Linux/UNIX",
        "RootDeviceName": "/dev/xvda",
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {
                    "SnapshotId": each.data["snapshot"],
                    "VolumeSize": catalogue.IMAGE_GIB,
                    "VolumeType": catalogue.IMAGE_VOLUME_TYPE,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "Tags": tag_list(each, at),
    }


@action("DescribeImages")
def describe_images(call: Call) -> dict[str, Any]:
    fields = {
        "name": lambda r, at: r.data["name"],
        "state": lambda r, at: r.state(at),
        "owner-id": lambda r, at: r.data.get("owner", catalogue.ACCOUNT),
        "architecture": lambda r, at: "x86_64",
        "image-id": lambda r, at: r.id,
    }
    answer = described(call, "image", call.p.get("ImageIds", ()), fields, show_image, "Images")
    if owners := {
        catalogue.ACCOUNT if each == "self" else each for each in call.p.get("Owners", ())
    }:
        answer["Images"] = [each for each in answer["Images"] if each["OwnerId"] in owners]
    return answer


@action("DeregisterImage")
def deregister_image(call: Call) -> dict[str, Any]:
    # "This does not affect any instances ...; it doesn't delete its snapshots":
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/deregister-ami.html
    each = call.find("image", call.p["ImageId"])
    if "owner" in each.data:
        raise ApiError("AuthFailure", f"Not authorized for image:{each.id}", 403)
    each.gone = call.now
    return {}
