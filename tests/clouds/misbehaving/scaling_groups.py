"""Auto Scaling groups: their instances, policies and activities. Alarms are planted by a test.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/what-is-amazon-ec2-auto-scaling.html
Nothing runs in the background: what became due is done when the service is next asked.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from . import catalogue
from .calls import Call, action, checked_tags, named, paged
from .cloud import Cloud, Resource
from .errors import ApiError
from .instances import end, run_instances

SERVICE = "autoscaling"
KIND, POLICY, ACTIVITY = "auto-scaling-group", "scaling-policy", "scaling-activity"
_COOLDOWN_S = 300
"""DefaultCooldown.
https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html"""


def _arn(each: Resource, kind: str) -> str:
    return (
        f"arn:aws:autoscaling:{each.region}:{catalogue.ACCOUNT}:{kind}:{each.id}:"
        f"autoScalingGroupName/{each.data['name']}"
    )


def _refused(text: str) -> ApiError:
    return ApiError("ValidationError", text)


def _group(call: Call, name: str) -> Resource:
    for each in call.all(KIND, call.now):
        if each.data["name"] == name:
            return each
    raise _refused(f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")


def _words(at: float) -> str:
    """A time as causes state it."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


@action("CreateAutoScalingGroup", SERVICE)
def create_group(call: Call) -> dict[str, Any]:
    p, name = call.p, call.p["AutoScalingGroupName"]
    if any(each.data["name"] == name for each in call.all(KIND, call.now)):
        raise ApiError("AlreadyExists", f"AutoScalingGroup by this name already exists: {name}")
    template = p.get("LaunchTemplate")
    if template is None:
        raise _refused("A group needs a launch template.")
    least, most = int(p["MinSize"]), int(p["MaxSize"])
    desired = int(p.get("DesiredCapacity", least))
    if not least <= desired <= most:
        raise _refused("Desired capacity must be between the specified min size and max size")
    tags = checked_tags(p.get("Tags", ()))
    made = call.cloud.add(
        KIND,
        call.region,
        tags=tags,
        name=name,
        template=dict(template),
        least=least,
        most=most,
        desired=[(call.now, desired)],
        cooldown=int(p.get("DefaultCooldown", _COOLDOWN_S)),
        zones=list(p.get("AvailabilityZones", ())),
        spread={t["Key"]: t["Value"] for t in p.get("Tags", ()) if t.get("PropagateAtLaunch")},
        members=[],
        last=-math.inf,
    )
    cause = (
        f"At {_words(call.now)} a user request created an AutoScalingGroup changing the desired "
        f"capacity from 0 to {desired}."
    )
    _adjust(call, made, cause)
    return {}


def _desired(group: Resource, at: float) -> int:
    known = [count for since, count in group.data["desired"] if since <= at]
    return int(known[-1] if known else group.data["desired"][0][1])


def _present(cloud: Cloud, group: Resource, now: float) -> list[Resource]:
    """Instances that count: those that are not on their way out."""
    members = [cloud.resources[id] for id in group.data["members"]]
    return [each for each in members if each.state(now) in ("pending", "running")]


def _adjust(call: Call, group: Resource, cause: str) -> None:
    """Starts or ends instances until as many are there as are desired.

    "An instance was started in response to a difference between desired and actual capacity":
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-verify-scaling-activity.html
    """
    cloud, now = call.cloud, call.now
    present, wanted = _present(cloud, group, now), _desired(group, now)
    for count in range(len(present), wanted):
        words = (
            f"{cause} At {_words(now)} an instance was started in response to a difference between "
            f"desired and actual capacity, increasing the capacity from {count} to {count + 1}."
        )
        try:
            instance = _launch(call, group)
        except ApiError as problem:
            text = f"Launching a new EC2 instance. Status Reason: {problem} Launching EC2 instance "
            _log(call, group, text + "failed.", words, "", "Failed", str(problem))
            break
        _log(call, group, f"Launching a new EC2 instance: {instance.id}", words, instance.id)
    for count in range(len(present), wanted, -1):
        # Default policy: the zone with the most instances; among them, the oldest template, and so
        # on: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
        present = _present(cloud, group, cloud.now())
        zones = [each.zone for each in present]
        chosen = max(present, key=lambda each: (zones.count(each.zone), -each.created))
        end(cloud, chosen, "Client.UserInitiatedShutdown: scaling in")
        words = (
            f"{cause} At {_words(now)} instance {chosen.id} was selected for termination, "
            f"decreasing the capacity from {count} to {count - 1}."
        )
        _log(call, group, f"Terminating EC2 instance: {chosen.id}", words, chosen.id)


def _launch(call: Call, group: Resource) -> Resource:
    template = group.data["template"]
    kept = (
        call.find("launch-template", template["LaunchTemplateId"])
        if "LaunchTemplateId" in template
        else named(call, "launch-template", template["LaunchTemplateName"])
    )
    p: dict[str, Any] = {**kept.data["data"], "MinCount": 1, "MaxCount": 1}
    if group.data["zones"]:
        present = [each.zone for each in _present(call.cloud, group, call.now)]
        zone = min(group.data["zones"], key=present.count)
        p["Placement"] = {**p.get("Placement", {}), "AvailabilityZone": zone}
    # Each instance has a tag with the key aws:autoscaling:groupName:
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
    launched = run_instances(
        Call(call.cloud, call.region, "RunInstances", p, call.now, call.now, call.key)
    )
    instance = call.cloud.resources[launched["Instances"][0]["InstanceId"]]
    instance.tag(call.now, "aws:autoscaling:groupName", group.data["name"])
    for key, value in group.data["spread"].items():
        instance.tag(call.now, key, value)
    group.data["members"].append(instance.id)
    return instance


def _log(
    call: Call,
    group: Resource,
    text: str,
    cause: str,
    instance: str,
    status: str = "",
    message: str = "",
) -> None:
    call.cloud.add(
        ACTIVITY, call.region, owner="activity", group=group.data["name"], text=text, cause=cause,
        instance=instance, status=status, message=message,
    )  # fmt: skip


def _settle(call: Call, group: Resource) -> None:
    """Replaces what ended by itself.

    An instance that is unhealthy is terminated, and another one takes its place:
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-health-checks.html
    """
    if len(_present(call.cloud, group, call.now)) < _desired(group, call.now):
        ended = [id for id in group.data["members"] if id not in group.data.get("noticed", ())]
        gone = [id for id in ended if call.cloud.resources[id].state(call.now) == "terminated"]
        if gone:
            group.data["noticed"] = [*group.data.get("noticed", ()), *gone]
            cause = (
                f"At {_words(call.now)} an instance was taken out of service in response to an EC2 "
                "health check indicating it has been terminated or stopped."
            )
            _adjust(call, group, cause)


_LIFE = {"pending": "Pending", "running": "InService", "shutting-down": "Terminating"}
"""https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html"""


@action("DescribeAutoScalingGroups", SERVICE)
def describe_groups(call: Call) -> dict[str, Any]:
    names = call.p.get("AutoScalingGroupNames", ())
    groups = [each for each in call.all(KIND) if not names or each.data["name"] in names]
    for each in groups:
        _settle(call, each)
    page, token = paged(_pages(call, 50), groups)
    shown = [_shown(call, each) for each in page]
    return {"AutoScalingGroups": shown, **({"NextToken": token} if token else {})}


def _pages(call: Call, size: int) -> Call:
    """One page of a listing of groups holds 50 by default, as MaxRecords says:
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeAutoScalingGroups.html"""
    given = {"MaxResults": call.p.get("MaxRecords", size), "NextToken": call.p.get("NextToken", "")}
    return Call(call.cloud, call.region, call.action, given, call.now, call.at, call.key)


def _shown(call: Call, group: Resource) -> dict[str, Any]:
    data, at = group.data, call.at
    members = [call.cloud.resources[id] for id in data["members"]]
    return {
        "AutoScalingGroupName": data["name"],
        "AutoScalingGroupARN": _arn(group, "autoScalingGroup"),
        "LaunchTemplate": data["template"],
        "MinSize": data["least"],
        "MaxSize": data["most"],
        "DesiredCapacity": _desired(group, at),
        "DefaultCooldown": data["cooldown"],
        "AvailabilityZones": data["zones"] or list(catalogue.REGIONS[group.region]),
        "HealthCheckType": "EC2",
        "CreatedTime": group.created,
        "Instances": [
            {
                "InstanceId": each.id,
                "AvailabilityZone": each.zone,
                "LifecycleState": _LIFE[each.state(at)],
                "HealthStatus": "Healthy",
                "ProtectedFromScaleIn": False,
            }
            for each in members
            if each.exists(at) and each.state(at) in _LIFE
        ],
        "Tags": [
            {
                "Key": key,
                "Value": value,
                "ResourceId": data["name"],
                "ResourceType": KIND,
                "PropagateAtLaunch": key in data["spread"],
            }
            for key, value in sorted(group.tags_at(at).items())
        ],
    }


@action("DescribeScalingActivities", SERVICE)
def describe_activities(call: Call) -> dict[str, Any]:
    # They are sorted by their start, the newest first.
    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
    name = call.p.get("AutoScalingGroupName")
    listed = [each for each in call.all(ACTIVITY) if name in (None, each.data["group"])]
    page, token = paged(_pages(call, 100), listed[::-1])
    return {
        "Activities": [_activity(call, each) for each in page],
        **({"NextToken": token} if token else {}),
    }


def _activity(call: Call, each: Resource) -> dict[str, Any]:
    data = each.data
    status, done = data["status"], float("inf")
    if not status:
        instance = call.cloud.resources[data["instance"]]
        is_launch = data["text"].startswith("Launching")
        done = instance.since("running" if is_launch else "terminated")
        status = "Successful" if done <= call.at else "InProgress"
    return {
        "ActivityId": each.id,
        "AutoScalingGroupName": data["group"],
        "Description": data["text"],
        "Cause": data["cause"],
        "StartTime": each.created,
        "EndTime": done if done <= call.at else None,
        "StatusCode": status,
        "StatusMessage": data["message"] or None,
        "Progress": 100 if status == "Successful" else 50,
    }


@action("UpdateAutoScalingGroup", SERVICE)
def update_group(call: Call) -> dict[str, Any]:
    group = _group(call, call.p["AutoScalingGroupName"])
    least = int(call.p.get("MinSize", group.data["least"]))
    most = int(call.p.get("MaxSize", group.data["most"]))
    before = _desired(group, call.now)
    desired = int(call.p.get("DesiredCapacity", min(max(before, least), most)))
    if not least <= desired <= most:
        raise _refused("Desired capacity must be between the specified min size and max size")
    group.data |= {"least": least, "most": most}
    what = (
        f"a user request update of AutoScalingGroup constraints to min: {least}, max: {most}, "
        f"desired: {desired}"
    )
    change(call, group, desired, what)
    return {}


def change(call: Call, group: Resource, desired: int, what: str) -> None:
    """Sets the desired capacity, with what triggered it in the causes of its activities."""
    before = _desired(group, call.now)
    if desired != before:
        group.data["desired"].append((call.now, desired))
        words = f"changing the desired capacity from {before} to {desired}"
        cause = f"At {_words(call.now)} {what} {words}."
        _adjust(call, group, cause)


@action("PutScalingPolicy", SERVICE)
def put_policy(call: Call) -> dict[str, Any]:
    group = _group(call, call.p["AutoScalingGroupName"])
    kind = call.p.get("PolicyType", "SimpleScaling")
    needed = {
        "SimpleScaling": "ScalingAdjustment",
        "StepScaling": "StepAdjustments",
        "TargetTrackingScaling": "TargetTrackingConfiguration",
    }
    if kind not in needed or needed[kind] not in call.p:
        raise _refused(f"{needed.get(kind, 'PolicyType')} is required for a policy of this type")
    for each in _policies(call, group):
        if each.data["name"] == call.p["PolicyName"]:
            each.data["p"] = dict(call.p)
            return {"PolicyARN": _arn(each, "scalingPolicy")}
    made = call.cloud.add(
        POLICY, call.region, owner="policy", name=call.p["PolicyName"],
        group=group.data["name"], p=dict(call.p),
    )  # fmt: skip
    return {"PolicyARN": _arn(made, "scalingPolicy")}


def _policies(call: Call, group: Resource) -> list[Resource]:
    return [each for each in call.all(POLICY, call.now) if each.data["group"] == group.data["name"]]


def trigger(call: Call, group: Resource, policy: Resource, beyond: float) -> bool:
    """Does what a policy does when its alarm goes off; returns whether it did anything.

    beyond: the metric's value minus the alarm's threshold. "With simple scaling, after a scaling
    activity is started, the policy must wait for the scaling activity or health check replacement
    to complete and the cooldown period to end"; step scaling does not wait:
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-scaling-simple-step.html
    """
    p, now = policy.data["p"], call.now
    simple = p.get("PolicyType", "SimpleScaling") == "SimpleScaling"
    cooldown = int(p.get("Cooldown", group.data["cooldown"]))
    if simple and now < group.data["last"] + cooldown:
        return False
    before = _desired(group, now)
    desired = min(max(_adjusted(p, before, beyond), group.data["least"]), group.data["most"])
    alarm = f"{policy.data['name']}-AlarmHigh" if beyond >= 0 else f"{policy.data['name']}-AlarmLow"
    group.data["last"] = now
    what = f"a monitor alarm {alarm} in state ALARM triggered policy {policy.data['name']}"
    change(call, group, desired, what)
    return desired != before


def _adjusted(p: dict[str, Any], before: int, beyond: float) -> int:
    """https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-scaling-simple-step.html
    #as-scaling-adjustment: a change by percent is rounded towards zero, and is 1 at least."""
    if "TargetTrackingConfiguration" in p:
        target = float(p["TargetTrackingConfiguration"]["TargetValue"])
        return math.ceil(before * (target + beyond) / target)
    amount = p.get("ScalingAdjustment")
    for step in p.get("StepAdjustments", ()):
        low = step.get("MetricIntervalLowerBound", -math.inf)
        high = step.get("MetricIntervalUpperBound", math.inf)
        # A lower bound of a breach above is inclusive, an upper bound of one below is.
        if (low <= beyond < high) if beyond >= 0 else (low < beyond <= high):
            amount = step["ScalingAdjustment"]
    if amount is None:
        return before
    kind = p.get("AdjustmentType", "ChangeInCapacity")
    if kind == "ExactCapacity":
        return int(amount)
    if kind == "ChangeInCapacity":
        return before + int(amount)
    change_of = before * amount / 100
    whole = math.trunc(change_of) if abs(change_of) > 1 else int(math.copysign(1, change_of))
    least = int(p.get("MinAdjustmentMagnitude", 0))
    return before + (whole if abs(whole) >= least else int(math.copysign(least, whole)))


@action("DeleteAutoScalingGroup", SERVICE)
def delete_group(call: Call) -> dict[str, Any]:
    # A group with instances or activities in progress is deleted by force only.
    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteAutoScalingGroup.html
    group = _group(call, call.p["AutoScalingGroupName"])
    members = [call.cloud.resources[id] for id in group.data["members"]]
    living = [each for each in members if each.state(call.now) != "terminated"]
    if living and not call.p.get("ForceDelete"):
        text = (
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot "
            "instance request(s) still in the group."
        )
        raise ApiError("ResourceInUse", text)
    for each in living:
        end(call.cloud, each, "Client.UserInitiatedShutdown: the group was deleted")
    for each in _policies(call, group):
        each.gone = call.now
    group.gone = call.now
    return {}
