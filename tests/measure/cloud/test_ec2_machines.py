"""A machine in an answer of EC2's interface, whatever speaks it."""

from __future__ import annotations

import pytest

from nephoscope.measure.cloud.model import ResourceState, Tags
from nephoscope.measure.cloud.providers import ec2_listing


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("running", ResourceState.READY),
        ("terminated", ResourceState.GONE),
        ("error", ResourceState.FAILED),  # OpenStack's, through its interface of EC2
        ("resized", ResourceState.PENDING),
    ],
)
def test_a_machine_in_any_state_is_listed(word: str, state: ResourceState) -> None:
    entry = {
        "InstanceId": "i-1",
        "InstanceType": "m1.tiny",
        "ImageId": "ami-1",
        "State": {"Name": word},
        "StateReason": {"Code": "Server.X", "Message": "no room"},
    }
    tags = Tags(run="night", owner="us", expires_s=1)
    machine = ec2_listing.machine(entry, "here", tags)
    assert (machine.id, machine.state, machine.tags) == ("i-1", state, tags)
    if state is ResourceState.FAILED:
        assert machine.problem == "Server.X: no room"
