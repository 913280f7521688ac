"""No child outlives us, none fills our memory, none sees our secrets."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nephoscope.core import leases
from nephoscope.measure.targets.channels.child import Ended, start_child

SH = "/bin/sh"


async def run_child(script: str, timeout_s: float, max_bytes: int) -> Ended:
    return await start_child([SH, "-c", script]).rest(timeout_s, max_bytes, max_lines=1000)


def run(script: str, *, timeout_s: float = 120, max_bytes: int = 1 << 20) -> Ended:
    return asyncio.run(run_child(script, timeout_s, max_bytes))


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int, within_s: float = 120) -> bool:
    end = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_output_and_exit_code_come_back() -> None:
    ended = run("echo out; echo err >&2; exit 5")
    assert (ended.returncode, ended.stdout, ended.stderr_tail, ended.why) == (
        5,
        b"out\n",
        "err\n",
        "",
    )


def test_only_the_last_words_of_stderr_are_kept() -> None:
    ended = run(
        "i=0; while [ $i -lt 3000 ]; do echo 'many words' >&2; i=$((i+1)); done; echo end >&2"
    )
    assert ended.stderr_tail.endswith("many words\nend\n")
    assert len(ended.stderr_tail) <= 4096


def test_too_much_output_ends_the_child() -> None:
    ended = run("echo $$; while :; do echo 0123456789; done", max_bytes=100_000)
    assert ended.why == "output"
    assert len(ended.stdout) < 100_000 + (1 << 16) + 1
    assert gone(int(ended.stdout.split()[0]))


def test_too_many_lines_end_the_child() -> None:
    assert run("while :; do echo; done").why == "output"


def test_a_polite_child_ends_at_the_timeout(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    started = time.monotonic()
    ended = run(f"echo $$ > {pid_file}; exec sleep 60", timeout_s=0.5)
    assert (ended.why, ended.returncode) == ("timeout", -signal.SIGTERM)
    assert time.monotonic() - started < 40  # it would sleep for 60 s
    assert gone(int(pid_file.read_text()))


def test_a_deaf_child_is_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    ended = run(f"trap '' TERM; echo $$ > {pid_file}; while :; do sleep 0.1; done", timeout_s=0.5)
    assert (ended.why, ended.returncode) == ("timeout", -signal.SIGKILL)
    assert gone(int(pid_file.read_text()))


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
def test_a_cancelled_task_leaves_no_child(tmp_path: Path, trap: str) -> None:
    pid_file = tmp_path / "pid"
    script = f"{trap} echo $$ > {pid_file}; while :; do sleep 0.1; done"

    async def cancelled() -> None:
        task = asyncio.ensure_future(run_child(script, 60, 1000))
        while not (pid_file.exists() and pid_file.read_text().strip()):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(int(pid_file.read_text()))

    asyncio.run(cancelled())


def test_the_child_starts_in_our_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("pwd").stdout.decode().strip() == str(tmp_path)


def test_the_child_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    names = {word.split("=")[0] for word in run("env").stdout.decode().splitlines()}
    # The mark, by which what a command leaves is found, where a command of this process set one.
    passed_on = {"LANG", "PATH", "TMPDIR", "HOME", "SSL_CERT_FILE", leases.MARK}
    assert names <= passed_on | {"PWD", "SHLVL", "OLDPWD", "_"}, "the shell adds the others"


def test_input_of_any_length_reaches_a_slow_reader() -> None:
    async def copied() -> Ended:
        child = start_child([SH, "-c", "sleep 0.1; exec cat"])
        rest = asyncio.ensure_future(child.rest(120, 1 << 20, 1000))
        await child.send_line(b"x" * 300_000)
        child.close_input()
        return await rest

    assert asyncio.run(copied()).stdout == b"x" * 300_000


def test_who_waits_for_a_line_learns_that_the_child_was_ended() -> None:
    async def ended() -> tuple[bytes | None, bool]:
        # The grandchild holds the pipe open.
        child = start_child([SH, "-c", "sleep 5 2>/dev/null & exec sleep 5"])
        line = asyncio.ensure_future(child.line())
        await asyncio.sleep(0.05)
        await child.end()
        await child.end()
        return await line, child.ended()

    assert asyncio.run(ended()) == (None, True)


def test_what_cannot_be_started_raises() -> None:
    with pytest.raises(OSError, match="No such file"):
        start_child(["/no/such"])


def test_a_probe_dies_with_a_killed_parent(probe: Path) -> None:
    """SIGKILL leaves the parent no time for anything: the probe itself has to notice."""
    script = (
        "import asyncio, sys\n"
        "from nephoscope.measure.targets.channels.child import start_child\n"
        "async def run():\n"
        "    await start_child(sys.argv[1:]).rest(60, 1000, 10)\n"
        "asyncio.run(run())\n"
    )
    wait = '{"wait_ns": 60000000000}'
    command = [str(probe), "run", "null", "--params", wait, "--deadline", "60", "--with-parent"]
    parent = subprocess.Popen([sys.executable, "-c", script, *command], env=dict(os.environ))
    try:
        child = None
        end = time.monotonic() + 120
        while child is None and time.monotonic() < end:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
            ready = [
                int(pid) for pid in children if b"null" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
            child = ready[0] if ready else None
            time.sleep(0.01)
        assert child is not None, "the probe did not start"
        # Time for it to install its handlers; dying of PR_SET_PDEATHSIG before is as good.
        time.sleep(0.3)
    finally:
        parent.kill()
        parent.wait()
    assert gone(child)
