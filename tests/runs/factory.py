"""A target that does not measure: it answers at once, with values that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nephoscope import plans
from nephoscope.errors import BenchmarkFailed
from nephoscope.model import Sample
from nephoscope.targets import Done, TargetTrial

Answer = Callable[[str, Mapping[str, Any], int], TargetTrial]
"""Target name, params and number of the call -> the trial."""


def good(value: float = 100.0, **beside: Any) -> TargetTrial:
    """A trial of `null` with one value."""
    return TargetTrial((Sample("null_ns", value),), {}, Done(1_000_000, 1, beside), None)


def failed(name: str = "no_luck", exit_code: int = 3) -> TargetTrial:
    return TargetTrial((), {}, None, BenchmarkFailed(name, "No luck.", "Try later.", exit_code))


class FakeTarget:
    """Answers from a function; counts what it was asked."""

    kind = "local"

    def __init__(self, name: str, answer: Answer, log: list[tuple[str, str]]) -> None:
        self.name = name
        self._answer = answer
        self._log = log
        self.timeouts_s: list[float] = []

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        self._log.append((self.name, "open"))
        return {"identity": {"machine_id_hash": "00"}}

    async def run(self, benchmark: str, params: Mapping[str, Any], timeout_s: float) -> TargetTrial:
        self.timeouts_s.append(timeout_s)
        self._log.append((self.name, f"run {params}"))
        await asyncio.sleep(0.002)
        return self._answer(self.name, params, len(self.timeouts_s))

    async def put(self, source: Path, name: str, timeout_s: float = 60.0) -> str:
        raise NotImplementedError

    async def get(self, name: str, destination: Path, timeout_s: float = 60.0) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self._log.append((self.name, "close"))


class Fakes:
    """Factories for `runs.execute(targets=…)`, and the log of what the targets were asked."""

    def __init__(self, answer: Answer) -> None:
        self.log: list[tuple[str, str]] = []
        self.made: list[FakeTarget] = []
        self._answer = answer

    @property
    def factories(self) -> dict[str, Callable[[plans.Target], Any]]:
        return {"local": self._make}

    def _make(self, record: plans.Target) -> FakeTarget:
        target = FakeTarget(record.name, self._answer, self.log)
        self.made.append(target)
        return target

    @property
    def asked(self) -> int:
        """How many trials were asked for."""
        return sum(what.startswith("run") for _, what in self.log)
