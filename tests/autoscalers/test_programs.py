"""The programs that run on hosts: the observer's reading of a command, and a machine's control."""

from __future__ import annotations

import sys

from nephoscope.autoscalers.instance import Machine
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


def test_a_machine_states_its_health_and_its_death() -> None:
    machine = Machine([sys.executable, "-c", ""])
    assert machine.answer("GET", "/health") == (503, "")
    assert machine.answer("GET", "/nothing") == (404, "")
    assert machine.answer("POST", "/start?boot=60&warm_up=1") == (202, "")
    assert machine.state() == {"runs": False, "is_warm": False, "died": False, "cpu_s": 0.0}
    assert machine.answer("POST", "/stop") == (200, "")
    assert machine.state()["runs"] is False
