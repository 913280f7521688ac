"""Coverage of the measured time by a load, and the words for one that did not run all the time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import Background
from nephoscope.measure.runs.trials.loads import Load, Window
from nephoscope.measure.targets.kinds.local import LocalRecord

from . import factory
from .conftest import LOAD
from .factory import Fakes


def load_of(spec: Any, **more: Any) -> Load:
    return Load(Background("noise", spec.id, {}, ("b",), **more), "b", spec, same_clock=True)


@pytest.mark.parametrize(
    ("start", "end", "covered"), [(0, 100, 50), (60, 70, 10), (0, 50, 0), (90, 200, 10)]
)
def test_a_window_knows_how_much_of_it_is_covered(start: int, end: int, covered: int) -> None:
    assert Window(50, 100).covered(start, end) == covered


def run(load: Load, fakes: Fakes, measured_s: float, ahead_s: float = 0.0) -> Window:
    """Runs the load around a window of that length, by a clock that is so much ahead."""

    async def beside() -> Window:
        target = fakes.make(LocalRecord(name="b"))
        await load.start(target, 10.0, 1.0, None)
        start_ns = time.time_ns()
        await asyncio.sleep(measured_s)
        ahead_ns = round(ahead_s * 1e9)
        window = Window(start_ns + ahead_ns, time.time_ns() + ahead_ns)
        try:
            await load.stop(1.0, window)
        finally:
            await load.end()
        return window

    return asyncio.run(beside())


def test_a_load_that_is_stopped_covers_all() -> None:
    load = load_of(LOAD)
    window = run(load, Fakes(), 0.05)
    assert (load.problem, load.describe(window)["covered_ratio"]) == ("", 1.0)


def test_a_clock_that_is_ahead_does_not_end_a_load_before_its_trial() -> None:
    load = load_of(LOAD)
    load.same_clock = False
    window = run(load, Fakes(), 0.05, ahead_s=30.0)
    assert (load.problem, load.describe(window)["covered_ratio"]) == ("", 1.0)


def test_a_load_that_died_says_with_what_words() -> None:
    load = load_of(LOAD)
    run(load, Fakes(loads={"b": factory.Load(lives_s=0.01)}), 0.05)
    assert load.problem == (
        "the load 'noise' (test.load on b) ended by itself before it was stopped: "
        "test.load: ended by SIGKILL."
    )


def test_a_load_that_is_not_ready_fails_to_start() -> None:
    with pytest.raises(BenchmarkFailed, match="There is no CPU"):
        run(load_of(LOAD), Fakes(loads={"b": factory.Load(broken=True)}), 0.01)
