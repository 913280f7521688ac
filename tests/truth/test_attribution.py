"""The rule for "neighbour", seen from inside lab hosts whose trouble the test makes itself.

Hosts of a lab share one kernel. Of a neighbour on the same CPU the victim sees that its machine has
CPU pressure and that nothing within sight used the CPU; no steal, which only hypervisors count.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pytest
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from tests.tools import needs
from trials import needs_root

from nephoscope.core.model import Better, Estimate
from nephoscope.measure.lab import files
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.targets.lab import LabTarget
from nephoscope.stats import attribution
from nephoscope.stats.attribution import Attribution, SlowdownCause
from nephoscope.stats.compare import paired

pytestmark = [needs_root, needs("ip", "tc")]

ROUNDS = 20
"""Enough pairs for their order to show that they do not depend on each other."""
PI = {"threads": 1, "digits": 15_000}
"""Some 60 ms: six periods of the quota below, so that no trial ends within its first share."""

HOSTS = {
    "victim": {"cpu": {"cpus": [0]}},
    "capped": {"cpu": {"cpus": [0], "cap": "50%", "cap_period": "10ms"}},
    "near": {"cpu": {"cpus": [0]}},
    "apart": {"cpu": {"cpus": [1]}},
}

Targets = Mapping[str, LabTarget]


async def trial(target: LabTarget) -> tuple[float, Mapping[str, Any]]:
    done = await target.run("cpu.pi", PI, 60.0)
    assert done.done is not None, done.failure
    (time,) = [sample.value for sample in done.samples if sample.metric == "pi_time_ns"]
    return time, done.done.counters


async def beside_load(target: LabTarget, load_on: LabTarget) -> tuple[float, Mapping[str, Any]]:
    load = await load_on.start("load.cpu", {"threads": 1, "duration_ns": 0}, 120.0)
    try:
        await load.ready(30.0)
        await load.go()
        return await trial(target)
    finally:
        await load.end()


async def judged(quiet: Callable[[], Awaitable[Any]], noisy: Callable[[], Awaitable[Any]]) -> Any:
    before, during = [], []
    for _ in range(ROUNDS):
        before.append(await quiet())
        during.append(await noisy())
    quick, slow = [time for time, _ in before], [time for time, _ in during]
    slowdown: Estimate = paired(quick, slow, better=Better.LOWER, unit="ns").ratio
    return attribution.attribute(
        slowdown, [b for _, b in before], [b for _, b in during], paired=True
    )


@pytest.fixture(scope="module")
def lab() -> Iterator[str]:
    """The name of a lab with the hosts, for all scenarios."""
    name = f"beat{os.getpid() % 10_000}"
    values = {"version": 1, "name": name, "network": "10.87.0.0/16", "hosts": HOSTS}
    asyncio.run(LABS.create(files.from_values(values), say=lambda line: None))
    yield name
    asyncio.run(LABS.remove(name))


def in_lab(name: str, scenario: Callable[[Targets], Awaitable[Attribution]]) -> Attribution:
    async def run() -> Attribution:
        targets = {host: LabTarget(host, name, host) for host in HOSTS}
        try:
            for target in targets.values():
                await target.open()
            return await scenario(targets)
        finally:
            for target in targets.values():
                await target.close()

    return asyncio.run(run())


SCENARIOS: Mapping[str, tuple[Callable[[Targets], Awaitable[Attribution]], SlowdownCause]] = {
    "another host on the same CPU": (
        lambda t: judged(
            lambda: trial(t["victim"]), lambda: beside_load(t["victim"], t["near"])
        ),
        SlowdownCause.NEIGHBOUR,
    ),
    "the own quota": (
        lambda t: judged(lambda: trial(t["victim"]), lambda: trial(t["capped"])),
        SlowdownCause.OWN_QUOTA,
    ),
    "a program of the host itself": (
        lambda t: judged(
            lambda: trial(t["victim"]), lambda: beside_load(t["victim"], t["victim"])
        ),
        SlowdownCause.LOCAL_LOAD,
    ),
    "another host on another CPU": (
        lambda t: judged(
            lambda: trial(t["victim"]), lambda: beside_load(t["victim"], t["apart"])
        ),
        SlowdownCause.NO_SLOWDOWN,
    ),
}  # fmt: skip


ALSO_IN_A_MATRIX = {"the own quota", "another host on another CPU"}
"""`make test` has these two as cells of an isolation matrix (test_interference.py)."""


@hardware.needs(Feature.CPUS, (os.cpu_count() or 1) >= 2)
@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=[pytest.mark.slow] if what in ALSO_IN_A_MATRIX else [])
        for what in SCENARIOS
    ],
)
def test_the_word_is_the_one_whose_doing_it_was(what: str, lab: str) -> None:
    scenario, wanted = SCENARIOS[what]

    def measure() -> tuple[str, bool]:
        found = in_lab(lab, scenario)
        said = f"{found.word}: {found.sentence} {'; '.join(found.evidence)}"
        # A busy machine may slow the victim on its own CPU too; that is not the neighbour's doing,
        # and never called so.
        fits = found.word is wanted or (
            wanted is SlowdownCause.NO_SLOWDOWN
            and found.word in (SlowdownCause.UNDECIDED, SlowdownCause.UNEXPLAINED)
        )
        return said, fits

    attempt(what, measure, contends=True)
