"""`nephoscope load` and `nephoscope capacity` as a user runs them, on a server of this test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.e2e.conftest import Run


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
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_load_prints_a_line_for_each_trial_and_a_summary(nephoscope: Run, server: str) -> None:
    done = nephoscope("load", server, "-d", "2s", "--trials", "2", "-c", "2")
    assert done.code == 0, done.err
    assert "trial 1: " in done.err
    assert "trial 2: " in done.err
    assert "closed loop, 2 connections; 2 trials of 1 s" in done.out
    assert "http.load latency_ns: no percentiles" in done.out, "two trials give no interval"
    assert "Errors: none." in done.out


def test_a_server_that_only_fails_is_no_rate_of_zero(nephoscope: Run, server: str) -> None:
    done = nephoscope("load", f"{server}/503", "-d", "1s", "--trials", "1")
    assert done.code == 3
    assert "requests failed because status_5xx" in done.sentence


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
