"""Hosts that are made anew or booted: as a benchmark of its own, and between the cells of a nested
design, where each boot is a trial of `host.boot` in the store.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.errors import BenchmarkFailed, NephoscopeError, PlanError
from nephoscope.core.model import Sample, Setting, TrialKey
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.environment import PLATFORM
from nephoscope.measure.runs.schedule.groups import Group
from nephoscope.measure.runs.trials.phases import Phase, PhaseFailed, Timeline
from nephoscope.measure.runs.trials.records import GroupResult
from nephoscope.measure.runs.trials.target_pool import TargetLost
from nephoscope.measure.runs.trials.trial import BOOT_S, Stage
from nephoscope.measure.targets import Done, TargetTrial

BOOT, INSTANCE = "boot", "instance"


class BootTrial:
    """One boot of a target's host; `run` does it once."""

    def __init__(self, group: Group, stage: Stage, limit_s: float) -> None:
        self._target = group.targets[0]
        self._level = str(group.setting.params.get("level", BOOT))
        self._conditions = group.setting.conditions
        self._stage = stage
        self._limit_s = limit_s

    async def run(self) -> GroupResult:
        """Boots the host, opens the target again; the segments are the samples."""
        timeline, out = Timeline(), GroupResult(started_at=time.time())
        pool = self._stage.pool
        host = pool.wanted(self._target).topology_host
        started_ns = time.monotonic_ns()
        try:
            async with timeline.phase(Phase.MEASURE, self._limit_s):
                times = await self._stage.environment.renew(host, self._level, self._conditions)
                elapsed_ns = time.monotonic_ns() - started_ns
            samples: tuple[Sample, ...] = ()
            if times is not None:
                samples = segments(times.kernel_ns, times.userland_ns, times.reachable_ns)
            notes = () if samples else (f"{host} has no kernel of its own to boot.",)
            done = Done(elapsed_ns, len(samples), notes=notes)
            out.trials[self._target] = TargetTrial(samples, {}, done, None)
            async with timeline.phase(Phase.CLEAN, self._limit_s):
                await pool.reopen([host])
        except PhaseFailed as failure:
            out.failure = failure
        except TargetLost as lost:
            out.lose(lost, f"in phase {timeline.current}")
        except PlanError:
            raise
        except NephoscopeError as error:
            no_boot = BenchmarkFailed("no_boot", error.message, error.hint)
            out.failure = PhaseFailed(Phase.MEASURE, no_boot)
        out.timeline = timeline.phases
        out.elapsed_ns = time.monotonic_ns() - started_ns
        return out


def segments(
    kernel_ns: int | None, userland_ns: int | None, reachable_ns: int
) -> tuple[Sample, ...]:
    """Samples of a boot from its marks since the request; a mark that a platform does not have
    gives no sample."""
    found = [Sample("boot_reachable_ns", float(reachable_ns))]
    if kernel_ns is not None:
        found.append(Sample("boot_request_ns", float(kernel_ns)))
    if kernel_ns is not None and userland_ns is not None:
        found.append(Sample("boot_kernel_ns", float(userland_ns - kernel_ns)))
    if userland_ns is not None:
        found.append(Sample("boot_userland_ns", float(reachable_ns - userland_ns)))
    return tuple(found)


def check(plan: Plan, settings: Sequence[Setting]) -> None:
    """PlanError when the plan boots what cannot be booted from here."""
    names = {
        name for setting in settings if setting.benchmark == HOST_BOOT for name in setting.targets
    }
    if _renews(plan):
        names |= _used(settings)
    for wanted in plan.targets:
        if wanted.name in names and not (wanted.in_plan_lab and plan.lab is not None):
            where = "design.nest" if _renews(plan) else HOST_BOOT
            raise PlanError(
                f"{where} boots its targets, and '{wanted.name}' ({wanted.kind}) cannot be booted "
                "from here: only hosts of the plan's own lab can.",
                "Give the plan `lab:` and targets of kind lab, or leave it out.",
            )


def _renews(plan: Plan) -> bool:
    """Returns whether the design makes anything anew: one instance booted once is what is there."""
    nest = plan.design.nest
    return nest is not None and nest.boots > 1


def _used(settings: Iterable[Setting]) -> set[str]:
    used: set[str] = set()
    for setting in settings:
        groups = [Group(setting, (name,)) for name in setting.targets]
        used |= {name for group in groups for name in group.needs}
    return used


class Cells:
    """The cells of a nested design: rounds that share one boot of every target.

    Where the platform of a host is a factor, each block of a cell (one platform) has a boot of its
    own, and all rounds of the cell are measured on it before the next block.
    """

    def __init__(self, plan: Plan, settings: Sequence[Setting]) -> None:
        self._nest, self._warmup = plan.design.nest, plan.warmup
        self._renews = _renews(plan)
        used = _used(settings)
        blocks = {setting.block: setting for setting in settings if _platforms(setting)}
        self._blocks = blocks if self._renews else {}
        hosts = {path for setting in self._blocks.values() for path in _platforms(setting)}
        targets = [target for target in plan.targets if target.name in used]
        self._remade = tuple(t.name for t in targets if _path(t.topology_host) in hosts)
        self._targets = tuple(t.name for t in targets if t.name not in self._remade)
        self._first_index = len(settings)
        self.begun: int | None = None
        self.interrupted: int | None = None

    @property
    def nested(self) -> bool:
        """Returns whether the design is nested."""
        return self._nest is not None

    @property
    def by_block(self) -> bool:
        """Returns whether each block of a cell is booted and measured by itself."""
        return bool(self._blocks)

    def settings(self) -> list[Setting]:
        """The settings of the boots between cells: one for each level, then one for each block."""
        if not self._renews:
            return []
        every = [
            Setting(
                index=self._first_index + number,
                benchmark=HOST_BOOT,
                params={"level": level},
                factors={"level": level},
                timeout_s=BOOT_S,
                targets=self._targets,
            )
            for number, level in enumerate((INSTANCE, BOOT))
        ]
        for block, setting in self._blocks.items():
            names = {part.partition("=")[0] for part in block.split(",")}
            levels = {name: one for name, one in setting.factors.items() if name in names}
            every.append(
                replace(
                    every[0],
                    index=self._first_index + len(every),
                    factors={"level": INSTANCE, **levels},
                    targets=self._remade,
                    conditions=_platforms(setting),
                    block=block,
                )
            )
        return every

    def cell_of(self, round: int) -> int:
        """The cell of a round; warm-up rounds come in front of the cell that they ready."""
        assert self._nest is not None
        return (round - 1) // self._nest.rounds if round > 0 else -round // max(1, self._warmup)

    def nest_of(self, cell: int) -> dict[str, int]:
        """Instance and boot of a cell, as a record keeps them."""
        assert self._nest is not None
        return self._nest.place_of(cell)

    def boots(self, cell: int) -> list[tuple[TrialKey, Group]]:
        """Returns what is booted before a cell: the key of each boot, and what to execute."""
        assert self._nest is not None
        if not self._renews:
            return []
        return self._of_setting(cell, self.settings()[0 if cell % self._nest.boot == 0 else 1])

    def block_boots(self, cell: int, block: str) -> list[tuple[TrialKey, Group]]:
        """Returns what is booted before a block of a cell, as `boots`."""
        own = [setting for setting in self.settings() if setting.block == block and block]
        return [boot for setting in own for boot in self._of_setting(cell, setting)]

    def _of_setting(self, cell: int, setting: Setting) -> list[tuple[TrialKey, Group]]:
        assert self._nest is not None
        first = cell * self._nest.rounds + 1
        return [
            (TrialKey(first, setting.index, name), Group(setting, (name,)))
            for name in setting.targets
        ]


def _path(host: str) -> str:
    return f"hosts.{host}{PLATFORM}"


def _platforms(setting: Setting) -> dict[str, object]:
    """The conditions of a setting that make a host anew."""
    return {path: v for path, v in setting.conditions.items() if path.endswith(PLATFORM)}
