"""Loads that run beside a trial, and the proof that they ran all the time.

A load runs until it is told to stop; it ended by itself only if something was wrong.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.model import Background, Sample
from nephoscope.measure.runs.trials.timing import Window
from nephoscope.measure.targets import Peer, TargetTrial, session
from nephoscope.measure.targets.probe.process import Running
from nephoscope.measure.targets.probe.target import Target
from nephoscope.measure.targets.session import Server
from nephoscope.store.trialfile import AuxiliarySamples

CLOCK_READING_NS = 1_000_000
"""Two processes may read the clock this far apart on a busy machine, and mean one moment."""


@dataclass(slots=True)
class Load:
    """One background on one target. trial: what it counted, from `start_ns` to `end_ns` on the
    controller's clock; None while it runs, and where it failed."""

    background: Background
    target: str
    spec: BenchmarkSpec
    same_clock: bool
    trial: TargetTrial | None = None
    start_ns: int = 0
    end_ns: int = 0
    problem: str = ""
    running: Running | None = None
    serving: Server | None = None

    @property
    def who(self) -> str:
        """Returns how it is called in sentences."""
        return f"the load '{self.background.name}' ({self.spec.id} on {self.target})"

    async def start(
        self, target: Target, deadline_s: float, limit_s: float, peer: Peer | None
    ) -> None:
        """Starts it; returns when it has been told to go. BenchmarkFailed when it cannot."""
        side = await session.prepare(
            target,
            self.spec.id,
            self.background.params,
            deadline_s=deadline_s,
            limit_s=limit_s,
            peer=peer,
        )
        self.running = side.running
        await self.running.go()
        self.start_ns = time.time_ns()

    async def stop(self, limit_s: float, window: Window) -> None:
        """Stops it in order and reads what it counted; `problem` says why it does not count."""
        if problem := await self._stop_load(limit_s, window):
            self.problem = f"{self.who} {problem}"
        if self.serving is not None:
            await self.serving.stop(limit_s)

    def settles_in_s(self) -> float:
        """Returns how long it has still to run before the trial may start."""
        return self.background.settle_s - (time.time_ns() - self.start_ns) / 1e9

    async def end(self) -> None:
        """Ends whatever of it still runs; nothing it counted is kept."""
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
            "trials": int(self.trial is not None),
        }

    @property
    def samples(self) -> Sequence[Sample]:
        """Returns what it counted."""
        return self.trial.samples if self.trial is not None else ()

    def auxiliary_samples(self) -> AuxiliarySamples:
        """Its samples as rows of its own benchmark."""
        return AuxiliarySamples(
            self.spec, self.target, {"load": self.background.name}, self.samples
        )

    def _covered_ratio(self, window: Window) -> float | None:
        if self.trial is None:
            return None
        length = window.end_ns - window.start_ns
        covered = window.covered(self.start_ns, self.end_ns)
        return round(min(1.0, covered / length), 6) if length > 0 else 1.0

    async def _stop_load(self, limit_s: float, window: Window) -> str:
        """Returns why it does not count; '' when it ran all the time."""
        assert self.running is not None
        alone = self.running.ended()
        if not alone:
            await self.running.stop()
        # All sides have answered: it ran to the end, also where a guest's clock states it later.
        self.end_ns = max(time.time_ns(), window.end_ns)
        trial = await self.running.result(limit_s)
        if trial.failure is not None:
            how = "ended by itself before it was stopped" if alone else "failed"
            return f"{how}: {trial.failure}"
        self.trial, done = trial, trial.done
        assert done is not None
        # It ran by its own clock where that is the controller's, else between `go` and `stop`.
        if self.same_clock and done.started_wall_ns is not None:
            self.start_ns = done.started_wall_ns
            self.end_ns = self.start_ns + done.elapsed_ns
        elif alone:
            self.end_ns = self.start_ns + done.elapsed_ns
        if alone:
            return (
                "ended by itself before it was stopped; it covers "
                f"{100 * (self._covered_ratio(window) or 0):.0f} % of the measured time."
            )
        if self.start_ns > window.start_ns + CLOCK_READING_NS:
            late_ms = (self.start_ns - window.start_ns) / 1e6
            return f"began {late_ms:.0f} ms after the measurement that it was to load."
        if self.end_ns < window.end_ns - CLOCK_READING_NS:
            early_ms = (window.end_ns - self.end_ns) / 1e6
            return f"ended {early_ms:.0f} ms before the measurement that it was to load."
        return ""
