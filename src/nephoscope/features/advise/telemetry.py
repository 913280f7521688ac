"""Telemetry of a process and its descendants: shares of time by resource, and the dominant one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass
from nephoscope.features.advise.hardware_counters import HardwareCounts
from nephoscope.features.advise.machine_counters import BlockDevice, stall_ratios
from nephoscope.features.advise.processes import ProcessCounters, ProcessId, Thread
from nephoscope.features.advise.sockets import TcpSocket
from nephoscope.stats.statistics.estimates import mapped
from nephoscope.stats.statistics.means import mean_of_skewed

CONFIDENCE = 0.95
DOMINANT, DISTINCT = 0.5, 1.5
"""Share of the time, and ratio to the second resource, that make a resource the dominant one."""
CONTENDED = 0.25
"""Share of the time waiting for a CPU from which on the other shares are unsure."""
IDLE = 0.1
"""Share of the time below which no resource is used to speak of."""
BATCHES = 10
"""Batches of the observation whose means give the intervals: neighbouring readings depend on each
other, means over a tenth of the time hardly do."""
_LEAST_SHORT_LIVED = 0.02
_LEAST_PART = 0.02
"""Part of a batch that is taken as free of waiting for a CPU, at least."""


@dataclass(frozen=True, slots=True)
class CounterSnapshot:
    """All counters at one moment. group_pressure: of a control group of the process's own."""

    at_s: float
    processes: Mapping[ProcessId, ProcessCounters]
    threads: Mapping[tuple[int, int, int], Thread]
    connections: Mapping[bytes, TcpSocket]
    devices: Mapping[str, BlockDevice]
    pressure: Mapping[str, int]
    group_pressure: Mapping[str, int]

    @property
    def cpu_s(self) -> float:
        """CPU time of all processes and of the children that they waited for."""
        return math.fsum(process.cpu_s for process in self.processes.values())

    @property
    def storage_bytes(self) -> int | None:
        """Bytes read from and written to storage; None where a process hides them."""
        parts = [
            part
            for process in self.processes.values()
            for part in (process.read_bytes, process.write_bytes)
        ]
        return None if None in parts else sum(part for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class ResourceShare:
    """Share of the time, without that of waiting for a CPU, in which a resource was in use."""

    resource: str
    share: Estimate
    meaning: str


@dataclass(frozen=True, slots=True)
class Telemetry:
    """An observed process with its descendants.

    dominant: cpu, memory, disk, network, mixed, or none of an idle process. cpus: mean number of
    CPUs in use. cpu_wait: share of the time in which the busiest thread waited for a CPU.
    *_per_s: of storage in bytes, of the network in bits, both null where hidden; loopback apart.
    rtt_ns: median of the remote connections. pressure: stall shares of the whole machine.
    misses_per_1000_instructions: of the last-level cache. hardware_hidden: why there are no
    hardware counters. exit_code: of a command that ended by itself.
    """

    process: str
    seconds: float
    snapshots: int
    processes: int
    threads: int
    shares: tuple[ResourceShare, ...]
    dominant: str
    sentence: str
    cpus: Estimate
    cpu_wait: Estimate
    storage_bytes_per_s: float | None
    sent_bits_per_s: float | None
    received_bits_per_s: float | None
    loopback_bits_per_s: float | None
    connections: int
    rtt_ns: float | None
    major_faults_per_s: float
    minor_faults_per_s: float
    rss_bytes: int
    pressure: Mapping[str, float]
    instructions_per_cycle: float | None = None
    misses_per_1000_instructions: float | None = None
    hardware_hidden: str = ""
    exit_code: int | None = None
    notes: tuple[str, ...] = ()

    def share(self, resource: str) -> Estimate:
        """Returns the share of a resource."""
        return next(entry.share for entry in self.shares if entry.resource == resource)


_MEANING = {
    "cpu": "a thread ran",
    "memory": "stalled for memory (pressure of its control group)",
    "disk": "a thread waited for storage, or storage worked for it",
    "network": "data waited to be sent, or the answer of another host was awaited",
}
_MACHINE_MEMORY = "stalled for memory (pressure of the whole machine: an upper bound)"


@dataclass(frozen=True, slots=True)
class _Interval:
    """Shares of an interval by resource. cpu_wait: of the busiest thread; cpus: number in use."""

    seconds: float
    cpu: float
    cpu_wait: float
    cpus: float
    memory: float
    disk: float
    network: float


def analyse(
    process: str,
    snapshots: Sequence[CounterSnapshot],
    allowed_cpus: int,
    *,
    hardware: HardwareCounts | None = None,
    sockets_hidden: bool = False,
    exit_code: int | None = None,
    notes: Sequence[str] = (),
) -> Telemetry:
    """Returns the telemetry of at least two snapshots in order of time."""
    pairs = list(itertools.pairwise(snapshots))
    intervals = [_interval(first, last, allowed_cpus) for first, last in pairs]
    seconds = snapshots[-1].at_s - snapshots[0].at_s
    waited = math.fsum(entry.seconds * entry.cpu_wait for entry in intervals)
    short_lived = _short_lived(pairs, max(seconds - waited, _LEAST_PART * seconds))
    of_machine = {} if snapshots[0].group_pressure else {"memory": _MACHINE_MEMORY}
    cpu, *further_shares = (
        ResourceShare(name, _mean(intervals, name), meaning)
        for name, meaning in {**_MEANING, **of_machine}.items()
    )
    raised = mapped(cpu.share, lambda share: _ratio(share + short_lived))
    shares = (replace(cpu, share=raised), *further_shares)
    name, sentence = dominant_of(shares)
    remote, local = (_moved(pairs, local_only=local_only) for local_only in (False, True))
    times = sorted(
        1e3 * entry.rtt_us
        for entry in _last_connections(snapshots).values()
        if not entry.local_only and entry.rtt_us
    )
    storage = _storage(pairs)
    hardware = hardware or HardwareCounts({}, "not asked for")
    if waited >= CONTENDED * seconds:
        text = (
            f"It waited for a CPU for {100 * waited / seconds:.0f} % of the time. The shares are "
            "of the rest and less sure; observe it on a host that is not busy."
        )
        notes = (*notes, text)
    return Telemetry(
        process,
        seconds,
        len(snapshots),
        len({key for entry in snapshots for key in entry.processes}),
        len({key for entry in snapshots for key in entry.threads}),
        shares,
        name,
        sentence,
        _mean(intervals, "cpus", unit="cpus"),
        _mean(intervals, "cpu_wait"),
        None if storage is None else storage / seconds,
        None if sockets_hidden else 8 * remote[0] / seconds,
        None if sockets_hidden else 8 * remote[1] / seconds,
        None if sockets_hidden else 8 * sum(local) / seconds,
        len(_last_connections(snapshots)),
        times[len(times) // 2] if times else None,
        _grown(pairs, "major_faults") / seconds,
        _grown(pairs, "minor_faults") / seconds,
        max(sum(process.rss_bytes for process in entry.processes.values()) for entry in snapshots),
        stall_ratios(snapshots[0].pressure, snapshots[-1].pressure, seconds),
        hardware.instructions_per_cycle,
        hardware.misses_per_1000_instructions,
        hardware.hidden,
        exit_code,
        tuple(notes),
    )


def dominant_of(shares: Sequence[ResourceShare]) -> tuple[str, str]:
    """Returns the dominant resource, mixed or none, and the reason in a sentence."""
    first, second = sorted(shares, key=lambda entry: -entry.share.value)[:2]
    text = f"{first.resource} {100 * first.share.value:.0f} % of the time"
    rival = f"{second.resource} {100 * second.share.value:.0f} % of it"
    if first.share.value < IDLE:
        return "none", f"It was idle: {text}."
    if first.share.value >= DOMINANT and first.share.value >= DISTINCT * second.share.value:
        then = f", then {rival}" if second.share.value >= 0.005 else " and nothing else"
        return first.resource, f"It used {text}{then}."
    if first.share.value < DOMINANT:
        return "mixed", f"No resource is used half of the time: {text}, {rival}."
    return "mixed", f"No resource stands out: {text}, {rival}."


def _interval(first: CounterSnapshot, last: CounterSnapshot, allowed_cpus: int) -> _Interval:
    seconds = last.at_s - first.at_s
    runs, waits = [0.0], [0.0]
    for key, thread in last.threads.items():
        before = first.threads.get(key, Thread(0, 0, ""))
        runs.append((thread.run_ns - before.run_ns) / 1e9 / seconds)
        waits.append((thread.wait_ns - before.wait_ns) / 1e9 / seconds)
    _, busiest, wait = max((run + wait, run, wait) for run, wait in zip(runs, waits, strict=True))
    used = max(0.0, last.cpu_s - first.cpu_s) / seconds
    cpu = _ratio(max(busiest, math.fsum(runs) / allowed_cpus))
    group = stall_ratios(first.group_pressure, last.group_pressure, seconds)
    machine = stall_ratios(first.pressure, last.pressure, seconds)
    waiting = float(any(thread.state == "D" for thread in last.threads.values()))
    disk = max(waiting, _device_share(first, last, seconds), group.get("io some", 0.0))
    return _Interval(
        seconds,
        cpu,
        _ratio(wait),
        used,
        (group or machine).get("memory some", 0.0),
        disk,
        _network_share(first, last, seconds, used=cpu + wait + disk),
    )


def _device_share(first: CounterSnapshot, last: CounterSnapshot, seconds: float) -> float:
    """The time in which a device was busy, times the part of its bytes that are these processes'.

    It shows programs that do not wait for their requests (asynchronous I/O).
    """
    before, after = first.storage_bytes, last.storage_bytes
    own = 0 if before is None or after is None else max(0, after - before)
    shares = [0.0]
    for name, device in last.devices.items():
        earlier = first.devices.get(name)
        moved = device.moved_bytes - earlier.moved_bytes if earlier else 0
        if earlier and own and moved > 0:
            busy = (device.busy_ms - earlier.busy_ms) / 1e3 / seconds
            shares.append(_ratio(busy) * min(1.0, own / moved))
    return max(shares)


def _network_share(
    first: CounterSnapshot, last: CounterSnapshot, seconds: float, *, used: float
) -> float:
    """The time in which a remote connection was busy sending, or an answer was awaited.

    An answer is awaited while nothing else is used, on connections that the process opened itself:
    a server that waits for requests is idle.
    """
    shares = [0.0]
    for key, entry in last.connections.items():
        before = first.connections.get(key)
        if entry.local_only or before is None:
            continue
        shares.append((entry.busy_us - before.busy_us) / 1e6 / seconds)
        if entry.outgoing and entry.received_bytes > before.received_bytes:
            shares.append(1 - used)
    return _ratio(max(shares))


def _short_lived(pairs: Sequence[tuple[CounterSnapshot, CounterSnapshot]], seconds: float) -> float:
    """The CPU time of processes that lived between two snapshots, as a share of `seconds`.

    They count as one after another, as a shell script runs them.
    """
    total = math.fsum(max(0.0, last.cpu_s - first.cpu_s) for first, last in pairs)
    seen = math.fsum(
        thread.run_ns - first.threads.get(key, Thread(0, 0, "")).run_ns
        for first, last in pairs
        for key, thread in last.threads.items()
    )
    share = (total - seen / 1e9) / seconds
    return share if share >= _LEAST_SHORT_LIVED else 0.0


def _mean(intervals: Sequence[_Interval], name: str, unit: str = "ratio") -> Estimate:
    """The mean over the time with an interval from the means of batches."""
    count = min(BATCHES, len(intervals))
    edges = [round(step * len(intervals) / count) for step in range(count + 1)]
    means = []
    for start, end in itertools.pairwise(edges):
        batch = intervals[start:end]
        total = math.fsum(entry.seconds for entry in batch)
        used = math.fsum(entry.seconds * getattr(entry, name) for entry in batch)
        if name in _MEANING:
            # A host that is busy with others stretches the time, not the need for a resource.
            waited = math.fsum(entry.seconds * entry.cpu_wait for entry in batch)
            total = max(total - waited, _LEAST_PART * total)
        means.append(used / total if unit == "cpus" else _ratio(used / total))
    estimate = mean_of_skewed(means, unit=unit, confidence=CONFIDENCE, least=0.0)
    if unit == "ratio" and estimate.high is not None:
        estimate = replace(estimate, high=min(1.0, estimate.high))
    return replace(estimate, method=f"mean over the time; {estimate.method} of {count} batches")


def _moved(
    pairs: Sequence[tuple[CounterSnapshot, CounterSnapshot]], *, local_only: bool
) -> tuple[float, float]:
    """Bytes sent and received by connections over loopback, or by all others."""
    sent = received = 0
    for first, last in pairs:
        for key, entry in last.connections.items():
            if entry.local_only == local_only:
                before = first.connections.get(key, replace(entry, sent_bytes=0, received_bytes=0))
                sent += entry.sent_bytes - before.sent_bytes
                received += entry.received_bytes - before.received_bytes
    return sent, received


def _last_connections(snapshots: Sequence[CounterSnapshot]) -> dict[bytes, TcpSocket]:
    return {key: entry for each in snapshots for key, entry in each.connections.items()}


def _storage(pairs: Sequence[tuple[CounterSnapshot, CounterSnapshot]]) -> float | None:
    total = 0
    for first, last in pairs:
        before, after = first.storage_bytes, last.storage_bytes
        if before is None or after is None:
            return None
        total += max(0, after - before)
    return total


def _grown(pairs: Sequence[tuple[CounterSnapshot, CounterSnapshot]], name: str) -> int:
    """Growth of a counter of processes that are in both snapshots."""
    return sum(
        getattr(process, name) - getattr(first.processes[key], name)
        for first, last in pairs
        for key, process in last.processes.items()
        if key in first.processes
    )


def _ratio(share: float) -> float:
    return min(1.0, max(0.0, share))
