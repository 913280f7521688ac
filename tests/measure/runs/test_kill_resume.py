"""SIGKILL at random moments, then the same command: no trial lost, none doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.profiles import by_profile

from nephoscope.core.model import TrialStatus
from nephoscope.measure import runs
from nephoscope.measure.plans import Plan, expand, order_round
from nephoscope.store import Store, StoredRun, query

COMMAND = """
import sys
from pathlib import Path
from nephoscope.measure import runs
from nephoscope.measure.plans import Plan
from nephoscope.store import Store
plan = Plan.model_validate_json(Path(sys.argv[1]).read_text())
print(runs.execute(plan, Store(sys.argv[2])).id)
"""
ROUNDS = 12
KILLS = by_profile(quick=4, whole=10)
# One trial waits this long; a whole run of 5 x (1 + 12) trials then takes a few seconds at least.
WAIT_NS = 10_000_000


def plan() -> Plan:
    return Plan.model_validate(
        {
            "name": "kill",
            "repeat": {"min": ROUNDS, "max": ROUNDS},
            "targets": [{"name": "a"}, {"name": "b"}],
            "benchmarks": [
                {
                    "benchmark": "null",
                    "params": {"wait_ns": WAIT_NS, "noise_ratio": 0.05},
                    "factors": {"value": [1.0, 2.0]},
                },
                {"benchmark": "null", "params": {"samples": 50}, "factors": {"value": [3.0]}},
            ],
        }
    )


def start(tmp_path: Path) -> subprocess.Popen[str]:
    (tmp_path / "plan.json").write_text(plan().model_dump_json(by_alias=True))
    command = [sys.executable, "-c", COMMAND, str(tmp_path / "plan.json"), str(tmp_path / "store")]
    return subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, text=True)


def trials_of(path: Path) -> set[str]:
    return {trial.name for trial in path.glob("store/runs/[!.]*/trials/*.parquet")}


def wait_for(tmp_path: Path, process: subprocess.Popen[str], more_than: int) -> None:
    """Until the process has stored more trials than that, or has ended."""
    end = time.monotonic() + 120
    while process.poll() is None and len(trials_of(tmp_path)) <= more_than:
        assert time.monotonic() < end, "the run makes no progress"
        time.sleep(0.01)


def expected() -> list[str]:
    from nephoscope import catalog

    settings = [setting.index for setting in expand(plan(), catalog.load())]
    return [
        f"{'r' if number > 0 else 'w'}{number:04d}-s{setting:03d}-{target}"
        for number in range(ROUNDS + 1)
        for setting in settings
        for target in ("a", "b")
    ]


def check(run: StoredRun) -> None:
    """Exactly the planned trials, each once, in the seed's order."""
    records = run.records()
    assert sorted(record.key.name for record in records) == sorted(expected())
    assert [record.position for record in records] == list(range(len(records)))
    assert all(record.status is TrialStatus.VALID for record in records)
    seed = int(run.manifest.seed)
    for number in range(ROUNDS + 1):
        pairs = [(r.key.setting, r.key.target) for r in records if r.key.round == number]
        assert pairs == order_round(seed, number, pairs)
    medians = query.trial_medians(run)
    assert len(medians) == 2 * ROUNDS * 3 * 2  # metrics x rounds x settings x targets
    leftovers = [p.name for p in run.path.rglob("*") if p.name.endswith((".part", ".new"))]
    assert leftovers == []


def test_sigkill_at_random_moments(tmp_path: Path, probe: Path) -> None:
    draw = random.Random(20)
    kept: dict[str, bytes] = {}
    for kill in range(KILLS):
        process = start(tmp_path)
        # From before the first trial of this session to somewhere in the middle of the next ones.
        wait_for(tmp_path, process, len(kept) + draw.randrange(-1, 5))
        time.sleep(draw.uniform(0, 0.05))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"kill {kill} came after the end of the run"
        for path in tmp_path.glob("store/runs/[!.]*/trials/*.parquet"):
            # What was stored once is never touched again.
            content = path.read_bytes()
            assert kept.setdefault(path.name, content) == content
        assert set(kept) == trials_of(tmp_path)
        assert len(Store(tmp_path / "store").ids()) <= 1
    assert 0 < len(kept) < len(expected())
    (run,) = Store(tmp_path / "store").runs()
    stored = {record.key: (record, table.to_pylist()) for record, table in run.tables()}
    process = start(tmp_path)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    (run,) = Store(tmp_path / "store").runs()
    assert (run.id, run.state) == (out.strip(), "measured")
    check(run)
    after = {record.key: (record, table.to_pylist()) for record, table in run.tables()}
    assert len(stored) == len(kept)
    assert all(after[key] == trial for key, trial in stored.items())
    # Asked once more, it has nothing left to measure.
    assert runs.execute(plan(), Store(tmp_path / "store")).id == run.id
    assert len(run.records()) == len(expected())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_in_order_and_the_same_command_goes_on(
    tmp_path: Path, probe: Path, number: signal.Signals
) -> None:
    process = start(tmp_path)
    wait_for(tmp_path, process, 3)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 1  # the bare command of this test; the CLI makes it 130
    (run,) = Store(tmp_path / "store").runs()
    assert run.events()[-1] == {**run.events()[-1], "event": "session_ended", "why": "interrupted"}
    before = len(run.records())
    assert before > 3
    resumed = runs.execute(plan(), Store(tmp_path / "store"))
    assert resumed.id == run.id
    check(resumed)


def test_a_second_process_is_told_in_one_sentence(tmp_path: Path, probe: Path) -> None:
    from nephoscope.core.errors import StoreError

    first = start(tmp_path)
    try:
        wait_for(tmp_path, first, 1)
        with pytest.raises(StoreError, match=f"being measured by process {first.pid}"):
            runs.execute(plan(), Store(tmp_path / "store"))
    finally:
        first.kill()
        first.communicate()
