"""Watches services: targets probe them on a schedule that does not wait; every event is kept.

The schedule is fixed in advance: one probe in each interval of the clock, at its start plus a
random part. A probe that takes long delays no other one. Events are appended to a CSV file, each
synced before the next, so that a crash loses the events of the outage of the observer alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import fcntl
import io
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import together
from nephoscope.features.sla.events import COLUMNS
from nephoscope.features.sla.observers import ServiceObserver
from nephoscope.features.sla.probes import ProbeOutcome, Service
from nephoscope.store.files import write_atomically

_NS = 10**9
_FIELDS = tuple(name for name in COLUMNS if name != "requests")
_STEP_NS = _NS
"""Difference of two clocks from which the wall clock counts as stepped."""
_LATE_NS = 100_000_000
"""Delay of the observer itself from which an event tells nothing about the service."""
_REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ProbeSchedule:
    """Interval of the probes, random part of it, timeout of each; duration_s: 0 has no end."""

    interval_s: float
    jitter: float
    timeout_s: float
    duration_s: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ObserverResult:
    """Events of one observer, and how often it was lost."""

    name: str
    events: int
    failed: int
    unknown: int
    losses: int


@dataclass(frozen=True, slots=True)
class WatchResult:
    """Events that were appended: all, failed ones, and those that tell nothing."""

    file: str
    observers: tuple[ObserverResult, ...]
    events: int
    failed: int
    unknown: int
    clock_steps: int


class EventFile:
    """An append-only CSV file of events; what a crash left of a last line is removed.

    continues: whether it has events of an earlier watch.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.continues = self._repair(path)
        except BlockingIOError as error:
            raise StoreError(
                f"{path}: another watch appends to this file.", "Name another file."
            ) from error
        except OSError as error:
            raise StoreError(
                f"{path}: the events cannot be appended: {error.strerror}.", "Name another file."
            ) from error

    def _repair(self, path: Path) -> bool:
        size = os.fstat(self._file).st_size
        head = f"{','.join(_FIELDS)}\n".encode()
        start = os.pread(self._file, len(head), 0)
        if size < len(head) and head.startswith(start):
            os.ftruncate(self._file, 0)
            os.write(self._file, head)
        elif start != head:
            raise UsageError(f"{path}: this is no file of `sla watch`.", "Name another file.")
        else:
            tail_at = max(0, size - (1 << 16))
            tail = os.pread(self._file, size - tail_at, tail_at)
            os.ftruncate(self._file, tail_at + tail.rfind(b"\n") + 1)
        os.fsync(self._file)
        return os.fstat(self._file).st_size > len(head)

    def append(self, cells: Sequence[str]) -> None:
        """Appends one event in one write, synced."""
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        os.write(self._file, line.getvalue().encode())
        os.fdatasync(self._file)

    def close(self) -> None:
        """Closes the file and gives up its lock."""
        os.close(self._file)


@dataclass(slots=True)
class ServiceWatch:
    """A watch of services by observers.

    control: address that is probed after a failure; if it fails too, the fault may be the
    observer's, and the event tells nothing. metrics: file of counters for Prometheus.
    """

    services: Sequence[Service]
    schedule: ProbeSchedule
    observers: Sequence[ServiceObserver]
    file: EventFile
    path: Path
    control: str | None = None
    metrics: Path | None = None
    _counts: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    _steps: int = 0

    async def run(self) -> WatchResult:
        """Probes until the duration is over or a signal ends it; returns the numbers of events.

        Raises Lacking where an observer cannot probe a service. A target that cannot be reached is
        an error where the file is new, and lost where the watch continues an earlier one.
        """
        self._counts = {
            (service.name, observer.name): Counter()
            for service in self.services
            for observer in self.observers
        }
        try:
            addresses = [service.address for service in self.services]
            addresses += [] if self.control is None else [self.control]
            patient = self.file.continues
            await together(
                *(observer.open(addresses, patient=patient) for observer in self.observers)
            )
            await self._run_until_stopped()
        finally:
            await asyncio.gather(*(observer.close() for observer in self.observers))
            self.file.close()
        return self._result()

    async def _run_until_stopped(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            async with asyncio.TaskGroup() as group:
                if self.schedule.duration_s:
                    loop.call_later(self.schedule.duration_s, stop.set)
                tasks = [group.create_task(observer.keep()) for observer in self.observers]
                watchers = [
                    group.create_task(self._watch(service, observer, stop, group))
                    for service in self.services
                    for observer in self.observers
                ]
                await asyncio.wait(watchers)
                for task in tasks:
                    task.cancel()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _result(self) -> WatchResult:
        observers = []
        for observer in self.observers:
            counts = (count for (_, by), count in self._counts.items() if by == observer.name)
            own = sum(counts, Counter[str]())
            numbers = (own["events"], own["failed"], own["unknown"])
            observers.append(ObserverResult(observer.name, *numbers, observer.losses))
        return WatchResult(
            file=str(self.path),
            observers=tuple(observers),
            events=sum(observer.events for observer in observers),
            failed=sum(observer.failed for observer in observers),
            unknown=sum(observer.unknown for observer in observers),
            clock_steps=self._steps,
        )

    async def _watch(
        self,
        service: Service,
        observer: ServiceObserver,
        stop: asyncio.Event,
        group: asyncio.TaskGroup,
    ) -> None:
        """Starts a probe in each interval of the clock until the watch ends."""
        randomness = random.Random(f"{self.schedule.seed}-{service.name}-{observer.name}")
        interval_ns = round(self.schedule.interval_s * _NS)
        offset_ns = time.time_ns() - time.monotonic_ns()
        cell = time.time_ns() // interval_ns
        while not stop.is_set():
            cell += 1
            share = randomness.random() * self.schedule.jitter
            at_ns = cell * interval_ns + round(share * interval_ns)
            # At most two intervals: a clock that is set back must not stop the watch.
            wait_s = min((at_ns - time.time_ns()) / _NS, 2 * self.schedule.interval_s)
            if await _ends_before(stop, wait_s):
                return
            step_ns = time.time_ns() - time.monotonic_ns() - offset_ns
            late_ns = time.time_ns() - at_ns
            if abs(step_ns) > _STEP_NS:
                # The schedule begins anew in the new time; the event marks the step.
                offset_ns += step_ns
                self._steps += 1
                at_ns = time.time_ns()
                cell = at_ns // interval_ns
                reason = f"the clock was set by {step_ns / _NS:+.3f} s"
                self._append(service, observer, at_ns, ProbeOutcome(None, reason=reason))
            elif late_ns > interval_ns:
                cell = time.time_ns() // interval_ns  # suspended: what was missed stays unknown
            else:
                group.create_task(self._probe(service, observer, at_ns, late_ns))

    async def _probe(
        self, service: Service, observer: ServiceObserver, at_ns: int, late_ns: int
    ) -> None:
        """Probes once. The event has the middle of the time in which the probe has to have begun,
        on the clock of this machine, so that all observers have one clock."""
        if late_ns > _LATE_NS:
            self._append(
                service, observer, at_ns, ProbeOutcome(None, reason="the observer was late")
            )
            return
        seen = await observer.probe(service.address, self.schedule.timeout_s)
        outcome = seen.outcome
        if outcome.ok is False and self.control is not None:
            control = (await observer.probe(self.control, self.schedule.timeout_s)).outcome
            if not control.ok:
                verb = "failed too" if control.ok is False else "is unknown"
                outcome = ProbeOutcome(None, reason=f"the control {verb} ({outcome.reason})")
        self._append(service, observer, at_ns + max(0, late_ns) + seen.way_ns // 2, outcome)

    def _append(
        self, service: Service, observer: ServiceObserver, at_ns: int, outcome: ProbeOutcome
    ) -> None:
        counts = self._counts[service.name, observer.name]
        counts["events"] += 1
        counts["unknown"] += outcome.ok is None
        counts["failed"] += outcome.ok is False
        is_timed = outcome.ok is not None and outcome.response_ms is not None
        cells = {
            "time": f"{at_ns // _NS}.{at_ns % _NS:09d}",
            "service": service.name,
            "observer": observer.name,
            "ok": "" if outcome.ok is None else str(int(outcome.ok)),
            "response_time_ms": f"{outcome.response_ms:.3f}" if is_timed else "",
            "reason": " ".join(outcome.reason.replace(",", ";").split())[:_REASON_CHARACTERS],
        }
        self.file.append([cells[name] for name in _FIELDS])
        if self.metrics is not None:
            self._write_metrics(self.metrics)

    def _write_metrics(self, path: Path) -> None:
        lines = []
        for name, text in (("events", "Probes with an outcome."), ("failed", "Failed probes.")):
            metric = f"nephoscope_sla_{name}_total"
            lines += [f"# HELP {metric} {text}", f"# TYPE {metric} counter"]
            for (service, observer), counts in self._counts.items():
                value = counts[name] - (counts["unknown"] if name == "events" else 0)
                label = service.replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'{metric}{{service="{label}",observer="{observer}"}} {value}')
        text = "\n".join(lines) + "\n"
        with contextlib.suppress(StoreError):  # counters are a copy; the events stay in their file
            write_atomically(path, text.encode(), durable=False)


async def _ends_before(stop: asyncio.Event, seconds: float) -> bool:
    """Waits so many seconds; returns whether the watch ended meanwhile."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await stop.wait()
    except TimeoutError:
        return False
    return True
