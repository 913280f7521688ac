"""Watching: what probes see, what is kept, and how a file survives a crash."""

from __future__ import annotations

import asyncio
import secrets
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.features.sla.made import refused, run
from tests.tls_server import AUTHORITY, tls_server
from tests.tools import needs

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.features.sla import probes, watch
from nephoscope.features.sla.watch import EventFile
from nephoscope.measure.lab import files
from nephoscope.measure.lab.provisioner import LABS

Capture = pytest.CaptureFixture[str]
HEAD = "time,service,observer,ok,response_time_ms,reason\n"


@pytest.mark.parametrize(
    "address",
    [
        "web",
        "ftp://host/",
        "tcp://host",
        "dns://host",
        "dns://host/a..b",
        "script:",
        "http://[/",
        "x=y",
    ],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="is no address of a service"):
        probes.service_of(address)


def test_what_the_probe_is_asked() -> None:
    assert [
        probes.request_of(address)
        for address in (
            "https://a.org/x?y",
            "tcp://[::1]:8",
            "icmp://a.org",
            "dns://192.0.2.1/bücher.example.",
            "script:sh -c 'exit 3'",
        )
    ] == [
        {"kind": "http", "url": "https://a.org/x?y"},
        {"kind": "tcp", "host": "::1", "port": 8},
        {"kind": "icmp", "host": "a.org"},
        {"kind": "dns", "host": "192.0.2.1", "port": 53, "name": "xn--bcher-kva.example"},
        {"kind": "script", "argv": ["sh", "-c", "exit 3"]},
    ]


def test_what_the_probe_answers() -> None:
    line = b'{"id":7,"ok":false,"response_ns":1500000,"held_ns":9,"reason":"status 503","hint":""}'
    assert probes.answer_of(line) == (7, probes.Outcome(False, 1.5, "status 503", "", 9))
    for bad in (b"", b"[]", b'{"id":1,"ok":1,"held_ns":0}', b'{"id":1,"held_ns":-1}'):
        with pytest.raises(ValueError, match=r"."):
            probes.answer_of(bad)


def until(monkeypatch: pytest.MonkeyPatch, file: Path, events: int, *texts: str) -> None:
    """Lets a watch end when its file has so many events more, and these texts, however slow the
    machine is."""
    before = file.read_text().count("\n") if file.is_file() else 1

    async def ends_before(stop: asyncio.Event, seconds: float) -> bool:
        await asyncio.sleep(min(0.02, max(0.0, seconds)))
        content = file.read_text()
        return content.count("\n") >= before + events and all(text in content for text in texts)

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


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("trusted", [True, False])
def test_a_private_authority_is_trusted_by_ssl_cert_file(
    trusted: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Any other certificate is an authority that did not sign the server's.
    authority = AUTHORITY if trusted else AUTHORITY.with_name("server.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    file, good, bad = tmp_path / "e.csv", ",web,here,1,", ",web,here,0,"
    until(monkeypatch, file, 1, good if trusted else bad)
    with tls_server("127.0.0.1", Answer) as port:
        words = ["watch", f"web=https://localhost:{port}/", "-o", file, "--observer", "here"]
        run(capsys, *words, "--interval", "1s", "--timeout", "60s", code=0)
    events = file.read_text()
    assert (bad in events, good in events) == (not trusted, trusted)
    assert ("certificate" in events) is not trusted


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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "far"), "'far' is no target"),
        (("--from", "sim"), "a simulated machine probes no services"),
        (("--from", "local", "--from", "local"), "Two observers have the name"),
        (("--from", "ssh:a", "--from", "ssh:me@a"), "Two observers have the name 'a'"),
        (("--from", "a,b=local"), "'a,b' is no name of an observer"),
        (("--from", "=local"), "'' is no name of an observer"),
        (("--from", "ssh:a", "--observer", "me"), "no --from is local"),
    ],
)
def test_observers_that_are_refused(
    words: tuple[str, ...], sentence: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "e.csv"
    assert sentence in refused(capsys, "watch", "script:true", "-o", file, *words)
    assert not file.exists()


def test_what_an_observer_cannot_probe_is_refused(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "e.csv"
    words = ["watch", "a=script:/no/such/program", "-o", file, "--from", "x=local"]
    assert "x: There is no program '/no/such/program'." in refused(capsys, *words, code=4)


def test_two_observers_on_one_schedule(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "e.csv"
    words = ["watch", "web=script:true", "-o", file, "--interval", "50ms"]
    until(monkeypatch, file, 6, ",a,", ",b,")
    document = run(capsys, *words, "--from", "a=local", "--from", "b=local", code=0)
    assert [observer["name"] for observer in document["observers"]] == ["a", "b"]
    assert sum(observer["events"] for observer in document["observers"]) == document["events"]
    observers = {line.split(",")[2] for line in file.read_text().splitlines()[1:]}
    assert observers == {"a", "b"}


@needs("ip", "tc")
@pytest.mark.usefixtures("root_only")
def test_hosts_of_a_lab_are_observers(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"w{secrets.token_hex(4)}"
    hosts: dict[str, object] = {"a": {}, "b": {}}
    values = {"version": 1, "name": name, "network": "10.94.0.0/16", "hosts": hosts}
    asyncio.run(LABS.create(files.from_values(values), say=lambda line: None))
    try:
        address = LABS.open(name).address("b", "a")
        file = tmp_path / "e.csv"
        until(monkeypatch, file, 4, "web,a,1,", "web,web,1,", "port,a,0,")
        words = ["watch", f"web=icmp://{address}", f"port=tcp://{address}:9", "-o", file]
        words += ["--interval", "50ms", "--timeout", "60s"]
        words += ["--from", f"lab:{name}/a", "--from", f"web=lab:{name}/b"]
        document = run(capsys, *words, code=0)
    finally:
        asyncio.run(LABS.remove(name))
    assert [observer["name"] for observer in document["observers"]] == ["a", "web"]
    seen = {tuple(line.split(",")[1:4]) for line in file.read_text().splitlines()[1:]}
    assert {("web", "a", "1"), ("web", "web", "1"), ("port", "a", "0")} <= seen
    assert not {("web", "a", "0"), ("web", "web", "0"), ("port", "a", "1")} & seen
