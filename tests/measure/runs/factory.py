"""A target that does not measure: it answers at once, with values that the test sets."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nephoscope.core.errors import BenchmarkFailed, TargetError
from nephoscope.core.model import Sample
from nephoscope.measure.targets import Done, Peer, TargetTrial
from nephoscope.measure.targets.base import Endpoint
from nephoscope.measure.targets.kinds.record import CONTROLLER, TargetRecord

Answer = Callable[[str, Mapping[str, Any], int], TargetTrial]
"""Target name, params and number of the call -> the trial."""


def good(value: float = 100.0, **counters: Any) -> TargetTrial:
    """A trial of `null` with one value."""
    return TargetTrial((Sample("null_ns", value),), {}, Done(1_000_000, 1, counters), None)


def failed(name: str = "no_luck", exit_code: int = 3) -> TargetTrial:
    return TargetTrial((), {}, None, BenchmarkFailed(name, "No luck.", "Try later.", exit_code))


@dataclass(frozen=True)
class Load:
    """How a load behaves. lives_s: it ends by itself so long after `go`; None: it is stopped.

    late_s: it begins so long after `go`. broken: it is never ready."""

    lives_s: float | None = None
    late_s: float = 0.0
    broken: bool = False
    benchmarks: tuple[str, ...] = ("test.load",)


class FakeRunning:
    """A probe that counts from `go` until it is stopped, or for as long as its answer says."""

    def __init__(self, target: FakeTarget, benchmark: str, params: Any, serve: bool) -> None:
        self._target, self._benchmark, self._params = target, benchmark, params
        self._serve = serve
        self._load = target.load if benchmark in target.load.benchmarks else None
        self._went_ns: int | None = None
        self._stopped_ns: int | None = None
        self._over = False
        self._over_event = asyncio.Event()

    def log(self, what: str) -> None:
        self._target.log.append((self._target.name, f"{what} {self._benchmark}"))

    async def ready(self, timeout_s: float) -> Mapping[str, Any]:
        if self._load is not None and self._load.broken:
            raise BenchmarkFailed("no_cpu", "There is no CPU.", "Buy one.")
        if self._target.slow_s:
            try:
                await asyncio.wait_for(asyncio.sleep(self._target.slow_s), timeout_s)
            except TimeoutError:
                raise BenchmarkFailed(
                    "deadline", f"It was not ready after {timeout_s:g} s."
                ) from None
        self.log("ready")
        server = {"port": 4242, "token": "t0"} if self._serve else {}
        return {"pid": 1, "wall_ns": time.time_ns(), **server}

    async def go(self, at_ns: int | None = None) -> None:
        self.log("go")
        self._went_ns = (at_ns or time.time_ns()) + self._target.lag_ns
        if self._load is not None:
            self._went_ns += int(self._load.late_s * 1e9)

    async def stop(self) -> None:
        self.log("stop")
        self._stopped_ns = time.time_ns()
        self._over_event.set()

    async def result(self, timeout_s: float) -> TargetTrial:
        assert self._serve or self._went_ns is not None, "nobody told it to go"
        if self._load is not None or self._serve:
            return await self._counted()
        self._target.timeouts_s.append(timeout_s)
        self._target.log.append((self._target.name, f"run {self._params}"))
        wait_s = max(0.0, (self._went_ns - time.time_ns()) / 1e9)
        takes_s = self._target.takes_s(self._params)
        await asyncio.sleep(wait_s + takes_s)
        trial = self._target.answer(self._target.name, self._params, len(self._target.timeouts_s))
        self._over = True
        if trial.done is None:
            return trial
        elapsed_ns = max(trial.done.elapsed_ns, int(takes_s * 1e9))
        done = replace(trial.done, started_wall_ns=self._went_ns, elapsed_ns=elapsed_ns)
        return replace(trial, done=done)

    async def _counted(self) -> TargetTrial:
        if self.ended() and self._stopped_ns is None:
            words = BenchmarkFailed("probe_died", f"{self._benchmark}: ended by SIGKILL.")
            return TargetTrial((), {}, None, words)
        await self._over_event.wait()
        assert self._stopped_ns is not None
        began_ns = self._went_ns or self._stopped_ns
        done = Done(max(0, self._stopped_ns - began_ns), 0, {}, (), began_ns)
        samples = (Sample("load_ratio", 0.5),) if self._load is not None else ()
        return TargetTrial(samples, {}, replace(done, samples=len(samples)), None)

    def ended(self) -> bool:
        if self._over:
            return True
        if self._load is None or self._load.lives_s is None or self._went_ns is None:
            return False
        return time.time_ns() > self._went_ns + self._load.lives_s * 1e9

    async def end(self) -> None:
        if not self._over:
            self.log("end")
        self._over = True
        self._over_event.set()


class FakeTarget:
    """Answers from a function; counts what it was asked."""

    def __init__(self, record: TargetRecord, fakes: Fakes) -> None:
        self.name, self.record = record.name, record
        self.shares_clock = record.traits().machine == CONTROLLER
        self.answer = fakes.answer
        self.fakes = fakes
        self.log = fakes.log
        self.timeouts_s: list[float] = []
        self.load = fakes.loads.get(record.name, Load())
        self.lag_ns = fakes.lags_ns.get(record.name, 0)
        self.slow_s = fakes.slow_s.get(record.name, 0.0)
        self.takes_s = fakes.takes_s

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        self.log.append((self.name, "open"))
        self.fakes.opened(self.name)
        identity = {"machine_id_hash": self.fakes.machines.get(self.name, "00")}
        return {
            "identity": identity,
            "limits": {"cpu_quota_cpus": self.fakes.quotas.get(self.name)},
            "directory": os.getcwd(),
        }

    async def start(
        self,
        benchmark: str,
        params: Mapping[str, Any],
        timeout_s: float,
        *,
        serve: str | None = None,
        peer: Peer | None = None,
        gap_meter: bool = False,
    ) -> FakeRunning:
        if gap_meter:
            self.fakes.metered.append(self.name)
        if peer is not None:
            self.log.append((self.name, f"peer {peer.address}:{peer.port} {peer.token}"))
        return FakeRunning(self, benchmark, dict(params), serve is not None)

    async def run(self, benchmark: str, params: Mapping[str, Any], timeout_s: float) -> TargetTrial:
        running = await self.start(benchmark, params, timeout_s)
        await running.ready(timeout_s)
        await running.go()
        return await running.result(timeout_s)

    def endpoint(self, client: Any, version: Any = None) -> Endpoint:
        address = f"10.0.0.{1 + len(self.name)}"
        return Endpoint(address, address)

    async def tool(self, benchmark: str) -> str:
        return ""

    async def require_server(self, benchmark: str) -> None:
        return

    async def put(self, source: Path, name: str, timeout_s: float = 60.0) -> str:
        raise NotImplementedError

    async def get(self, name: str, destination: Path, timeout_s: float = 60.0) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self.log.append((self.name, "close"))


class Fakes:
    """Factories for `runs.execute(targets=…)`, and the log of what the targets were asked.

    gone: target -> which openings of it fail (1 is the first). quotas: target -> CPU quota.
    """

    def __init__(
        self,
        answer: Answer = lambda *_: good(),
        *,
        loads: Mapping[str, Load] | None = None,
        lags_ns: Mapping[str, int] | None = None,
        slow_s: Mapping[str, float] | None = None,
        machines: Mapping[str, str] | None = None,
        quotas: Mapping[str, float] | None = None,
        gone: Mapping[str, range] | None = None,
        takes_s: float | Callable[[Mapping[str, Any]], float] = 0.002,
    ) -> None:
        self.log: list[tuple[str, str]] = []
        self.made: list[FakeTarget] = []
        self.metered: list[str] = []
        self.answer = answer
        self.loads = loads or {}
        self.lags_ns = lags_ns or {}
        self.slow_s = slow_s or {}
        self.machines = machines or {}
        self.quotas = quotas or {}
        self.takes_s = takes_s if callable(takes_s) else lambda _: takes_s
        self._gone = gone or {}
        self._openings: dict[str, int] = {}

    def make(self, record: TargetRecord) -> FakeTarget:
        target = FakeTarget(record, self)
        self.made.append(target)
        return target

    def opened(self, name: str) -> None:
        self._openings[name] = self._openings.get(name, 0) + 1
        if self._openings[name] in self._gone.get(name, range(0)):
            raise TargetError(f"{name} cannot be reached.", "Look for it.")

    @property
    def asked(self) -> int:
        """How many trials were asked for."""
        return sum(what.startswith("run") for _, what in self.log)
