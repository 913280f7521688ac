"""HAProxy in a room's network, whose servers are the ready endpoints of a service."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.clouds.kubernetes import Cluster

from nephoscope.features.elastic.autoscalers.kubernetes_objects import endpoints_of
from nephoscope.measure.targets.exec.kubernetes import connect

PORT = 8090
SERVERS = 8
_CONFIGURATION = """\
global
  nbthread 1
  stats socket unix@{socket} mode 600 level admin
defaults
  mode http
  option http-keep-alive
  option redispatch
  retries 3
  timeout connect 1s
  timeout server 10s
  timeout queue 10s
  timeout client 600s
frontend clients
  bind 127.0.0.1:{port}
  default_backend web
backend web
  balance leastconn
  server-template web 1-{servers} 127.0.0.1:1 disabled
"""


@contextlib.contextmanager
def balancing(cluster: Cluster, folder: Path, haproxy: str) -> Iterator[str]:
    """Yields the URL of this machine that leads to the balancer, until the end."""
    admin = folder / "admin.sock"
    config = folder / "haproxy.cfg"
    config.write_text(_CONFIGURATION.format(socket=admin, port=PORT, servers=SERVERS))
    process = subprocess.Popen(
        [
            *("setpriv", "--pdeathsig", "KILL"),
            *("nsenter", f"--target={cluster.room.pid}", "--net", "--", haproxy, "-f", str(config)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(cluster, admin, ended))
    try:
        cluster.room.until(admin.exists)
        thread.start()
        with cluster.room.forwarded(PORT) as port:
            yield f"http://127.0.0.1:{port}"
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()
        process.terminate()
        process.wait()


def _ask(admin: Path, command: str) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(str(admin))
        link.sendall(command.encode() + b"\n")
        while link.recv(65_536):
            pass


def _follow(cluster: Cluster, admin: Path, ended: threading.Event) -> None:
    server = connect(str(cluster.kubeconfig)).server
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    places: dict[str, int] = {}
    while not ended.wait(0.05):
        with contextlib.suppress(OSError):
            slices = server.request("GET", path).document.get("items") or []
            addresses = {
                endpoint["targetRef"]["name"]: endpoint["addresses"][0]
                for entry in slices
                for endpoint in entry.get("endpoints") or ()
                if endpoint.get("targetRef")
            }
            present = endpoints_of(slices)
            for name in set(places) - set(present):
                _ask(admin, f"set server web/web{places.pop(name)} state maint")
            for name, port in present.items():
                if name not in places:
                    place = min(set(range(1, SERVERS + 1)) - set(places.values()))
                    places[name] = place
                    _ask(admin, f"set server web/web{place} addr {addresses[name]} port {port}")
                    _ask(admin, f"set server web/web{place} state ready")
