"""Fixtures of real clouds: one of each for a session of tests, and their cases of the contract."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.clouds.openstack import cloud as clouds
from tests.clouds.openstack import hypervisor as hypervisors
from tests.clouds.openstack.configuration import FAKE, PAGE, REGION
from tests.contract.cloud_cases import CloudCase
from tests.hardware import Feature, lacking
from tests.tools import fixture_needs

from nephoscope.measure.cloud.model import MachineRequest
from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.providers import open_provider

HOST = "host"
NOWHERE = "http://127.0.0.1:9/v3"
BASE = "/default-pool/base"


@pytest.fixture(scope="session")
@fixture_needs("ip", "mmdebstrap")
def openstack_cloud() -> Iterator[clouds.Cloud]:
    """A real OpenStack cloud of this session."""
    library("openstack")
    with clouds.cloud() as running:
        yield running


@pytest.fixture(scope="session")
@fixture_needs("ip", "mmdebstrap")
def hypervisor() -> Iterator[hypervisors.Hypervisor]:
    """A host with libvirt and QEMU, of this session."""
    library("libvirt")
    with hypervisors.hypervisor() as running:
        yield running


@pytest.fixture
def renter(
    openstack_cloud: clouds.Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CloudSettings:
    """The renter's account, its credentials where OpenStack's tools look for them."""
    credentials(openstack_cloud, tmp_path, monkeypatch)
    return CloudSettings("openstack", openstack_cloud.site.url("identity"), "renter")


def credentials(cloud: clouds.Cloud, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Writes the files in which users keep credentials; `wrong` has a secret, which is returned."""
    wrong = secrets.token_hex(8)
    right = cloud.clouds_yaml()
    text = right.replace("admin:", "wrong:", 1).replace(cloud.site.admin, wrong)
    (folder / "clouds.yaml").write_text(right + text.partition("clouds:\n")[2])
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(folder / "clouds.yaml"))
    access, secret = cloud.ec2_keys
    (folder / "aws").write_text(
        "".join(
            f"[{name}]\naws_access_key_id = {access}\naws_secret_access_key = {value}\n"
            f"region = {REGION}\n"
            for name, value in (("renter", secret), ("wrong", wrong))
        )
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "aws"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return wrong


def _too_many(request: MachineRequest) -> MachineRequest:
    # More memory than the quota; one machine, for EC2's interface makes a port for each first.
    return replace(request, type="m1.impossible")


@pytest.fixture
def cloud_openstack(
    openstack_cloud: clouds.Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CloudCase:
    secret = credentials(openstack_cloud, tmp_path, monkeypatch)
    made = open_provider(CloudSettings("openstack", profile="renter"))
    return CloudCase(
        lambda: made,
        region=REGION,
        type="m1.tiny",
        image="guest",
        zone=FAKE,
        other_type="m1.small",
        network="guests",  # EC2's interface makes another one for itself.
        impossible=_too_many,
        wrong=lambda: open_provider(CloudSettings("openstack", profile="wrong")),
        secret=secret,
        down=lambda: open_provider(CloudSettings("openstack", NOWHERE, "renter")),
        ready_s=120.0,
        page=PAGE,
    )


@pytest.fixture
def cloud_openstack_ec2(
    openstack_cloud: clouds.Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CloudCase:
    secret = credentials(openstack_cloud, tmp_path, monkeypatch)

    def opened(profile: str = "renter", endpoint: str = openstack_cloud.ec2_url) -> Provider:
        return open_provider(CloudSettings("ec2", endpoint, profile))

    made = opened()
    return CloudCase(
        lambda: made,
        region=REGION,
        type="m1.tiny",
        image="guest",
        zone=FAKE,
        other_type="m1.small",
        impossible=_too_many,
        wrong=lambda: opened("wrong"),
        secret=secret,
        down=lambda: opened(endpoint=NOWHERE),
        ready_s=120.0,
        lists_types=False,
        has_ipv6=False,
    )


@pytest.fixture
def cloud_libvirt() -> Iterator[CloudCase]:
    """libvirt's own test hypervisor: in the memory of this process, while one is connected."""
    host = library("libvirt").open("test:///default")
    for domain in host.listAllDomains():
        # It comes with a machine that is larger than the host.
        domain.destroy()
        domain.undefine()
    pool = host.storagePoolLookupByName("default-pool")
    if "base" not in pool.listVolumes():
        pool.createXML(
            "<volume><name>base</name><capacity>1048576</capacity>"
            "<target><format type='qcow2'/></target></volume>"
        )
    made = open_provider(CloudSettings("libvirt", profile="test:///default"))
    yield _libvirt_case(made, BASE, ready_s=5.0)
    host.close()


def library(name: str) -> Any:
    """The library of a provider, which is an extra of the package."""
    try:
        return import_module(name)
    except ImportError:
        lacking(Feature.CLOUD_LIBRARY, name)


@pytest.fixture
def cloud_qemu(hypervisor: hypervisors.Hypervisor) -> CloudCase:
    made = open_provider(CloudSettings("libvirt", profile=hypervisor.uri))
    return _libvirt_case(made, hypervisors.IMAGE, ready_s=120.0)


def _libvirt_case(made: Provider, image: str, ready_s: float) -> CloudCase:
    return CloudCase(
        lambda: made,
        region=HOST,
        type="1x256m",
        image=image,
        other_type="2x512m",
        impossible=lambda request: replace(request, type="1x900g"),
        down=lambda: open_provider(
            CloudSettings("libvirt", profile="qemu+unix:///system?socket=/nonexistent")
        ),
        ready_s=ready_s,
    )
