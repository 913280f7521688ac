"""The simulator as a target: chance, long texts, what it does not answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nephoscope.catalog import scenarios
from nephoscope.core.errors import BenchmarkFailed, Lacking, UsageError
from nephoscope.measure.targets import parse
from nephoscope.measure.targets.simulated import MOST_WORDS, SimTarget

SHORT = {"requests": 2000}


def using(work: Callable[[SimTarget], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        target = SimTarget()
        try:
            await target.open()
            return await work(target)
        finally:
            await target.close()

    return asyncio.run(whole())


def test_the_same_seed_gives_the_same_samples_and_another_gives_others() -> None:
    async def work(target: SimTarget) -> Any:
        return [
            (await target.run("sim.queue", {**SHORT, "seed": seed}, 30)).samples
            for seed in (7, 7, 8)
        ]

    first, again, other = using(work)
    assert first == again
    assert first != other


def test_a_long_text_goes_through_a_file_of_the_work_folder() -> None:
    values = dict(scenarios.load(scenarios.SELECTION, "two-types").values)
    text = json.dumps({**values, "note": "x" * 3 * MOST_WORDS, "fleets": 10})

    async def work(target: SimTarget) -> Any:
        return [await target.run("sim.selection", {"scenario": text}, 30) for _ in range(2)]

    for trial in using(work):
        assert trial.failure is None
        assert {"saving_ratio", "launches"} <= {sample.metric for sample in trial.samples}
        assert trial.documents["surface"]["saving_ratio"]


def test_what_is_refused_says_why() -> None:
    async def work(target: SimTarget) -> Any:
        return await target.run("sim.queue", {"arrivals_per_s": 1000.0}, 30)

    trial = using(work)
    assert (trial.failure.name, trial.failure.exit_code) == ("refused", 2)
    assert "offered 1.00 times its capacity" in str(trial.failure)


@pytest.mark.parametrize(
    ("benchmark", "serve"), [("cpu.pi", None), ("postmark", None), ("null", "127.0.0.1")]
)
def test_what_is_not_simulated_is_usage(benchmark: str, serve: str | None) -> None:
    async def work(target: SimTarget) -> None:
        with pytest.raises(BenchmarkFailed) as caught:
            await target.start(benchmark, {}, 10, serve=serve)
        assert (caught.value.name, caught.value.exit_code) == ("usage", 2)

    using(work)


def test_it_has_no_tools() -> None:
    async def work(target: SimTarget) -> None:
        assert await target.tool("null") == ""
        with pytest.raises(Lacking, match="does not run on a simulated machine"):
            await target.tool("postmark")

    using(work)


def test_a_target_in_one_word() -> None:
    record = parse("sim")
    assert (record.kind, record.name, record.machine) == ("sim", "sim", "")
    assert isinstance(record.make(), SimTarget)
    with pytest.raises(UsageError, match="There is no scenario 'nothing-like-it'"):
        parse("sim:nothing-like-it")
