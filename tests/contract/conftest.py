"""What has to be there for each kind of target to be reached: made here, removed here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests import sshd
from tests.clouds import kubernetes, lxd
from tests.clouds.libcloud import cloudstack, opennebula
from tests.hardware import Feature, lacking
from tests.sshd import free_port
from tests.tools import fixture_needs

from nephoscope.core.errors import Lacking
from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.targets import KINDS, parse
from nephoscope.measure.targets.kinds.lab import LabRecord
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.sim import SimRecord
from nephoscope.measure.targets.probe.target import Target

from .cloud_cases import CloudCase
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


@pytest.fixture(scope="session")
def lxd_server() -> Iterator[lxd.LxdServer]:
    """A real LXD in a root and a network of its own."""
    with lxd.running() as server:
        yield server


@pytest.fixture
def cloud_lxd(lxd_server: lxd.LxdServer) -> CloudCase:
    def at(socket: str) -> Provider:
        return open_provider(CloudSettings("lxd", socket))

    return CloudCase(
        lambda: at(lxd_server.socket),
        region=lxd.PROJECT,
        type="1cpu-128mib",
        image=lxd.IMAGE,
        other_type="2cpu-256mib",
        impossible=lambda request: replace(
            request, count=lxd.INSTANCES + 1, at_least=lxd.INSTANCES + 1
        ),
        down=lambda: at("/nonexistent/unix.socket"),
    )


@pytest.fixture(scope="session")
def kubernetes_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kubernetes.Cluster]:
    """A real Kubernetes with one node in a root and a network of its own."""
    with kubernetes.running(tmp_path_factory.mktemp("kubernetes")) as cluster:
        yield cluster


@pytest.fixture
def cloud_kubernetes(kubernetes_cluster: kubernetes.Cluster, tmp_path: Path) -> CloudCase:
    config = kubernetes_cluster.kubeconfig

    def at(file: Path, context: str = "") -> Provider:
        return open_provider(CloudSettings("kubernetes", str(file), context))

    wrong, down = tmp_path / "wrong", tmp_path / "down"
    wrong.write_text(config.read_text().replace(kubernetes.TOKEN, secret := "not-its-token-4711"))
    down.write_text(config.read_text().replace(f":{kubernetes_cluster.port}", ":1"))
    return CloudCase(
        lambda: at(config),
        region=kubernetes.NAMESPACE,
        type="0.25cpu-64mib",
        image=kubernetes.IMAGE,
        zone=kubernetes.ZONE,
        impossible=lambda request: replace(
            request, count=kubernetes.PODS + 1, at_least=kubernetes.PODS + 1
        ),
        wrong=lambda: at(wrong, "token"),
        secret=secret,
        down=lambda: at(down),
    )


@pytest.fixture
def cloud_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CloudCase:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    inventory = tmp_path / "hosts.ini"
    lines = [f"web{n} ansible_host=127.0.0.{n} nephoscope_zone=rack-1" for n in range(1, 6)]
    facts = ["[web:vars]", "ansible_processor_vcpus=2", "ansible_memtotal_mb=2048"]
    inventory.write_text("\n".join(["[web]", *lines, *facts]))

    def at(source: str) -> Provider:
        return open_provider(CloudSettings("hosts", source))

    return CloudCase(
        lambda: at(str(inventory)),
        region="hosts",
        type="web",
        image="installed",
        zone="rack-1",
        impossible=lambda request: replace(request, count=6, at_least=6),
        down=lambda: at('["false"]'),
    )


@pytest.fixture
def cloud_cloudstack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudCase]:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = "[{}]\nendpoint = http://127.0.0.1:{}/client/api\nkey = {}\nsecret = {}\n"
    with cloudstack.running() as double:
        sections = (
            ("good", double.port, cloudstack.SECRET),
            ("bad", double.port, secret := "another-secret-4711"),
            ("down", free_port(), cloudstack.SECRET),
        )
        texts = [
            config.format(name, port, cloudstack.KEY, secret) for name, port, secret in sections
        ]
        (tmp_path / ".cloudstack.ini").write_text("".join(texts))
        yield _of_libcloud("cloudstack", cloudstack.ZONE, cloudstack.LIMIT, secret, cloudstack.PAGE)


@pytest.fixture
def cloud_opennebula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudCase]:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = "[{}]\nendpoint = http://127.0.0.1:{}\nuser = {}\npassword = {}\n"
    with opennebula.running() as double:
        sections = (
            ("good", double.port, opennebula.PASSWORD),
            ("bad", double.port, secret := "another-password-4711"),
            ("down", free_port(), opennebula.PASSWORD),
        )
        texts = [
            config.format(name, port, opennebula.USER, password)
            for name, port, password in sections
        ]
        (tmp_path / ".one").mkdir()
        (tmp_path / ".one" / "occi.ini").write_text("".join(texts))
        yield _of_libcloud("opennebula", "default", opennebula.LIMIT, secret)


def _of_libcloud(provider: str, region: str, limit: int, secret: str, page: int = 0) -> CloudCase:
    def at(section: str) -> Provider:
        return open_provider(CloudSettings(provider, profile=section))

    return CloudCase(
        lambda: at("good"),
        region=region,
        type="small",
        image="debian-12",
        impossible=lambda request: replace(request, count=limit + 1, at_least=limit + 1),
        wrong=lambda: at("bad"),
        secret=secret,
        down=lambda: at("down"),
        page=page,
    )
