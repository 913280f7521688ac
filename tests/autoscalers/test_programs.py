"""The programs that run on hosts: the observer's reading of a command, and a machine's control."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from nephoscope.autoscalers.instance import ScaledMachine
from nephoscope.autoscalers.observer import instances_of


def test_the_observer_reads_a_number_and_nothing_else() -> None:
    assert instances_of("echo 3", 5) == (3, "")
    cases = {
        "echo three": "it printed 'three', no number of instances",
        "echo -1": "it printed '-1', no number of instances",
        "echo 99999999": "it printed '99999999', no number of instances",
        "echo broken >&2; exit 7": "exit code 7: broken",
    }
    for command, failure in cases.items():
        assert instances_of(command, 5) == (None, failure)
    assert instances_of("sleep 5", 0.05) == (None, "it took longer than 0.05 s")
    assert instances_of("yes", 5) == (None, "it printed more than 4,096 bytes")
    assert instances_of("exec >&- 2>&-; sleep 5", 0.05) == (None, "it took longer than 0.05 s")


def test_a_command_of_the_observer_leaves_no_process(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    seen = instances_of(f"sleep 60 | cat & echo $! > {file}; wait", 0.3)
    assert seen == (None, "it took longer than 0.3 s")
    pid = int(file.read_text())
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("a process of the command is left")


def test_an_end_that_is_requested_at_any_moment_ends_the_wait() -> None:
    """The signal comes while the program waits: with a lock it would wait for its own handler."""
    text = """
import signal
from nephoscope.autoscalers import log
for _ in range(50):
    log.ended = log.EndRequest()
    signal.signal(signal.SIGALRM, lambda *_: log.ended.set())
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while not log.ended.is_set():
        log.ended.wait(0)
    log.ended.wait(60)
print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_a_machine_states_its_health_and_its_death() -> None:
    machine = ScaledMachine([sys.executable, "-c", ""])
    assert machine.answer("GET", "/health") == (503, "")
    assert machine.answer("GET", "/nothing") == (404, "")
    assert machine.answer("POST", "/start?boot=60&warm_up=1") == (202, "")
    assert machine.state() == {"runs": False, "is_warm": False, "died": False, "cpu_s": 0.0}
    assert machine.answer("POST", "/stop") == (200, "")
    assert machine.state()["runs"] is False


def test_a_machine_states_cpu_time_below_a_tick() -> None:
    """The service reads its own CPU clock and waits for its end."""
    text = "import sys, time; print(time.process_time(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout
        own_s = float(service.stdout.readline())
        machine = ScaledMachine([])
        machine._service = service  # type: ignore[assignment]
        stated_s = float(str(machine.state()["cpu_s"]))
        assert own_s <= stated_s < own_s + 0.01
        machine.stop()
    assert machine.state()["cpu_s"] == 0.0
