"""What has to be there for each kind of target to be reached: made here, removed here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import sshd
from tests.clouds.hosts_contract import cloud_hosts  # noqa: F401
from tests.clouds.kubernetes.contract import (  # noqa: F401
    cloud_kubernetes,
    in_a_pod,
    kubernetes_cluster,
)
from tests.clouds.libcloud.contract import cloud_cloudstack, cloud_opennebula  # noqa: F401
from tests.clouds.lxd.contract import cloud_lxd, in_an_instance, lxd_server  # noqa: F401
from tests.clouds.misbehaving.contract import (  # noqa: F401
    _double_in_fast_time,
    _opened_once,
    cloud_ec2,
)
from tests.hardware import Feature, lacking
from tests.tools import fixture_needs

from nephoscope.core.errors import Lacking
from nephoscope.measure.targets import KINDS, parse
from nephoscope.measure.targets.kinds.lab import LabRecord
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.sim import SimRecord
from nephoscope.measure.targets.probe.target import Target

from .toy_kind import ToyRecord

Factory = Callable[[], Target]
LAB_PROGRAMS = {
    "bare": ("ip", "tc"),
    "container": ("ip", "tc", "runc", "mmdebstrap"),
    "uml": ("ip", "tc", "linux.uml", "mmdebstrap"),
    "qemu": ("ip", "tc", "qemu-system-x86_64", "qemu-img", "mmdebstrap"),
}
"""Platform of a lab's host -> programs that make one."""


@pytest.fixture(scope="session")
@sshd.fixture_needs_it
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[sshd.Server, sshd.Server]]:
    """Two ssh servers on loopback: the host, and one to jump through."""
    folder = tmp_path_factory.mktemp("sshd")
    with sshd.serving(folder / "host") as host, sshd.serving(folder / "jump") as jump:
        yield host, jump


@pytest.fixture
def here(probe: Path) -> Factory:
    return lambda: LocalRecord(name="here").make()


@pytest.fixture
def over_ssh(servers: tuple[sshd.Server, sshd.Server], probe: Path) -> Factory:
    host, _ = servers
    return lambda: host.record().make()


@pytest.fixture
def through_a_jump(
    servers: tuple[sshd.Server, sshd.Server], probe: Path, tmp_path: Path
) -> Factory:
    """Both keys in one known_hosts file; the jump host takes the same user key."""
    host, jump = servers
    known = tmp_path / "known_hosts"
    known.write_text(host.known_hosts.read_text() + jump.known_hosts.read_text())
    (jump.folder / "identity.pub").write_text((host.folder / "identity.pub").read_text())
    way = {"known_hosts": str(known), "jump": (f"{jump.user}@127.0.0.1:{jump.port}",)}
    return lambda: host.record(**way).make()


@pytest.fixture
def through_a_collector(servers: tuple[sshd.Server, sshd.Server], probe: Path) -> Factory:
    """The jump host logs in to the other one with its own ssh client."""
    from nephoscope.measure.targets.ssh.collected import CollectedTarget, Collector

    host, jump = servers

    def make() -> Target:
        collector = Collector("jump", jump.record(name="jump").route())
        return CollectedTarget("far", collector, host.record(via="jump").route())

    return make


@pytest.fixture
def simulated() -> Factory:
    return lambda: SimRecord(name="model").make()


@pytest.fixture
def toy_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line in the table of kinds that a new kind adds."""
    monkeypatch.setitem(KINDS, "toy", ToyRecord)


@pytest.fixture
def toy(toy_kind: None, probe: Path) -> Factory:
    return parse("toy:1").make


@pytest.fixture(scope="session")
@fixture_needs(*LAB_PROGRAMS["bare"])
def bare() -> Iterator[Factory]:
    yield from _host("bare")


@pytest.fixture(scope="session")
@fixture_needs(*LAB_PROGRAMS["container"])
def container() -> Iterator[Factory]:
    yield from _host("container")


@pytest.fixture(scope="session")
@fixture_needs(*LAB_PROGRAMS["uml"])
def uml() -> Iterator[Factory]:
    yield from _host("uml")


@pytest.fixture(scope="session")
@fixture_needs(*LAB_PROGRAMS["qemu"])
def qemu() -> Iterator[Factory]:
    yield from _host("qemu")


def _host(platform: str) -> Iterator[Factory]:
    """The host of a lab of one host, for as long as the tests need it."""
    from nephoscope.measure.lab import files
    from nephoscope.measure.lab.provisioner import LABS

    if os.geteuid() != 0:
        lacking(Feature.ROOT)
    # Several test runs may share a machine; a lab's name has at most 12 characters.
    name = f"t{os.getpid()}{platform[:1]}"
    values = {
        "version": 1,
        "name": name,
        "network": "10.93.0.0/16",
        "hosts": {"a": {"platform": platform}},
    }
    try:
        asyncio.run(LABS.create(files.from_values(values), say=lambda line: None))
    except Lacking as error:
        lacking(Feature.LAB, str(error))
    try:
        yield lambda: LabRecord(name="inside", lab=name, host="a").make()
    finally:
        asyncio.run(LABS.remove(name))
