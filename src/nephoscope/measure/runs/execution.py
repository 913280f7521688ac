"""One process's work on a run: from the first missing trial to the last, or to its end.

`RunSchedule` says what comes next, `TrialRunner` measures it on the targets, `Recorder` writes it
down; `RunExecution.measure` is the loop around them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from nephoscope.catalog import Catalog
from nephoscope.core import units
from nephoscope.core.errors import TargetError
from nephoscope.core.model import Setting
from nephoscope.core.tasks import cancelled_by_signals, uncancelled
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs import concurrency, preflight
from nephoscope.measure.runs.concurrent_runs import ConcurrentRuns
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.observer import Observer
from nephoscope.measure.runs.recorder import Recorder
from nephoscope.measure.runs.schedule.groups import Work
from nephoscope.measure.runs.schedule.run_schedule import (
    Order,
    RoundBegins,
    RoundEnded,
    RunSchedule,
    Trials,
)
from nephoscope.measure.runs.trials.controller_load import ControllerLoad
from nephoscope.measure.runs.trials.opened_targets import OpenedTargets
from nephoscope.measure.runs.trials.target_pool import Factory, TargetPool
from nephoscope.measure.runs.trials.trial import Stage
from nephoscope.measure.runs.trials.trial_runner import TrialRunner
from nephoscope.measure.targets.kinds.record import CONTROLLER
from nephoscope.store import StoredRun

EnvironmentOf = Callable[[Plan, StoredRun, Callable[[str], None]], Environment]
"""Makes what a plan's targets stand on; see environments.environment_of."""


class RunExecution:
    """The work of one process on a run; see the module."""

    def __init__(
        self,
        run: StoredRun,
        plan: Plan,
        settings: Sequence[Setting],
        catalog: Catalog,
        observer: Observer,
        factory: Factory,
        environment_of: EnvironmentOf,
        absent: Mapping[str, str] | None = None,
    ) -> None:
        self._run, self._catalog = run, catalog
        self._cpus = len(os.sched_getaffinity(0))
        trials = list(run.tables())
        stored = [record for record, _ in trials]
        seed = run.manifest.seed or 0
        self._schedule = RunSchedule(plan, settings, catalog, seed, trials, self._cpus)
        self._progress, every = self._schedule.progress, self._schedule.settings
        self.recorder = Recorder(run, plan, self._progress, observer, stored)
        traits = [target.traits() for target in plan.targets]
        self._is_here = any(
            trait_set.machine == CONTROLLER and not trait_set.simulated for trait_set in traits
        )
        self._other_runs = ConcurrentRuns(
            run.id,
            frozenset(
                trait_set.machine
                for trait_set in traits
                if not (trait_set.simulated or trait_set.is_recorded)
            ),
        )
        self._environment = environment_of(plan, run, self.recorder.say)
        self._most_at_once = plan.most_at_once
        self._pool = TargetPool(
            plan,
            factory,
            self._environment,
            OpenedTargets(run, plan, every, catalog),
            preflight.tools(every, catalog),
            preflight.servers(every, catalog),
            absent,
        )
        self._controller = ControllerLoad()
        stage = Stage(plan, catalog, self._pool, self._environment, self._controller, seed)
        self._runner = TrialRunner(stage, self._progress, self.recorder, stored)

    def begin(self, resumed: bool) -> None:
        """Says that this process measures now, and what a person should know before it does."""
        self.recorder.begin(resumed)
        settings = self._schedule.settings
        for sentence in preflight.check(
            self._run.path, settings, self._catalog, here=self._is_here
        ):
            self.recorder.warn(sentence)

    async def measure(self, limit_s: float | None = None) -> None:
        """Runs every trial that is missing. Cancelled by the signals that end a program.

        limit_s: seconds after which the trial that is measured then is given up, and the run ends
        with those before it; None for no limit.
        """
        async with (
            self._limited(limit_s),
            self._controller.sampled(),
            self._standing(),
            self._pool.open(),
        ):
            for step in self._schedule.steps():
                match step:
                    case RoundBegins():
                        await self._begin_round(step.number)
                    case Trials(works, Order.ONE_BY_ONE):
                        await self._await_lost(works)
                        for work in works:
                            if not await self._runner.run(work) and not step.is_boot:
                                self._progress.end_by_budget()
                                break
                    case Trials(works, order):
                        await self._await_lost(works)
                        if not await self._run_side_by_side(works, order):
                            self._progress.end_by_budget()
                    case RoundEnded():
                        self.recorder.alternatives_ended(step.outcomes)

    @contextlib.asynccontextmanager
    async def _limited(self, limit_s: float | None) -> AsyncIterator[None]:
        """Ends measuring by a signal or after so many seconds; announces the run meanwhile."""
        with cancelled_by_signals(), self._other_runs.announced():
            try:
                async with asyncio.timeout(limit_s) as limit:
                    yield
            except TimeoutError:
                if not limit.expired():
                    raise
                self.recorder.note("time_limit_reached", limit_s=limit_s)
                self._progress.end_by_budget(units.format_duration(limit_s or 0.0))

    @contextlib.asynccontextmanager
    async def _standing(self) -> AsyncIterator[None]:
        """Yields what the targets stand on, up; taken down whatever happens meanwhile."""
        try:
            await self._environment.up()
            yield
        finally:
            await uncancelled(self._environment.down())

    async def _await_lost(self, works: Sequence[Work]) -> None:
        """Where nothing but lost targets is left to be measured, waits until they were tried
        again."""
        if works and all(self._pool.missing(work.group.needs, work.round) for work in works):
            await self._pool.await_retries()

    async def _run_side_by_side(self, works: Sequence[Work], order: Order) -> bool:
        if order is Order.ON_FREE_CPUS:
            return await concurrency.run_in_parallel(works, self._runner.run, self._cpus)
        return await concurrency.run_on_free_machines(
            works, self._runner.run, self._machines, self._most_at_once
        )

    def _machines(self, work: Work) -> frozenset[str]:
        needed = self._pool.machines(work.group.needs)
        return needed | {CONTROLLER} if work.group.setting.conditions else needed

    async def _begin_round(self, number: int) -> None:
        """Tries lost targets again, and ends what needs one that is given up.

        TargetError when no target is left: the run may go on later from where it is.
        """
        for sentence in self._other_runs.new_ones():
            self.recorder.warn(sentence)
        ended = await self._pool.begin_round(number)
        sentences = self._pool.abandoned
        for name in ended:
            self.recorder.warn(f"{name} is given up: {sentences[name]}")
            self._schedule.lose_target(name, sentences[name])
        if self._pool.all_abandoned:
            raise TargetError(
                f"No target answers any more: {next(iter(sentences.values()))}",
                f"{self.recorder.trials} trials are kept; the same command goes on.",
            )

    def finish(self) -> None:
        """The run is measured; see `Recorder.finish`."""
        self.recorder.finish(self._pool.abandoned, self._runner.failure, self._controller.summary())
