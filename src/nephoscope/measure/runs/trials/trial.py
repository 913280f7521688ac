"""One attempt at a group of trials: prepare, start, measure, stop, clean."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from nephoscope.catalog import CPU_GAPS, BenchmarkSpec, Catalog
from nephoscope.core.errors import BenchmarkFailed, NephoscopeError
from nephoscope.core.model import Background, Hook
from nephoscope.core.shared_load import GENERATOR, STARTED
from nephoscope.core.tasks import together, uncancelled
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.server_address import AUTHORISED
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.schedule.cells import BOOT_S, PLATFORM
from nephoscope.measure.runs.schedule.groups import Group
from nephoscope.measure.runs.trials import timing
from nephoscope.measure.runs.trials.controller_load import ControllerLoad
from nephoscope.measure.runs.trials.loads import Load
from nephoscope.measure.runs.trials.phases import Phase, PhaseFailed, Timeline
from nephoscope.measure.runs.trials.records import GroupResult
from nephoscope.measure.runs.trials.seeds import with_seed
from nephoscope.measure.runs.trials.served import unequal_counts
from nephoscope.measure.runs.trials.target_pool import TargetLost, TargetPool
from nephoscope.measure.runs.trials.timing import Window
from nephoscope.measure.targets import TargetTrial, session
from nephoscope.measure.targets.kinds.record import CONTROLLER
from nephoscope.measure.targets.kinds.service import ServiceRecord
from nephoscope.measure.targets.probe.busy_programs import BUSY_PROGRAMS, Reading, busy_programs
from nephoscope.measure.targets.session import Server, Side
from nephoscope.store.trialfile import AuxiliarySamples

Value = TypeVar("Value")

_LATER_S = 5.0
# A target ends its probe at the time limit and says so better than the phase's limit, which is
# for a target that does not.


@dataclass(frozen=True, slots=True)
class Stage:
    """Where groups are executed. seed: of the run."""

    plan: Plan
    catalog: Catalog
    pool: TargetPool
    environment: Environment
    controller: ControllerLoad
    seed: int = 0


class GroupTrial:
    """One attempt at a group: its phases, and in `result` what they brought back.

    measure_s: limit of the measurement itself.
    """

    def __init__(self, group: Group, stage: Stage, measure_s: float, round: int = 0) -> None:
        self._group = group
        self._round = round
        self._setting = group.setting
        self._stage = stage
        self._limits = stage.plan.phases
        self._measure_s = measure_s
        self._timeline = Timeline()
        self.result = GroupResult(started_at=time.time())
        self.phases = (self._prepare, self._start, self._measure, self._stop, self._clean)
        self._loads: list[Load] = []
        self._servers: dict[str, Server] = {}
        self._clients: dict[str, Side] = {}
        self._window: Window | None = None
        self._before: Mapping[str, Reading] = {}

    @contextlib.asynccontextmanager
    async def guarded(self) -> AsyncIterator[None]:
        """Turns a failure of a phase into the result; leaves nothing running, whatever happens."""
        out = self.result
        try:
            yield
        except PhaseFailed as failure:
            # Before there are results nothing was measured; after, it was and does not count.
            if failure.phase in (Phase.STOP, Phase.CLEAN):
                out.broken.append((failure.name, failure.reason))
            else:
                out.failure = failure
        except TargetLost as lost:
            out.lose(lost, f"in phase {self._timeline.current}")
        finally:
            await uncancelled(self._end_all())
            out.timeline = self._timeline.phases

    async def _prepare(self) -> None:
        conditions = self._setting.conditions
        limit_s = self._limits.prepare_s
        if any(path.endswith(PLATFORM) for path in conditions):
            limit_s += BOOT_S
        async with self._timeline.phase(Phase.PREPARE, limit_s):
            try:
                anew = await self._stage.environment.apply(conditions)
            except BenchmarkFailed:
                raise
            except NephoscopeError as error:
                # What cannot be set is this setting's failure; the others may well be possible.
                raise BenchmarkFailed("condition", error.message, error.hint) from error
            await self._stage.pool.reopen(anew)
            await self._hooks("before", self._setting.before)

    async def _start(self) -> None:
        settle_s = max((load.settle_s for load in self._setting.backgrounds), default=0.0)
        async with self._timeline.phase(Phase.START, self._limits.start_s + settle_s):
            for background in self._setting.backgrounds:
                for name in background.targets:
                    await self._start_load(background, name)
            await _until_settled(self._loads)
            setting = self._setting
            for name in self._group.targets:
                if server := setting.server_of(name):
                    client = setting.client_of(name)
                    self._servers[name] = await self._server(
                        server, client, setting.benchmark, setting.params
                    )
            self._before = await self._process_times()
            starts = [self._start_client(name) for name in self._group.targets]
            await (together(*starts) if len(starts) > 1 else starts[0])

    async def _measure(self) -> None:
        spare_s = session.LEAD_NS / 1e9 + _LATER_S
        # A server serves from the moment when it is ready; there is nothing to tell it.
        async with self._timeline.phase(Phase.MEASURE, self._measure_s + spare_s):
            sides = [self._clients[name] for name in self._group.targets]
            with self._stage.pool.blamed(sides[0].target):
                begun_ns = await session.go(sides)
            if len(sides) > 1:
                self.result.announced_late_ns = max(0, time.time_ns() - begun_ns)
            results = await together(*map(self._outcome, sides))
        self.result.trials = {
            name: self._with_ends(name, trial)
            for name, trial in zip(self._group.targets, results, strict=True)
            if isinstance(trial, TargetTrial)
        }
        lost = next((each for each in results if isinstance(each, TargetLost)), None)
        if lost is not None:
            self._take_starts()
            raise lost
        ended_ns = time.time_ns()
        self.result.elapsed_ns = ended_ns - begun_ns
        self._window = timing.window_of(self._clients, self.result.trials, begun_ns, ended_ns)
        # A recording answers sooner than the trial that it recorded.
        end_ns = min(self._window.end_ns, ended_ns)
        self.result.controller = self._stage.controller.over(self._window.start_ns, end_ns)
        self._stage.controller.add_trials(len(sides), len(sides) * self.result.elapsed_ns)
        for name, after in (await self._process_times()).items():
            if name in self._before:
                programs = busy_programs(self._before[name], after)
                self.result.documents.setdefault(name, {})[BUSY_PROGRAMS] = programs

    async def _outcome(self, side: Side) -> TargetTrial | TargetLost:
        """Returns what a side measured.

        Where generators share a load, one that is lost ends the trial of the others in order, so
        that what they sent is known; elsewhere it is raised, and ends them at once.
        """
        try:
            return await self._blaming(side.target, side.running.result(self._measure_s))
        except TargetLost as lost:
            if not self._group.sharing:
                raise
            return lost

    async def _process_times(self) -> Mapping[str, Reading]:
        """CPU times of the programs of each target whose scheduler is observed.

        Those that the plan runs beside the trial are no others, and a lab host shows the programs
        of the whole machine.
        """
        if self._setting.benchmark != CPU_GAPS or self._loads:
            return {}
        readings = {}
        for name in self._group.targets:
            traits = self._stage.pool.wanted(name).traits()
            if traits.simulated or traits.provisioned or traits.is_recorded:
                continue
            reading = await self._blaming(name, self._stage.pool[name].process_times())
            if reading is not None:
                readings[name] = reading
        return readings

    def _with_ends(self, name: str, trial: TargetTrial) -> TargetTrial:
        """Returns the trial; a failure of a client elsewhere also states where its server was."""
        server, client, failure = self._servers.get(name), self._clients[name], trial.failure
        if failure is None or server is None or server.target == client.target:
            return trial
        where = f"The client ran on {client.target}, its server on {server.target} ({server.peer})."
        located = BenchmarkFailed(
            failure.name, f"{failure.message} {where}", failure.hint, failure.exit_code
        )
        return replace(trial, failure=located)

    async def _stop(self) -> None:
        out, window = self.result, self._window
        if not (any(trial.done for trial in out.trials.values()) or self._loads):
            return
        assert window is not None
        async with self._timeline.phase(Phase.STOP, self._limits.stop_s):
            for load in self._loads:
                await self._blaming(load.target, load.stop(self._limits.stop_s, window))
            for name, side in self._servers.items():
                await self._stop_serving(name, side)
        owner = self._group.targets[0]
        for load in self._loads:
            if load.problem:
                out.broken.append(("load_ended", load.problem))
            out.keep(
                owner,
                load.auxiliary_samples(),
                load.trial.documents if load.trial is not None else {},
            )
        if unequal := unequal_counts(self._setting.served_by, out.trials, self._loads):
            out.broken.append(("unequal_counts", unequal))
        out.loads = tuple(load.describe(window) for load in self._loads)
        self._take_skew()

    def _take_skew(self) -> None:
        sides = self._clients
        skew = timing.skew_ns(sides, self.result.trials)
        machines = self._stage.pool.machines(side.target for side in sides.values())
        own_clock = all(side.offset_ns == 0 for side in sides.values())
        note = timing.skew_note(skew, one_machine=machines == {CONTROLLER} and own_clock)
        self.result.skew_ns = skew
        self.result.notes += [note] if note else []
        self._take_starts()

    def _take_starts(self) -> None:
        """Keeps when each generator of a shared load began, and what its clock showed."""
        if not self._group.sharing:
            return
        late = timing.late_starts_ns(self._clients, self.result.trials)
        for name, late_ns in late.items():
            offset_ns = self._clients[name].offset_ns
            self.result.documents.setdefault(name, {})[STARTED] = {
                "late_ns": late_ns,
                "clock_offset_ns": offset_ns,
            }

    async def _clean(self) -> None:
        if self.result.failure_name:
            return
        async with self._timeline.phase(Phase.CLEAN, self._limits.clean_s):
            await self._hooks("after", self._setting.after)

    async def _hooks(self, when: str, hooks: Sequence[Hook]) -> None:
        for hook in hooks:
            owners = self._group.targets[:1] if hook.target else self._group.targets
            for owner in owners:
                name = hook.target or owner
                who = f"the hook {hook.benchmark} on {name}"
                target = self._stage.pool[name]
                work = target.run(hook.benchmark, hook.params, hook.timeout_s)
                trial = await self._blaming(name, work)
                if trial.failure is not None:
                    raise PhaseFailed(self._timeline.current, trial.failure, who)
                rows = AuxiliarySamples(
                    self._spec(hook.benchmark), name, {"hook": when}, trial.samples
                )
                self.result.keep(owner, rows, trial.documents)

    async def _start_load(self, background: Background, name: str) -> None:
        pool = self._stage.pool
        spec = self._spec(background.benchmark)
        params = with_seed(
            self._setting,
            background.params,
            spec,
            f"{background.name} on {name}",
            seed=self._stage.seed,
            round=self._round,
        )
        background = replace(background, params=params)
        load = Load(background, name, spec, pool[name].shares_clock)
        peer = None
        if server := background.server_of(name):
            load.serving = await self._server(server, name, spec.id, background.params)
            peer = load.serving.peer
        self._loads.append(load)
        with self._starting(name, load.who):
            await load.start(pool[name], self._load_deadline_s(), self._limits.start_s, peer)

    async def _server(
        self, name: str, client: str, benchmark: str, params: Mapping[str, Any]
    ) -> Server:
        """Starts the far side for one client; its token lets that client in and no other."""
        pool = self._stage.pool
        with self._starting(name, f"the serving side of {client} on {name}"):
            return await session.serve(
                pool[name],
                pool[client],
                benchmark,
                params,
                deadline_s=self._load_deadline_s(),
                limit_s=self._limits.start_s,
            )

    async def _start_client(self, name: str) -> None:
        """Starts the program of a target's trial, and waits until it is ready."""
        client = self._setting.client_of(name)
        target, params = self._stage.pool[client], self._params(name)
        who = client if client != name or len(self._group.targets) > 1 else ""
        with self._starting(client, who):
            running = await target.start(
                self._setting.benchmark,
                params,
                self._limits.start_s + self._measure_s,
                peer=self._servers[name].peer if name in self._servers else None,
                gap_meter=self._stage.plan.observe.gap_meter,
            )
            self._clients[name] = await session.until_ready(target, running, self._limits.start_s)

    def _params(self, name: str) -> Mapping[str, Any]:
        """The setting's parameters, and a seed from the run's where the plan states none."""
        setting, pool = self._setting, self._stage.pool
        params = setting.params
        wanted = pool.wanted(name)
        if isinstance(wanted, ServiceRecord):
            params = plans.with_service(params, self._spec(setting.benchmark), wanted)
        elif setting.client and not setting.peer:
            endpoint = pool[name].endpoint(pool[setting.client])
            params = plans.with_server_address(params, endpoint.address)
            if self._spec(setting.benchmark).has(AUTHORISED):
                # Who names a host as a target and logs in to it owns it.
                params = {**params, AUTHORISED: [*params.get(AUTHORISED, ()), endpoint.address]}
        sharing = self._group.sharing
        if sharing:
            params = {**params, GENERATOR: sharing.index(name)}
        return with_seed(
            setting,
            params,
            self._spec(setting.benchmark),
            # Generators that share a load draw one schedule.
            sharing[0] if sharing else name,
            seed=self._stage.seed,
            round=self._round,
            is_simulated=wanted.traits().simulated,
        )

    async def _stop_serving(self, name: str, side: Server) -> None:
        """Stops the server of a target's trial and keeps what it counted."""
        trial = await self._blaming(side.target, side.stop(self._limits.stop_s))
        if trial.failure is not None:
            sentence = f"the serving side on {side.target}: {trial.failure}"
            self.result.broken.append((trial.failure.name, sentence))
        elif trial.done is not None:
            self.result.notes += trial.done.notes
            self.result.served[name] = trial.done

    async def _blaming(self, name: str, work: Awaitable[Value]) -> Value:
        with self._stage.pool.blamed(name):
            return await work

    @contextlib.contextmanager
    def _starting(self, name: str, who: str) -> Iterator[None]:
        try:
            with self._stage.pool.blamed(name):
                yield
        except BenchmarkFailed as failure:
            raise PhaseFailed(Phase.START, failure, who) from failure

    async def _end_all(self) -> None:
        """Whatever still runs is ended; after a trial that went well nothing does."""
        ends: list[Callable[[], Awaitable[None]]] = [load.end for load in self._loads]
        ends += [side.end for side in (*self._clients.values(), *self._servers.values())]
        for end in ends:
            try:
                await end()
            except NephoscopeError as error:
                self.result.notes.append(f"It could not be ended: {error}")

    def _load_deadline_s(self) -> float:
        """A probe ends itself at its deadline, so a load's lies behind everything it is to see."""
        settle_s = sum(load.settle_s for load in self._setting.backgrounds)
        limits = self._limits
        return limits.start_s + settle_s + self._measure_s + limits.stop_s + 2 * _LATER_S

    def _spec(self, benchmark: str) -> BenchmarkSpec:
        return self._stage.catalog.benchmark(benchmark)


async def _until_settled(loads: Sequence[Load]) -> None:
    """Waits until each load has run as long as the plan wants before the trial starts."""
    left_s = max((load.settles_in_s() for load in loads), default=0.0)
    if left_s > 0:
        await asyncio.sleep(left_s)
