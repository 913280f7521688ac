"""Measures platforms: boots in rounds, in random order, then the density of each."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from nephoscope.core.errors import Interrupted, NephoscopeError, RunFailed
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import uncancelled
from nephoscope.core.units import format_duration
from nephoscope.features.platforms import boot_figures, density, guests, windows
from nephoscope.features.platforms.cleanup import cleaned_up_after_a_kill
from nephoscope.features.platforms.density import NoFurtherGuest
from nephoscope.features.platforms.records import (
    Boot,
    Density,
    DensityStep,
    PlatformReport,
    UnavailablePlatform,
)
from nephoscope.measure.lab import needs
from nephoscope.measure.lab.platform_table import TABLE
from nephoscope.measure.lab.platforms import PLATFORMS
from nephoscope.stats.statistics.means import mean_of_skewed

STEP_S = 2 * windows.ROUNDS * 1.7


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """Settings. max_guests: 0 measures no density. rate_per_s: of each guest's requests."""

    platforms: tuple[str, ...]
    boots: int
    guest_memory_bytes: int
    max_guests: int
    rate_per_s: float
    seed: int


@dataclass(slots=True)
class PlatformTimeLeft:
    """The remaining time: work that is planned, corrected by how long finished work took."""

    say: Callable[[str], None]
    planned_s: dict[str, float]
    now: Callable[[], float] = time.monotonic
    _began_s: float = 0.0
    _done_s: float = 0.0

    def __post_init__(self) -> None:
        self._began_s = self.now()

    def begin(self, text: str) -> None:
        """Says what begins, and how long the rest takes."""
        spent_s, left_s = self.now() - self._began_s, sum(self.planned_s.values())
        if self._done_s:
            left_s *= spent_s / self._done_s
        self.say(f"{text}; about {format_duration(left_s)} left")

    def end(self, name: str, part_s: float) -> None:
        """Takes finished work off the plan: so many seconds of `name`."""
        used_s = min(part_s, self.planned_s[name])
        self._done_s += used_s
        self.planned_s[name] -= used_s

    def drop(self, name: str) -> None:
        """Takes work off the plan that is not needed."""
        self.planned_s[name] = 0.0


@dataclass(slots=True)
class PlatformMeasurement:
    """One measurement on this machine; `run` does it once."""

    settings: PlatformSettings
    say: Callable[[str], None]
    prefix: str = field(default_factory=lambda: f"pf{secrets.token_hex(3)}")
    boots: list[Boot] = field(default_factory=list)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)
    accelerators: dict[str, str] = field(default_factory=dict)
    _left: PlatformTimeLeft = field(init=False)

    async def run(self) -> PlatformReport:
        """Measures everything. Raises Lacking without the lab, RunFailed where no platform runs."""
        needs.require("nephoscope platforms")
        usable, unavailable = available(self.settings.platforms)
        if not usable:
            raise RunFailed(
                "None of the platforms runs on this machine.",
                " ".join(
                    f"{platform.platform}: {platform.reason} {platform.next_step}"
                    for platform in unavailable
                ),
            )
        for name in usable:
            await PLATFORMS[name].prepare(self.say)
        self._left = PlatformTimeLeft(self.say, self._plan(usable))
        with cleaned_up_after_a_kill(f"{self.prefix}-"):
            try:
                await self._boot_all(usable)
                densities = [await self._density(name) for name in self._density_order()]
            finally:
                await uncancelled(guests.remove_all(f"{self.prefix}-"))
        return self._report(usable, densities, unavailable)

    def _plan(self, usable: Sequence[str]) -> dict[str, float]:
        rounds, most = self.settings.boots + 1, self.settings.max_guests
        steps_s = density.steps_at_most(most) * STEP_S
        return {
            **{f"boot {name}": rounds * TABLE[name].boot_s for name in usable},
            **{f"density {name}": steps_s + most * TABLE[name].boot_s for name in usable},
        }

    async def _boot_all(self, usable: Sequence[str]) -> None:
        """Round 0 is a warm-up, which brings the images into the machine's cache."""
        draw = random.Random(self.settings.seed)
        for number in range(self.settings.boots + 1):
            for name in draw.sample(usable, len(usable)):
                stage = f"boot {number} of {self.settings.boots}" if number else "warm-up boot"
                self._left.begin(f"{stage}: {name}")
                await self._boot(name, number)
                self._left.end(f"boot {name}", TABLE[name].boot_s)

    async def _boot(self, name: str, number: int) -> None:
        lab = f"{self.prefix}-b"
        try:
            async with guests.one_guest(lab, name, self.settings.guest_memory_bytes) as host:
                times = host.boot
                memory_bytes = guests.memory_of(lab)
                if accelerator := host.details.get("accelerator"):
                    self.accelerators[name] = str(accelerator)
        except Interrupted:
            raise
        except NephoscopeError as error:
            self.failures.setdefault(name, []).append(error.message)
            self.say(f"! {name}: {error.message}")
            return
        if times is None or not number:
            return
        marks = {mark: at for mark, at in times.marks().items() if at is not None}
        self.reasons.setdefault(name, {}).update(times.reasons)
        self.boots.append(Boot(name, number, marks, memory_bytes, times.resolution_ns))

    def _density_order(self) -> list[str]:
        if not self.settings.max_guests:
            return []
        booted = sorted({boot.platform for boot in self.boots})
        return random.Random(f"{self.settings.seed}/density").sample(booted, len(booted))

    async def _density(self, name: str) -> Density:
        group = guests.GuestGroup(f"{self.prefix}-", name, self.settings.guest_memory_bytes)
        loaded: list[windows.LoadedGuest] = []

        async def measure(number: int) -> DensityStep:
            self._left.begin(f"density of {name}: {number} guests")
            await self._ready(group, loaded, number)
            step = await windows.measure(loaded[:number], self.settings.seed)
            self._left.end(f"density {name}", STEP_S)
            return step

        try:
            steps, stopped = await density.search(measure, self.settings.max_guests)
            held = await group.memory()
        finally:
            await uncancelled(_end(loaded, group))
            self._left.drop(f"density {name}")
        memory = mean_of_skewed(held, unit="bytes", least=0.0) if held else None
        return density.conclude(name, steps, stopped, memory)

    async def _ready(
        self, group: guests.GuestGroup, loaded: list[windows.LoadedGuest], number: int
    ) -> None:
        """Starts guests and their servers until there are so many."""
        await group.grow(number)
        fresh = group.labs[len(loaded) : number]
        for lab in fresh:
            guest = windows.LoadedGuest(lab, self.settings.rate_per_s)
            try:
                await guest.open()
            except NephoscopeError as error:
                await guest.close()
                reason = f"guest {len(loaded) + 1} serves no requests: {error.message.rstrip('.')}"
                raise NoFurtherGuest(len(loaded), reason) from error
            loaded.append(guest)
        if fresh:  # the first window of a guest is its warm-up
            await windows.load(loaded[-len(fresh) :], self.settings.seed)

    def _report(
        self,
        usable: Sequence[str],
        densities: Sequence[Density],
        unavailable: Sequence[UnavailablePlatform],
    ) -> PlatformReport:
        boots = [
            boot_figures.figures(
                name,
                [boot for boot in self.boots if boot.platform == name],
                self.reasons.get(name, {}),
                self.failures.get(name, ()),
            )
            for name in usable
        ]
        return PlatformReport(
            self.settings.seed,
            self.settings.guest_memory_bytes,
            self.settings.rate_per_s,
            self.settings.max_guests,
            guests.same_page_merging(),
            self.accelerators,
            tuple(boots),
            tuple(densities),
            tuple(unavailable),
            tuple(self.boots),
        )


async def _end(loaded: Sequence[windows.LoadedGuest], group: guests.GuestGroup) -> None:
    for guest in loaded:
        await guest.close()
    await group.end()


def available(
    wanted: Sequence[str], platforms: Mapping[str, Any] = PLATFORMS
) -> tuple[list[str], list[UnavailablePlatform]]:
    """Returns the platforms that this machine can run, and the others with their reasons."""
    usable, unavailable = [], []
    for name in wanted:
        lacking = platforms[name].lacking()
        if lacking is None:
            usable.append(name)
        else:
            unavailable.append(UnavailablePlatform(name, lacking.message, lacking.hint))
    return usable, unavailable
