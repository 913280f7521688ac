"""Cells of a nested design: rounds that share one boot of every target, and the boots between them.

Each boot is a trial of `host.boot` in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.errors import PlanError
from nephoscope.core.model import Setting
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.groups import Group, Work

PLATFORM = ".platform"
"""The condition that makes a host anew; whatever ran on it is gone."""

BOOT, INSTANCE, LAUNCH = "boot", "instance", "launch"

BOOT_S = 600.0
"""Room for hosts that a condition makes anew: an emulated machine takes minutes to boot."""


def check(plan: Plan, settings: Sequence[Setting]) -> None:
    """PlanError when the plan boots what cannot be booted from here."""
    names = {
        name for setting in settings if setting.benchmark == HOST_BOOT for name in setting.targets
    }
    if _renews(plan):
        names |= _used(settings)
    _refuse_reboots(plan, settings)
    launched = _at_level(settings, LAUNCH)
    for wanted in plan.targets:
        can_boot = wanted.in_plan_lab and plan.lab is not None
        if wanted.name in names and not (can_boot or wanted.is_rented):
            where = "design.nest" if _renews(plan) else HOST_BOOT
            raise PlanError(
                f"{where} boots its targets, and '{wanted.name}' ({wanted.kind}) cannot be booted "
                "from here: only hosts of the plan's own lab can.",
                "Give the plan `lab:` and targets of kind lab, or leave it out.",
            )
        if wanted.name in launched and not wanted.is_rented:
            raise PlanError(
                f"'{wanted.name}' is not rented, so that it has no launch to record.",
                f"Write `level: {BOOT}` or `level: {INSTANCE}` for {HOST_BOOT}.",
            )


def _refuse_reboots(plan: Plan, settings: Sequence[Setting]) -> None:
    """PlanError for rented machines that would be booted and not made anew."""
    rented = {target.name for target in plan.targets if target.is_rented}
    booted = _at_level(settings, BOOT)
    nest = plan.design.nest
    if nest is not None and nest.boot > 1:
        booted |= rented
    if unable := sorted(rented & booted):
        raise PlanError(
            f"'{unable[0]}' is rented, and a rented machine is recreated and not rebooted.",
            f"Write `level: {INSTANCE}` for {HOST_BOOT}, or `instance` in place of `boot` in "
            "`design.nest`.",
        )


def _at_level(settings: Sequence[Setting], level: str) -> set[str]:
    """Returns the targets that are booted at a level."""
    return {
        name
        for setting in settings
        if setting.benchmark == HOST_BOOT and setting.params.get("level", BOOT) == level
        for name in setting.targets
    }


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
            levels = {name: factor for name, factor in setting.factors.items() if name in names}
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

    def boots(self, cell: int) -> list[Work]:
        """Returns what is booted before a cell."""
        assert self._nest is not None
        if not self._renews:
            return []
        return self._of_setting(cell, self.settings()[0 if cell % self._nest.boot == 0 else 1])

    def block_boots(self, cell: int, block: str) -> list[Work]:
        """Returns what is booted before a block of a cell, as `boots`."""
        own = [setting for setting in self.settings() if setting.block == block and block]
        return [boot for setting in own for boot in self._of_setting(cell, setting)]

    def _of_setting(self, cell: int, setting: Setting) -> list[Work]:
        assert self._nest is not None
        first, nest = cell * self._nest.rounds + 1, self.nest_of(cell)
        return [Work(first, Group(setting, (name,)), nest) for name in setting.targets]


def _path(host: str) -> str:
    return f"hosts.{host}{PLATFORM}"


def _platforms(setting: Setting) -> dict[str, object]:
    """The conditions of a setting that make a host anew."""
    return {path: v for path, v in setting.conditions.items() if path.endswith(PLATFORM)}
