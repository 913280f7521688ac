"""What ssh costs a short command on a kept connection: under 5 ms above the command itself."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attempts import attempt
from tests.sshd import Server, needs_it, serving
from trials import real_time

from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.probe.target import Target

COMMANDS = 100
BOUND_S = 0.005


async def costs_s(server: Server) -> list[float]:
    """Time of a run of `null` over ssh minus that of one here, pair by pair in random order."""
    far, here = server.record().make(), LocalRecord(name="here").make()
    order = random.Random(1)
    differences = []
    try:
        await far.open()
        await here.open()
        for _ in range(COMMANDS):
            pair = [far, here]
            order.shuffle(pair)
            taken = {target.name: await seconds(target) for target in pair}
            differences.append(taken["far"] - taken["here"])
    finally:
        await far.close()
        await here.close()
    return differences


async def seconds(target: Target) -> float:
    began = time.perf_counter()
    trial = await target.run("null", {"samples": 1}, 20)
    taken = time.perf_counter() - began
    assert trial.failure is None
    return taken


@pytest.fixture
def ahead_of_others() -> Iterator[None]:
    """Both sides under a real-time priority: the cost of ssh is asked for, not the neighbours'.

    What is started meanwhile inherits it, sshd and probes alike.
    """
    with real_time(inherited=True):
        yield


@pytest.mark.usefixtures("ahead_of_others")
@needs_it
def test_a_hundred_short_commands_cost_under_5_ms_each(tmp_path: Path, probe: Path) -> None:
    with serving(tmp_path / "sshd") as server:

        def measure() -> tuple[str, bool]:
            connections = server.log().count("Accepted publickey")
            cost = asyncio.run(costs_s(server))
            assert server.log().count("Accepted publickey") == connections + 1
            # The mean: a hundred commands together cost a hundred times as much.
            mean_s, median_s = statistics.mean(cost), statistics.median(cost)
            said = f"mean {mean_s * 1e3:.2f} ms, median {median_s * 1e3:.2f} ms over {COMMANDS}"
            return said, mean_s < BOUND_S

        attempt("ssh above the command itself", measure)
