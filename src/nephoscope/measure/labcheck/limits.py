"""Checks of what a host gets of the CPUs, of memory and of a disk."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Literal

from nephoscope.catalog import instruments
from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.lab.limits import cgroups, disk, host_limits, memory
from nephoscope.measure.lab.limits.cpu import PERIOD_US, machine_cpus
from nephoscope.measure.labcheck.frame import Check, CheckMeasurement
from nephoscope.measure.labcheck.measuring import TIMEOUT_S, mean, together, trials, value
from nephoscope.measure.targets.base import TargetTrial

TRIALS = 3
"""Windows of each check of a share or a rate."""
_WINDOW_NS = 2_000_000_000
_STARTING, _PERIODS = 2, 20


def cap_check(cap_cpus: float) -> Check:
    """A cap, in CPUs: what as many spinning loops as it takes get together."""
    loops = math.ceil(cap_cpus)

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        cpus = machine_cpus()
        if len(cpus) < loops:
            raise Lacking(f"A cap of {cap_cpus:g} CPUs needs {loops} CPUs; here is {len(cpus)}.")
        cgroups.favour(lab.name)
        params = {
            "cpus": cpus[:loops],
            "threads": loops,
            "interval_ns": PERIOD_US * 1000,
            "duration_ns": (_STARTING + _PERIODS) * PERIOD_US * 1000 + 50_000_000,
        }
        seen = await trials(lab, "a", instruments.LOAD_CPU, [params] * TRIALS)
        return mean([steady(trial, loops) for trial in seen])

    period_ms = PERIOD_US / 1000
    return Check(
        id=f"cpu.cap-{cap_cpus * 100:g}",
        mechanism="CFS bandwidth",
        what=f"{loops} spinning loop(s) under a cap of {cap_cpus:.0%} of a CPU",
        set=cap_cpus,
        unit="cpus",
        low=cap_cpus - 0.02,
        high=cap_cpus + 0.02,
        how=f"load.cpu, {_PERIODS} periods of {period_ms:g} ms after the first {_STARTING}, "
        f"{TRIALS} times: a group starts with the whole quota of the period that it comes into. "
        "2 points: the kernel sees that a quota is used up at a tick, 4 ms at 250 Hz, and takes it "
        "from a later period.",
        topology={"hosts": {"a": {"cpu": {"cap": cap_cpus}}}},
        measure=measure,
        attempts=5,
    )


def reservation_check(slice_s: float, period_s: float) -> Check:
    """A reservation: what a spinning loop gets, no less and no more."""
    share = slice_s / period_s

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        seen = await trials(lab, "a", instruments.CPU_GAPS, [_params(machine_cpus()[:1])] * TRIALS)
        return mean([value(trial, "obtained_cpus") for trial in seen])

    return Check(
        id=f"cpu.reservation-{slice_s * 1e3:g}-{period_s * 1e3:g}",
        mechanism="SCHED_DEADLINE",
        what=f"a spinning loop with a slice of {slice_s * 1e3:g} ms in {period_s * 1e3:g} ms",
        set=share,
        unit="cpus",
        low=share - 0.015,
        high=share + 0.015,
        how=f"cpu.gaps, {TRIALS} windows of 2 s. 1.5 points: the window cuts two periods, at most "
        "0.4 points; the timer that ends a slice is late when the machine is busy.",
        topology={"hosts": {"a": {"cpu": {"reservation": {"slice": slice_s, "period": period_s}}}}},
        measure=measure,
        attempts=5,
    )


def weight_check(weights: tuple[int, int]) -> Check:
    """Weights: how two spinning loops divide one CPU."""
    share = weights[0] / sum(weights)

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        cgroups.favour(lab.name)
        shares = []
        used = 0.0
        for _ in range(TRIALS):
            # The kernel shares a CPU in turns of some milliseconds: 500 of them in a window.
            trials = await together(
                lab, ("a", "b"), instruments.CPU_GAPS, _params(machine_cpus()[:1])
            )
            a, b = (value(trial, "obtained_cpus") for trial in trials)
            shares.append(a / (a + b))
            used += (a + b) / TRIALS
        return mean(shares, f"together {used:.2f} CPUs", together_cpus=used)

    cpu: dict[str, Any] = {"cpus": machine_cpus()[:1]}
    hosts = dict(zip("ab", weights, strict=True))
    return Check(
        id=f"cpu.weight-{weights[0]}-{weights[1]}",
        mechanism="CPU weight",
        what=f"the first of two spinning loops on one CPU, weights {weights[0]}:{weights[1]}",
        set=share,
        unit="ratio",
        low=share - 0.02,
        high=share + 0.02,
        how=f"cpu.gaps in both at one moment, {TRIALS} windows of 2 s; its part of what both got. "
        "2 points: each switch comes with a tick of the kernel, 4 ms at 250 Hz.",
        topology={
            "hosts": {name: {"cpu": {**cpu, "weight": weight}} for name, weight in hosts.items()}
        },
        measure=measure,
        attempts=5,
    )


def steady(trial: TargetTrial, loops: int) -> float:
    """CPUs that the loops of a load got over whole periods, without those in which it started."""
    value(trial, "load_cpus")
    shares = [
        sample.value for sample in trial.samples if sample.metric == "interval_intensity_ratio"
    ]
    steady_shares = shares[_STARTING : _STARTING + _PERIODS]
    return loops * math.fsum(steady_shares) / len(steady_shares)


def _params(cpus: list[int]) -> dict[str, Any]:
    return {"cpus": cpus, "duration_ns": _WINDOW_NS}


_FILE_BYTES = 8 << 20
_RECORD_BYTES = 64 << 10


def disk_check(direction: Literal["read", "write"], bytes_per_s: float) -> Check:
    """A limit of one direction: what direct I/O of 64 KiB records gets."""

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        if not disk.supported(cgroups.host(lab.name, "a")):
            raise Lacking("This kernel cannot limit disk bandwidth (no blkio or io controller).")
        params = {
            "operation": direction,
            "directory": str(host_limits.disk_path()),
            "file_bytes": _FILE_BYTES,
            "record_bytes": _RECORD_BYTES,
            "duration_ns": 2_000_000_000,
            "direct": True,
        }
        seen = await trials(lab, "a", instruments.DISK_IO, [params] * TRIALS)
        return mean([value(trial, "disk_bytes_per_s") for trial in seen])

    return Check(
        id=f"disk.{direction}-{bytes_per_s / (1 << 20):g}MiB",
        mechanism="disk bandwidth",
        what=f"{direction}s past the page cache under a limit of {bytes_per_s / (1 << 20):g} MiB/s",
        set=bytes_per_s,
        unit="bytes_per_s",
        low=0.9 * bytes_per_s,
        high=1.1 * bytes_per_s,
        how=f"disk.io, {TRIALS} windows of 2 s. 10 %: the kernel gives bandwidth in slices of "
        "100 ms, and a window holds a part of one at each end.",
        topology={"hosts": {"a": {"disk": {direction: bytes_per_s}}}},
        measure=measure,
    )


_PARTS = (0.5, 0.85, 1.15, 1.5)
"""Sizes tried, in parts of the limit. The program itself takes some MiB beside its buffer, which
is why the sizes next to the limit keep away from it."""


def memory_check(limit_bytes: int) -> Check:
    """A limit: the largest of some buffers that a program may fill."""

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        group = cgroups.host(lab.name, "a")
        before = memory.killed(group)
        sizes = [int(limit_bytes * part) >> 20 << 20 for part in _PARTS]
        lived = [size for size in sizes if await _fills(lab, size)]
        killed = memory.killed(group) - before
        if lived != sizes[: len(lived)] or killed != len(sizes) - len(lived):
            raise RunFailed(
                f"Of buffers of {sizes} B those of {lived} B were filled, and the kernel ended "
                f"{killed} programs for want of memory.",
                "Look at the kernel's log for what else was short.",
            )
        largest, smallest_ended = max(lived, default=0), min(set(sizes) - set(lived), default=None)
        note = f"{killed} of {len(sizes)} ended by the kernel"
        high = None if smallest_ended is None else float(smallest_ended)
        return CheckMeasurement(
            float(largest), float(largest), high, len(sizes), note, {"killed": killed}
        )

    return Check(
        id=f"memory.limit-{limit_bytes >> 20}MiB",
        mechanism="memory limit",
        what=f"the largest buffer that is filled under a limit of {limit_bytes >> 20} MiB",
        set=float(limit_bytes),
        unit="bytes",
        low=_PARTS[1] * limit_bytes - (1 << 20),
        high=float(limit_bytes),
        how="dd with one block of "
        f"{', '.join(f'{p:g}' for p in _PARTS)} of the limit: those below it live, those above it "
        "are ended by the kernel (a benchmark would look at the limit first and refuse).",
        topology={"hosts": {"a": {"memory": limit_bytes}}},
        measure=measure,
        attempts=1,
    )


async def _fills(lab: Lab, size_bytes: int) -> bool:
    """Returns whether a program inside lives that writes to so many bytes of its memory."""
    words = ["dd", "if=/dev/zero", "of=/dev/null", f"bs={size_bytes}", "count=1"]
    none = asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(
        *lab.hosts["a"].enter(), *words, stdin=none, stdout=none, stderr=none
    )
    return await asyncio.wait_for(child.wait(), TIMEOUT_S) == 0


CHECKS: tuple[Check, ...] = (
    *(cap_check(cap) for cap in (0.25, 0.5, 0.75, 1.5)),
    reservation_check(0.030, 0.040),
    weight_check((100, 300)),
    memory_check(64 << 20),
    disk_check("write", 10 * (1 << 20)),
    disk_check("read", 20 * (1 << 20)),
)
