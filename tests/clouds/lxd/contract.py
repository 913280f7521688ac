"""LXD in the suite over all clouds: a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.clouds import lxd
from tests.contract.cloud_cases import CloudCase

from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.targets.kinds.instance import InstanceRecord
from nephoscope.measure.targets.probe.target import Target


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
def in_an_instance(lxd_server: lxd.LxdServer) -> Callable[[], Target]:
    """An instance that nobody rented."""
    lxd_server.room.run("lxc", "launch", lxd.IMAGE, "measured")
    return InstanceRecord(name="inside", instance="measured", server=lxd_server.socket).make
