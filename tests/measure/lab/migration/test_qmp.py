"""The monitor of QEMU, against a server that answers as its documentation states."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nephoscope.core.errors import RunFailed
from nephoscope.measure.lab.migration.qmp import Monitor

GREETING = {"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": []}}
STOP = {"event": "STOP", "timestamp": {"seconds": 1700000000, "microseconds": 250000}}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    def say(message: object) -> None:
        writer.write(json.dumps(message).encode() + b"\r\n")

    say(GREETING)
    while line := await reader.readline():
        request = json.loads(line)
        match request["execute"]:
            case "qmp_capabilities":
                say({"return": {}})
            case "query-migrate":
                say(STOP)
                say({"return": {"status": "active"}})
            case "migrate-set-parameters":
                say({"return": request["arguments"]})
            case "quit":
                break
            case _:
                say({"error": {"class": "CommandNotFound", "desc": "no such command."}})
    writer.close()


def test_answers_and_events_come_apart_and_refusals_are_sentences(tmp_path: Path) -> None:
    async def talk() -> None:
        path = tmp_path / "monitor.sock"
        server = await asyncio.start_unix_server(serve, str(path))
        monitor = await Monitor.opened(path, 1.0)
        try:
            assert await monitor.execute("query-migrate") == {"status": "active"}
            event = await monitor.event("STOP", 1.0)
            assert event is not None
            assert event.at_ns == 1_700_000_000_250_000_000
            assert await monitor.event("RESUME", 0.0) is None
            given = await monitor.execute("migrate-set-parameters", downtime_limit=300)
            assert given == {"downtime-limit": 300}
            with pytest.raises(RunFailed, match="QEMU refused `fly`: no such command\\."):
                await monitor.execute("fly")
            with pytest.raises(RunFailed, match="ended before it answered `quit`"):
                await monitor.execute("quit")
        finally:
            await monitor.close()
            server.close()

    asyncio.run(talk())


def test_a_monitor_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="QEMU's monitor does not answer"):
        asyncio.run(Monitor.opened(tmp_path / "none.sock", 0.0))
