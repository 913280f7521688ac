"""A metrics API (metrics.k8s.io) of the tests: what the autoscaler sees is planted, and logged.

It serves in the room's network, behind the API server, which asks it as an APIService. Usage is a
planted total that the pods share, or what the kubelet measures (`/metrics/resource`, the source of
metrics-server).
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.clouds.kubernetes import Cluster
from tests.clouds.rooms import CLONE_NEWNET, Room

from nephoscope.measure.targets.exec.kubernetes import connect

PORT = 16444
GROUP = "metrics.k8s.io"
CONTROLLER = "kube-controller-manager"
"""Part of the name with which the autoscaler asks: nothing else of it reads metrics."""
_SAMPLE = re.compile(
    r'container_cpu_usage_seconds_total\{container="main",namespace="default",pod="([^"]+)"\} '
    r"(\S+) (\d+)"
)
_RESOURCES = [
    {
        "name": "pods",
        "singularName": "",
        "namespaced": True,
        "kind": "PodMetrics",
        "verbs": ["list"],
    }
]


@dataclass(frozen=True)
class Seen:
    """One request of the autoscaler: what it was answered, and the pods and the scale target at
    that time and right after it."""

    at_s: float
    answer: Mapping[str, Any]
    pods: tuple[list[Any], list[Any]]
    target: Mapping[str, Any]


@dataclass
class MetricsService:
    """total_milli: planted CPU usage of all pods; None reads the kubelet. is_down: it answers with
    an error. window: of a value, as the API states it."""

    cluster: Cluster
    target: str
    room_config: Path
    total_milli: int | None = 0
    is_down: bool = False
    window: str = "1s"
    without: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)
    _cpu: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def answer(self, path: str, agent: str) -> tuple[int, Mapping[str, Any]]:
        parts = urlsplit(path)
        words = parts.path.strip("/").split("/")
        if words[:2] != ["apis", GROUP]:
            return (404 if words[0] == "openapi" else 200), {}
        if words[-1] != "pods":
            return 200, {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/v1beta1",
                "resources": _RESOURCES,
            }
        if self.is_down:
            return 503, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503}
        query = parse_qs(parts.query).get("labelSelector", [""])[0]
        server = connect(str(self.room_config)).server
        at_s = time.time()
        listing = f"/api/v1/namespaces/default/pods?labelSelector={query}"
        pods = server.request("GET", listing).document["items"]
        own = server.request(
            "GET", f"/apis/apps/v1/namespaces/default/deployments/{self.target}"
        ).document
        document = {
            "kind": "PodMetricsList",
            "apiVersion": f"{GROUP}/v1beta1",
            "metadata": {},
            "items": list(self._items(pods, server)),
        }
        if CONTROLLER in agent:
            later = threading.Timer(0.1, self._remember, (at_s, document, pods, own, listing))
            later.daemon = True
            later.start()
        return 200, document

    def _remember(
        self, at_s: float, document: Any, pods: list[Any], own: Any, listing: str
    ) -> None:
        server = connect(str(self.room_config)).server
        with contextlib.suppress(OSError):
            after = server.request("GET", listing).document["items"]
            self.seen.append(Seen(at_s, document, (pods, after), own))

    def _items(self, pods: list[Any], server: Any) -> Iterator[Mapping[str, Any]]:
        running = [
            pod
            for pod in pods
            if pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
            and pod["metadata"]["name"] not in self.without
        ]
        now = datetime.datetime.now(datetime.UTC)
        if self.total_milli is None:
            self._scrape(server)
        for pod in running:
            name = pod["metadata"]["name"]
            nano, at = round(1e6 * (self.total_milli or 0) / len(running)), now
            window = self.window
            if self.total_milli is None:
                points = self._cpu.get(name, [])
                if len(points) < 2:
                    continue
                (before_s, before), (at_s, used) = points[-2:]
                nano = round(1e9 * (used - before) / (at_s - before_s))
                at = datetime.datetime.fromtimestamp(at_s, datetime.UTC)
                window = f"{at_s - before_s:.3f}s"
            yield {
                "metadata": {"name": name, "namespace": "default"},
                "timestamp": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "window": window,
                "containers": [{"name": "main", "usage": {"cpu": f"{nano}n", "memory": "8Mi"}}],
            }

    def _scrape(self, server: Any) -> None:
        text = server.request("GET", "/api/v1/nodes/node/proxy/metrics/resource").text
        with self._lock:
            for name, value, at_ms in _SAMPLE.findall(text):
                points = self._cpu.setdefault(name, [])
                if not points or int(at_ms) / 1e3 > points[-1][0]:
                    points.append((int(at_ms) / 1e3, float(value)))


@contextlib.contextmanager
def serving(cluster: Cluster, folder: Path, target: str) -> Iterator[MetricsService]:
    """Serves the metrics API of a cluster, and registers it there."""
    config = folder / "files/etc/kubernetes/kubeconfig"
    service = MetricsService(cluster, target, config)
    opened: list[ThreadingHTTPServer] = []
    ready = threading.Event()
    thread = threading.Thread(target=_serve, args=(service, cluster.room, folder, opened, ready))
    thread.start()
    assert ready.wait(20)
    assert opened
    try:
        _register(cluster)
        yield service
    finally:
        opened[0].shutdown()
        thread.join()
        opened[0].server_close()


def _serve(
    service: MetricsService,
    room: Room,
    folder: Path,
    opened: list[ThreadingHTTPServer],
    ready: threading.Event,
) -> None:
    """Threads of this one are in the room's network too."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            try:
                status, document = service.answer(self.path, self.headers.get("User-Agent", ""))
            except (OSError, KeyError):
                status, document = 503, {}
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    try:
        with open(f"/proc/{room.pid}/ns/net", "rb") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pki = folder / "files/etc/kubernetes"
        tls.load_cert_chain(pki / "server.crt", pki / "server.key")
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        opened.append(server)
    finally:
        ready.set()
    server.serve_forever(poll_interval=0.1)


def _register(cluster: Cluster) -> None:
    server = connect(str(cluster.kubeconfig)).server
    service = {
        "metadata": {"name": "planted-metrics"},
        "spec": {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"port": PORT, "protocol": "TCP"}],
        },
    }
    assert server.request("POST", "/api/v1/namespaces/kube-system/services", service).good
    registered = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1beta1.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "planted-metrics", "namespace": "kube-system", "port": PORT},
        },
    }
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    answer = server.request("POST", path, registered)
    assert answer.good, answer.text
    listing = f"/apis/{GROUP}/v1beta1/namespaces/default/pods"
    cluster.room.until(lambda: server.request("GET", listing).good)
