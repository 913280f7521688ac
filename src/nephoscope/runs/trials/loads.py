"""Loads that run beside a trial, and the proof that they ran all the time.

A load of the catalogue runs until it is told to stop; it ended by itself only if something was
wrong. A benchmark that is no load may serve as one where the plan says so: it is run again and
again, and the part of the measured time that it covered is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.errors import BenchmarkFailed
from nephoscope.model import Background, Sample
from nephoscope.runs.trials.timing import Window
from nephoscope.store.trialfile import Beside
from nephoscope.targets import Peer, TargetTrial, session
from nephoscope.targets.probe.process import Running
from nephoscope.targets.probe.target import Target
from nephoscope.targets.session import Server

CLOCK_READING_NS = 1_000_000
"""Two processes may read the clock this far apart on a busy machine, and mean one moment."""

DURATION = "duration_ns"
"""Parameter of loads; at 0 they run until they are stopped."""


@dataclass(slots=True)
class Load:
    """One background on one target."""

    background: Background
    target: str
    spec: BenchmarkSpec
    same_clock: bool
    trials: list[tuple[int, int, TargetTrial]] = field(default_factory=list)
    problem: str = ""
    running: Running | None = None
    serving: Server | None = None
    _again: asyncio.Task[None] | None = None
    _began_ns: int = 0

    @property
    def who(self) -> str:
        """Returns how it is called in sentences."""
        return f"the load '{self.background.name}' ({self.spec.id} on {self.target})"

    @property
    def params(self) -> Mapping[str, Any]:
        """Its parameters; a load runs until it is stopped unless the plan says how long."""
        endless = self.spec.load and any(p.id == DURATION for p in self.spec.params)
        return {**({DURATION: 0} if endless else {}), **self.background.params}

    async def start(
        self, target: Target, deadline_s: float, limit_s: float, peer: Peer | None
    ) -> None:
        """Starts it; returns when it has been told to go. BenchmarkFailed when it cannot."""
        self.running = await self._ready(target, deadline_s, limit_s, peer)
        await self.running.go()
        self._began_ns = time.time_ns()
        if not self.spec.load:
            self._again = asyncio.ensure_future(
                self._repeat(self.running, target, deadline_s, limit_s, peer)
            )

    async def stop(self, limit_s: float, window: Window) -> None:
        """Stops it in order and reads what it counted; `problem` says why it does not count."""
        if self.spec.load:
            await self._stop_load(limit_s, window)
        else:
            await self._stop_repeating(window)
        if self.problem:
            self.problem = f"{self.who} {self.problem}"
        if self.serving is not None:
            await self.serving.stop(limit_s)

    def settles_in_s(self) -> float:
        """Returns how long it has still to run before the trial may start."""
        return self.background.settle_s - (time.time_ns() - self._began_ns) / 1e9

    async def end(self) -> None:
        """Ends whatever of it still runs; nothing it counted is kept."""
        if self._again is not None:
            self._again.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._again
        for part in (self.running, self.serving):
            if part is not None:
                await part.end()

    def describe(self, window: Window) -> dict[str, Any]:
        """The object in TrialRecord.loads."""
        return {
            "name": self.background.name,
            "benchmark": self.spec.id,
            "target": self.target,
            "load": self.spec.load,
            "covered_ratio": self._covered_ratio(window),
            "trials": len(self.trials),
        }

    def beside(self) -> Beside:
        """Its samples as rows of its own benchmark."""
        samples: list[Sample] = [s for _, _, trial in self.trials for s in trial.samples]
        return Beside(self.spec, self.target, {"load": self.background.name}, samples)

    def _covered_ratio(self, window: Window) -> float | None:
        if not self.trials:
            return None
        length = window.end_ns - window.start_ns
        covered = sum(window.covered(start, end) for start, end, _ in self.trials)
        return round(min(1.0, covered / length), 6) if length > 0 else 1.0

    async def _ready(
        self, target: Target, deadline_s: float, limit_s: float, peer: Peer | None
    ) -> Running:
        side = await session.prepare(
            target, self.spec.id, self.params, deadline_s=deadline_s, limit_s=limit_s, peer=peer
        )
        return side.running

    async def _stop_load(self, limit_s: float, window: Window) -> None:
        assert self.running is not None
        alone = self.running.ended()
        if not alone:
            await self.running.stop()
        stopped_ns = time.time_ns()
        trial = await self.running.result(limit_s)
        if trial.failure is not None:
            how = "ended by itself before it was stopped" if alone else "failed"
            self.problem = f"{how}: {trial.failure}"
            return
        start_ns, end_ns = self._interval(trial, None if alone else stopped_ns)
        self.trials.append((start_ns, end_ns, trial))
        if alone:
            self.problem = (
                "ended by itself before it was stopped; it covers "
                f"{100 * (self._covered_ratio(window) or 0):.0f} % of the measured time."
            )
        elif start_ns > window.start_ns + CLOCK_READING_NS:
            late_ms = (start_ns - window.start_ns) / 1e6
            self.problem = f"began {late_ms:.0f} ms after the measurement that it was to load."
        elif end_ns < window.end_ns - CLOCK_READING_NS:
            early_ms = (window.end_ns - end_ns) / 1e6
            self.problem = f"ended {early_ms:.0f} ms before the measurement that it was to load."

    def _interval(self, trial: TargetTrial, stopped_ns: int | None) -> tuple[int, int]:
        """Returns when it ran: by its own clock where that is ours, else by when we told it."""
        done = trial.done
        assert done is not None
        start_ns = self._began_ns
        if self.same_clock and done.started_wall_ns is not None:
            start_ns = done.started_wall_ns
            return start_ns, start_ns + done.elapsed_ns
        return start_ns, stopped_ns if stopped_ns is not None else start_ns + done.elapsed_ns

    async def _repeat(
        self, running: Running, target: Target, deadline_s: float, limit_s: float, peer: Peer | None
    ) -> None:
        """Runs a benchmark that ends by itself again and again, until it is cancelled."""
        while True:
            trial = await running.result(deadline_s)
            if trial.failure is not None:
                self.problem = f"failed: {trial.failure}"
                return
            start_ns, end_ns = self._interval(trial, None)
            self.trials.append((start_ns, end_ns, trial))
            try:
                running = await self._ready(target, deadline_s, limit_s, peer)
            except BenchmarkFailed as failure:
                self.problem = f"failed: {failure}"
                return
            self.running = running
            await running.go()
            self._began_ns = time.time_ns()

    async def _stop_repeating(self, window: Window) -> None:
        assert self._again is not None
        if self._again.done() and not self._again.cancelled():
            self._again.result()
        # The round that is under way is part of the load: it covers time, its figures are lost.
        now_ns, began_ns = time.time_ns(), self._began_ns
        await self.end()
        if not self.problem and began_ns and not self._is_kept(began_ns):
            self.trials.append((began_ns, now_ns, TargetTrial((), {}, None, None)))
        if not self.problem and not self._covered_ratio(window):
            self.problem = "ran at no moment of the measured time."

    def _is_kept(self, began_ns: int) -> bool:
        return any(start <= began_ns < end for start, end, _ in self.trials)
