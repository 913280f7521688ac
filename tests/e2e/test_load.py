"""`nephoscope load` and `nephoscope capacity` as a user runs them, on a server of this test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest
from tests.e2e.conftest import Run
from tests.servers import serving
from tests.tls_server import AUTHORITY, tls_server


class Answer(BaseHTTPRequestHandler):
    """Answers every request of a connection with 166 bytes, and a path with its status."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, else each response waits for an acknowledgement

    def do_GET(self) -> None:
        status = int(self.path.strip("/") or 200)
        self.send_response(status)
        self.send_header("Content-Length", "166")
        self.end_headers()
        self.wfile.write(b"x" * 166)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Answer)) as port:
        yield f"http://127.0.0.1:{port}"


def test_load_prints_a_line_for_each_trial_and_a_summary(nephoscope: Run, server: str) -> None:
    done = nephoscope("load", server, "-d", "2s", "--trials", "2", "-c", "2")
    assert done.code == 0, done.err
    assert "trial 1: " in done.err
    assert "trial 2: " in done.err
    assert "closed loop, 2 connections; 2 trials of 1 s" in done.out
    assert "http.load latency: no percentiles" in done.out, "two trials give no interval"
    assert "errors: none." in done.out


def test_a_server_that_only_fails_is_no_rate_of_zero(nephoscope: Run, server: str) -> None:
    done = nephoscope("load", f"{server}/503", "-d", "1s", "--trials", "1")
    assert done.code == 3
    assert "requests failed because the status was 5xx" in done.sentence


def test_hosts_of_others_get_no_load(nephoscope: Run) -> None:
    done = nephoscope("load", "http://192.0.2.1/", "-d", "1s", "--trials", "1")
    assert done.code == 2
    assert "192.0.2.1 is not this machine" in done.sentence
    assert "--i-own-this-host" in done.sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["load"], "Missing argument 'URL'"),
        (["load", "x", "-r", "fast"], "'fast' is no rate"),
        (["load", "x", "--poisson"], "--poisson needs a rate"),
        (["load", "x", "--streams", "2"], "HTTP/1.1 connections have no streams"),
        (["load", "x", "-d", "0s"], "--duration: '0s' is out of range"),
        (["capacity", "x"], "Missing option '--objective'"),
        (["capacity", "x", "--objective", "fast"], "'fast' is no objective"),
    ],
)
def test_mistakes_are_one_sentence(nephoscope: Run, words: list[str], sentence: str) -> None:
    done = nephoscope(*words)
    assert done.code == 2
    assert sentence in done.sentence


def test_results_are_a_document(nephoscope: Run, server: str) -> None:
    done = nephoscope("load", server, "-d", "1s", "--trials", "1", "--json")
    assert done.code == 0, done.err
    load = json.loads(done.out)["load"]
    (line,) = load["lines"]
    assert line["sent_count"] == line["completed_count"] > 0
    assert line["errors_count"] == {}


HOSTILE = {
    "closes": (b"", "the server closed the connection early"),
    "garbage": (b"SSH-2.0-OpenSSH_9.2\r\n", "the answer was not of the protocol"),
    "headers": (b"HTTP/1.1 200 OK\r\n" + b"X-Y: z\r\n" * 1000, "the headers were endless"),
    "short": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "the server closed the connection early",
    ),
    "negative": (
        b"HTTP/1.1 200 OK\r\nContent-Length: -9\r\n\r\nabc",
        "the answer was not of the protocol",
    ),
    "slow": (b"HTTP/1.1 200 OK\r\nX: ", "the time limit passed"),
    "huge": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", "the time limit passed"),
    "503": (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "the status was 5xx"),
    "missing": (b"HTTP/1.1 404 Missing\r\nContent-Length: 0\r\n\r\n", "the status was 4xx"),
}
"""Path -> what the server sends, and why no request has a valid response."""

ENDLESS = {"slow": b"a", "huge": b"x" * 65536}
"""Path -> what it goes on to send, now and then or as fast as it can."""


class Hostile(BaseRequestHandler):
    """Sends what the path of the first request asks for, and closes the connection."""

    def handle(self) -> None:
        with suppress(OSError, IndexError):
            path = self.request.recv(65536).split(b" ", 2)[1].decode().strip("/")
            self.request.sendall(HOSTILE[path][0])
            while path in ENDLESS:
                self.request.sendall(ENDLESS[path])
                time.sleep(0.01 if path == "slow" else 0)


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    with serving(ThreadingTCPServer(("127.0.0.1", 0), Hostile)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("path", HOSTILE)
def test_a_server_that_never_answers_as_it_should_is_one_sentence(
    nephoscope: Run, hostile: str, path: str
) -> None:
    settings = {"url": f"{hostile}/{path}", "duration_ns": "50ms", "warmup_ns": 0, "connections": 2}
    settings["timeout_ns"] = "40ms" if path in ENDLESS else "10s"
    words = [f"--set={name}={value}" for name, value in settings.items()]
    done = nephoscope("bench", "http.load", "--repetitions", "1", *words)
    assert done.code == 3
    assert "sent no valid response in the measured time" in done.sentence
    assert f"requests failed because {HOSTILE[path][1]}" in done.sentence


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://no-such-host.invalid/", "The host no-such-host.invalid has no address"),
        ("http://127.0.0.1:1/", "No server accepts a connection at 127.0.0.1:1"),
        ("http://127.0.0.1:99999/", "99999"),
    ],
)
def test_a_host_that_cannot_be_reached_is_one_sentence(
    nephoscope: Run, url: str, sentence: str
) -> None:
    done = nephoscope("load", url, "-d", "1s", "--trials", "1")
    assert done.code in (2, 3)
    assert sentence in done.sentence


def test_a_certificate_for_another_name_is_one_sentence(nephoscope: Run) -> None:
    with tls_server("127.0.0.2", Answer) as port:
        url = f"https://127.0.0.2:{port}/"
        done = nephoscope(
            *("load", url, "-d", "1s", "--trials", "1", "--set", f"tls_ca_file={AUTHORITY}")
        )
    assert done.code == 3
    assert "127.0.0.2" in done.sentence
    assert "certificate" in done.sentence


def test_more_connections_than_open_files_is_one_sentence(nephoscope: Run, server: str) -> None:
    before = ("sh", "-c", 'ulimit -n 200; exec "$@"', "sh")
    words = ("load", server, "-c", "1000", "-d", "1s", "--trials", "1")
    done = nephoscope(*words, before=before)
    assert done.code in (3, 4)
    assert "1000 connections need 1064 open files, and this process may have 200" in done.sentence


def test_redirects_are_not_followed_and_stated(nephoscope: Run, server: str) -> None:
    done = nephoscope("load", f"{server}/302", "-d", "1s", "--trials", "1")
    assert done.code == 0, done.err
    assert "answered with redirects, which are not followed" in " ".join(done.out.split())
