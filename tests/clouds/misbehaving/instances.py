"""Machines: launched, described, changed, ended.

Life cycle: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

from . import catalogue, placements
from .calls import Call, action, described, named, once, tag_list, tags_for
from .cloud import Cloud, Resource, holds_host
from .errors import ApiError
from .storage import add_volume, release_volume

CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}


@action("RunInstances")
def run_instances(call: Call) -> dict[str, Any]:
    ids = once(call, lambda: _launch(call))
    found = [call.cloud.resources[id] for id in ids]
    if all(each.state(call.now) == "terminated" for each in found):
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        raise ApiError(
            "IdempotentInstanceTerminated",
            "The request uses the same client token as a previous request for which the instance "
            "has been terminated.",
        )
    return {
        "ReservationId": found[0].data["reservation"],
        "OwnerId": catalogue.ACCOUNT,
        # The states may differ from those of the first answer.
        "Instances": [shown(each, call.now) for each in found],
    }


def _launch(call: Call) -> list[str]:
    cloud, p = call.cloud, call.p
    type_name = p.get("InstanceType", "m1.small")
    least, most = p.get("MinCount", 0), p.get("MaxCount", 0)
    if not 1 <= least <= most:
        raise ApiError("InvalidParameterValue", "minCount must be between 1 and maxCount")
    image = call.find("image", _required(p, "ImageId"))
    if image.state(call.now) != "available":
        raise ApiError("IncorrectState", f"The image {image.id} is not available")
    if not catalogue.offered(call.region, type_name):
        raise ApiError("InvalidParameterValue", f"Invalid value '{type_name}' for InstanceType.")
    key = named(call, "key-pair", p["KeyName"], call.at) if p.get("KeyName") else None
    groups = [call.find("security-group", id) for id in p.get("SecurityGroupIds", ())]
    spot = p.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
    zone = _zone(call, type_name, least)
    placements.check(call, type_name, zone, least)
    count = _granted(call, type_name, zone, least, most, spot)
    if len(base64.b64decode(p.get("UserData", ""))) > 16384:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html
        raise ApiError("InvalidParameterValue", "User data is limited to 16384 bytes")
    reservation = f"r-{cloud.draws.getrandbits(68):017x}"
    made = [
        _start(call, type_name, zone, image, key, groups, spot, reservation, number)
        for number in range(count)
    ]
    return [each.id for each in made]


def _required(p: Any, name: str) -> Any:
    if name not in p:
        raise ApiError("MissingParameter", f"The request must contain the parameter {name}")
    return p[name]


def _zone(call: Call, type_name: str, least: int) -> str:
    """The zone asked for, or one with enough room."""
    zones = catalogue.REGIONS[call.region]
    asked = call.p.get("Placement", {}).get("AvailabilityZone")
    if asked:
        if asked not in zones:
            raise ApiError("InvalidParameterValue", f"Invalid availability zone: [{asked}]")
        return str(asked)
    roomy = [zone for zone in zones if _free(call.cloud, type_name, zone) >= least]
    return call.cloud.draws.choice(roomy or list(zones))


def _free(cloud: Cloud, type_name: str, zone: str) -> float:
    capacity = cloud.capacity.get((zone, type_name), cloud.capacity.get((zone, "*")))
    return float("inf") if capacity is None else capacity - cloud.occupied(type_name, zone)


def _granted(call: Call, type_name: str, zone: str, least: int, most: int, spot: bool) -> int:
    """How many are launched: "If you specify more instances than Amazon EC2 can launch in the
    target Availability Zone, Amazon EC2 launches the largest possible number of instances above
    MinCount"; if it cannot launch MinCount, it launches none.
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html
    """
    cloud = call.cloud
    vcpus = catalogue.TYPES[type_name][0]
    code = "L-34B43A08" if spot else "L-1216C47A"
    used = vcpus_in_use(cloud, call.region, spot, call.now)
    affordable = int((cloud.quotas[code] - used) // vcpus)
    if affordable < least:
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        raise ApiError(
            "MaxSpotInstanceCountExceeded" if spot else "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of "
            f"{cloud.quotas[code]:g} allows for the instance bucket that the specified instance "
            f"type belongs to.",
        )
    free = _free(cloud, type_name, zone)
    if call.strikes("no-capacity"):
        free = 0
    if most > least and call.strikes("partial"):
        free = min(free, cloud.draws.randint(least, most))
    if free < least:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
        raise ApiError(
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {type_name} capacity in the Availability Zone "
            f"you requested ({zone}).",
            500,
        )
    return int(min(most, affordable, free))


def vcpus_in_use(cloud: Cloud, region: str, spot: bool, now: float) -> int:
    kept = cloud.settings["quota_release_s"]
    return sum(
        catalogue.TYPES[each.data["type"]][0]
        for each in cloud.resources.values()
        if each.kind == "instance" and each.region == region and each.data["spot"] == spot
        and (holds_host(each, now) or now - each.since("terminated") < kept)
    )  # fmt: skip


def _start(
    call: Call,
    type_name: str,
    zone: str,
    image: Resource,
    key: Resource | None,
    groups: list[Resource],
    spot: bool,
    reservation: str,
    number: int,
) -> Resource:
    cloud, p = call.cloud, call.p
    private = cloud.new_address()
    made = cloud.add(
        "instance",
        call.region,
        zone=zone,
        tags=tags_for(call, "instance"),
        token=p.get("ClientToken", ""),
        type=type_name,
        types=[(call.now, type_name)],
        image=image.id,
        key=key.data["name"] if key else "",
        groups=[each.id for each in groups],
        spot=spot,
        reservation=reservation,
        number=number,
        private=private,
        address=cloud.new_address(127),
        user_data=p.get("UserData", ""),
        # "stop" is the default: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/
        # terminating-instances.html#Using_ChangingInstanceInitiatedShutdownBehavior
        on_shutdown=p.get("InstanceInitiatedShutdownBehavior", "stop"),
        protected=p.get("DisableApiTermination", False),
        metadata=dict(p.get("MetadataOptions", {})),
        placement=dict(p.get("Placement", {})),
        host=f"host-{cloud.draws.randrange(10)}",
        reason="",
        notice=None,
        console="",
    )
    if made.data["spot"]:
        request = cloud.add(
            "spot-instances-request",
            call.region,
            tags=tags_for(call, "spot-instances-request"),
            instance=made.id,
        )
        request.gone = call.now
        made.data["request"] = request.id
    made.states = [(call.now, "pending"), (call.now + cloud.settings["boot_s"], "running")]
    _disks(call, made, image)
    if cloud.settings["machines"]:
        cloud.machines.start(made)
    _misfortune(call, made)
    return made


def _disks(call: Call, instance: Resource, image: Resource) -> None:
    """The root disk goes with its machine unless told otherwise; others stay unless told otherwise.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html
    #preserving-volumes-on-termination
    """
    root = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": catalogue.IMAGE_GIB}}
    for mapping in [root, *call.p.get("BlockDeviceMappings", ())]:
        if mapping is root and any(
            m.get("DeviceName") == "/dev/xvda" for m in call.p.get("BlockDeviceMappings", ())
        ):
            continue
        ebs = mapping.get("Ebs", {})
        is_root = mapping["DeviceName"] == "/dev/xvda"
        size = ebs.get("VolumeSize", catalogue.IMAGE_GIB)
        if is_root and size < catalogue.IMAGE_GIB:
            raise ApiError(
                "InvalidBlockDeviceMapping", f"Volume of size {size}GB is smaller than snapshot"
            )
        usual = catalogue.IMAGE_VOLUME_TYPE if is_root else "gp2"
        volume = add_volume(
            call,
            instance.zone,
            size,
            tags=tags_for(call, "volume"),
            type=ebs.get("VolumeType", usual),
        )
        volume.data |= {
            "instance": instance.id,
            "device": mapping["DeviceName"],
            "goes": ebs.get("DeleteOnTermination", is_root),
        }
        volume.states = [(call.now, "in-use")]


def _misfortune(call: Call, made: Resource) -> None:
    settings = call.cloud.settings
    boot = settings["boot_s"]
    if call.strikes("boot-failure"):
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_InstanceStraightToTerminated.html
        end(call.cloud, made, "Server.InternalError: Internal error on launch", after=boot)
    elif call.strikes("late-failure"):
        later = boot + call.cloud.faults.value("late-failure", "seconds", 5.0)
        end(call.cloud, made, "Server.InternalError", after=later, first=(boot, "running"))
    elif made.data["spot"] and call.strikes("interruption"):
        later = call.cloud.draws.uniform(0, settings["interruption_after_s"])
        interrupt(call.cloud, made, boot + later)
    elif made.data["spot"] and settings["spot_life_s"] is not None:
        shape = settings["spot_shape"]
        life = settings["spot_life_s"] / math.gamma(1 + 1 / shape)
        later = call.cloud.draws.weibullvariate(life, shape)
        # The life ends with the termination, of which the notice comes before.
        interrupt(call.cloud, made, max(boot, later - settings["notice_s"]))


def interrupt(cloud: Cloud, instance: Resource, after: float = 0.0) -> None:
    """The notice, and two minutes later the end.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
    """
    instance.data["notice"] = cloud.now() + after
    instance.data["interrupted"] = True
    running = [(each - cloud.now(), state) for each, state in instance.states if each > cloud.now()]
    first = running[0] if running else None
    reason = "Server.SpotInstanceTermination: Spot instance termination"
    end(cloud, instance, reason, after=after + cloud.settings["notice_s"], first=first)


def end(
    cloud: Cloud,
    instance: Resource,
    reason: str,
    *,
    after: float = 0.0,
    first: tuple[float, str] | None = None,
) -> None:
    """The machine shuts down and is terminated, from now or later; its disks go with it, or not."""
    now, settings = cloud.now(), cloud.settings
    down = settings["shutdown_s"] * (10 if cloud.faults.strikes("stuck", "") else 1)
    steps = [first] if first else []
    steps += [(after, "shutting-down"), (after + down, "terminated")]
    instance.change(now, *steps)
    instance.data["reason"] = reason
    gone = now + after + down
    instance.gone = gone + settings["listed_s"]
    for volume in volumes_of(cloud, instance):
        release_volume(volume, gone)
    for each in cloud.resources.values():
        if each.data.get("associated") == instance.id:
            # An address stays the account's, and is billed on, when its machine is gone:
            # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html
            each.data["associated"] = ""
        if each.kind == "network-interface" and each.data.get("instance") == instance.id:
            each.data["instance"] = ""
    if cloud.machines is not None and settings["machines"]:
        cloud.machines.end(instance, after / cloud.clock.scale)


def volumes_of(cloud: Cloud, instance: Resource) -> list[Resource]:
    return [
        each
        for each in cloud.resources.values()
        if each.kind == "volume" and each.data.get("instance") == instance.id
    ]


def shown(instance: Resource, at: float) -> dict[str, Any]:
    state = instance.state(at)
    up = state in ("pending", "running")
    data = instance.data
    answer: dict[str, Any] = {
        "InstanceId": instance.id,
        "ImageId": data["image"],
        "InstanceType": data["type"],
        "State": {"Code": CODES[state], "Name": state},
        "KeyName": data["key"] or None,
        "LaunchTime": instance.created,
        "AmiLaunchIndex": data["number"],
        "ClientToken": instance.token,
        "Placement": {
            "AvailabilityZone": instance.zone,
            "GroupName": data["placement"].get("GroupName", ""),
            "Tenancy": "default",
        },
        "PrivateIpAddress": data["private"] if state != "terminated" else None,
        "PublicIpAddress": data.get("elastic") or data["address"]
        if up and state == "running"
        else None,
        "StateTransitionReason": data["reason"] if state in ("stopped", "terminated") else "",
        "SecurityGroups": [{"GroupId": each} for each in data["groups"]],
        "Tags": tag_list(instance, at),
        "MetadataOptions": {
            "HttpTokens": data["metadata"].get("HttpTokens", "optional"),
            "HttpEndpoint": data["metadata"].get("HttpEndpoint", "enabled"),
            "State": "applied",
        },
        "RootDeviceName": "/dev/xvda",
        "RootDeviceType": "ebs",
    }
    if data["reason"] and state in ("shutting-down", "stopped", "terminated"):
        code, _, message = data["reason"].partition(": ")
        answer["StateReason"] = {"Code": code, "Message": message or code}
    if data["spot"]:
        answer["InstanceLifecycle"] = "spot"
        answer["SpotInstanceRequestId"] = data["request"]
    return answer


def _with_disks(call: Call, instance: Resource) -> dict[str, Any]:
    answer = shown(instance, call.at)
    answer["BlockDeviceMappings"] = [
        {
            "DeviceName": volume.data["device"],
            "Ebs": {
                "VolumeId": volume.id,
                "Status": "attached",
                "DeleteOnTermination": volume.data["goes"],
            },
        }
        for volume in volumes_of(call.cloud, instance)
    ]
    return answer


FIELDS = {
    "instance-state-name": lambda r, at: r.state(at),
    "availability-zone": lambda r, at: r.zone,
    "client-token": lambda r, at: r.token,
    "instance-type": lambda r, at: r.data["type"],
    "image-id": lambda r, at: r.data["image"],
    "key-name": lambda r, at: r.data["key"],
    "instance.group-id": lambda r, at: r.data["groups"],
    "instance-id": lambda r, at: r.id,
    "reservation-id": lambda r, at: r.data["reservation"],
}


@action("DescribeInstances")
def describe_instances(call: Call) -> dict[str, Any]:
    answer = described(
        call,
        "instance",
        call.p.get("InstanceIds", ()),
        FIELDS,
        lambda r, _: (r, _with_disks(call, r)),
        "found",
    )
    reservations: dict[str, Any] = {}
    for instance, text in answer.pop("found"):
        name = instance.data["reservation"]
        entry = {"ReservationId": name, "OwnerId": catalogue.ACCOUNT, "Instances": []}
        reservations.setdefault(name, entry)["Instances"].append(text)
    return {"Reservations": list(reservations.values()), **answer}


def _chosen(call: Call, allowed: Sequence[str], refuse: bool = True) -> list[Resource]:
    """The machines of a batch: one id that is wrong, or not yet visible, fails all of it.

    "If you specify multiple instances and the request fails (for example, because of a single
    incorrect instance ID), none of the instances are terminated."
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html
    """
    found = [call.find("instance", id) for id in _required(call.p, "InstanceIds")]
    for each in found:
        if refuse and each.state(call.now) not in allowed:
            raise ApiError(
                "IncorrectInstanceState",
                f"The instance '{each.id}' is not in a state from which it can be changed.",
            )
    return found


def _changes(call: Call, found: list[Resource], change: Any) -> list[dict[str, Any]]:
    answers = []
    for each in found:
        before = each.state(call.now)
        change(each)
        after = each.state(call.now)
        answers.append(
            {
                "InstanceId": each.id,
                "PreviousState": {"Code": CODES[before], "Name": before},
                "CurrentState": {"Code": CODES[after], "Name": after},
            }
        )
    return answers


@action("TerminateInstances")
def terminate_instances(call: Call) -> dict[str, Any]:
    found = _chosen(call, (), refuse=False)
    # A protected machine saves the others of its zone too; those of other zones end all the same.
    guarded = {each.zone for each in found if each.data["protected"]}

    def ended(each: Resource) -> None:
        # "This operation is idempotent; if you terminate an instance more than once, each call
        # succeeds."
        if each.state(call.now) not in ("shutting-down", "terminated"):
            end(call.cloud, each, "Client.UserInitiatedShutdown: User initiated shutdown")

    answers = _changes(call, [each for each in found if each.zone not in guarded], ended)
    if guarded:
        raise ApiError(
            "OperationNotPermitted",
            "The instance may not be terminated. Modify its 'disableApiTermination' attribute.",
        )
    return {"TerminatingInstances": answers}


def stop(cloud: Cloud, each: Resource, reason: str) -> None:
    later = cloud.settings["stop_s"]
    each.change(cloud.now(), (0, "stopping"), (later, "stopped"))
    each.data["reason"] = reason
    # "the instance receives a new public IPv4 address" when it starts again:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Stop_Start.html
    each.data["address"] = cloud.new_address(127)


@action("StopInstances")
def stop_instances(call: Call) -> dict[str, Any]:
    found = _chosen(call, ("running", "stopping", "stopped"))
    if any(each.data["spot"] for each in found):
        raise ApiError("UnsupportedOperation", "You can't stop a one-time Spot Instance.")

    def stopped(each: Resource) -> None:
        if each.state(call.now) == "running":
            stop(call.cloud, each, "Client.UserInitiatedShutdown: User initiated shutdown")
            if call.cloud.settings["machines"]:
                call.cloud.machines.end(each)

    return {"StoppingInstances": _changes(call, found, stopped)}


@action("StartInstances")
def start_instances(call: Call) -> dict[str, Any]:
    found = _chosen(call, ("stopped", "running", "pending"))
    for each in found:
        if each.state(call.now) == "stopped":
            _granted(call, each.data["type"], each.zone, 1, 1, False)

    def started(each: Resource) -> None:
        if each.state(call.now) == "stopped":
            each.change(call.now, (0, "pending"), (call.cloud.settings["boot_s"], "running"))
            each.data["reason"] = ""
            # "In most cases, the instance is migrated to a new underlying host computer".
            each.data["host"] = f"host-{call.cloud.draws.randrange(10)}"
            if call.cloud.settings["machines"]:
                call.cloud.machines.start(each)

    return {"StartingInstances": _changes(call, found, started)}


@action("RebootInstances")
def reboot_instances(call: Call) -> dict[str, Any]:
    for each in _chosen(call, ("running",)):
        if call.cloud.settings["machines"]:
            call.cloud.machines.reboot(each)
    return {}


@action("ModifyInstanceAttribute")
def modify_instance_attribute(call: Call) -> dict[str, Any]:
    p, each = call.p, call.find("instance", _required(call.p, "InstanceId"))
    if "InstanceType" in p:
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-resize.html
        if each.state(call.now) != "stopped":
            raise ApiError("IncorrectInstanceState", f"The instance '{each.id}' is not stopped.")
        value = p["InstanceType"]["Value"]
        if not catalogue.offered(call.region, value):
            raise ApiError(
                "InvalidInstanceAttributeValue", f"Invalid value '{value}' for InstanceType."
            )
        each.data["type"] = value
        each.data["types"].append((call.now, value))
    if "DisableApiTermination" in p:
        each.data["protected"] = p["DisableApiTermination"]["Value"]
    if "InstanceInitiatedShutdownBehavior" in p:
        each.data["on_shutdown"] = p["InstanceInitiatedShutdownBehavior"]["Value"]
    return {}


@action("GetConsoleOutput")
def get_console_output(call: Call) -> dict[str, Any]:
    each = call.find("instance", _required(call.p, "InstanceId"))
    text = each.data["console"]
    if call.cloud.machines is not None:
        text = call.cloud.machines.console(each) or text
    shown_text = base64.b64encode(text.encode()[-65536:]).decode()
    return {"InstanceId": each.id, "Timestamp": call.now, "Output": shown_text}
