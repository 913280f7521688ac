"""CPU times of processes between two readings of /proc."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from nephoscope.measure.targets.probe.busy_programs import COMMAND, Reading, busy_programs, reading


def process(
    number: int, parent: int, name: str, own: int, children: int = 0, start: int = 5
) -> str:
    """A line of /proc/NUMBER/stat; times in hundredths of a second."""
    head = f"{number} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0"
    return f"{head} {own} 0 {children} 0 20 0 1 0 {start} 0 0"


def read(at_s: float, *lines: str, reader: int = 90) -> Reading:
    shell = [process(1, 0, "init", 0), process(50, 1, "measure", 10), process(reader, 50, "sh", 1)]
    return reading("\n".join([str(reader), *shell, *lines]), at_s)


def test_programs_are_named_with_the_cpus_that_they_used() -> None:
    before = read(10.0, process(7, 1, "python", 100), process(8, 1, "a (b) c", 0))
    after = read(12.0, process(7, 1, "python", 300), process(8, 1, "a (b) c", 50), reader=91)
    assert busy_programs(before, after) == [
        {"program": "python", "cpus": 1.0},
        {"program": "a (b) c", "cpus": 0.25},
    ]


def test_ended_processes_count_for_the_one_that_waited_for_them() -> None:
    before = read(0.0, process(7, 1, "make", 10), process(70, 7, "cc1", 40))
    after = read(1.0, process(7, 1, "make", 10, children=140))
    # cc1 had used 0.4 s before the first reading; the rest is new.
    assert busy_programs(before, after) == [{"program": "make", "cpus": 1.0}]


def test_the_measurement_itself_is_no_other_program() -> None:
    lines = [process(1, 0, "init", 0), process(90, 50, "sh", 1)]
    before = reading("\n".join(["90", *lines, process(50, 1, "measure", 10)]), 0.0)
    after = reading("\n".join(["90", *lines, process(50, 1, "measure", 20, 500)]), 1.0)
    assert busy_programs(before, after) == []


def test_a_number_that_is_used_again_is_another_process() -> None:
    before = read(0.0, process(7, 1, "old", 500, start=5))
    after = read(1.0, process(7, 1, "new", 60, start=9))
    assert busy_programs(before, after) == [{"program": "new", "cpus": 0.6}]


def test_nothing_readable_is_nothing() -> None:
    assert reading("", 0.0).processes == {}
    assert reading("7\nnonsense\n1 (x", 0.0).processes == {}
    assert busy_programs(reading("", 1.0), reading("", 1.0)) == []


def test_the_command_reads_this_machine() -> None:
    done = subprocess.run(COMMAND, capture_output=True, check=True)
    found = reading(done.stdout.decode(errors="replace"), 0.0)
    own = found.processes[os.getpid()]
    assert os.getpid() in found.own
    assert f"({own.name})" in Path(f"/proc/{os.getpid()}/stat").read_text(encoding="utf-8")
