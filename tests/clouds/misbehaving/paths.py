"""Planted distances: each pair of machines has its own round trip and rate.

Every machine is at a port of its own of the delay line (`nephoscope-lab line`), which is a hub: it
learns addresses, and holds each packet for the time of its pair of ports.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from nephoscope.core.programs import find_launcher

from .cloud import Cloud, Resource

PORTS = 24
"""Machines that can be there at once while distances are planted."""

OUTSIDE = "outside"
"""The place of the controller, and of the machines of other clouds."""

CLUSTER = "cluster"
"""The place of two machines of one cluster placement group."""

Planted = Sequence[Sequence[Any]]
"""(place, place, seconds of a round trip, bits per second); a place is a zone, a region, "*" for
any, or one of the words above. The closest place holds."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Paths:
    """The delay line between the machines of a cloud and its bridge."""

    def __init__(self, cloud: Cloud, bridge: str) -> None:
        self._cloud = cloud
        self._free = list(range(PORTS, 0, -1))
        self._at: dict[str, tuple[int, Resource]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="nepho-line-")
        self._control = str(Path(self._folder.name) / "socket")
        devices = [f"nt-{os.getpid()}-{port}" for port in range(PORTS + 1)]
        config = {"ports": [{"name": name} for name in devices], "socket": self._control}
        self._process: Any = None
        # A child dies with the thread that started it, and requests have threads of their own.
        threading.Thread(target=self._run, args=(config,), daemon=True).start()
        until = time.monotonic() + 60
        while not Path(self._control).exists() or not all(
            Path(f"/sys/class/net/{name}").exists() for name in devices
        ):
            if time.monotonic() > until:
                raise RuntimeError("the delay line did not start")
            time.sleep(0.02)
        for port, name in enumerate(devices):
            if port:
                ip("link", "add", self.bridge_of(port), "type", "bridge")
                ip("link", "set", self.bridge_of(port), "up")
            master = self.bridge_of(port) if port else bridge
            ip("link", "set", "dev", name, "gso_max_segs", "1", "master", master)
            ip("link", "set", "dev", name, "up")

    def _run(self, config: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(find_launcher()), "line", "--config", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._process.stdin.write(json.dumps(config).encode() + b"\n")
        self._process.stdin.flush()
        self._process.wait()

    @staticmethod
    def bridge_of(port: int) -> str:
        return f"nb-{os.getpid()}-{port}"

    def bridge_for(self, instance: Resource) -> str:
        """The bridge of a machine, at a port of its own with the distances to all others."""
        if instance.id not in self._at:
            port = self._free.pop()
            others = [*self._at.values(), (0, None)]
            self._at[instance.id] = (port, instance)
            paths = [
                path
                for other, there in others
                for path in self._both_ways(port, instance, other, there)
            ]
            self._tell(paths)
        return self.bridge_of(self._at[instance.id][0])

    def release(self, instance: Resource) -> None:
        if instance.id in self._at:
            self._free.append(self._at.pop(instance.id)[0])

    def _both_ways(
        self, port: int, here: Resource, other: int, there: Resource | None
    ) -> Iterator[dict[str, Any]]:
        rtt_s, bits_per_s = self._planted(here, there)
        for source, destination in ((port, other), (other, port)):
            yield {
                "from": source,
                "to": destination,
                "delay_ns": round(rtt_s * 1e9 / 2),
                "rate_bits_per_s": bits_per_s,
                # What waits for a slow path: 50 ms of it, as at a real port.
                "limit_packets": max(1000, round((bits_per_s or 1e9) * (rtt_s + 0.05) / 12000)),
            }

    def _planted(self, here: Resource, there: Resource | None) -> tuple[float, float | None]:
        planted = {frozenset(row[:2]): (row[2], row[3]) for row in self._cloud.settings["paths"]}
        if there is not None and _share_cluster(self._cloud, here, there):
            near = planted.get(frozenset({CLUSTER}))
            if near is not None:
                return near
        ends = [OUTSIDE] if there is None else [there.zone, there.region, "*"]
        for first, second in product([here.zone, here.region, "*"], ends):
            if (found := planted.get(frozenset({first, second}))) is not None:
                return found
        return 0.0, None

    def _tell(self, paths: list[dict[str, Any]]) -> None:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(60)
            control.connect(self._control)
            control.sendall(json.dumps({"paths": paths}).encode() + b"\n")
            answer = control.recv(65536)
        if b"error" in answer:
            raise RuntimeError(answer.decode(errors="replace"))

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
        for port in range(1, PORTS + 1):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("link", "delete", self.bridge_of(port))
        self._folder.cleanup()


def _share_cluster(cloud: Cloud, here: Resource, there: Resource) -> bool:
    names = {each.data["placement"].get("GroupName", "") for each in (here, there)}
    return names != {""} and any(
        each.kind == "placement-group"
        and {each.data["name"]} == names
        and each.data["strategy"] == CLUSTER
        for each in cloud.resources.values()
    )
