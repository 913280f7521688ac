"""Faults and credentials of the double."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from .double import KEY, SECRET, Double
from .faults import FAULTS
from .helpers import launch, refused, states

LOST = (BotoCoreError, ResponseParserError)

ANSWERS: dict[str, Any] = {
    "throttle": "RequestLimitExceeded",
    "unavailable": "Unavailable",
    "internal-before": "InternalError",
    "internal-after": "InternalError",
    "drop-before": LOST,
    "drop-after": LOST,
    "truncate": LOST,
    "no-capacity": "InsufficientInstanceCapacity",
    "expired": "RequestExpired",
    "skew": "RequestExpired",
    "region-down": "Unavailable",
}
DONE = ("internal-after", "drop-after", "truncate")


@pytest.mark.parametrize("fault", ANSWERS)
def test_a_fault_strikes_the_next_call_and_no_other(cloud: Double, client: Any, fault: str) -> None:
    ec2, expected = client(), ANSWERS[fault]
    cloud.fault(fault, next=1, actions=["RunInstances"])
    if isinstance(expected, str):
        with refused(expected):
            launch(ec2, ClientToken="t")
    else:
        with pytest.raises(expected):
            launch(ec2, ClientToken="t")
    assert len(cloud.live("instance")) == (1 if fault in DONE else 0)
    launch(ec2, ClientToken="t")
    assert len(cloud.live("instance")) == 1
    assert cloud.faults() == {fault: 1}


def test_faults_have_rates_and_are_the_same_for_a_seed(cloud: Double, client: Any) -> None:
    def codes() -> list[bool]:
        cloud.reset(seed=7)
        cloud.fault("throttle", rate=0.3)
        found = []
        for _ in range(60):
            try:
                client().describe_regions()
                found.append(True)
            except ClientError:
                found.append(False)
        return found

    first = codes()
    assert codes() == first
    assert 8 <= first.count(False) <= 30


def test_a_late_answer_is_late(cloud: Double, client: Any) -> None:
    cloud.fault("delay", next=1, seconds=0.3)
    began = time.monotonic()
    client().describe_regions()
    assert time.monotonic() - began >= 0.3


def test_a_bucket_of_tokens_limits_each_action_of_a_region(cloud: Double, client: Any) -> None:
    # However long the calls take, no token comes back meanwhile.
    cloud.settings(bucket_size=3, bucket_per_s=0.001)
    ec2 = client()
    for _ in range(3):
        states(ec2)
    with refused("RequestLimitExceeded"):
        states(ec2)
    ec2.describe_regions()
    states(client("eu-west-1"))


def test_machines_fail_at_boot_and_later(cloud: Double, client: Any) -> None:
    ec2 = client()
    cloud.fault("boot-failure", next=1)
    launch(ec2)
    cloud.fault("late-failure", next=1, seconds=30)
    launch(ec2)
    cloud.advance(10)
    assert sorted(states(ec2).values()) == ["running", "terminated"]
    cloud.advance(30)
    assert sorted(states(ec2).values()) == ["terminated", "terminated"]
    cloud.fault("interruption", next=1)
    launch(ec2, InstanceMarketOptions={"MarketType": "spot"})
    cloud.advance(2000)
    assert set(states(ec2).values()) == {"terminated"}
    cloud.fault("stuck", next=1)
    (one,) = launch(ec2)
    ec2.terminate_instances(InstanceIds=[one])
    cloud.advance(10)
    assert states(ec2)[one] == "shutting-down"
    (two,) = launch(ec2)
    cloud.break_down(two)
    cloud.advance(30)
    assert states(ec2)[two] == "terminated"


def test_part_of_the_machines_may_be_granted(cloud: Double, client: Any) -> None:
    cloud.fault("partial", rate=1)
    counts = {len(launch(client(), MinCount=1, MaxCount=4)) for _ in range(8)}
    assert counts <= {1, 2, 3, 4}
    assert len(counts) > 1


def test_a_region_fails_alone(cloud: Double, client: Any) -> None:
    cloud.fault("region-down", rate=1, region="eu-west-1")
    states(client())
    with refused("Unavailable"):
        states(client("eu-west-1"))


def test_every_fault_is_tested() -> None:
    elsewhere = {
        "delay",
        "partial",
        "boot-failure",
        "late-failure",
        "interruption",
        "stuck",
        "silent",
        # Of volumes, in test_volumes.py:
        "no-device",
        "mounted-device",
        "rotten-snapshot",
    }
    assert set(FAULTS) == set(ANSWERS) | elsewhere


BAD_CREDENTIALS = {
    "a wrong secret": {"aws_access_key_id": KEY, "aws_secret_access_key": "wrong"},
    "an unknown key": {"aws_access_key_id": "AKIDNOBODY", "aws_secret_access_key": SECRET},
    "a session that is none": {
        "aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_session_token": "x",
    },
}  # fmt: skip


@pytest.mark.parametrize("which", BAD_CREDENTIALS)
def test_signatures_are_checked(cloud: Double, client: Any, which: str) -> None:
    with refused("AuthFailure"):
        states(client(**BAD_CREDENTIALS[which]))


def test_temporary_credentials_expire_in_mid_run(cloud: Double, client: Any) -> None:
    cloud.credentials("ASIA1", "s", session="token")
    given = {
        "aws_access_key_id": "ASIA1",
        "aws_secret_access_key": "s",
        "aws_session_token": "token",
    }
    states(client(**given))
    client(service="sts", **given).get_caller_identity()
    cloud.expire("ASIA1")
    with refused("RequestExpired"):
        states(client(**given))
    with refused("ExpiredToken"):
        client(service="sts", **given).get_caller_identity()


def test_regions_that_are_not_open_are_refused(cloud: Double, client: Any) -> None:
    for region in ("me-south-1", "mars-1"):
        with refused("AuthFailure"):
            states(client(region))


def test_an_unsigned_request_is_refused(cloud: Double) -> None:
    import urllib.error
    import urllib.request

    body = b"Action=DescribeInstances&Version=2016-11-15"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(cloud.endpoint, body, timeout=60)
    with caught.value as answer:
        assert answer.code == 403


def test_a_dry_run_does_nothing(cloud: Double, client: Any) -> None:
    with refused("DryRunOperation"):
        launch(client(), DryRun=True)
    assert cloud.oracle() == []


def test_unknown_actions_and_parameters_are_refused(cloud: Double, client: Any) -> None:
    with refused("InvalidAction"):
        client().describe_vpn_gateways()
    with pytest.raises(ValueError, match="no command"):
        cloud.no_such_command()
