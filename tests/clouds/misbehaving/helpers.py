"""What the tests of the double share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

IMAGE_NAME = "debian-12-amd64-20260801-1200"


@contextlib.contextmanager
def refused(code: str) -> Iterator[None]:
    """The call inside fails with this code."""
    with pytest.raises(ClientError) as caught:
        yield
    assert caught.value.response["Error"]["Code"] == code


def image(ec2: Any) -> str:
    found = ec2.describe_images(Filters=[{"Name": "name", "Values": [IMAGE_NAME]}])["Images"]
    return str(found[0]["ImageId"])


def launch(ec2: Any, **given: Any) -> list[str]:
    """Ids of machines; one t3.micro where nothing else is said."""
    usual = {"ImageId": image(ec2), "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
    return [each["InstanceId"] for each in ec2.run_instances(**usual | given)["Instances"]]


def states(ec2: Any, **given: Any) -> dict[str, str]:
    """Id -> state, of all that are listed."""
    return {
        each["InstanceId"]: each["State"]["Name"]
        for reservation in ec2.describe_instances(**given)["Reservations"]
        for each in reservation["Instances"]
    }
