"""The clouds that the contract suite runs over, and which of its tests are not exercised here.

To add one: a fixture `cloud_NAME` that yields its `CloudCase` (in conftest.py of this folder, or
made by a module of tests/clouds), and a line in `CLOUDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nephoscope.measure.cloud.model import MachineRequest
from nephoscope.measure.cloud.provider import Provider


@dataclass(frozen=True)
class CloudCase:
    """A cloud, and what a test has to know about it.

    other_type: that a machine can be resized to. impossible: more machines than the cloud gives.
    wrong: opens it with credentials that are not valid, whose secret is `secret`. down: opens it at
    an address where nothing answers. ready_s: longest time until a machine runs. page: how many
    resources one page of a listing holds at most; the test makes one more key pair than that.
    """

    open: Callable[[], Provider]
    region: str
    type: str
    image: str
    zone: str = ""
    other_type: str = ""
    network: str = ""
    impossible: Callable[[MachineRequest], MachineRequest] | None = None
    wrong: Callable[[], Provider] | None = None
    secret: str = ""
    down: Callable[[], Provider] | None = None
    ready_s: float = 20.0
    page: int = 0


@dataclass(frozen=True)
class CloudLine:
    """A line of the table. slow: a real control plane, for `make test-all`. not_exercised: test of
    the suite -> why it does not run for this cloud; 'all' stands for every test."""

    slow: bool = False
    not_exercised: Mapping[str, str] = field(default_factory=dict)


CLOUDS: dict[str, CloudLine] = {
    "toy": CloudLine(
        not_exercised={
            "firewall": "the toy has no networks",
            "wrong_credentials": "the toy asks for none",
            "no_answer": "the toy is a folder",
            "paging": "the toy lists everything at once",
        }
    ),
    "ec2": CloudLine(),
}
