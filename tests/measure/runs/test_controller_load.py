"""The controller's own load: how it is read, and which trials it makes not count."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.model import TrialStatus
from nephoscope.measure import plans, runs
from nephoscope.measure.runs.trials import validity
from nephoscope.measure.runs.trials.controller_load import ControllerLoad, ControllerUse
from nephoscope.store import Store, StoredRun

from .factory import Fakes, good

MS = 1_000_000
S = 1000 * MS


class _Clocks:
    """A wall clock and a CPU clock that a test sets."""

    def __init__(self) -> None:
        self.now_ns = self.cpu_ns = 0
        self.load = ControllerLoad(lambda: self.now_ns, lambda: self.cpu_ns)

    def read(self, at_ns: int, cpu_ns: int) -> None:
        self.now_ns, self.cpu_ns = at_ns, cpu_ns
        self.load.read()


def test_cpu_time_is_that_between_two_moments() -> None:
    clocks = _Clocks()
    for at, cpu in ((0, 0), (1, 0), (2, 400), (3, 400)):
        clocks.read(at * S, cpu * MS)
    use = clocks.load.over(1 * S, 2 * S)
    assert use is not None
    assert use.busy_cpus == pytest.approx(0.4)
    idle = clocks.load.over(2 * S, 3 * S)
    assert idle is not None
    assert idle.busy_cpus == 0.0


def test_what_may_have_been_used_outside_does_not_count() -> None:
    clocks = _Clocks()
    for at, cpu in ((0, 0), (1, 0), (2, 400), (3, 1_300), (4, 1_300)):
        clocks.read(at * S, cpu * MS)
    within = {
        (S + S // 2, 2 * S): 0.0,  # all of the 0.4 s may have been used in the half before
        (S + S // 5, 2 * S): 0.2 / 0.8,
        (2 * S, 2 * S + S // 2): 0.4 / 0.5,  # half a second outside holds half of 0.9 s at most
        (S + S // 2, 3 * S): 0.9 / 1.5,
    }
    for (start_ns, end_ns), wanted in within.items():
        use = clocks.load.over(start_ns, end_ns)
        assert use is not None
        assert use.busy_cpus == pytest.approx(wanted), (start_ns, end_ns)


def test_what_is_too_short_or_was_not_watched_is_unknown() -> None:
    clocks = _Clocks()
    clocks.read(1 * S, 0)
    clocks.read(2 * S, 0)
    assert clocks.load.over(S, S + 100 * MS) is None
    assert clocks.load.over(S - 1, 2 * S) is None


def test_a_loop_that_was_held_up_is_late() -> None:
    load = ControllerLoad()

    async def hold() -> tuple[int, int]:
        async with load.sampled():
            await asyncio.sleep(0.12)
            began = time.time_ns()
            time.sleep(0.3)  # as a store does that does not answer
            await asyncio.sleep(0.12)
            return began, time.time_ns()

    use = load.over(*asyncio.run(hold()))
    assert use is not None
    # The reading was due at most one interval after the beginning.
    assert use.late_ns >= 0.25 * S
    assert load.summary()["late_ns"] >= use.late_ns


def reasons(share: float, late_ns: int = 0) -> list[str]:
    use = ControllerUse(share * len(os.sched_getaffinity(0)), 0)
    return [reason.sentence for reason in validity.reasons_of_controller(use, late_ns)]


def test_a_controller_that_uses_the_machine_makes_a_trial_invalid() -> None:
    assert reasons(0.04) == []
    (sentence,) = reasons(0.08)
    assert sentence.startswith("the controller used 8.00 % of the CPU time available here")
    assert validity.reasons_of_controller(None, 0) == []


def test_a_common_start_that_was_announced_too_late_is_none() -> None:
    (sentence,) = reasons(0.0, 12 * MS)
    assert sentence == "the controller announced the common start 12.0 ms after it"


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with other work, 0.25 s of CPU time may take several times as long."""
    monkeypatch.setattr(validity, "CONTROLLER_SHARE", 0.005)


def execute(path: Path, **more: Any) -> StoredRun:
    """A trial here of 1.5 s, beside one elsewhere whose answer takes the controller 0.25 s."""

    def answer(name: str, *_: Any) -> Any:
        end = time.thread_time() + 0.25
        while name == "far" and time.thread_time() < end:
            pass
        return good()

    values = {
        "name": "p",
        "seed": 1,
        "warmup": 0,
        "concurrent": True,
        "repeat": {"min": 1, "max": 1},
        "targets": [{"name": "here"}, {"name": "far", "kind": "ssh", "address": "far"}],
        "benchmarks": [
            {"benchmark": "null", "params": {"value": 1.0}, "on": "here"},
            {"benchmark": "null", "params": {"value": 2.0}, "on": "far"},
        ],
        **more,
    }
    fakes = Fakes(
        answer,
        machines={"here": "1", "far": "2"},
        takes_s=lambda params: 1.5 if params["value"] == 1.0 else 0.05,
    )
    return runs.execute(plans.Plan.model_validate(values), Store(path), targets=fakes.make)


@pytest.mark.usefixtures("strict")
def test_a_trial_beside_a_busy_controller_does_not_count_on_its_machine(tmp_path: Path) -> None:
    run = execute(tmp_path)
    here, far = (
        next(record for record in run.records() if record.key.target == name)
        for name in ("here", "far")
    )
    assert here.status is TrialStatus.INVALID
    assert here.reason_codes == ("controller_busy",)
    assert here.counters["controller_busy_cpus"] > 0.005
    assert far.status is TrialStatus.VALID, "it has CPUs of its own"
    load = run.manifest.controller
    assert load["trials"] == 2
    assert load["cpu_s"] >= 0.25
    assert load["trials_s"] >= 0.4


@pytest.mark.usefixtures("strict")
def test_a_plan_may_accept_it(tmp_path: Path) -> None:
    run = execute(tmp_path, accept=["controller_busy"])
    assert {record.status for record in run.records()} == {TrialStatus.VALID}
    notes = [note for record in run.records() for note in record.notes]
    assert any("Accepted by the plan: the controller used" in note for note in notes)
