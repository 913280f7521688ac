"""HAProxy in front of instances that come and go, over its administration socket."""

from __future__ import annotations

import csv
import resource
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from nephoscope.autoscalers import log

_SOCKET = "admin.sock"
_PAUSES_S = (0.02, 0.1, 0.5)
_CONFIGURATION = """\
global
  maxconn {connections}
  nbthread 1
  stats socket unix@{socket} mode 600 level admin
defaults
  mode http
  option redispatch
  option http-keep-alive
  http-reuse always
  retries 3
  maxconn {connections}
  timeout connect 1s
  timeout server {timeout_ms}ms
  timeout queue {timeout_ms}ms
  timeout client 600s
  timeout http-keep-alive 600s
frontend clients
  bind {address}:{port} backlog 4096
  default_backend web
backend web
  balance leastconn
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of the balancer since its start, and the requests that it has now.

    arrived: requests of clients. completed: responses of all servers. failed: those with status
    5xx. in_system: requests that wait or are served now. responses: of each server.
    """

    at_s: float
    arrived: int
    completed: int
    failed: int
    in_system: int
    responses: dict[str, int]
    sessions: dict[str, int]


class Balancer:
    """A running HAProxy of which every server is out of rotation at first."""

    def __init__(self, address: str, port: int, servers: dict[str, str], timeout_s: float) -> None:
        """servers: name -> address:port. Starts the program in the working directory."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        text = _CONFIGURATION.format(
            socket=_SOCKET,
            address=address,
            port=port,
            timeout_ms=round(timeout_s * 1e3),
            # A request has two connections, and checks and pipes need some files of their own.
            connections=20_000 if files < 0 else max(16, min(20_000, (files - 100) // 3)),
        )
        text += "".join(f"  server {name} {at} disabled\n" for name, at in servers.items())
        self._process = subprocess.Popen(
            log.bound(["haproxy", "-f", "/dev/stdin"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.close()
        self._wait()

    def _wait(self) -> None:
        until_s = time.monotonic() + 10
        while True:
            try:
                self._ask("show info")
                return
            except OSError:
                if time.monotonic() > until_s or self._process.poll() is not None:
                    raise SystemExit("HAProxy did not start.") from None
                time.sleep(0.02)

    def _ask(self, command: str) -> str:
        """Returns the answer to a command; asks again where the socket was busy for a moment."""
        for pause_s in (*_PAUSES_S, None):
            try:
                return self._answer(command)
            except OSError:
                if pause_s is None or self._process.poll() is not None:
                    raise
                time.sleep(pause_s)
        raise AssertionError

    def _answer(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(5)
            link.connect(_SOCKET)
            link.sendall(command.encode() + b"\n")
            parts = []
            while part := link.recv(65_536):
                parts.append(part)
        return b"".join(parts).decode()

    def admit(self, server: str) -> None:
        """Puts a server into rotation."""
        self._ask(f"set server web/{server} state ready")

    def drain(self, server: str) -> None:
        """Sends a server no further requests; those that it has are finished."""
        self._ask(f"set server web/{server} state drain")

    def remove(self, servers: Sequence[str]) -> None:
        """Takes servers out of rotation, whatever they do."""
        for server in servers:
            self._ask(f"set server web/{server} state maint")

    def counters(self) -> Counters:
        """Reads the counters."""
        text = self._ask("show stat")
        now_s = time.monotonic()
        rows = {
            (row["pxname"], row["svname"]): row for row in csv.DictReader(text[2:].splitlines())
        }
        web = rows["web", "BACKEND"]
        servers = {name: row for (part, name), row in rows.items() if part == "web"}
        servers.pop("BACKEND")
        responses = {
            name: sum(int(row[f"hrsp_{digit}xx"] or 0) for digit in (1, 2, 3, 4))
            for name, row in servers.items()
        }
        return Counters(
            now_s,
            arrived=int(rows["clients", "FRONTEND"]["req_tot"]),
            completed=sum(int(web[f"hrsp_{digit}xx"]) for digit in (1, 2, 3, 4, 5)),
            failed=int(web["hrsp_5xx"]),
            in_system=int(web["scur"]) + int(web["qcur"]),
            responses=responses,
            sessions={name: int(row["scur"]) for name, row in servers.items()},
        )

    def end(self) -> None:
        """Ends the program."""
        self._process.terminate()
        self._process.wait()
