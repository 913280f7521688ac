"""Kubernetes 1.34 in a room: its own programs, one node, real pods of an image made here."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clouds import busybox, roots
from tests.clouds.kubernetes import build, certificates
from tests.clouds.kubernetes.certificates import Certificates
from tests.clouds.rooms import Room, room

HERE = Path(__file__).parent
PROGRAMS = ("mmdebstrap", "ip", "setpriv", *busybox.PROGRAMS)
PACKAGES = (
    *("etcd-server", "containerd", "runc", "containernetworking-plugins", "iproute2", "iptables"),
)
IMAGE = "nephoscope.test/busybox:1"
NAMESPACE, PODS = "bounded", 5
"""A namespace, and how many pods its quota grants."""
ZONE = "rack-1"
API_PORT = 6443
START_S = 300.0
"""Seconds are enough on a machine that does nothing else."""
TOKEN = "token-of-the-cluster-of-the-tests"
"""Of a user without rights but those that a test gives it."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs. kubeconfig: a file for its administrator, with client certificates."""

    room: Room
    port: int
    kubeconfig: Path

    def containers(self, namespace: str = "") -> list[str]:
        """The oracle: tasks of containerd with a name of ours, without the API's database."""
        ids = self.room.run("ctr", "--namespace", "k8s.io", "tasks", "list", "--quiet").split()
        return [one for one in ids if self._namespace(one) == (namespace or "default")]

    def make_pod(self, name: str, spec: Mapping[str, Any]) -> None:
        """Makes a pod in the namespace `default`, and waits until it runs."""
        from nephoscope.measure.targets.exec.kubernetes import connect

        server = connect(str(self.kubeconfig)).server
        path = "/api/v1/namespaces/default/pods"
        answer = server.request("POST", path, {"metadata": {"name": name}, "spec": spec})
        assert answer.good, answer.text
        self.room.until(
            lambda: server.request("GET", f"{path}/{name}").document["status"]["phase"] == "Running"
        )

    def _namespace(self, container: str) -> str:
        info = json.loads(
            self.room.run("ctr", "--namespace", "k8s.io", "containers", "info", container)
        )
        labels: dict[str, str] = info["Labels"]
        return labels.get("io.kubernetes.pod.namespace", "")


@contextlib.contextmanager
def running(folder: Path, *controller_flags: str) -> Iterator[Cluster]:
    """Starts a cluster; yields it when its node takes pods. folder: for the kubeconfig."""
    layers = [roots.debian("kubernetes", PACKAGES), build.programs(), folder / "files"]
    issued = certificates.made()
    for path, content in _files(issued).items():
        file = folder / "files" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    root = ":".join(map(str, reversed(layers)))
    script = f"CONTROLLER_FLAGS='{' '.join(controller_flags)}'\n" + (HERE / "start.sh").read_text()
    with room(root, script) as made, made.forwarded(API_PORT) as port:
        config = folder / "kubeconfig"
        config.write_text(json.dumps(kubeconfig(issued, port)))
        config.chmod(0o600)
        cluster = Cluster(made, port, config)
        made.until(lambda: _ready(cluster), START_S)
        _add_namespace(cluster)
        yield cluster


def kubeconfig(issued: Certificates, port: int) -> dict[str, Any]:
    """Contexts `admin` (client certificate) and `token` (of a user without rights)."""
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority-data": _base64(issued.authority),
    }
    admin = {
        "client-certificate-data": _base64(issued.admin),
        "client-key-data": _base64(issued.admin_key),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "room", "cluster": cluster}],
        "users": [{"name": "admin", "user": admin}, {"name": "nobody", "user": {"token": TOKEN}}],
        "contexts": [
            {"name": "admin", "context": {"cluster": "room", "user": "admin"}},
            {"name": "token", "context": {"cluster": "room", "user": "nobody"}},
        ],
        "current-context": "admin",
    }


def _ready(cluster: Cluster) -> bool:
    """Whether the node takes pods, and the namespace has the account that they run as."""
    from nephoscope.measure.targets.exec.kubernetes import connect

    server = connect(str(cluster.kubeconfig)).server
    nodes = server.request("GET", "/api/v1/nodes").document.get("items") or []
    conditions = [one for node in nodes for one in node["status"].get("conditions", ())]
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    account = server.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
    return ready and account.good


def _add_namespace(cluster: Cluster) -> None:
    from nephoscope.measure.targets.exec.kubernetes import connect

    server = connect(str(cluster.kubeconfig)).server
    space = {"metadata": {"name": NAMESPACE}}
    assert server.request("POST", "/api/v1/namespaces", space).good
    quota = {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": str(PODS)}}}
    path = f"/api/v1/namespaces/{NAMESPACE}"
    assert server.request("POST", f"{path}/resourcequotas", quota).good
    # The quota counts from when its controller has seen it.
    found = f"{path}/resourcequotas/pods"
    cluster.room.until(lambda: server.request("GET", found).document.get("status", {}).get("used"))
    cluster.room.until(lambda: server.request("GET", f"{path}/serviceaccounts/default").good)


def _files(issued: Certificates) -> dict[str, bytes]:
    config = json.dumps(kubeconfig(issued, API_PORT)).encode()
    return {
        "etc/hosts": b"127.0.0.1 localhost\n",
        "etc/kubernetes/ca.crt": issued.authority,
        "etc/kubernetes/server.crt": issued.server,
        "etc/kubernetes/server.key": issued.server_key,
        "etc/kubernetes/tokens.csv": f"{TOKEN},nobody,nobody,nobodies\n".encode(),
        "etc/kubernetes/kubeconfig": config,
        "etc/kubernetes/kubelet.yaml": _kubelet_settings(),
        "etc/kubernetes/image.tar": image(),
        "etc/containerd/config.toml": (HERE / "containerd.toml").read_bytes(),
        "etc/cni/net.d/10-pods.conflist": (HERE / "network.conflist").read_bytes(),
    }


def _kubelet_settings() -> bytes:
    settings = (HERE / "kubelet.yaml").read_bytes()
    if len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        # The group of all pods would have every CPU of the machine, which a group that may use
        # fewer refuses.
        settings += b"cgroupsPerQOS: false\n"
    return settings


def image() -> bytes:
    """The image as `docker save` writes it: one layer, and what it runs when it is the pause of a
    pod."""
    layer = busybox.tree()
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/bin/sleep", "1000000000"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    name = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": f"{name}.json", "RepoTags": [IMAGE], "Layers": [f"{digest}/layer.tar"]}]
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for path, content in {
            f"{name}.json": config,
            f"{digest}/layer.tar": layer,
            "manifest.json": json.dumps(manifest).encode(),
        }.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def _base64(text: bytes) -> str:
    return base64.b64encode(text).decode()
