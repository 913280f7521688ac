"""The kernel's out-of-memory killer, in a control group of the test's own with little memory."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.e2e.conftest import PROGRAM, Done, Run
from tests.hardware import Feature, lacking

from nephoscope.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("root_only")]

LIMIT_BYTES = 400 << 20
"""The program needs a quarter of it, and the programs below twice as much."""
FILLING = f"""
import sys, time
while True:
    used = 0
    for pid in open(sys.argv[1] + "/cgroup.procs").read().split():
        try:
            if open(f"/proc/{{pid}}/comm").read().startswith("nephoscope-prob"):
                used = 4096 * int(open(f"/proc/{{pid}}/statm").read().split()[1])
        except OSError:
            pass
    taken = bytearray({LIMIT_BYTES // 2}) if used > {LIMIT_BYTES // 4} else None
    time.sleep(0.2)
"""
GREEDY = "import time; taken = bytearray(800 << 20); time.sleep(1)"


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with so much memory, and no swap."""
    first = Path("/sys/fs/cgroup/memory")
    name = f"nephoscope-test-{uuid.uuid4().hex[:8]}"
    if first.is_dir():
        group, settings = first / name, {"memory.limit_in_bytes": str(LIMIT_BYTES)}
    else:
        group = Path("/sys/fs/cgroup") / name
        settings = {"memory.max": str(LIMIT_BYTES), "memory.swap.max": "0"}
    try:
        group.mkdir()
    except OSError as error:
        lacking(Feature.CONTROL_GROUPS, str(error))
    try:
        for file, value in settings.items():
            try:
                (group / file).write_text(value)
            except OSError as error:
                lacking(Feature.CONTROL_GROUPS, str(error))
        yield group
    finally:
        group.rmdir()


def entering(group: Path, preference: int = 0) -> list[str]:
    """Words that run what follows in the group. preference: of the kernel, to kill it."""
    enter = f'echo $$ > "$0/cgroup.procs" && echo {preference} > /proc/self/oom_score_adj'
    return ["sh", "-c", f'{enter} && exec "$@"', str(group)]


def inside(group: Path, *words: str) -> Done:
    """Runs a command in the group."""
    done = subprocess.run(
        [*entering(group, 1000), *PROGRAM, *words], capture_output=True, text=True,
        timeout=240, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def neighbour(group: Path) -> Iterator[None]:
    """A process of the group that takes most of its memory while a probe has a lot of it.

    The kernel kills the probe, the largest of those that it prefers.
    """
    words = [*entering(group), sys.executable, "-S", "-c", FILLING, str(group)]
    with subprocess.Popen(words) as process:
        try:
            yield
        finally:
            process.kill()


def kills(group: Path) -> int:
    """How many processes of the group the kernel has killed for memory."""
    for name in ("memory.oom_control", "memory.events"):
        if (group / name).exists():
            lines = (group / name).read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    raise AssertionError(group)


def test_a_probe_that_is_killed_for_memory_costs_no_trial_before(
    group: Path, tmp_path: Path, nephoscope: Run
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "version: 1\nname: greedy\nwarmup: 0\nrepeat: {min: 2, max: 2}\nbenchmarks:\n"
        '  - {benchmark: "null", params: {wait_ns: 20ms}}\n'
        "  - benchmark: load.memory\n"
        f"    params: {{threads: 1, buffer_bytes: {LIMIT_BYTES // 2}, duration_ns: 10s}}\n"
    )
    # The probe looks at the limit before it takes memory: only somebody else can use it up then.
    with neighbour(group):
        done = inside(group, "run", str(plan))
    assert kills(group) > 0
    assert "The kernel may have run out of memory" in done.err + done.out
    assert "Traceback" not in done.err
    assert "defect" not in done.err
    (run,) = Store().runs()
    outcomes = sorted((record.benchmark, str(record.status)) for record in run.records())
    assert outcomes == [("load.memory", "failed")] * 2 + [("null", "valid")] * 2
    assert nephoscope("verify").code == 0


def test_a_measured_command_that_is_killed_for_memory_is_named(group: Path) -> None:
    command = f"python3 -c '{GREEDY}'"
    done = inside(group, "bench", "--command", command, "-w", "0", "-r", "2")
    assert kills(group) > 0
    assert done.code == 3
    assert "memory" in done.sentence + done.err


def test_a_command_that_is_killed_for_memory_leaves_a_store_that_the_next_one_reads(
    group: Path, plan: Path, nephoscope: Run
) -> None:
    assert nephoscope("run", plan).code == 0
    (run,) = Store().runs()
    limit = "memory.limit_in_bytes" if (group / "memory.limit_in_bytes").exists() else "memory.max"
    (group / limit).write_text(str(24 << 20))
    done = inside(group, "show", "--full-report")
    assert done.code == -9 or "memory" in done.sentence, done
    assert kills(group) > 0
    assert nephoscope("verify").code == 0
    assert len(Store().runs()[0].records()) == len(run.records())
