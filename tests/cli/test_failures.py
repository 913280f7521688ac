"""A command that fails says why once, and leaves no run that `latest` means."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


FAILURES = [
    (["load", "http://127.0.0.1:PORT/", "-d", "3s"], "No server accepts a connection"),
    (
        ["capacity", "http://127.0.0.1:PORT/", "--objective", "p99 < 9ms"],
        "No server accepts a connection",
    ),
    (["bench", "--command", "no-such-program"], "There is no program 'no-such-program' in PATH"),
    (["bench", "--command", "false"], "'false' ended with exit code 1."),
    (["bench", "disk.io", "--set", "directory=/no/such"], "there is no such directory"),
    (["bench", "--command", "false", "--command", "ls /no/such"], "'false' ended with exit code 1"),
    (["bench", "null", "--target", "recorded:no-such-file"], "no-such-file"),
]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize(("words", "sentence"), FAILURES, ids=lambda value: str(value)[:40])
def test_a_failed_command_says_why_once_and_leaves_no_latest_run(
    words: list[str], sentence: str
) -> None:
    done = run_inside([word.replace("PORT", str(closed_port())) for word in words])
    assert done.code in (2, 3, 4)
    assert done.err.count(sentence) == 1, done.err
    assert "in phase" not in done.err + done.out
    latest = run_inside(["show"])
    assert latest.code == 2
    assert "has results" in latest.err or "There is no run" in latest.err
    assert len(latest.err.splitlines()) == 1


def test_the_report_of_a_failed_run_states_the_reason_and_nothing_of_the_machine() -> None:
    run_inside(["load", f"http://127.0.0.1:{closed_port()}/", "-d", "3s"])
    name = run_inside(["runs", "--ids"]).out.strip()
    shown = run_inside(["show", name])
    assert shown.code == 3
    assert "\nNo valid trial: No server accepts a connection" in shown.out
    assert shown.err == "nephoscope: No valid trial.\n"
    for word in ("vulnerable", "microcode", "hypervisor is", "check was skipped"):
        assert word not in shown.out
