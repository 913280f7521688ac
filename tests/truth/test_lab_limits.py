"""What hosts are given: every check of CPU, memory and disk holds; reservations from below."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cpu_truth import needs_chrt
from tests.attempts import attempt
from tests.hardware import Feature, lacking
from tests.profiles import by_profile
from tests.tools import needs
from trials import needs_root

from nephoscope.core.errors import Lacking
from nephoscope.measure.lab.commands import entering
from nephoscope.measure.lab.limits import cgroups, cpu
from nephoscope.measure.lab.limits.cgroups import HostCgroup
from nephoscope.measure.labcheck import frame
from nephoscope.measure.labcheck import limits as checks
from nephoscope.measure.labcheck.frame import Check

pytestmark = [needs_root, needs("ip", "tc")]
CHECKS = checks.CHECKS
SLICE_NS, PERIOD_NS = 30_000_000, 40_000_000


SLOW = {"cpu.cap-50", "cpu.cap-75"}
"""The same mechanism as two other checks, at settings between theirs."""


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=check.id, marks=[pytest.mark.slow] if check.id in SLOW else [])
        for check in CHECKS
    ],
)
def test_what_is_set_is_what_a_program_gets(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    # The least that has an interval. The bounds are those of one window: what moves it is the grain
    # of its mechanism, of which further windows take nothing away.
    monkeypatch.setattr(checks, "TRIALS", by_profile(quick=2, whole=checks.TRIALS))

    def measure() -> tuple[str, bool]:
        outcome = asyncio.run(frame.run(check, print))
        if outcome.verdict == frame.NOT_HERE:
            lacking(Feature.LAB, outcome.reason)
        seen = ", ".join(f"{one.value:g} {one.note}" for one in outcome.attempts)
        return f"{seen} of {check.bound} {outcome.reason}", outcome.verdict == frame.HOLDS

    # A check has attempts of its own, whatever the counters show.
    attempt(check.id, measure, contends=True)


@pytest.fixture
def group() -> Iterator[HostCgroup]:
    lab = f"mt{os.getpid() % 100_000}r"
    made = cgroups.host(lab, "a")
    made.make()
    yield made
    cgroups.remove(lab)


class Keeper:
    """`nephoscope-lab reserve` over a group; its lines one by one."""

    def __init__(self, group: HostCgroup, slice_ns: int = SLICE_NS) -> None:
        words = cpu.reservation_supervisor(group.folders[-1], slice_ns, PERIOD_NS)
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.ready = self.line()["ready"]

    def line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], 60)
        assert readable, "the keeper says nothing"
        return dict(json.loads(self.process.stdout.readline()))

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.terminate()


def policy(pid: int) -> int:
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


@needs_chrt
def test_a_program_starts_with_its_reservation_and_keeps_it_over_a_fork(group: HostCgroup) -> None:
    script = "chrt -p $$; sh -c 'sleep 0.05; chrt -p $$; true'"

    def measure() -> tuple[str, bool]:
        with Keeper(group) as keeper:
            assert keeper.ready["marked"]
            words = [*entering(cgroups=group.folders), "sh", "-c", script]
            done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
        assert "30000000/40000000/40000000" in done.stdout
        # The shell itself, and a child that was found within 50 ms.
        return done.stdout, done.stdout.count("SCHED_DEADLINE") == 2

    attempt("a child within 50 ms", measure)


def test_the_end_of_the_keeper_gives_the_threads_back(group: HostCgroup) -> None:
    with Keeper(group) as keeper:
        program = subprocess.Popen([*entering(cgroups=group.folders), "sleep", "60"])
        until = time.monotonic() + 120
        while policy(program.pid) != 6 and time.monotonic() < until:
            time.sleep(0.005)
        assert policy(program.pid) == 6
        keeper.process.terminate()
        assert keeper.line()["kept"]["refused"] == 0
        keeper.process.wait(60)
    assert policy(program.pid) == os.SCHED_OTHER
    group.kill()
    program.wait(60)


def test_what_the_kernel_does_not_admit_is_told_with_the_sum(group: HostCgroup) -> None:
    cpus = len(cpu.machine_cpus())

    def measure() -> tuple[str, bool]:
        with Keeper(group) as keeper:
            plain = [*entering(), "sh", "-c"]
            join = f"echo $$ > {group.folders[-1]}/cgroup.procs; exec sleep 60"
            started = [subprocess.Popen([*plain, join]) for _ in range(2 * cpus)]
            try:
                refused = keeper.line()["refused"]
                kept = [policy(one.pid) for one in started].count(6)
            finally:
                group.kill()
                for one in started:
                    one.wait(60)
        message = refused["message"]
        right = "no reservation of 0.750 CPUs more: reservations of" in message
        # Another lab's reservations may be held too; this test adds what is left.
        return f"{kept} of {len(started)} kept; {message}", right and 1 <= kept < len(started)

    attempt("more threads than CPUs", measure, contends=True)


def test_a_reservation_beside_a_part_of_the_cpus_is_refused(group: HostCgroup) -> None:
    have = cpu.machine_cpus()
    if len(have) < 2:
        lacking(Feature.CPUS)
    if group.version("cpuset") == 2:
        lacking(Feature.CONTROL_GROUPS, "version 2 may admit a cpuset partition")
    with pytest.raises(Lacking, match="takes no reservation in a cpuset"):
        cpu.check_reservation(group, have[:1])
    # So does the kernel, as long as the thread was in the cpuset before it asked.
    cpu.set_cpus(group, have[:1])
    words = ["chrt", "-d", "-T", str(SLICE_NS), "-D", str(PERIOD_NS), "-P", str(PERIOD_NS), "0"]
    inside = [*entering(cgroups=group.folders), *words, "true"]
    done = subprocess.run(inside, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0
    assert "not permitted" in done.stderr
