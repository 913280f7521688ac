"""The order of a measurement, its failures and its end, without a machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.features.platforms.test_windows import window

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.features.platforms import guests, measure, windows
from nephoscope.features.platforms.measure import (
    PlatformMeasurement,
    PlatformSettings,
    PlatformTimeLeft,
    available,
)
from nephoscope.features.platforms.windows import Round
from nephoscope.measure.lab.boot import BootTimes

SETTINGS = PlatformSettings(("bare", "container", "uml"), 5, 256 << 20, 4, 100.0, 3)


class Machine:
    """Guests that exist, and everything that was done to them, in order."""

    def __init__(self) -> None:
        self.booted: list[str] = []
        self.here: set[str] = set()
        self.said: list[str] = []
        self.fails = ""
        self.slow_from = 3

    @contextlib.asynccontextmanager
    async def one_guest(self, lab: str, platform: str, memory_bytes: int) -> AsyncIterator[Any]:
        self.booted.append(platform)
        if platform == self.fails:
            raise RunFailed(f"host guest ({platform}) ended.", "")
        self.here.add(lab)
        try:
            reasons = {"kernel": "none"}
            yield SimpleNamespace(boot=BootTimes(None, 5, 9, reasons), details={})
        finally:
            self.here.remove(lab)

    async def create(self, lab: str, platform: str, memory_bytes: int) -> Any:
        self.here.add(lab)

    async def remove(self, lab: str) -> None:
        self.here.remove(lab)

    async def remove_all(self, prefix: str) -> None:
        self.here = {lab for lab in self.here if not lab.startswith(prefix)}

    async def rounds(self, loaded: Sequence[Any], seed: int, look: int) -> list[Round]:
        scale = 4.0 if len(loaded) >= self.slow_from else 1.0
        every = [
            tuple(window(scale, 10 * at + guest) for guest in range(len(loaded)))
            for at in range(windows.ROUNDS)
        ]
        return [Round(window(1, 1000 + at), each) for at, each in enumerate(every)]

    async def nothing(self, *given: Any) -> list[Any]:
        return []


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    for name in ("one_guest", "create", "remove", "remove_all"):
        monkeypatch.setattr(guests, name, getattr(made, name))
    monkeypatch.setattr(guests, "memory_of", lambda lab: 1 << 20)
    for name in ("open", "close"):
        monkeypatch.setattr(windows.LoadedGuest, name, made.nothing)
    monkeypatch.setattr(windows, "rounds", made.rounds)
    monkeypatch.setattr(windows, "load", made.nothing)
    platform = SimpleNamespace(prepare=made.nothing, lacking=lambda: None)
    monkeypatch.setattr(measure, "PLATFORMS", dict.fromkeys(SETTINGS.platforms, platform))
    monkeypatch.setattr(measure, "available", lambda wanted: (list(wanted), []))
    monkeypatch.setattr(measure.needs, "require", lambda command: None)

    @contextlib.contextmanager
    def no_guard(prefix: str) -> Iterator[None]:
        yield

    monkeypatch.setattr(measure, "cleaned_up_after_a_kill", no_guard)
    return made


def test_platforms_are_booted_in_rounds_in_random_order(machine: Machine) -> None:
    report = asyncio.run(PlatformMeasurement(SETTINGS, machine.said.append).run())
    rounds = [machine.booted[at : at + 3] for at in range(0, 18, 3)]
    assert all(sorted(one) == ["bare", "container", "uml"] for one in rounds)
    assert len(machine.booted) == 18, "a warm-up and five boots of each"
    assert len({tuple(one) for one in rounds}) > 1
    assert {one.name: one.marks["reachable"].n for one in report.platforms} == {
        "bare": 5,
        "container": 5,
        "uml": 5,
    }
    assert min(boot.round for boot in report.boots) == 1
    assert machine.here == set()


def test_density_is_searched_for_each_platform(machine: Machine) -> None:
    report = asyncio.run(PlatformMeasurement(SETTINGS, machine.said.append).run())
    assert sorted(one.platform for one in report.densities) == ["bare", "container", "uml"]
    for one in report.densities:
        assert one.stopped == "the p99 doubled at 3 guests"
        assert one.guests is not None
        assert one.guests.value == 2
        assert one.memory is not None
        assert one.memory.n == 4, "of the guests that were running in the end"


def test_the_same_seed_gives_the_same_order(machine: Machine) -> None:
    for _ in range(2):
        asyncio.run(PlatformMeasurement(SETTINGS, machine.said.append).run())
    assert machine.booted[:18] == machine.booted[18:]


def test_a_platform_that_does_not_boot_leaves_the_others(machine: Machine) -> None:
    machine.fails = "uml"
    report = asyncio.run(PlatformMeasurement(SETTINGS, machine.said.append).run())
    (failed,) = [one for one in report.platforms if not one.marks]
    assert failed.name == "uml"
    assert len(failed.failures) == 6
    assert {one.platform for one in report.densities} == {"bare", "container"}
    assert "! uml: host guest (uml) ended." in machine.said


def test_nothing_is_left_after_a_failure(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(loaded: Sequence[Any], seed: int, look: int) -> list[Round]:
        assert machine.here
        raise RuntimeError("a defect")

    monkeypatch.setattr(windows, "rounds", broken)
    with pytest.raises(RuntimeError, match="a defect"):
        asyncio.run(PlatformMeasurement(SETTINGS, machine.said.append).run())
    assert machine.here == set()


def test_platforms_that_cannot_run_have_their_reason() -> None:
    here: Any = SimpleNamespace(lacking=lambda: None)
    absent: Any = SimpleNamespace(lacking=lambda: Lacking("It needs runc.", "Install it."))
    usable, unavailable = available(("bare", "container"), {"bare": here, "container": absent})
    assert usable == ["bare"]
    assert [(one.platform, one.reason, one.next_step) for one in unavailable] == [
        ("container", "It needs runc.", "Install it.")
    ]


def test_without_any_platform_the_reasons_are_the_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = measure.UnavailablePlatform("uml", "It needs linux.uml.", "Install it.")
    monkeypatch.setattr(measure, "available", lambda wanted: ([], [why]))
    with pytest.raises(RunFailed, match="None of the platforms") as caught:
        asyncio.run(PlatformMeasurement(SETTINGS, machine.said.append).run())
    assert caught.value.hint == "uml: It needs linux.uml. Install it."


def test_the_remaining_time_follows_the_work_that_is_done() -> None:
    clock, said = [0.0], list[str]()
    left = PlatformTimeLeft(said.append, {"a": 10.0, "b": 30.0}, lambda: clock[0])
    left.begin("one")
    clock[0] = 20.0  # twice the plan
    left.end("a", 10.0)
    left.begin("two")
    left.end("b", 10.0)
    left.drop("b")
    left.begin("three")
    assert said[0] == "one; about 40 s left"
    assert said[1] == "two; about 1 min left"
    assert said[2].endswith("about 0 ms left") or said[2].endswith("about 0 s left")
