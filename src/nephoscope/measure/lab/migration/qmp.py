"""The monitor of a QEMU process (QEMU Machine Protocol): commands, answers and events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephoscope.core.errors import RunFailed

_STEP_S = 0.02
_ANSWER_S = 60.0
"""QEMU answers nothing while it sends the rest of a guest that it has paused."""
_MOST_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class MonitorEvent:
    """An event. at_ns: when QEMU saw it, in nanoseconds since the epoch by this machine's clock."""

    name: str
    at_ns: int
    data: Mapping[str, Any]


class Monitor:
    """A connection to a monitor; `opened` makes one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._answers: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._read())
        self.events: list[MonitorEvent] = []

    @classmethod
    async def opened(cls, path: Path, within_s: float) -> Monitor:
        """Connects as soon as the socket is there. Raises RunFailed when it is not in time."""
        until = time.monotonic() + within_s
        while True:
            try:
                monitor = cls(*await asyncio.open_unix_connection(str(path)))
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise RunFailed(
                        f"QEMU's monitor does not answer ({error.strerror or error}).",
                        "Run `nephoscope lab check` to see what this machine can do.",
                    ) from error
                await asyncio.sleep(_STEP_S)
        await monitor.execute("qmp_capabilities")
        return monitor

    async def execute(self, command: str, **arguments: Any) -> Mapping[str, Any]:
        """Returns the answer to a command. Raises RunFailed when QEMU refuses it or has ended."""
        request: dict[str, Any] = {"execute": command}
        if arguments:
            request["arguments"] = {name.replace("_", "-"): arguments[name] for name in arguments}
        answer: Mapping[str, Any] | None = None
        try:
            self._writer.write(json.dumps(request).encode() + b"\n")
            await self._writer.drain()
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._answers.get()
        except (OSError, TimeoutError) as error:
            raise RunFailed(
                f"QEMU did not answer `{command}`: {str(error) or 'no answer in time'}.",
                "Repeat the measurement on a less busy machine.",
            ) from error
        if answer is None:
            raise RunFailed(
                f"QEMU ended before it answered `{command}`.", "Repeat the measurement."
            )
        if "error" in answer:
            words = str(answer["error"].get("desc", "no reason given")).rstrip(".")
            raise RunFailed(f"QEMU refused `{command}`: {words}.", "Use QEMU 7.0 or later.")
        result = answer.get("return")
        return result if isinstance(result, dict) else {}

    async def event(self, name: str, within_s: float) -> MonitorEvent | None:
        """Returns the first event of a name; None when there is none in time."""
        until = time.monotonic() + within_s
        while True:
            for event in self.events:
                if event.name == name:
                    return event
            if time.monotonic() > until or self._task.done():
                return None
            await asyncio.sleep(_STEP_S)

    async def close(self) -> None:
        """Ends the connection; the process goes on."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._writer.transport.abort()

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                message = json.loads(line)
                if "event" in message:
                    self._remember(message)
                elif "QMP" not in message:
                    self._answers.put_nowait(message)
        except (OSError, ValueError):
            pass
        self._answers.put_nowait(None)

    def _remember(self, message: Mapping[str, Any]) -> None:
        stamp = message.get("timestamp", {})
        at_ns = int(stamp.get("seconds", 0)) * 10**9 + int(stamp.get("microseconds", 0)) * 1000
        if len(self.events) < _MOST_EVENTS:
            self.events.append(MonitorEvent(message["event"], at_ns, message.get("data", {})))
