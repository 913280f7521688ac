"""Kubernetes: a channel into a container of a pod, by the API's `exec`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.exec.channel import ExecChannel, returncode_of
from nephoscope.measure.targets.exec.kubeconfig import Connection, connect
from nephoscope.measure.targets.exec.rest import words_of_failure
from nephoscope.measure.targets.exec.websocket import HandshakeRefused, WebSocket

__all__ = ["Connection", "PodChannel", "connect"]

_PROTOCOLS = ("v5.channel.k8s.io",)
_INPUT, _OUTPUT, _ERRORS, _STATUS, _CLOSE = 0, 1, 2, 3, 255
"""First byte of a message: its stream; the last one says which stream ends (version 5)."""

_PIECES = 64
"""Pieces of a stream that may wait to be read, before the far side has to wait."""


class PodChannel(ExecChannel):
    """Starts programs in a pod: in the container, else in its first one."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        pod: str,
        container: str = "",
        directory: str = "",
    ) -> None:
        super().__init__(name, directory)
        self._at = connection
        self._pod = pod
        self._container = container

    def known(self) -> Mapping[str, object]:
        """See `ExecChannel.known`."""
        names = {"namespace": self._at.namespace, "pod": self._pod, "container": self._container}
        return {"by": "pod", "context": self._at.context, **names}

    async def open(self, timeout_s: float) -> None:
        """See `Channel.open`."""
        await super().open(timeout_s)
        results = await self._read_pod()
        self.own_address = str((results.get("status") or {}).get("podIP") or "")
        self.own_network = f"pods:{self._at.server.host}:{self._at.server.port}"

    async def _reach(self, timeout_s: float) -> None:
        results = await self._read_pod()
        phase = (results.get("status") or {}).get("phase")
        if phase != "Running":
            raise TargetError(
                f"{self.name}: the pod {self._pod} is {str(phase).lower()}, not running.",
                f"See `kubectl -n {self._at.namespace} describe pod {self._pod}`.",
            )
        containers = [str(entry["name"]) for entry in results["spec"]["containers"]]
        if self._container not in ("", *containers):
            raise TargetError(
                f"{self.name}: the pod {self._pod} has no container '{self._container}'.",
                f"It has: {', '.join(containers)}.",
            )
        self._container = self._container or containers[0]

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self._at.namespace}/pods/{self._pod}"

    async def _read_pod(self) -> Mapping[str, Any]:
        try:
            answer = await asyncio.to_thread(self._at.server.request, "GET", self._path)
        except OSError as error:
            raise TargetError(
                f"{self.name}: the cluster does not answer: {words_of_failure(error)}.",
                "Check the server of the kubeconfig.",
            ) from error
        if not answer.good:
            why = str(answer.document.get("message") or f"status {answer.status}").rstrip(".")
            raise TargetError(
                f"{self.name}: the cluster refuses: {why}.", "Check the pod and the permissions."
            )
        return answer.document

    async def _session(self, command: Sequence[str]) -> PodSession:
        query = [
            *(("command", word) for word in command),
            ("container", self._container),
            *((stream, "true") for stream in ("stdin", "stdout", "stderr")),
        ]
        path = f"{self._path}/exec?{urllib.parse.urlencode(query)}"
        try:
            socket, chosen = await WebSocket.open(self._at.server, path, _PROTOCOLS)
        except HandshakeRefused as error:
            raise TargetError(
                f"{self.name}: no program can be started in the pod {self._pod}: "
                f"{str(error).rstrip('.')}.",
                "It needs the permission to create `pods/exec`, and Kubernetes 1.30 or later.",
            ) from error
        except OSError as error:
            raise TargetError(
                f"{self.name}: the cluster does not answer: {words_of_failure(error)}.",
                "Check the server of the kubeconfig.",
            ) from error
        if chosen not in _PROTOCOLS:
            socket.close()
            raise TargetError(
                f"{self.name}: this cluster cannot end a program's input over its API.",
                "It needs Kubernetes 1.30 or later.",
            )
        return PodSession(socket)


class PodSession:
    """See `Session`; one connection carries all streams."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._returncode: int | None = None
        self._queues = {stream: _Pieces() for stream in (_OUTPUT, _ERRORS)}
        self._end_of_input: asyncio.Future[None] | None = None
        self._reading = asyncio.ensure_future(self._read())

    async def write(self, content: bytes) -> None:
        """See `Session.write`."""
        if self._end_of_input is not None or self._reading.done():
            raise BrokenPipeError
        await self._socket.send(bytes([_INPUT]) + content)

    def write_eof(self) -> None:
        """See `Session.write_eof`."""
        if self._end_of_input is None:
            self._end_of_input = asyncio.ensure_future(self._send_end())

    async def read_output(self, size: int) -> bytes:
        """See `Session.read_output`."""
        return await self._queues[_OUTPUT].get()

    async def read_errors(self, size: int) -> bytes:
        """See `Session.read_errors`."""
        return await self._queues[_ERRORS].get()

    async def wait_closed(self) -> None:
        """See `Session.wait_closed`."""
        await asyncio.wait({self._reading})

    @property
    def returncode(self) -> int | None:
        """See `Session.returncode`."""
        return self._returncode

    def close(self) -> None:
        """See `Session.close`."""
        self._socket.close()
        self._reading.cancel()
        for queue in self._queues.values():
            queue.end()

    async def _read(self) -> None:
        lost: OSError | None = None
        try:
            while message := await self._socket.receive():
                stream, content = message[1][:1], message[1][1:]
                if not stream or not content:
                    continue
                if stream[0] == _STATUS:
                    self._returncode = await self._status(content)
                elif stream[0] in self._queues:
                    await self._queues[stream[0]].put(content)
        except OSError as error:
            # After the exit code nothing more is waited for.
            lost = error if self._returncode is None else None
        for queue in self._queues.values():
            queue.end(lost)

    async def _status(self, content: bytes) -> int:
        """Exit code of the program; what the runtime says of one that it could not start becomes
        its last words."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            status = json.loads(content)
            if status["status"] == "Success":
                return 0
            for cause in (status.get("details") or {}).get("causes") or ():
                if cause["reason"] == "ExitCode":
                    return returncode_of(int(cause["message"]))
            await self._queues[_ERRORS].put(str(status["message"]).encode())
        return 127

    async def _send_end(self) -> None:
        with contextlib.suppress(OSError):
            await self._socket.send(bytes([_CLOSE, _INPUT]))


class _Pieces:
    """Pieces of one stream, until its end or the loss of the connection."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(_PIECES)
        self._ended = asyncio.Event()
        self._lost: OSError | None = None

    async def put(self, piece: bytes) -> None:
        """Adds a piece, when there is room."""
        putting = asyncio.ensure_future(self._queue.put(piece))
        ended = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait({putting, ended}, return_when=asyncio.FIRST_COMPLETED)
        putting.cancel()
        ended.cancel()

    async def get(self) -> bytes:
        """Returns the next piece; empty at the end. Raises OSError when the way is lost."""
        if self._queue.empty() and not self._ended.is_set():
            getting = asyncio.ensure_future(self._queue.get())
            ended = asyncio.ensure_future(self._ended.wait())
            try:
                await asyncio.wait({getting, ended}, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    return getting.result()
            finally:
                getting.cancel()
                ended.cancel()
        if not self._queue.empty():
            return self._queue.get_nowait()
        if self._lost is not None:
            raise self._lost
        return b""

    def end(self, lost: OSError | None = None) -> None:
        """Nothing more comes."""
        if not self._ended.is_set():
            self._lost = lost
            self._ended.set()
