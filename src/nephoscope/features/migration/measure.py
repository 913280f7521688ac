"""Measures migrations: rounds of all dirty rates, in random order, of one guest."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from nephoscope.core import units
from nephoscope.core.errors import RunFailed
from nephoscope.features.migration import figures
from nephoscope.features.migration.records import Migration, MigrationReport
from nephoscope.features.platforms.cleanup import cleaned_up_after_a_kill
from nephoscope.measure.lab import needs
from nephoscope.measure.lab.migration import guests, heartbeats
from nephoscope.measure.lab.migration.guests import GuestSpec, MigratingGuest, MigrationEvents

SETTLE_S, BASELINE_S, AFTER_S = 0.5, 2.0, 1.0
"""Time until a new dirty rate holds; time of the baseline; time in which late answers arrive."""


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """Settings. dirty_bytes_per_s: rates of writes to new pages. repetitions: of each rate."""

    guest: GuestSpec
    dirty_bytes_per_s: tuple[float, ...]
    repetitions: int
    timeout_s: float
    seed: int


@dataclass(slots=True)
class MigrationMeasurement:
    """One measurement on this machine; `run` does it once."""

    settings: MigrationSettings
    say: Callable[[str], None]
    prefix: str = field(default_factory=lambda: f"mg{secrets.token_hex(3)}")
    migrations: list[Migration] = field(default_factory=list)

    async def run(self) -> MigrationReport:
        """Measures everything. Raises Lacking without the lab or QEMU, RunFailed."""
        needs.require("nephoscope migration")
        if (lacking := guests.lacking()) is not None:
            raise lacking
        settings = self.settings
        draw = random.Random(settings.seed)
        rates = settings.dirty_bytes_per_s
        with cleaned_up_after_a_kill(self.prefix):
            self.say("starting the guest")
            async with guests.migration_lab(self.prefix, settings.guest, self.say) as guest:
                for number in range(1, settings.repetitions + 1):
                    for rate in draw.sample(rates, len(rates)):
                        self._announce(number, rate)
                        self.migrations.append(await self._migrate(guest, rate, number))
                accelerator = guest.accelerator
        return self._report(accelerator)

    def _announce(self, number: int, rate: float) -> None:
        text = units.format_value(rate, "bytes_per_s")
        count = len(self.migrations) + 1
        total = self.settings.repetitions * len(self.settings.dirty_bytes_per_s)
        self.say(f"migration {count} of {total}: {text} of memory change (round {number})")

    async def _migrate(self, guest: MigratingGuest, rate: float, number: int) -> Migration:
        beats = guest.heartbeats
        beats.pages_per_s = round(rate / heartbeats.PAGE_BYTES)
        await asyncio.sleep(SETTLE_S + BASELINE_S)
        events = await guest.migrate(self.settings.timeout_s)
        await asyncio.sleep(AFTER_S)
        try:
            return migration_of(events, beats.record(), rate, number)
        except ValueError as error:
            raise RunFailed(
                f"A migration cannot be judged: {error}.",
                "Repeat the measurement on a less busy machine.",
            ) from error

    def _report(self, accelerator: str) -> MigrationReport:
        settings, guest = self.settings, self.settings.guest
        return MigrationReport(
            accelerator,
            guest.memory_bytes,
            guest.working_set_bytes,
            guest.link_bits_per_s,
            guest.bytes_per_s,
            guest.downtime_limit_ns,
            settings.timeout_s,
            round(guests.HEARTBEAT_INTERVAL_S * 1e9),
            settings.seed,
            figures.figures(
                self.migrations,
                bytes_per_s=guest.bytes_per_s,
                working_set_bytes=guest.working_set_bytes,
                downtime_limit_ns=guest.downtime_limit_ns,
            ),
            tuple(self.migrations),
        )


def migration_of(
    events: MigrationEvents, record: heartbeats.HeartbeatRecord, rate: float, number: int
) -> Migration:
    """Returns the figures of one migration. Raises ValueError without enough answers."""
    paused_ns, resumed_ns, ram = events.paused_ns, events.resumed_ns, events.ram
    running_ns = events.ended_ns if paused_ns is None else paused_ns
    before_ns = events.began_ns - round(BASELINE_S * 1e9)
    _, work_before = heartbeats.rates_per_s(record, before_ns, events.began_ns)
    pages, work = heartbeats.rates_per_s(record, events.began_ns, running_ns)
    until_ns = events.ended_ns if resumed_ns is None else max(resumed_ns, events.ended_ns)
    lost, sent = heartbeats.lost_and_sent(record, events.began_ns, until_ns)
    gap_ns = None
    if paused_ns is not None and resumed_ns is not None:
        gap_ns = heartbeats.longest_gap_ns(record, paused_ns, resumed_ns)
    if not work:
        raise ValueError("the guest did no work while it was migrated")
    return Migration(
        rate,
        number,
        pages * heartbeats.PAGE_BYTES,
        events.ended_ns - events.began_ns,
        None if events.downtime_ms is None else events.downtime_ms * 1_000_000,
        None if paused_ns is None or resumed_ns is None else resumed_ns - paused_ns,
        gap_ns,
        None if gap_ns is None else lost,
        sent,
        events.first_round_bytes,
        None if gap_ns is None else int(ram.get("downtime-bytes", 0)),
        int(ram.get("dirty-sync-count", 0)),
        work_before / work,
    )
