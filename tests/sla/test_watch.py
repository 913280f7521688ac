"""Watching: what probes see, what is kept, and how a file survives a crash."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.sla.made import refused, run

from nephoscope.errors import StoreError, UsageError
from nephoscope.sla import probes, watch
from nephoscope.sla.watch import EventFile

Capture = pytest.CaptureFixture[str]
HEAD = "time,service,observer,ok,response_time_ms,reason\n"


@contextmanager
def server(answer: bytes) -> Iterator[int]:
    """A server on loopback that answers every connection with these bytes."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield listening.server_address[1]
        finally:
            listening.shutdown()
            thread.join()


def probed(address: str, timeout_s: float = 5.0) -> probes.Outcome:
    return asyncio.run(probes.probe(address, timeout_s))


@pytest.mark.parametrize(
    ("answer", "ok", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", True, ""),
        (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", True, ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", False, "the answer was cut off"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", False, "status 503"),
        (b"SSH-2.0\r\n", False, "no HTTP answer"),
    ],
)
def test_http(answer: bytes, ok: bool, reason: str) -> None:
    with server(answer) as port:
        outcome = probed(f"http://127.0.0.1:{port}/")
    assert (outcome.ok, outcome.reason) == (ok, reason)
    assert outcome.response_ms is not None


def test_tcp_scripts_and_timeouts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert probed(f"tcp://127.0.0.1:{port}").ok
        # Nobody accepts and answers: the probe ends by its timeout, which is its time.
        late = probed(f"http://127.0.0.1:{port}/", 0.05)
    assert (late.ok, late.reason, late.response_ms) == (False, "timeout", 50)
    assert not probed(f"tcp://127.0.0.1:{port}").ok
    assert probed("script:true").ok
    assert probed("script:sh -c 'exit 3'").reason == "exit code 3"
    assert not probed("script:/no/such/program").ok


def test_dns() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]

        def answer() -> None:
            for flags, answers in ((0x8180, 1), (0x8183, 0)):
                query, client = listening.recvfrom(512)
                head = query[:2] + flags.to_bytes(2, "big") + b"\0\1" + bytes([0, answers])
                listening.sendto(head + query[8:], client)

        thread = threading.Thread(target=answer)
        thread.start()
        assert probed(f"dns://127.0.0.1:{port}/example.org").ok
        assert probed(f"dns://127.0.0.1:{port}/example.org").reason == "DNS response code 3"
        thread.join()


@pytest.mark.parametrize(
    "address", ["web", "ftp://host/", "tcp://host", "dns://host", "script:", "http://[/", "x=y"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="is no address of a service"):
        probes.service_of(address)


def until(monkeypatch: pytest.MonkeyPatch, file: Path, events: int) -> None:
    """Lets a watch end when its file has so many events more, however slow the machine is."""
    before = file.read_text().count("\n") if file.is_file() else 1

    async def ends_before(stop: asyncio.Event, seconds: float) -> bool:
        await asyncio.sleep(min(0.02, max(0.0, seconds)))
        return file.read_text().count("\n") >= before + events

    monkeypatch.setattr(watch, "_ends_before", ends_before)


def test_a_watch_keeps_events_and_goes_on(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, metrics = tmp_path / "e.csv", tmp_path / "m.prom"
    words = ["watch", "good=script:true", "bad=script:false", "-o", file, "--observer", "here"]
    words += ["--interval", "50ms", "--metrics", metrics, "--seed", "1"]
    until(monkeypatch, file, 3)
    first = run(capsys, *words, code=0)
    assert first["events"] >= 3
    # A crash in the middle of a line.
    with file.open("a") as stream:
        stream.write("1685577600.5,good,he")
    until(monkeypatch, file, 3)
    second = run(capsys, *words, code=0)
    lines = file.read_text().splitlines(keepends=True)
    assert lines[0] == HEAD
    assert len(lines) == 1 + first["events"] + second["events"]
    assert all(line.count(",") == 5 for line in lines)
    assert 'nephoscope_sla_failed_total{service="bad",observer="here"}' in metrics.read_text()
    document = run(capsys, "verdict", "ec2-region", file)
    assert document["observers"] == ["here"]


def test_the_observers_own_fault_is_not_the_services(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "e.csv"
    words = ["watch", "bad=script:false", "-o", file, "--interval", "50ms"]
    until(monkeypatch, file, 2)
    document = run(capsys, *words, "--control", "script:false", code=0)
    assert document["events"] == document["unknown"] >= 1
    assert document["failed"] == 0


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_a_clock_that_is_set_is_written_down(
    step_s: int, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SteppedClock:
        """The wall clock is set once, after a number of reads."""

        reads = 0
        monotonic_ns = staticmethod(time.monotonic_ns)

        def time_ns(self) -> int:
            self.reads += 1
            return time.time_ns() + (step_s * 10**9 if self.reads > 3 else 0)

    monkeypatch.setattr(watch, "time", SteppedClock())
    file = tmp_path / "e.csv"
    words = ["watch", "a=script:true", "-o", file, "--interval", "50ms"]
    until(monkeypatch, file, 2)
    document = run(capsys, *words, code=0)
    assert document["clock_steps"] == 1
    reasons = [line.rsplit(",", 1)[1] for line in file.read_text().splitlines()]
    assert f"the clock was set by {step_s:+.3f} s" in reasons


def test_files_that_a_watch_must_not_touch(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "notes.csv").write_text("my notes\n" * 20)
    words = ["watch", "script:true", "-o", tmp_path / "notes.csv"]
    assert "this is no file of `sla watch`" in refused(capsys, *words)
    held = EventFile(tmp_path / "e.csv")
    with pytest.raises(StoreError, match="another watch appends to this file"):
        EventFile(tmp_path / "e.csv")
    held.close()
    words = ["watch", "a=script:true", "a=script:true", "-o", tmp_path / "e.csv"]
    assert "have the same name" in refused(capsys, *words)
