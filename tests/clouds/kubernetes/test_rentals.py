"""Rentals on a real Kubernetes: measured from end to end, killed and swept, ended by a lease."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.clouds import kubernetes, renting
from tests.clouds.kubernetes.contract import kubernetes_cluster  # noqa: F401 - a fixture
from tests.clouds.renting import Renting
from tests.tools import needs

from nephoscope.measure.cloud.model import ResourceState
from nephoscope.measure.cloud.provider import CloudSettings
from nephoscope.measure.cloud.providers import kubernetes as provider
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.targets.exec.kubernetes import connect

pytestmark = [pytest.mark.slow, needs(*kubernetes.PROGRAMS)]

KILLS = 12


@pytest.fixture
def wanted(kubernetes_cluster: kubernetes.Cluster, tmp_path: Path) -> Renting:  # noqa: F811
    config = str(kubernetes_cluster.kubeconfig)
    return Renting(
        "kubernetes", config, str(tmp_path), "default", "0.25cpu-64mib", kubernetes.IMAGE
    )


def test_machines_are_rented_measured_and_removed(
    wanted: Renting,
    kubernetes_cluster: kubernetes.Cluster,  # noqa: F811
) -> None:
    result = asyncio.run(renting.whole(wanted, "whole", lambda line: None))
    assert result["values"] == {"box-1": [5.0] * 3, "box-2": [5.0] * 3}
    assert kubernetes_cluster.containers() == []
    assert _secrets(kubernetes_cluster) == []


def test_a_killed_controller_leaves_nothing_that_a_sweep_does_not_find(
    wanted: Renting,
    kubernetes_cluster: kubernetes.Cluster,  # noqa: F811
) -> None:
    def left() -> list[str]:
        return [*kubernetes_cluster.containers(), *_secrets(kubernetes_cluster)]

    machines = renting.campaign(wanted, KILLS, left)
    assert max(machines) > 0, machines  # else no kill was in the middle


def _secrets(cluster: kubernetes.Cluster) -> list[str]:
    """Secrets go with their pods, a moment later."""
    server = connect(str(cluster.kubeconfig)).server
    path = "/api/v1/namespaces/default/secrets"
    until = time.monotonic() + 20
    while found := server.request("GET", path).document["items"]:
        if time.monotonic() > until:
            return [str(one["metadata"]["name"]) for one in found]
        time.sleep(0.2)
    return []


def test_a_pod_ends_when_its_label_says_so_and_lives_on_when_that_is_moved(
    wanted: Renting,
    kubernetes_cluster: kubernetes.Cluster,  # noqa: F811
) -> None:
    """The lease is in the pod itself, so that no controller is needed to end it."""
    cloud = open_provider(CloudSettings("kubernetes", wanted.endpoint))
    ends_s = int(time.time()) + 12
    made = []
    for name, token in (("short", "a" * 32), ("longer", "b" * 32)):
        asked = renting.request(wanted, name, token)
        made += cloud.create(replace(asked, tags=replace(asked.tags, expires_s=ends_s)))
    cloud.extend(made[1], ends_s + 600)
    until = time.monotonic() + 60
    while (found := cloud.resources("default", "short"))[0].state is not ResourceState.STOPPED:
        assert time.monotonic() < until, found
        time.sleep(0.5)
    assert time.time() >= ends_s
    time.sleep(8)
    (other,) = cloud.resources("default", "longer")
    assert (other.state, other.tags.expires_s) == (ResourceState.READY, ends_s + 600)
    for name in ("short", "longer"):
        renting.swept(wanted, name)
    assert kubernetes_cluster.containers() == []


def test_a_listing_is_read_to_its_last_page(
    wanted: Renting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "PAGE", 2)
    cloud = open_provider(CloudSettings("kubernetes", wanted.endpoint))
    made = cloud.create(renting.request(wanted, "pages", "c" * 32, count=5))
    assert len(cloud.resources("default", "pages")) == len(made) == 5
    renting.swept(wanted, "pages")


def test_an_image_that_nobody_has_is_a_failed_machine_with_its_reason(wanted: Renting) -> None:
    cloud = open_provider(CloudSettings("kubernetes", wanted.endpoint))
    asked = renting.request(wanted, "noimage", "d" * 32)
    cloud.create(replace(asked, image="registry.invalid/nobody:1"))
    until = time.monotonic() + 60
    while (found := cloud.resources("default", "noimage"))[0].state is not ResourceState.FAILED:
        assert time.monotonic() < until, found
        time.sleep(0.5)
    assert "registry.invalid/nobody:1" in found[0].problem  # type: ignore[attr-defined]
    renting.swept(wanted, "noimage")
