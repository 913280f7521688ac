"""One process's work on a run: from the first missing trial to the last, or to its end.

Trial files are the truth. The session walks through the rounds; a trial that is stored is taken
in, one that is missing is measured; what comes next follows from `Progress` alone. So a run that
was killed at any moment goes on where it was, with no trial lost and none doubled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from nephoscope import __version__
from nephoscope.catalog import Catalog
from nephoscope.core import units
from nephoscope.core.errors import BenchmarkFailed, TargetError
from nephoscope.core.model import Setting, TrialKey
from nephoscope.core.tasks import cancelled_by_signals, uncancelled
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs import preflight
from nephoscope.measure.runs.concurrent_runs import ConcurrentRuns
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.observer import Observer, Status
from nephoscope.measure.runs.schedule import concurrency
from nephoscope.measure.runs.schedule.alternatives import Outcome, Pair
from nephoscope.measure.runs.schedule.groups import Group, scheduled
from nephoscope.measure.runs.schedule.headline import rows_of_table
from nephoscope.measure.runs.schedule.progress import UNMEASURABLE, Progress, budget_s
from nephoscope.measure.runs.trials.boots import Cells
from nephoscope.measure.runs.trials.execution import Execution
from nephoscope.measure.runs.trials.target_pool import Factory, TargetPool, machine_id
from nephoscope.measure.runs.trials.trial import Stage
from nephoscope.measure.targets.kinds.record import CONTROLLER
from nephoscope.measure.targets.probe.target import DIRECTORY
from nephoscope.store import FAILED, MEASURED, StoredRun, identity

EnvironmentOf = Callable[[Plan, StoredRun, Callable[[str], None]], Environment]
"""Makes what a plan's targets stand on; see environment.environment_of."""

_AGAIN = "The run was interrupted in this cell: its host was made anew since the cell began."
_APART = "The run was interrupted between this trial and the quiet one before it."
_WAVE = 4
"""Simulated rounds that are begun at once, for each CPU: few CPUs wait at the end of them, and what
is still to come is estimated anew before the next."""
_LATER = "Measured after later rounds: it was missing when the run went on."


class Session:
    """The state of one process's work on a run; see the module."""

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
        self._run, self._plan, self._observer = run, plan, observer
        self._cells = Cells(plan, settings)
        self._settings = [*settings, *self._cells.settings()]
        self._catalog = catalog
        self._seed = run.manifest.seed or 0
        specs = {one.benchmark: catalog.benchmark(one.benchmark) for one in settings}
        self._progress = Progress(plan, settings, specs)
        stored = list(run.tables())
        self._have = {record.key: (record, table) for record, table in stored}
        self._last_stored = max((record.key.round for record, _ in stored), default=0)
        self._begun = 0
        self._cpus = len(os.sched_getaffinity(0))
        self._traits = [target.traits() for target in plan.targets]
        self._others = ConcurrentRuns(
            run.id, frozenset(one.machine for one in self._traits if not one.simulated)
        )
        self._environment = environment_of(plan, run, self._say)
        self._pool = TargetPool(
            plan,
            factory,
            self._environment,
            self._fingerprinted,
            preflight.tools(self._settings, catalog),
            preflight.servers(self._settings, catalog),
            absent,
        )
        self._execution = Execution(
            run,
            Stage(plan, catalog, self._pool, self._environment, self._seed),
            self._progress,
            observer,
            self._status,
            [record for record, _ in stored],
        )

    @property
    def trials(self) -> int:
        """Returns how many trials are stored."""
        return self._execution.trials

    def begin(self, resumed: bool) -> None:
        """Says in the journal and to the observer that this process measures now."""
        self._run.event(
            {
                "event": "session_started",
                **identity(),
                "resumed": resumed,
                "trials": self.trials,
                "nephoscope": __version__,
            }
        )
        self._observer.run_started(self._run, resumed, self.trials)
        for record in self._run.records():
            if record.position < 0:
                self._warn(f"Trial {record.key.name} is measured again: {record.reasons[0]}.")
        here = any(one.machine == CONTROLLER and not one.simulated for one in self._traits)
        for sentence in preflight.check(self._run.path, self._settings, self._catalog, here=here):
            self._warn(sentence)

    async def measure(self, limit_s: float | None = None) -> None:
        """Runs every trial that is missing. Cancelled by the signals that end a program.

        limit_s: seconds after which the trial that is measured then is given up, and the run ends
        with those before it; None for no limit.
        """
        with cancelled_by_signals(), self._others.announced():
            try:
                async with asyncio.timeout(limit_s) as limit:
                    await self._measure()
            except TimeoutError:
                if not limit.expired():
                    raise
                self._run.event({"event": "time_limit_reached", "limit_s": limit_s})
                self._progress.end_by_budget(units.format_duration(limit_s or 0.0))

    async def _measure(self) -> None:
        async with self._standing(), self._pool.open():
            for numbers in self._progress.cells():
                if self._cells.by_block:
                    await self._one_cell(numbers)
                else:
                    for number in numbers:
                        await self._one_round(number)

    @contextlib.asynccontextmanager
    async def _standing(self) -> AsyncIterator[None]:
        """Yields what the targets stand on, up; taken down whatever happens meanwhile."""
        try:
            await self._environment.up()
            yield
        finally:
            await uncancelled(self._environment.down())

    async def _one_round(self, number: int) -> None:
        if 0 < number <= self._begun:
            return
        nest = await self._begin_round(number)
        active = self._progress.begin_round(number)
        missing = self._missing(number, active)
        execute = partial(self._execute, number, nest)
        if self._plan.simulated:
            jobs = [partial(execute, group) for group in missing]
            goes_on = await concurrency.run_in_parallel(
                jobs + self._ahead(number, active, nest), self._cpus
            )
        elif self._plan.concurrent:
            goes_on = await concurrency.run_on_free_machines(missing, execute, self._machines)
        else:
            goes_on = await concurrency.run_in_order(missing, execute)
        if not goes_on:
            self._progress.end_by_budget()
        self._end_round()

    async def _one_cell(self, numbers: Sequence[int]) -> None:
        """Measures the blocks of a cell one after the other: each is booted, then all its rounds
        are measured. The order of the blocks is the seed's."""
        nest = await self._begin_round(numbers[0])
        work: dict[str, list[tuple[int, Group]]] = {}
        for number in numbers:
            active = self._progress.begin_round(number)
            for group in self._missing(number, active):
                work.setdefault(group.setting.block, []).append((number, group))
        cell = self._cells.cell_of(numbers[0])
        for (block,) in plans.order_round(self._seed, numbers[-1], [(name,) for name in work]):
            await self._boot(cell, self._cells.block_boots(cell, block), nest)
            for number, group in work[block]:
                if not await self._execute(number, nest, group):
                    self._progress.end_by_budget()
        self._end_round()

    async def _begin_round(self, number: int) -> Mapping[str, int]:
        """Readies targets and hosts for a round, and those after it in its cell; returns the
        cell."""
        for sentence in self._others.new_ones():
            self._warn(sentence)
        self._give_up(await self._pool.begin_round(number))
        return await self._cell(number)

    def _end_round(self) -> None:
        for outcome in self._progress.end_round():
            self._run.event({"event": "alternative_ended", **asdict(outcome)})
            self._observer.alternative_ended(outcome, self._status())

    def _missing(self, number: int, active: Sequence[Pair]) -> list[Group]:
        """Returns what is to be measured in a round; what is stored of it is taken in."""
        groups = scheduled(self._plan, self._seed, number, active, self._settings)
        return [group for group in groups if not self._taken_in(group.keys(number))]

    def _ahead(
        self, number: int, active: Sequence[Pair], nest: Mapping[str, int]
    ) -> list[concurrency.Job]:
        """Trials of later rounds, begun with those of this one while it is sure that each
        alternative has that round. Not before the first round is over, which says what is refused.
        """
        jobs: list[concurrency.Job] = []
        if number < 2 or self._cells.nested:
            return jobs
        for later in range(number + 1, number + _WAVE * self._cpus):
            if not all(self._progress.sure(pair, later) for pair in active):
                break
            self._begun = later
            groups = self._missing(later, active)
            jobs += [partial(self._execute, later, nest, group) for group in groups]
        return jobs

    async def _execute(self, number: int, nest: Mapping[str, int], group: Group) -> bool:
        late = 0 < number < self._begin_of(self._last_stored) and not self._plan.simulated
        notes = [_LATER] if late else []
        if self._cells.nested and self._cells.interrupted == self._cells.cell_of(number):
            notes.append(_AGAIN)
        before = group.around(number, group.targets[0]).get("before")
        if before is not None and before in self._have:
            notes.append(_APART)
        return await self._execution.execute(number, group, nest, notes)

    def _taken_in(self, keys: Sequence[TrialKey]) -> bool:
        """Takes in what is stored; False when a trial of these has to be measured."""
        if any(key not in self._have for key in keys):
            return False
        for key in keys:
            record, table = self._have[key]
            self._progress.add(record, rows_of_table(table))
        return True

    async def _cell(self, number: int) -> Mapping[str, int]:
        """At the beginning of a cell of a nested design: boots what the cell is measured on."""
        if not self._cells.nested:
            return {}
        cell = self._cells.cell_of(number)
        nest = self._cells.nest_of(cell)
        if cell == self._cells.begun:
            return nest
        self._cells.begun = cell
        await self._boot(cell, self._cells.boots(cell), nest)
        return nest

    async def _boot(
        self, cell: int, boots: Sequence[tuple[TrialKey, Group]], nest: Mapping[str, int]
    ) -> None:
        self._cells.interrupted = None
        for key, group in boots:
            if self._taken_in([key]):
                # Booted by the process before us; whether it still is that boot, we cannot know.
                self._cells.interrupted = cell
            else:
                await self._execution.execute(key.round, group, nest)

    def _begin_of(self, number: int) -> int:
        """The first round that is measured together with a round."""
        nest = self._plan.design.nest
        rounds = nest.rounds if nest is not None and self._cells.by_block else 1
        return number - (number - 1) % rounds

    def _give_up(self, names: Sequence[str]) -> None:
        """Ends what needs these targets. TargetError when no target is left: the run may go on
        later from where it is."""
        sentences = self._pool.given_up
        for name in names:
            self._warn(f"{name} is given up: {sentences[name]}")
            for setting in self._settings:
                for target in setting.targets:
                    group = Group(setting, setting.targets if setting.together else (target,))
                    if name in group.needs:
                        self._progress.lose(group.members, f"{name} was lost: {sentences[name]}")
        if self._pool.all_given_up:
            raise TargetError(
                f"No target answers any more: {next(iter(sentences.values()))}",
                f"{self.trials} trials are kept; the same command goes on.",
            )

    def _machines(self, group: Group) -> frozenset[str]:
        needed = self._pool.machines(group.needs)
        return needed | {CONTROLLER} if group.setting.conditions else needed

    def _fingerprinted(self, name: str, fingerprint: Mapping[str, Any]) -> None:
        known = self._run.manifest.fingerprints
        before, now = machine_id(known.get(name, {})), machine_id(fingerprint)
        # A machine that was made for the experiment may be another one after each boot.
        made_here = self._pool.wanted(name).traits().provisioned
        if before and now and before != now and not made_here:
            raise TargetError(
                f"Run {self._run.id} was begun on another machine, and trials of two machines are "
                "no repetitions of one another.",
                "Go on there, or begin a new run here with --fresh.",
            )
        self._check_directory(name, known.get(name, {}).get(DIRECTORY), fingerprint.get(DIRECTORY))
        if name not in known:
            self._run.update(fingerprints={**known, name: dict(fingerprint)})
        self._run.event({"event": "target_opened", "target": name})

    def _check_directory(self, name: str, before: str | None, now: str | None) -> None:
        """TargetError where relative paths of the plan would now mean other files than before."""
        if not before or before == now:
            return
        depends = any(
            self._catalog.benchmark(benchmark).starts_in_directory(params)
            for setting in self._settings
            for benchmark, params, targets in setting.executions()
            if name in targets
        )
        if depends:
            raise TargetError(
                f"{name}: run {self._run.id} was begun in {before}, and its relative paths would "
                f"mean other files in {now}.",
                "Resume it from that directory, or begin a new run here with --fresh.",
            )

    def _say(self, sentence: str) -> None:
        self._run.event({"event": "said", "sentence": sentence})
        self._observer.said(sentence)

    def _warn(self, sentence: str) -> None:
        self._run.event({"event": "warning", "sentence": sentence})
        self._observer.warning(sentence)

    def _status(self) -> Status:
        return Status(
            trials=self.trials,
            alternatives=self._progress.alternatives,
            ended=len(self._progress.outcomes()),
            spent_s=self._progress.spent_s,
            budget_s=budget_s(self._plan),
            time_left=self._progress.time_left(),
        )

    def note_end(self, why: str) -> None:
        """Says in the journal why this process stopped before the run was measured."""
        with contextlib.suppress(Exception):  # a full disk must not hide the reason for the end
            self._run.event({"event": "session_ended", "why": why})

    def finish(self) -> None:
        """Every trial is there: the outcomes go into the manifest, and the run is measured.

        Raises BenchmarkFailed when not one trial counts.
        """
        outcomes = self._progress.outcomes()
        refused = [_refusal(outcome) for outcome in outcomes if outcome.word in UNMEASURABLE]
        self._run.update(
            outcomes=[asdict(outcome) for outcome in outcomes],
            refused=refused,
            lost=dict(self._pool.given_up),
            spent_s=round(self._progress.spent_s, 3),
        )
        self._run.event({"event": "session_ended", "why": "measured"})
        if self._execution.valid == 0:
            self._run.finish(FAILED)
            raise self._nothing_counts(refused)
        self._run.finish(MEASURED)

    def _nothing_counts(self, refused: Sequence[str]) -> BenchmarkFailed:
        failure = self._execution.failure
        if failure is not None:
            return BenchmarkFailed(failure.name, failure.message, failure.hint, failure.exit_code)
        return BenchmarkFailed(
            "no_valid_trial",
            f"No trial counts: {'; '.join(refused) or 'see the run'}.",
            f"`nephoscope show {self._run.id}` lists them with their reasons.",
        )


def _refusal(outcome: Outcome) -> str:
    """Why a result says nothing about an alternative, for the manifest."""
    levels = "".join(f"{name}={level} " for name, level in outcome.factors.items())
    return f"{outcome.benchmark} {levels}on {outcome.target}: {outcome.reason}"
