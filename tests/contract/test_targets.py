"""One suite over every kind of target: the five verbs, time limits, cancellation, bad output.

To add a kind: its line in `nephoscope.measure.targets.kinds.KINDS`; what has to be there for it to
be reached (a lab, an ssh server) is made by a fixture of conftest.py that `FIXTURES` names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests import sshd
from tests.clouds import kubernetes, lxd
from tests.contract import conftest
from tests.tools import needs

from nephoscope import catalog
from nephoscope.core.errors import Lacking, TargetError
from nephoscope.features.sla.observers import ObserverSession
from nephoscope.measure.targets import KINDS
from nephoscope.measure.targets.local import LocalTarget
from nephoscope.measure.targets.probe.target import Target

T = TypeVar("T")

FIXTURES: dict[str, tuple[str, ...]] = {
    "local": ("here",),
    "ssh": ("over_ssh", "through_a_jump", "through_a_collector"),
    "lab": ("bare", "container", "uml", "qemu"),
    "pod": ("in_a_pod",),
    "instance": ("in_an_instance",),
    "sim": ("simulated",),
    "rented": (),
    "service": (),
    "recorded": (),
}
"""Kind -> the fixtures of conftest.py that make one; a rented machine is of another kind once it
is rented, no program runs on a service, and a recording answers what was recorded alone."""

SLOW = {"container", "uml", "qemu", "in_a_pod", "in_an_instance", "through_a_collector"}
"""They need an image, a control plane or two logins, and are ready after seconds."""


SIMULATED = {"simulated"}
"""They are no machines: no tool runs there, no load, and nobody serves."""

NAMES = [*(name for names in FIXTURES.values() for name in names), "toy"]
"""All of them, and a kind that only tests know (toy_kind.py)."""


PROGRAMS = {
    **dict.fromkeys(("over_ssh", "through_a_jump", "through_a_collector"), sshd.PROGRAMS),
    **conftest.LAB_PROGRAMS,
    "in_a_pod": kubernetes.PROGRAMS,
    "in_an_instance": lxd.PROGRAMS,
}
"""Fixture -> programs with which it is made: pytest cannot tell of fixtures that others ask for."""


def _params(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(
            name,
            marks=[
                *([pytest.mark.slow] if name in SLOW else []),
                *([needs(*PROGRAMS[name])] if name in PROGRAMS else []),
            ],
        )
        for name in names
    ]


@pytest.fixture(params=_params(NAMES))
def factory(request: pytest.FixtureRequest) -> Callable[[], Target]:
    made: Callable[[], Target] = request.getfixturevalue(request.param)
    return made


@pytest.fixture(params=_params(name for name in NAMES if name not in SIMULATED))
def machine(request: pytest.FixtureRequest) -> Callable[[], Target]:
    """As `factory`, of machines only."""
    made: Callable[[], Target] = request.getfixturevalue(request.param)
    return made


def using(factory: Callable[[], Target], work: Callable[[Target], Awaitable[T]]) -> T:
    """Opens the target, works with it, closes it."""

    async def whole() -> T:
        target = factory()
        try:
            await target.open()
            return await work(target)
        finally:
            await target.close()

    return asyncio.run(whole())


def run(factory: Callable[[], Target], timeout_s: float = 30, **params: Any) -> Any:
    return using(factory, lambda target: target.run("null", params, timeout_s))


def test_every_kind_is_tested_here() -> None:
    assert list(FIXTURES) == list(KINDS)


def test_open_returns_the_fingerprint(factory: Callable[[], Target]) -> None:
    async def opened() -> Any:
        target = factory()
        try:
            return await target.open()
        finally:
            await target.close()

    fingerprint = asyncio.run(opened())
    assert {"cpu", "memory", "kernel", "identity"} <= set(fingerprint)


def test_a_trial_brings_its_samples_and_counters(factory: Callable[[], Target]) -> None:
    trial = run(factory, value=42.0, samples=3)
    assert trial.failure is None
    assert [s.value for s in trial.samples if s.metric == "null_ns"] == [42.0] * 3
    (bucket,) = [s for s in trial.samples if s.metric == "null_latency_ns"]
    assert (bucket.value, bucket.count) == (42.0, 3)
    assert trial.done.elapsed_ns > 0
    assert trial.done.samples == len(trial.samples)


@needs("postmark")
def test_an_adapter_s_tool_is_asked_for_and_runs_there(
    machine: Callable[[], Target], request: pytest.FixtureRequest
) -> None:
    """Where it shares this machine's files the tool is there as it is here; a guest lacks it."""
    shared = request.node.callspec.params["machine"] not in SLOW
    # So many that no phase, the quick deletion neither, passes within one look at its output.
    params = {"files": 3000, "transactions": 3000}

    async def work(target: Target) -> Any:
        assert await target.tool("null") == ""
        try:
            version = await target.tool("postmark")
        except Lacking as error:
            return error
        return version, await target.run("postmark", params, 60)

    found = using(machine, work)
    if isinstance(found, Lacking):
        assert not shared
        assert "apt-get install postmark" in found.hint
        return
    version, trial = found
    assert trial.failure is None, trial.failure
    assert trial.documents["tool"]["version"] == version
    assert {"transactions_per_s", "elapsed_ns"} <= {sample.metric for sample in trial.samples}
    assert "psi_io_some_ratio" in trial.done.counters


@needs("postmark")
@pytest.mark.parametrize(
    "factory", _params(name for name in NAMES if name not in SLOW | SIMULATED), indirect=True
)
def test_what_a_tool_cannot_be_asked_is_a_failed_trial(factory: Callable[[], Target]) -> None:
    async def work(target: Target) -> Any:
        await target.tool("postmark")
        return await target.run("postmark", {"min_bytes": 9, "max_bytes": 9}, 10)

    trial = using(factory, work)
    assert trial.failure is not None
    assert (trial.failure.name, trial.failure.exit_code) == ("usage", 2)


def test_trials_follow_one_another(factory: Callable[[], Target]) -> None:
    async def three(target: Target) -> list[Any]:
        return [await target.run("null", {"value": v}, 30) for v in (1.0, 2.0, 3.0)]

    assert [trial.samples[0].value for trial in using(factory, three)] == [1.0, 2.0, 3.0]


FAILURES = (
    ("error", "told_to_fail", 3),
    ("lacks", "told_to_lack", 4),
    ("exit", "probe_died", 3),
    ("truncated", "probe_died", 3),
    ("garbage", "bad_output", 3),
    ("nan", "not_a_number", 3),
)
"""What `null` is asked for, the name of the failure that comes of it, and its exit code."""


def test_every_way_to_fail_has_its_name(factory: Callable[[], Target]) -> None:
    async def each(target: Target) -> list[Any]:
        return [
            await target.run("null", {"failure": failure, "samples": 3}, 30)
            for failure, _, _ in FAILURES
        ]

    for (failure, name, exit_code), trial in zip(FAILURES, using(factory, each), strict=True):
        assert (trial.failure.name, trial.failure.exit_code) == (name, exit_code), failure
        assert (trial.samples, trial.done) == ((), None), failure
        assert "\n" not in str(trial.failure), failure


def test_a_parameter_out_of_bounds_is_a_failure(factory: Callable[[], Target]) -> None:
    trial = run(factory, samples=-1)
    assert (trial.failure.name, trial.failure.exit_code) == ("usage", 2)
    assert "from 0 to 1000000, not -1" in str(trial.failure)


@pytest.mark.parametrize("params", [{"wait_ns": 60_000_000_000}, {"failure": "hang"}])
def test_what_takes_too_long_is_ended(
    factory: Callable[[], Target], params: dict[str, Any]
) -> None:
    started = time.monotonic()
    trial = run(factory, timeout_s=0.5, **params)
    assert trial.failure.name == "deadline"
    # The deadline, one second of grace inside the probe, two outside, and a slow machine.
    assert time.monotonic() - started < 40


def test_a_cancelled_trial_is_gone_at_once_and_the_target_goes_on(
    factory: Callable[[], Target],
) -> None:
    async def cancelled(target: Target) -> Any:
        task = asyncio.ensure_future(target.run("null", {"wait_ns": 60_000_000_000}, 60))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < 40
        return await target.run("null", {"value": 5.0}, 30)

    assert using(factory, cancelled).samples[0].value == 5.0


def test_a_large_trial_comes_whole(factory: Callable[[], Target]) -> None:
    trial = run(factory, timeout_s=120, samples=50_000, seed=1, noise_ratio=0.1)
    assert trial.failure is None
    assert sum(s.metric == "null_ns" for s in trial.samples) == 50_000
    assert sum(s.count for s in trial.samples if s.metric == "null_latency_ns") == 50_000


def test_a_trial_that_says_too_much_is_ended(factory: Callable[[], Target]) -> None:
    trial = run(factory, timeout_s=120, samples=1_000_000)
    assert trial.failure.name == "too_much_output"


def test_put_and_get_bring_a_file_there_and_back(
    factory: Callable[[], Target], tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4099
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(content)

    async def there_and_back(target: Target) -> str:
        path = await target.put(source, "folder/file.bin")
        await target.get("folder/file.bin", back)
        return path

    using(factory, there_and_back)
    assert back.read_bytes() == content


def test_names_that_lead_out_of_the_work_folder_are_refused(
    factory: Callable[[], Target], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")

    async def put(target: Target) -> None:
        for name in ("/etc/passwd", "../up", "a/../../b", ""):
            with pytest.raises(TargetError, match="no name inside the work folder"):
                await target.put(source, name)

    using(factory, put)


def test_missing_files_are_told(factory: Callable[[], Target], tmp_path: Path) -> None:
    async def work(target: Target) -> None:
        with pytest.raises(TargetError):
            await target.put(tmp_path / "none", "name")
        with pytest.raises(TargetError):
            await target.get("none", tmp_path / "back")

    using(factory, work)


def test_close_may_be_called_twice(factory: Callable[[], Target]) -> None:
    async def closed_twice(target: Target) -> None:
        await target.close()

    using(factory, closed_twice)


def test_a_probe_of_another_version_is_refused() -> None:
    from dataclasses import replace

    other = replace(catalog.load(), probe="9.9.9")
    with pytest.raises(TargetError, match=r"this package needs 9\.9\.9"):
        asyncio.run(LocalTarget("here", catalog=other).open())


def test_a_probe_that_is_none_is_refused(tmp_path: Path) -> None:
    for program in (Path("/bin/true"), Path("/bin/false"), tmp_path / "none"):
        with pytest.raises(TargetError) as caught:
            asyncio.run(LocalTarget("here", probe=program).open())
        assert "\n" not in str(caught.value)


def test_services_are_probed_from_every_machine(machine: Callable[[], Target]) -> None:
    """`sla watch --from`: one program answers as long as its input is open."""

    async def work(target: Target) -> None:
        session = ObserverSession(await target.observe())
        try:
            for argv, ok in ((["true"], True), (["false"], False), (["/no/such/program"], None)):
                service = {"kind": "script", "argv": argv}
                seen = await session.ask({"timeout_ms": 60_000, "service": service}, 120)
                assert seen is not None
                assert seen.outcome.ok is ok
        finally:
            await session.close()

    using(machine, work)
