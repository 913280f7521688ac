"""Kubernetes in the suite over all clouds: a real cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.clouds import kubernetes
from tests.contract.cloud_cases import CloudCase

from nephoscope.measure.cloud.provider import CloudSettings, Provider
from nephoscope.measure.cloud.providers import open_provider
from nephoscope.measure.targets.kinds.pod import PodRecord
from nephoscope.measure.targets.probe.target import Target


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


@pytest.fixture(scope="session")
def in_a_pod(kubernetes_cluster: kubernetes.Cluster) -> Callable[[], Target]:
    """A pod that nobody rented."""
    container = {"name": "main", "image": kubernetes.IMAGE, "imagePullPolicy": "Never"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    kubernetes_cluster.make_pod("measured", spec)
    config = str(kubernetes_cluster.kubeconfig)
    record = PodRecord(name="inside", pod="measured", namespace="default", kubeconfig=config)
    return record.make
