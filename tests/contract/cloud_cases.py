"""The clouds that the contract suite runs over, and which of its tests are not exercised here.

To add one: a fixture `cloud_NAME` that yields its `CloudCase` (in conftest.py of this folder, or
made by a module of tests/clouds), and a line in `CLOUDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.clouds import kubernetes, lxd

from nephoscope.measure.cloud.model import MachineRequest
from nephoscope.measure.cloud.provider import Provider

TESTS = (
    "account",
    "names",
    "unknown_names",
    "machine",
    "same_token",
    "count",
    "impossible",
    "key_pair",
    "firewall",
    "admission",
    "placement_group",
    "volume",
    "snapshot",
    "restore",
    "stop_and_start",
    "reboot",
    "resize",
    "console",
    "extend",
    "paging",
    "wrong_credentials",
    "no_answer",
    "sweep",
)
"""Tests of the suite, in its order."""


@dataclass(frozen=True)
class CloudCase:
    """A cloud, and what a test has to know about it.

    other_type: that a machine can be resized to. impossible: more machines than the cloud gives.
    wrong: opens it with credentials that are not valid, whose secret is `secret`. down: opens it at
    an address where nothing answers. ready_s: longest time until a machine runs. page: how many
    resources one page of a listing holds at most; the test makes one more key pair than that.
    lists_types, has_ipv6: whether it lists its types, and whether its firewall knows IPv6.
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
    lists_types: bool = True
    has_ipv6: bool = True


@dataclass(frozen=True)
class CloudLine:
    """A line of the table. slow: a real control plane, for `make test-all`. programs: of
    tests/tools.py, that it needs. not_exercised: test of the suite -> why it does not run for this
    cloud; 'all' stands for every test."""

    slow: bool = False
    programs: tuple[str, ...] = ()
    not_exercised: Mapping[str, str] = field(default_factory=dict)


_NOT_OF_LIBVIRT = {
    "key_pair": "libvirt has no key pairs: keys go into the user data",
    "firewall": "libvirt has no security groups",
    "admission": "libvirt has no security groups",
    "wrong_credentials": "a socket of this machine asks for none",
    "placement_group": "one host runs all machines",
    "paging": "libvirt lists everything at once",
}

_LIBCLOUD = {
    "key_pair": "the login is in the user data",
    "firewall": "the account's own network is used",
    "admission": "the account's own network is used",
    "placement_group": "only machines are made over Libcloud",
    "volume": "only machines are made over Libcloud",
    "snapshot": "only machines are made over Libcloud",
    "restore": "only machines are made over Libcloud",
    "stop_and_start": "Libcloud's drivers have it for some clouds only",
    "resize": "Libcloud's drivers have it for some clouds only",
    "extend": "the expiry is in the name of a machine, which stays",
}

CLOUDS: dict[str, CloudLine] = {
    "toy": CloudLine(
        not_exercised={
            "firewall": "the toy has no networks",
            "admission": "the toy has no networks",
            "placement_group": "the toy has one host",
            "wrong_credentials": "the toy asks for none",
            "no_answer": "the toy is a folder",
            "paging": "the toy lists everything at once",
        }
    ),
    "ec2": CloudLine(),
    "libvirt": CloudLine(
        slow=True,
        not_exercised={
            **_NOT_OF_LIBVIRT,
            "volume": "libvirt's test hypervisor attaches no devices",
        },
    ),
    "qemu": CloudLine(slow=True, not_exercised=_NOT_OF_LIBVIRT),
    "openstack": CloudLine(
        slow=True,
        not_exercised={
            "volume": "the real cloud runs without its block storage service",
            "snapshot": "the real cloud runs without its block storage service",
            "restore": "the real cloud runs without its block storage service",
        },
    ),
    "openstack_ec2": CloudLine(
        slow=True,
        not_exercised={
            "volume": "the real cloud runs without its block storage service",
            "snapshot": "the real cloud runs without its block storage service",
            "placement_group": "the EC2 API of OpenStack has none",
            "restore": "the real cloud runs without its block storage service",
            "paging": "the EC2 API of OpenStack asks nova for its pages itself",
        },
    ),
    "cloudstack": CloudLine(not_exercised=_LIBCLOUD),
    "opennebula": CloudLine(
        not_exercised={**_LIBCLOUD, "paging": "its service lists everything at once"}
    ),
    "azure": CloudLine(not_exercised={"all": "there is no double of its resource manager here"}),
    "google": CloudLine(not_exercised={"all": "there is no double of Compute Engine here"}),
    "rackspace": CloudLine(
        not_exercised={"all": "it is OpenStack, which has a line of its own, behind its own login"}
    ),
    "hosts": CloudLine(
        not_exercised={
            "key_pair": "existing hosts have their own logins",
            "firewall": "existing hosts have their own networks",
            "admission": "existing hosts have their own networks",
            "placement_group": "existing hosts lie where they are",
            "volume": "no volume is attached to existing hosts",
            "snapshot": "no volume is attached to existing hosts",
            "restore": "no volume is attached to existing hosts",
            "stop_and_start": "hosts of others are left as they are",
            "reboot": "hosts of others are left as they are",
            "resize": "hosts of others are left as they are",
            "paging": "the list is read whole",
            "wrong_credentials": "the first login asks for them, not the list",
        },
    ),
    "kubernetes": CloudLine(
        slow=True,
        programs=kubernetes.PROGRAMS,
        not_exercised={
            "key_pair": "programs are started by the API, so that nobody logs in",
            "firewall": "nothing on the network has to reach a pod",
            "admission": "nothing on the network has to reach a pod",
            "placement_group": "nothing is asked of the scheduler of pods",
            "volume": "a pod that runs takes no volume",
            "snapshot": "a pod has no disk of its own",
            "restore": "a pod has no disk of its own",
            "stop_and_start": "a pod that ended does not come back",
            "reboot": "a pod that ended does not come back",
            "resize": "the limits of a pod are those of its creation",
            "paging": "a page has 500 pods; tests/clouds/kubernetes reads smaller ones",
        },
    ),
    "lxd": CloudLine(
        slow=True,
        programs=lxd.PROGRAMS,
        not_exercised={
            "key_pair": "programs are started by the API, so that nobody logs in",
            "firewall": "nothing on the network has to reach an instance",
            "admission": "nothing on the network has to reach an instance",
            "placement_group": "the server chooses among its members itself",
            "paging": "the API lists everything at once",
            "wrong_credentials": "the socket knows its user by the kernel; a server on the "
            "network would need a second machine to be refused",
        },
    ),
}
