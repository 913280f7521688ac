"""Groups with real probes on this machine: the truths of starting together and of loads."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.attempts import attempt
from tests.profiles import by_profile

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import TrialStatus
from nephoscope.measure import runs
from nephoscope.measure.plans import Plan
from nephoscope.store import Store, StoredRun


def plan_of(**more: Any) -> Plan:
    values = {
        "name": "real",
        "warmup": 0,
        "repeat": {"min": 5, "max": 5},
        "targets": [{"name": "a"}, {"name": "b", "roles": ["aggressor"]}],
        "benchmarks": [{"benchmark": "null", "params": {"wait_ns": 50_000_000}}],
        **more,
    }
    return Plan.model_validate(values)


TOGETHER = plan_of(
    targets=[{"name": "a"}, {"name": "b"}],
    benchmarks=[{"benchmark": "null", "together": True, "params": {"wait_ns": 1_000_000}}],
)
LOADED = plan_of(backgrounds=[{"name": "noise", "benchmark": "load.cpu", "settle_s": 0.1}])


@pytest.mark.alone
def test_two_probes_on_one_machine_start_within_a_millisecond(tmp_path: Path, probe: Path) -> None:
    numbers = itertools.count()

    def measure() -> tuple[str, bool]:
        run = runs.execute(TOGETHER, Store(tmp_path / str(next(numbers))))
        skews_ns = [record.skew_ns for record in run.records() if record.key.target == "a"]
        assert len(skews_ns) == 5
        held = all(skew is not None and skew < 1_000_000 for skew in skews_ns)
        return f"start skews {skews_ns} ns", held

    attempt("two probes", measure)


def test_a_load_covers_the_trial_and_tells_what_it_did(tmp_path: Path, probe: Path) -> None:
    run = runs.execute(LOADED, Store(tmp_path))
    for record, table in run.tables():
        assert record.status is TrialStatus.VALID, record.reasons
        (load,) = record.loads
        assert load["covered_ratio"] == 1.0
        of_load = [row for row in table.to_pylist() if row["benchmark"] == "load.cpu"]
        assert of_load
        assert {row["target"] for row in of_load} == {"b"}
        # It settled for 0.1 s and the trial took 0.05 s: the start phase holds the settling.
        start_ns, end_ns = record.timeline["start"]
        assert end_ns - start_ns >= 100_000_000


def _kill_loads(parent: int, stop: threading.Event, killed: list[int]) -> None:
    """Kills every load of our own that begins, shortly after it did."""
    while not stop.wait(0.01):
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in killed:
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                ours = f"PPid:\t{parent}\n" in (entry / "status").read_text()
            except OSError:
                continue
            if ours and b"load.cpu" in words and b"run" in words:
                # Into the middle of the trial, which begins 0.1 s after the load and takes 1 s.
                time.sleep(0.5)
                killed.append(int(entry.name))
                os.kill(int(entry.name), signal.SIGKILL)


def test_a_load_that_is_killed_invalidates_the_trial(tmp_path: Path, probe: Path) -> None:
    long = [{"benchmark": "null", "params": {"wait_ns": 1_000_000_000}}]
    plan = LOADED.model_copy(update={"benchmarks": plan_of(benchmarks=long).benchmarks})
    stop = threading.Event()
    killed: list[int] = []
    watcher = threading.Thread(target=_kill_loads, args=(os.getpid(), stop, killed))
    watcher.start()
    try:
        with pytest.raises(BenchmarkFailed):
            runs.execute(plan, Store(tmp_path))
    finally:
        stop.set()
        watcher.join()
    run = Store(tmp_path).runs()[-1]
    records = run.records()
    assert killed
    assert {record.status for record in records} == {TrialStatus.INVALID}
    for record in records:
        assert record.reasons[0].startswith("the load 'noise' (load.cpu on b) ended by itself")
        assert "SIGKILL" in record.reasons[0]
    # The trial itself was measured, and stays readable.
    assert all(table.num_rows > 0 for _, table in run.tables())


def test_hooks_of_real_probes_keep_samples_and_documents(tmp_path: Path, probe: Path) -> None:
    plan = plan_of(
        targets=[{"name": "a"}],
        before=[{"benchmark": "sys.fingerprint"}],
        after=[{"benchmark": "null", "params": {"value": 7.0}}],
        repeat={"min": 1, "max": 1},
    )
    run = runs.execute(plan, Store(tmp_path))
    ((record, table),) = run.tables()
    assert record.documents["before/sys.fingerprint/fingerprint"]["schema"] >= 1
    after = [row for row in table.to_pylist() if row["factors"] == '{"hook":"after"}']
    assert {row["value"] for row in after if row["metric"] == "null_ns"} == {7.0}


def test_a_measurement_that_takes_too_long_ends_in_its_phase(tmp_path: Path, probe: Path) -> None:
    plan = plan_of(
        targets=[{"name": "a"}],
        benchmarks=[{"benchmark": "null", "params": {"failure": "hang"}, "timeout": "300ms"}],
        repeat={"min": 1, "max": 1},
    )
    with pytest.raises(BenchmarkFailed):
        runs.execute(plan, Store(tmp_path))
    (record,) = Store(tmp_path).runs()[-1].records()
    assert record.reasons[0].startswith("in phase measure: ")
    assert record.failure_name == "deadline"
    assert list(record.timeline) == ["prepare", "start", "measure"]


COMMAND = """
import sys
from nephoscope.measure import runs
from nephoscope.measure.plans import Plan
from nephoscope.store import Store
runs.execute(Plan.model_validate_json(sys.argv[1]), Store(sys.argv[2]))
"""


def begun(tmp_path: Path, plan: Plan) -> tuple[subprocess.Popen[bytes], StoredRun]:
    """A process that measures; returns when it has stored a trial."""
    command = [sys.executable, "-c", COMMAND, plan.model_dump_json(by_alias=True), str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not list(tmp_path.glob("runs/[!.]*/trials/*.parquet")):
        assert time.monotonic() < end, "it stores no trial"
        assert process.poll() is None, "it ended"
        time.sleep(0.01)
    return process, Store(tmp_path).runs()[-1]


LONG = plan_of(
    targets=[{"name": "a"}, {"name": "b"}],
    benchmarks=[{"benchmark": "null", "together": True, "params": {"wait_ns": 30_000_000}}],
    repeat={"min": 30, "max": 30},
)


def test_kills_of_a_run_of_groups_lose_and_double_nothing(tmp_path: Path, probe: Path) -> None:
    for kill in range(by_profile(quick=2, whole=5)):
        process, run = begun(tmp_path, LONG)
        have = len(run.records())
        end = time.monotonic() + 120
        while len(list(run.trials_path.glob("r*.parquet"))) < have + 3 + kill:
            assert time.monotonic() < end
            time.sleep(0.005)
        process.kill()
        process.wait()
    run = runs.execute(LONG, Store(tmp_path))
    names = [record.key.name for record in run.records()]
    assert names == sorted(names)
    assert len(names) == len(set(names)) == 60
    assert [record.position for record in run.records()] == list(range(60))
    for record in run.records():
        assert record.status is TrialStatus.VALID
    assert len(Store(tmp_path).ids()) == 1


def test_stop_ends_the_process_that_measures_and_no_other(tmp_path: Path, probe: Path) -> None:
    from nephoscope.measure.runs.stop import stop

    process, run = begun(tmp_path, LONG)
    try:
        holder = run.holder()
        assert holder is not None
        assert (holder.pid, holder.here) == (process.pid, True)
        stopped = stop(run, timeout_s=120)
        assert stopped.pid == process.pid
        assert process.wait(timeout=120) != 0
        assert stopped.trials == len(run.records()) > 0
        assert run.events()[-1]["why"] == "interrupted"
        # Nobody measures it now, and asking again changes nothing.
        assert stop(run).pid is None
    finally:
        process.kill()
        process.wait()


def test_stop_never_signals_a_process_that_only_has_the_number(tmp_path: Path, probe: Path) -> None:
    """The journal names a process of another start: its number belongs to somebody else now."""
    from nephoscope.core.errors import UsageError
    from nephoscope.measure.runs.stop import stop

    run = runs.execute(plan_of(repeat={"min": 1, "max": 1}), Store(tmp_path))
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        run.event({**run.events()[0], "event": "session_started", "pid": bystander.pid})
        with run.lock(), pytest.raises(UsageError, match="cannot be seen from here"):
            stop(run)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
