"""Observers: what a target reports, and what is known while it is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from tests.features.sla.made import agreement, run
from tests.sshd import needs_it, serving

from nephoscope.core.errors import Lacking, NephoscopeError, TargetError
from nephoscope.features.sla import observers, watch
from nephoscope.features.sla.observers import Observer
from nephoscope.features.sla.probes import Service
from nephoscope.features.sla.watch import EventFile, Schedule, Watch
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.measure.targets.kinds.record import TargetRecord

GOOD, BAD, SILENT = "script:good", "script:bad", "script:silent"
LIMIT_S = 120.0


class ToyProgram:
    """The probe of a toy target: answers at once, or never."""

    def __init__(self, toy: Toy) -> None:
        self._toy = toy
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send_line(self, line: bytes) -> None:
        request = json.loads(line)
        (name,) = request["service"]["argv"]
        self._toy.asked.append(name)
        if name == "silent" and not request.get("check"):
            return
        refused = name in self._toy.refuses
        answer = {
            "id": request["id"],
            "ok": None if refused else name != "bad",
            "response_ns": 1_000_000,
            "held_ns": 0,
            "reason": "no right to" if refused else "",
        }
        self.print(json.dumps(answer).encode())

    def print(self, line: bytes | None) -> None:
        self._lines.put_nowait(line)

    async def line(self) -> bytes | None:
        return await self._lines.get()

    def close_input(self) -> None:
        self.print(None)

    async def rest(self, timeout_s: float, max_bytes: int, max_lines: int) -> None:
        self._toy.closed += 1


class Toy:
    """A target that can be lost, and its record in one."""

    def __init__(self) -> None:
        self.is_down = False
        self.refuses: set[str] = set()
        self.asked: list[str] = []
        self.opened = self.closed = 0
        self.program: ToyProgram | None = None

    def make(self) -> Toy:
        return self

    async def open(self) -> None:
        self.opened += 1
        if self.is_down:
            raise TargetError("far: the host hung up.", "Check it.")

    async def observe(self) -> ToyProgram:
        self.program = ToyProgram(self)
        return self.program

    async def close(self) -> None:
        """Has nothing to close."""

    def die(self) -> None:
        self.is_down = True
        assert self.program is not None
        self.program.print(None)


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.001)


def using(
    record: Any, work: Callable[[Observer], Awaitable[None]], *addresses: str, patient: bool = False
) -> list[str]:
    """Opens an observer, lets it keep its connection meanwhile; returns the lines for the user."""
    lines: list[str] = []

    async def whole() -> None:
        observer = Observer("far", cast("TargetRecord", record), lines.append)
        keeper = None
        try:
            await observer.open(addresses, patient=patient)
            keeper = asyncio.create_task(observer.keep())
            await work(observer)
        finally:
            if keeper:
                keeper.cancel()
                await asyncio.wait({keeper})
            await observer.close()

    asyncio.run(whole())
    return lines


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits between attempts to open a target, which pass at once."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def pass_at_once(seconds: float) -> None:
        waits.extend([seconds] if seconds >= observers.FIRST_WAIT_S else [])
        await sleep(0)

    monkeypatch.setattr(observers.asyncio, "sleep", pass_at_once)
    return waits


def test_a_lost_target_is_unknown_and_comes_back(waits: list[float]) -> None:
    toy = Toy()

    async def work(observer: Observer) -> None:
        assert (await observer.probe(GOOD, 60)).outcome.ok is True
        assert (await observer.probe(BAD, 60)).outcome.ok is False
        pending = asyncio.create_task(observer.probe(SILENT, 60))
        await eventually(lambda: toy.asked[-1] == "silent")
        toy.die()
        lost = (await pending).outcome
        assert (lost.ok, lost.response_ms) == (None, None)
        assert lost.reason == "the observer is lost: its probe has ended."
        await eventually(lambda: toy.opened >= 10)
        assert (await observer.probe(BAD, 60)).outcome.ok is None
        assert "the host hung up" in (await observer.probe(GOOD, 60)).outcome.reason
        toy.is_down = False
        await eventually(lambda: len(lines) > 1)
        assert (await observer.probe(GOOD, 60)).outcome.ok is True
        assert observer.losses == 1

    lines: list[str] = []

    async def noting(observer: Observer) -> None:
        observer._say = lines.append
        await work(observer)

    using(toy, noting, GOOD)
    assert lines == [
        "far: its probe has ended. Its events are unknown until it answers again.",
        "far: it answers again.",
    ]
    assert waits[:8] == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize("line", [b"no answer", b'{"id":1}', None])
def test_a_probe_that_ends_or_prints_something_else_is_lost(line: bytes | None) -> None:
    toy = Toy()

    async def work(observer: Observer) -> None:
        toy.is_down = True
        assert toy.program is not None
        toy.program.print(line)
        await eventually(lambda: observer.losses)
        assert (await observer.probe(GOOD, 60)).outcome.ok is None

    assert len(using(toy, work)) == 1


def test_a_target_that_does_not_answer_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "_SILENCE_S", 0.0)
    toy = Toy()

    async def work(observer: Observer) -> None:
        toy.is_down = True
        silent = (await observer.probe(SILENT, 0.01)).outcome
        assert (silent.ok, silent.reason) == (None, "the observer is lost: it does not answer.")
        await eventually(lambda: toy.closed)

    using(toy, work)


def test_an_answer_that_took_too_long_on_its_way_tells_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observers, "_LATEST_NS", -1)

    async def work(observer: Observer) -> None:
        late = (await observer.probe(BAD, 60)).outcome
        assert late.ok is None
        assert late.reason.startswith("the observer was up to")

    using(Toy(), work)


def test_what_it_cannot_probe_is_refused_before_the_watch() -> None:
    toy = Toy()
    toy.refuses = {"bad"}

    async def work(observer: Observer) -> None:
        raise AssertionError

    with pytest.raises(Lacking, match="far: no right to"):
        using(toy, work, GOOD, BAD)
    assert toy.closed == 1


def test_a_new_watch_needs_its_targets_and_one_that_continues_waits_for_them(
    waits: list[float],
) -> None:
    toy = Toy()
    toy.is_down = True

    async def work(observer: Observer) -> None:
        assert (await observer.probe(GOOD, 60)).outcome.ok is None
        toy.is_down = False
        await eventually(lambda: toy.program)
        await eventually(lambda: observer._session)
        assert (await observer.probe(GOOD, 60)).outcome.ok is True

    with pytest.raises(TargetError, match="hung up"):
        using(toy, work, GOOD)
    assert "the host hung up. Its events are unknown" in using(toy, work, GOOD, patient=True)[0]


def test_a_lost_observer_is_no_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target dies in the middle of a watch, which is started again: no slot is bad."""
    file = tmp_path / "e.csv"

    def rows() -> list[list[str]]:
        return [line.split(",") for line in file.read_text().splitlines()[1:]]

    def watch_until(toy: Toy, is_over: Callable[[], bool]) -> watch.WatchResult:
        async def ends_before(stop: asyncio.Event, seconds: float) -> bool:
            await asyncio.sleep(min(0.01, max(0.0, seconds)))
            if not toy.is_down and any(row[2] == "far" and row[3] == "1" for row in rows()):
                toy.die()
            return is_over()

        monkeypatch.setattr(watch, "_ends_before", ends_before)
        watching = Watch(
            [Service("web", GOOD)],
            Schedule(0.05, 0.1, 5.0),
            [
                Observer("far", cast("TargetRecord", toy), lambda line: None),
                Observer("near", cast("TargetRecord", Toy()), lambda line: None),
            ],
            EventFile(file),
            file,
        )
        return asyncio.run(watching.run())

    def unknown() -> int:
        return sum(row[3] == "" and "the observer is lost" in row[5] for row in rows())

    toy = Toy()
    first = watch_until(toy, lambda: unknown() >= 2)
    assert [one.losses for one in first.observers] == [1, 0]
    before = unknown()
    second = watch_until(toy, lambda: unknown() >= before + 2)
    assert second.failed == first.failed == 0
    assert {row[3] for row in rows()} == {"", "1"}
    terms = agreement(tmp_path / "t.yaml", "measure: availability, target: 99%, slot: 1s")
    (period,) = run(capsys, "verdict", terms, file)["periods"]
    assert period["objectives"][0]["outages"] == []


@needs_it
def test_over_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks, and later the host has another key: it is never trusted."""
    monkeypatch.setattr(observers, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(observers, "LONGEST_WAIT_S", 0.01)
    with serving(tmp_path / "sshd") as server:

        async def work(observer: Observer) -> None:
            url = f"tcp://127.0.0.1:{server.port}"
            assert (await observer.probe(url, 60)).outcome.ok is True
            failed = (await observer.probe("script:sh -c 'exit 3'", 60)).outcome
            assert (failed.ok, failed.reason) == (False, "exit code 3")
            server.kill_connections()
            await eventually(lambda: observer.losses == 1)
            await eventually(lambda: observer._session)
            assert (await observer.probe(url, 60)).outcome.ok is True
            server.known_hosts.write_text("")
            server.kill_connections()
            await eventually(lambda: "host key is not known" in observer._why)
            assert (await observer.probe(url, 60)).outcome.ok is None

        lines = using(server.record(), work, "script:true", "icmp://127.0.0.1")
        assert [line.count("answers again.") for line in lines] == [1, 1, 1]
        server.known_hosts.write_text("")
        with pytest.raises(NephoscopeError, match="the host key is not known"):
            using(server.record(), work)


def test_scripts_end_with_the_watch(tmp_path: Path) -> None:
    """What a script started is killed when its observer is closed."""
    mark = tmp_path / "pid"

    async def work(observer: Observer) -> None:
        script = f"script:sh -c 'sleep 600 & echo $! > {mark}.new; mv {mark}.new {mark}; wait'"
        pending = asyncio.create_task(observer.probe(script, 600))
        await eventually(mark.exists)
        await observer.close()
        assert (await pending).outcome.ok is None

    using(LocalRecord(), work)
    pid = int(mark.read_text())

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    asyncio.run(eventually(is_gone))
