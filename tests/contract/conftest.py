"""What has to be there for each kind of target to be reached: made here, removed here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import sshd

from nephoscope.plans import Target as Record
from nephoscope.targets import TARGETS, Target

Factory = Callable[[], Target]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[sshd.Server, sshd.Server]]:
    """Two ssh servers on loopback: the host, and one to jump through."""
    if reason := sshd.lacking():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("sshd")
    with sshd.serving(folder / "host") as host, sshd.serving(folder / "jump") as jump:
        yield host, jump


@pytest.fixture
def here(probe: Path) -> Factory:
    return lambda: TARGETS["local"](Record(name="here"))


@pytest.fixture
def over_ssh(servers: tuple[sshd.Server, sshd.Server], probe: Path) -> Factory:
    host, _ = servers
    return lambda: TARGETS["ssh"](host.record())


@pytest.fixture
def through_a_jump(
    servers: tuple[sshd.Server, sshd.Server], probe: Path, tmp_path: Path
) -> Factory:
    """Both keys in one known_hosts file; the jump host takes the same user key."""
    host, jump = servers
    known = tmp_path / "known_hosts"
    known.write_text(host.known_hosts.read_text() + jump.known_hosts.read_text())
    (jump.folder / "identity.pub").write_text((host.folder / "identity.pub").read_text())
    return lambda: TARGETS["ssh"](
        host.record(known_hosts=str(known), jump=(f"{jump.user}@127.0.0.1:{jump.port}",))
    )
