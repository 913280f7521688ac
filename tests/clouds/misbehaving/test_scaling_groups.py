"""Auto Scaling groups of the double, and what follows them: decisions and steps in time."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nephoscope.features.elastic.autoscalers import ec2 as followed
from nephoscope.features.elastic.autoscalers import names
from nephoscope.features.elastic.plan import ElasticRequest, plan_elastic
from nephoscope.features.elastic.profiles import profile_of
from nephoscope.features.elastic.records import Elasticity
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure import runs
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls
from nephoscope.measure.targets.kinds import parse
from nephoscope.results import analyse_run
from nephoscope.store import Store

from .conftest import Client
from .double import KEY, SECRET, Double
from .helpers import image, refused, states

GROUP, REGION, BOOT_S = "web", "us-east-1", 4.0


@pytest.fixture
def scaling(cloud: Double, client: Client) -> Any:
    """A group of one to four machines, and its client. A simple, a step and a tracking policy."""
    cloud.settings(boot_s=BOOT_S, shutdown_s=3.0)
    client().create_launch_template(
        LaunchTemplateName="web",
        LaunchTemplateData={"ImageId": image(client()), "InstanceType": "t3.micro"},
    )
    made = client(service="autoscaling")
    made.create_auto_scaling_group(
        AutoScalingGroupName=GROUP,
        LaunchTemplate={"LaunchTemplateName": "web"},
        MinSize=1,
        MaxSize=4,
        AvailabilityZones=["us-east-1a", "us-east-1b"],
        Tags=[{"Key": "team", "Value": "shop", "PropagateAtLaunch": True}],
    )
    policies = {
        "out": {"PolicyType": "SimpleScaling", "AdjustmentType": "ChangeInCapacity",
                "ScalingAdjustment": 1, "Cooldown": 60},
        "steps": {"PolicyType": "StepScaling", "AdjustmentType": "ChangeInCapacity",
                  "StepAdjustments": [
                      {"MetricIntervalLowerBound": 0.0, "MetricIntervalUpperBound": 20.0,
                       "ScalingAdjustment": 1},
                      {"MetricIntervalLowerBound": 20.0, "ScalingAdjustment": 2}]},
        "half": {"PolicyType": "SimpleScaling", "AdjustmentType": "PercentChangeInCapacity",
                 "ScalingAdjustment": -50, "Cooldown": 0},
        "track": {"PolicyType": "TargetTrackingScaling",
                  "TargetTrackingConfiguration": {"TargetValue": 50.0,
                      "PredefinedMetricSpecification": {
                          "PredefinedMetricType": "ASGAverageCPUUtilization"}}},
    }  # fmt: skip
    for name, policy in policies.items():
        made.put_scaling_policy(AutoScalingGroupName=GROUP, PolicyName=name, **policy)
    return made


def group_of(scaling: Any) -> Any:
    (found,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])[
        "AutoScalingGroups"
    ]
    return found


def test_a_group_has_its_number_of_machines_and_its_policies_change_it(
    cloud: Double, client: Client, scaling: Any
) -> None:
    (first,) = group_of(scaling)["Instances"]
    assert first["LifecycleState"] == "Pending"
    cloud.advance(BOOT_S)
    (first,) = group_of(scaling)["Instances"]
    assert first["LifecycleState"] == "InService"
    (tagged,) = cloud.live("instance")
    assert tagged["tags"] == {"aws:autoscaling:groupName": GROUP, "team": "shop"}
    assert cloud.alarm(GROUP, "out", 5.0)
    assert not cloud.alarm(GROUP, "out", 5.0)  # in its cooldown
    assert cloud.alarm(GROUP, "steps", 30.0)  # which has none
    found = group_of(scaling)
    assert found["DesiredCapacity"] == 4
    zones = sorted(each["AvailabilityZone"] for each in found["Instances"])
    assert zones == ["us-east-1a"] * 2 + ["us-east-1b"] * 2
    assert not cloud.alarm(GROUP, "steps", 30.0)  # at the maximum
    assert cloud.alarm(GROUP, "half", -5.0)
    assert group_of(scaling)["DesiredCapacity"] == 2
    assert sorted(states(client()).values()).count("shutting-down") == 2
    assert cloud.alarm(GROUP, "track", 25.0)
    assert group_of(scaling)["DesiredCapacity"] == 3  # ceil(2 * 75 / 50)
    activities = scaling.describe_scaling_activities(AutoScalingGroupName=GROUP)["Activities"]
    assert (
        "triggered policy track changing the desired capacity from 2 to 3"
        in (activities[0]["Cause"])
    )
    with refused("ResourceInUse"):
        scaling.delete_auto_scaling_group(AutoScalingGroupName=GROUP)
    scaling.delete_auto_scaling_group(AutoScalingGroupName=GROUP, ForceDelete=True)
    cloud.advance(10)
    assert cloud.live("instance") == []
    with refused("ValidationError"):
        scaling.update_auto_scaling_group(AutoScalingGroupName=GROUP, MinSize=1)


def test_a_machine_that_ends_is_replaced_and_a_zone_without_room_is_an_activity_that_failed(
    cloud: Double, client: Client, scaling: Any
) -> None:
    cloud.advance(BOOT_S)
    (first,) = group_of(scaling)["Instances"]
    cloud.break_down(first["InstanceId"])
    cloud.advance(4)
    group_of(scaling)  # what became due is done when the service is asked
    (second,) = group_of(scaling)["Instances"]
    assert second["InstanceId"] != first["InstanceId"]
    for zone in ("us-east-1a", "us-east-1b"):
        cloud.capacity(zone, "*", 1 if zone == second["AvailabilityZone"] else 0)
    cloud.alarm(GROUP, "out", 5.0)
    newest = scaling.describe_scaling_activities(AutoScalingGroupName=GROUP)["Activities"][0]
    assert newest["StatusCode"] == "Failed"
    assert "capacity" in newest["StatusMessage"]


class Log:
    """Follows the group in the double's own time."""

    def __init__(self, cloud: Double) -> None:
        self.cloud, self.lines = cloud, list[dict[str, Any]]()
        self._calls = Ec2Calls(CloudSettings("ec2", cloud.endpoint))
        self.follower = followed.GroupFollower(
            lambda name, **values: self.lines.append({"event": name, **values})
        )

    def read(self) -> None:
        at_ns = round(self.cloud.now() * 1e9)
        reading = followed._read(self._calls, REGION, GROUP)
        assert reading is not None
        self.follower.take(at_ns, *reading)
        self.cloud.advance(1.0)

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]


def test_decisions_and_steps_of_a_group_are_those_of_the_double(
    cloud: Double, scaling: Any
) -> None:
    cloud.advance(BOOT_S + 1)
    log = Log(cloud)
    log.read()
    assert log.lines[0].items() >= {"event": "begins", "present": 1, "in_rotation": 1}.items()
    log.read()
    decided_s = cloud.now()
    cloud.alarm(GROUP, "steps", 30.0)
    for _ in range(8):
        log.read()
    (decision,) = log.of("decision")
    assert (decision["present"], decision["desired"], decision["reason"]) == (1, 3, "")
    # Causes state whole seconds.
    assert decided_s - 1 <= decision["at_ns"] / 1e9 <= decided_s + 1
    truth = {each["id"]: {s: at for at, s in each["states"]} for each in cloud.oracle()
             if each["kind"] == "instance"}  # fmt: skip
    for step, state in (("created", "pending"), ("booted", "running"), ("in_rotation", "running")):
        lines = log.of(step)
        assert len(lines) == 2
        for line in lines:
            # By a list each second, in which a step stands once it has happened.
            late_s = line["at_ns"] / 1e9 - truth[line["instance"]][state]
            assert -0.01 <= late_s <= 1.5, (step, late_s)
    assert log.of("in_rotation")[-1]["in_rotation"] == 3
    cloud.alarm(GROUP, "half", -5.0)
    for _ in range(5):
        log.read()
    assert [line["desired"] for line in log.of("decision")] == [3, 2]
    (out,), (removed,) = log.of("out_of_rotation"), log.of("removed")
    assert out["instance"] == removed["instance"]
    assert log.of("deviation") == []


def test_what_bounds_a_decision_and_what_no_activity_explains_is_named(
    cloud: Double, scaling: Any
) -> None:
    log = Log(cloud)
    log.read()
    cloud.alarm(GROUP, "steps", 30.0)
    cloud.alarm(GROUP, "steps", 30.0)
    log.read()
    assert [(line["desired"], line["reason"]) for line in log.of("decision")] == [
        (3, ""), (4, "maximum")
    ]  # fmt: skip
    group = {"DesiredCapacity": 2, "MinSize": 1, "MaxSize": 4, "Instances": []}
    at_ns = round(cloud.now() * 1e9)
    for later_s in (0, 20, 40):
        log.follower.take(at_ns + later_s * 10**9, group, [], frozenset())
    (deviation,) = log.of("deviation")
    assert "went from 4 to 2, of which no activity states why" in deviation["text"]


def test_causes_as_the_service_words_them() -> None:
    """The examples of the user guide."""
    user = (
        "At 2012-07-12T15:51:38Z a user request update of AutoScalingGroup constraints to min: 0, "
        "max: 20, desired: 10 changing the desired capacity from 5 to 10.  At 2012-07-12T15:51:53Z "
        "an instance was started in response to a difference between desired and actual capacity, "
        "increasing the capacity from 5 to 10."
    )
    cause = followed.cause_of(user)
    assert cause is not None
    assert (cause.at_ns, cause.before, cause.after) == (1342108298 * 10**9, 5, 10)
    assert cause.text.startswith("a user request update")
    assert followed.cause_of("At 2012-07-12T15:51:53Z an instance was started.") is None


def test_a_group_that_is_not_there_is_one_sentence(cloud: Double) -> None:
    settings = json.loads(
        json.dumps({"name": "none", "place": REGION, "context": "", "endpoint": cloud.endpoint})
    )
    with pytest.raises(SystemExit, match="There is no Auto Scaling group 'none' in us-east-1"):
        followed.follow({**settings, "interval_s": 0.1})


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests = 0

    def do_GET(self) -> None:
        _Quiet.requests += 1
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing."""


def _raise_alarms(cloud: Double, ended: threading.Event) -> None:
    """Alarms as CloudWatch would raise them: on the rate of the service, once in each direction."""
    policies = [("steps", 30.0, lambda rate: rate > 15), ("half", -5.0, lambda rate: rate < 10)]
    before = _Quiet.requests
    while policies and not ended.wait(1.0):
        rate, before = _Quiet.requests - before, _Quiet.requests
        name, beyond, is_due = policies[0]
        if is_due(rate):
            cloud.alarm(GROUP, name, beyond)
            del policies[0]


@pytest.mark.slow
def test_a_run_follows_the_group_while_it_loads_its_service(
    cloud: Double, scaling: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: the plan, the program with its credentials, its log, and the times."""
    credentials = tmp_path / "credentials"
    credentials.write_text(
        f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    cloud.settings(boot_s=1.0)
    text = "p99 < 2s"
    with ThreadingHTTPServer(("127.0.0.1", 0), _Quiet) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        request = ElasticRequest(
            profile_of("step", 5, 25, 24),
            LatencyObjective.of(text),
            text,
            capacity_per_s=10.0,
            url=f"http://127.0.0.1:{service.server_port}/",
            managed=names.parse(f"ec2:{GROUP}@{REGION}"),
            endpoint=cloud.endpoint,
            observe_interval_ns=200_000_000,
            target=parse("local"),
            rounds=1,
        )
        ended = threading.Event()
        alarms = threading.Thread(target=_raise_alarms, args=(cloud, ended))
        alarms.start()
        run = runs.execute(plan_elastic(request), Store(tmp_path / "store"))
        ended.set()
        alarms.join()
        service.shutdown()
    elastic = analyse_run.build(run).part(Elasticity)
    assert elastic is not None
    (trial,) = elastic.trials
    assert [(point.desired, point.reason) for point in trial.decisions] == [
        (3, "rule"), (2, "rule")
    ]  # fmt: skip
    assert {1, 3} <= {count for _, count in trial.supply}
    (summary,) = elastic.autoscalers
    assert {"boot", "warm_up", "rotation", "total"} <= set(summary.out_segments)
    assert not any("did not follow" in note for note in summary.notes)
