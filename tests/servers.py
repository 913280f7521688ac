"""Servers on loopback: one of the test's own in a thread, and a Prometheus that scrapes it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from socketserver import TCPServer
from typing import Any

import yaml

LIMIT_S = 120.0


@contextlib.contextmanager
def serving(server: TCPServer) -> Iterator[int]:
    """Serves until the end of the block; yields the port."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


class Prometheus:
    """A running Prometheus, on a port that the kernel chose."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._port = 0

    def wait_until_ready(self) -> None:
        self.until(lambda: self._listening() and self._get("/-/ready") is not None)

    def until(self, condition: Callable[[], Any]) -> Any:
        """Waits until a condition is true, and returns it."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if result := condition():
                return result
            time.sleep(0.1)
        raise AssertionError(self._log.read_text()[-4000:])

    def samples(self, query: str) -> list[tuple[float, float]]:
        """Samples of one series, (time in s, value); none while there is none."""
        result = self._result(query)
        return [(float(at), float(value)) for at, value in result[0]["values"]] if result else []

    def value(self, query: str) -> float | None:
        """The newest value of one series; None while there is none."""
        result = self._result(query)
        return float(result[0]["value"][1]) if result else None

    def has_samples(self, query: str) -> bool:
        """Returns whether a query has an answer, of any value."""
        return bool(self._result(query))

    def _result(self, query: str) -> list[dict[str, Any]]:
        answer = self._get(f"/api/v1/query?query={urllib.parse.quote(query)}")
        return list(json.loads(answer)["data"]["result"]) if answer else []

    def _listening(self) -> bool:
        """Looks its port up: the inodes of its sockets among those that listen."""
        links = []
        for entry in Path(f"/proc/{self._process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                links.append(str(entry.readlink()))
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in links:
                self._port = int(words[1].rpartition(":")[2], 16)
        return self._port > 0

    def _get(self, path: str) -> bytes | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as got:
                return bytes(got.read())
        except OSError:
            return None


@contextlib.contextmanager
def prometheus(folder: Path, configuration: Mapping[str, Any], *words: str) -> Iterator[Prometheus]:
    """Runs a Prometheus with its files in a folder. words: further options."""
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(dict(configuration)))
    log = folder / "log"
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
        *words,
    ]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        server = Prometheus(process, log)
        server.wait_until_ready()
        yield server
    finally:
        process.terminate()
        try:
            process.wait(LIMIT_S / 4)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
