"""The kernel's out-of-memory killer, in a control group of the test's own with little memory."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.conftest import PROGRAM, Done, Run
from tests.hardware import Feature, lacking

from nephoscope.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("root_only")]

LIMIT_BYTES = 400 << 20
"""The program needs a quarter of it, and the programs below twice as much."""
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


def inside(group: Path, *words: str) -> Done:
    """Runs a command in the group."""
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, str(group), *PROGRAM, *words], capture_output=True, text=True,
        timeout=240, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


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
        f"  - {{benchmark: load.memory, params: {{threads: 1, buffer_bytes: {2 * LIMIT_BYTES}}}}}\n"
    )
    done = inside(group, "run", str(plan))
    assert kills(group) > 0
    assert "memory" in done.err
    assert "Traceback" not in done.err
    assert "defect" not in done.err
    (run,) = Store().runs()
    valid = [record for record in run.records() if record.status == "valid"]
    assert [record.benchmark for record in valid] == ["null", "null"]
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
