"""Processes that measured commands leave running are killed with the trial, and counted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import sshd
from tests.e2e.conftest import PROGRAM, run_inside

LEAVING = {
    "a background process": "sleep {seconds} &",
    "a session of its own": "setsid sleep {seconds} &",
    "two generations": "(setsid sh -c 'sleep {seconds} & sleep {seconds}' &)",
}


def running(seconds: str) -> list[int]:
    """Processes of `sleep` with this argument."""
    numbers = []
    for entry in os.listdir("/proc"):
        try:
            words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", seconds.encode()]:
            numbers.append(int(entry))
    return numbers


def bench(folder: Path, *words: str) -> str:
    done = run_inside(
        ["bench", *words, "-w", "0", "-r", "3", "--store", str(folder), "--shell", "sh"]
    )
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize("kind", LEAVING)
def test_what_a_command_leaves_is_killed_and_counted(kind: str, tmp_path: Path) -> None:
    seconds = f"30{os.getpid()}{[*LEAVING].index(kind)}"
    out = bench(tmp_path, "--command", LEAVING[kind].replace("{seconds}", seconds))
    assert not running(seconds)
    number = re.search(r"left (\d+) processes\s+behind", out)
    assert number, out
    per_execution = 3 if kind == "two generations" else 1
    assert int(number[1]) >= 3  # of so many executions
    assert int(number[1]) <= 3 * per_execution


def test_a_command_that_leaves_nothing_is_not_mentioned(tmp_path: Path) -> None:
    assert "behind" not in bench(tmp_path, "--command", "sleep 0.01; true")


def test_both_commands_of_a_duet_are_cleared(tmp_path: Path) -> None:
    seconds = f"31{os.getpid()}"
    out = bench(tmp_path, "--duet", f"sleep {seconds} & :", "true")
    assert not running(seconds)
    assert "behind" in out


def test_children_stay_where_they_are_wanted(tmp_path: Path) -> None:
    seconds = f"32{os.getpid()}"
    try:
        bench(tmp_path, "--command", f"setsid sleep {seconds} &", "--keep-children")
        left = running(seconds)
        assert len(left) == 3
    finally:
        for pid in running(seconds):
            os.kill(pid, 9)


def test_a_failed_trial_leaves_nothing(tmp_path: Path) -> None:
    seconds = f"33{os.getpid()}"
    words = ["bench", "--command", f"setsid sleep {seconds} & exit 7", "-w", "0", "-r", "1"]
    done = run_inside([*words, "--shell", "sh", "--store", str(tmp_path)])
    assert done.code == 3
    assert not running(seconds)


def test_an_input_that_is_a_pipe_is_named_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    began_s = time.monotonic()
    words = ["bench", "--command", "cat", "--input", str(tmp_path / "pipe"), "-r", "2"]
    done = run_inside([*words, "--store", str(tmp_path / "store")])
    assert done.code in (2, 3, 4), done
    assert "pipe" in done.err + done.out
    assert time.monotonic() - began_s < 60  # it would wait for its --timeout, an hour


@pytest.fixture
def leaving(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that measures one which has left a process, and the argument of that process."""
    seconds = f"34{os.getpid()}"
    words = [*PROGRAM, "bench", "--shell", "sh", "--store", str(tmp_path / "store")]
    line = f"setsid sleep {seconds} & sleep 300"
    with subprocess.Popen(
        [*words, "-w", "0", "-r", "1", "--command", line], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    ) as process:  # fmt: skip
        until_s = time.monotonic() + 120
        while not running(seconds):
            assert time.monotonic() < until_s
            assert process.poll() is None
            time.sleep(0.01)
        yield process, seconds
        process.kill()
        for pid in running(seconds):
            os.kill(pid, signal.SIGKILL)


def probe_of(pid: int) -> int:
    """The probe that a command has started."""
    (number,) = sshd.descendants(pid, named="nephoscope-prob")
    return number


def test_what_a_killed_probe_leaves_goes_with_the_command(
    leaving: tuple[subprocess.Popen[str], str],
) -> None:
    process, seconds = leaving
    os.kill(probe_of(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "was ended by SIGKILL" in err
    assert not running(seconds)


def test_what_a_killed_command_and_its_probe_leave_goes_with_the_next_command(
    leaving: tuple[subprocess.Popen[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process, seconds = leaving
    probe = probe_of(process.pid)
    for pid in (process.pid, probe):
        os.kill(pid, signal.SIGSTOP)
    for pid in (probe, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    assert running(seconds)  # nobody is alive who knows of it
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = run_inside(["verify"])
    assert not running(seconds)
    assert "of a measured command" in done.err
    assert "left by a process that was killed" in done.err
    assert "left by" not in run_inside(["verify"]).err
