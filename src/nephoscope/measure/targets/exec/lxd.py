"""LXD and Incus: their API, and a channel into one of their instances."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import urllib.parse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nephoscope.core.errors import TargetError, UsageError
from nephoscope.core.reading import regular, yamltext
from nephoscope.core.records import dataclass
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.exec.channel import ExecChannel, returncode_of
from nephoscope.measure.targets.exec.rest import Answer, RestServer, words_of_failure
from nephoscope.measure.targets.exec.websocket import TEXT, WebSocket

SOCKETS = (
    "/var/snap/lxd/common/lxd/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
)
_CONFIGURATIONS = (
    ("LXD_CONF", "~/.config/lxc"),
    ("LXD_CONF", "~/snap/lxd/common/config"),
    ("INCUS_CONF", "~/.config/incus"),
)
_ENDED_S = 10.0
"""Time to tell an exit code after the last word of a program."""


def server_of(endpoint: str = "", remote: str = "") -> RestServer:
    """Returns the server at an endpoint (https://HOST:PORT or the path of a socket), or under the
    name of a remote of `lxc remote list`; without either the one of this machine.

    Raises UsageError.
    """
    address = endpoint or (_address_of(remote) if remote else "")
    if address.startswith("https://"):
        parts = urllib.parse.urlsplit(address)
        tls = _context(remote)
        return RestServer(parts.hostname or "", parts.port or 8443, tls=tls)
    path = address.removeprefix("unix://").removeprefix("unix:")
    if not path:
        folder = os.environ.get("LXD_DIR") or os.environ.get("INCUS_DIR")
        sockets = (f"{folder}/unix.socket",) if folder else SOCKETS
        path = next((socket for socket in sockets if Path(socket).exists()), "")
    if not path.startswith("/"):
        raise UsageError(
            "No LXD or Incus answers on this machine: none of its sockets exists."
            if not path
            else f"'{address}' is no address of an LXD or Incus server.",
            "Write `endpoint: https://HOST:8443` or the path of its socket, or `profile:` with the "
            "name of a remote.",
        )
    return RestServer("localhost", path=path)


def _folders() -> list[Path]:
    named = [Path(os.environ[name]) for name, _ in _CONFIGURATIONS if os.environ.get(name)]
    return named or [Path(path).expanduser() for _, path in _CONFIGURATIONS]


def _address_of(remote: str) -> str:
    known: list[str] = []
    for folder in _folders():
        with contextlib.suppress(OSError):
            file = folder / "config.yml"
            document = yamltext.parse(regular.read_text(file), str(file))
            remotes = document.get("remotes") if isinstance(document, dict) else None
            known += remotes if isinstance(remotes, dict) else ()
            entry = (remotes or {}).get(remote)
            if isinstance(entry, dict) and isinstance(entry.get("addr"), str):
                return str(entry["addr"])
    raise UsageError(
        f"No remote of LXD or Incus is called '{remote}'"
        + (f" (there is {', '.join(sorted(set(known)))})." if known else "."),
        "Add it with `lxc remote add`.",
    )


def _context(remote: str) -> ssl.SSLContext:
    """The client's certificate, and the server's own where the remote was added with it."""
    for folder in _folders():
        certificate, key = folder / "client.crt", folder / "client.key"
        if not (certificate.exists() and key.exists()):
            continue
        pinned = folder / "servercerts" / f"{remote}.crt"
        context = ssl.create_default_context(cafile=str(pinned) if pinned.exists() else None)
        if pinned.exists():
            # The very certificate is trusted; it names the server's host, not its address.
            context.check_hostname = False
        context.load_cert_chain(certificate, key)
        return context
    raise UsageError(
        "There is no client certificate for LXD or Incus.",
        "Run `lxc remote add NAME ADDRESS` once: it makes the certificate and has it trusted.",
    )


@dataclass(frozen=True, slots=True)
class Lxd:
    """A server of LXD or Incus, and one of its projects."""

    server: RestServer
    project: str = "default"

    def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> Answer:
        """Asks once for something of the project; path: after /1.0. Raises OSError."""
        return self.server.request(method, self.path(path, query), body)

    def path(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """Returns a path with the project in it."""
        words = urllib.parse.urlencode({"project": self.project, **(query or {})})
        return f"/1.0{path}?{words}"


class InstanceChannel(ExecChannel):
    """Starts programs in an instance."""

    def __init__(self, name: str, lxd: Lxd, instance: str, directory: str = "") -> None:
        super().__init__(name, directory)
        self._lxd = lxd
        self._instance = instance

    def known(self) -> Mapping[str, object]:
        """See `ExecChannel.known`."""
        server = self._lxd.server
        at = server.path or f"{server.host}:{server.port}"
        names = {"project": self._lxd.project, "instance": self._instance}
        return {"by": "instance", "server": at, **names}

    async def open(self, timeout_s: float) -> None:
        """See `Channel.open`."""
        await super().open(timeout_s)
        results = await self._call("GET", f"/instances/{self._instance}/state")
        network = results.get("network") or {}
        self.own_address = global_address(network)
        self.own_network = f"lxd:{self.known()['server']}"

    async def _reach(self, timeout_s: float) -> None:
        results = await self._call("GET", f"/instances/{self._instance}")
        if results.get("status") != "Running":
            status = str(results.get("status")).lower()
            raise TargetError(
                f"{self.name}: the instance {self._instance} is {status}.",
                f"Start it: `lxc start {self._instance}`.",
            )

    async def _session(self, command: Sequence[str]) -> InstanceSession:
        wanted = {"command": list(command), "wait-for-websocket": True, "interactive": False}
        operation = await self._call("POST", f"/instances/{self._instance}/exec", wanted)
        secrets = (operation.get("metadata") or {}).get("fds") or {}
        path = f"/operations/{operation.get('id')}"
        streams: list[WebSocket] = []
        try:
            for stream in ("control", "0", "1", "2"):
                secret = {"secret": str(secrets[stream])}
                at = self._lxd.path(f"{path}/websocket", secret)
                streams.append((await WebSocket.open(self._lxd.server, at))[0])
        except (OSError, KeyError) as error:
            for socket in streams:
                socket.close()
            raise connection_lost(self.name, error) from error
        ended = partial(self._call, "GET", f"{path}/wait", query={"timeout": f"{_ENDED_S:.0f}"})
        return InstanceSession(streams, ended)

    async def _call(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        try:
            answer = await asyncio.to_thread(self._lxd.ask, method, path, body, query)
        except OSError as error:
            raise TargetError(
                f"{self.name}: LXD does not answer: {words_of_failure(error)}.",
                "Check that it runs, and that this user may use its socket.",
            ) from error
        if not answer.good:
            why = str(answer.document.get("error") or f"status {answer.status}").rstrip(".")
            raise TargetError(
                f"{self.name}: LXD refuses: {why}.",
                f"See `lxc list --project {self._lxd.project}`.",
            )
        results = answer.document.get("metadata")
        return results if isinstance(results, dict) else {}


class InstanceSession:
    """See `Session`; each stream has a connection of its own."""

    def __init__(self, streams: Sequence[WebSocket], ended: Any) -> None:
        self._control, self._input, self._output, self._errors = streams
        self._streams = streams
        self._ended = ended
        self._returncode: int | None = None
        self._end_of_input: asyncio.Future[None] | None = None
        self._read_to_end: set[WebSocket] = set()

    async def write(self, content: bytes) -> None:
        """See `Session.write`."""
        await self._input.send(content)

    def write_eof(self) -> None:
        """See `Session.write_eof`: an empty message of text is the end of a stream."""
        if self._end_of_input is None:
            self._end_of_input = asyncio.ensure_future(self._send_end())

    async def read_output(self, size: int) -> bytes:
        """See `Session.read_output`."""
        return await self._content(self._output)

    async def read_errors(self, size: int) -> bytes:
        """See `Session.read_errors`."""
        return await self._content(self._errors)

    async def wait_closed(self) -> None:
        """See `Session.wait_closed`: the server closes the control connection at the end."""
        with contextlib.suppress(OSError):
            while await self._control.receive() is not None:
                pass
        with contextlib.suppress(TargetError):
            operation = await self._ended()
            code = (operation.get("metadata") or {}).get("return")
            if isinstance(code, int):
                self._returncode = returncode_of(code)

    @property
    def returncode(self) -> int | None:
        """See `Session.returncode`."""
        return self._returncode

    def close(self) -> None:
        """See `Session.close`."""
        for stream in self._streams:
            stream.close()

    async def _content(self, stream: WebSocket) -> bytes:
        """The next piece; a message of text is the end, after which the server just hangs up."""
        if stream in self._read_to_end:
            return b""
        message = await stream.receive()
        if message is not None and message[0] != TEXT:
            return message[1]
        self._read_to_end.add(stream)
        return b""

    async def _send_end(self) -> None:
        with contextlib.suppress(OSError):
            await self._input.send(b"", TEXT)


def global_address(network: Mapping[str, Any]) -> str:
    """Returns the address at which others reach an instance; '' while it has none. IPv4 first."""
    results = [
        str(address["address"])
        for name, device in network.items()
        if name != "lo"
        for address in (device or {}).get("addresses") or ()
        if address.get("scope") == "global"
    ]
    return min(results, key=lambda address: ":" in address, default="")
