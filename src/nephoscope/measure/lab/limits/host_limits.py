"""What a host is given: CPUs, weight, cap, reservation, memory and disk, through its groups."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from nephoscope.measure.lab import commands, names
from nephoscope.measure.lab.limits import cgroups, cpu, disk, memory
from nephoscope.measure.lab.topology import CpuSpec, HostSpec


def make(lab: str, host: str, spec: HostSpec) -> None:
    """Makes a host's groups and sets its limits."""
    cgroups.host(lab, host).make()
    change(lab, host, HostSpec(), spec)


def change(lab: str, host: str, old: HostSpec, new: HostSpec) -> None:
    """Sets what differs, in place. Raises Lacking for what this kernel cannot limit."""
    group = cgroups.host(lab, host)
    if _cpu_limits(old.cpu) != _cpu_limits(new.cpu):
        cpu.apply(group, new.cpu)
    # The memory of a guest is the size of its machine; a limit beside it would kill the machine.
    limits = [None if spec.is_guest else spec.memory_bytes for spec in (old, new)]
    if limits[0] != limits[1]:
        memory.apply(group, limits[1])
    if old.disk != new.disk:
        disk.apply(group, disk_path(), new.disk)


def _cpu_limits(spec: CpuSpec) -> tuple[object, ...]:
    return spec.cpus, spec.weight, spec.cap, spec.cap_period_s


def disk_path() -> Path:
    """Returns where hosts write: benchmarks' files lie there."""
    return Path(os.environ.get("TMPDIR") or "/var/tmp")


async def reserve(lab: str, host: str, spec: HostSpec) -> None:
    """Starts the supervisor of a host's reservation, where it has one."""
    wanted = spec.cpu.reservation
    if wanted is None:
        return
    group = cgroups.host(lab, host)
    cpu.check_reservation(group, spec.cpu.cpus)
    slice_ns, period_ns = round(wanted.slice_s * 1e9), round(wanted.period_s * 1e9)
    await commands.start_helper(
        cpu.reservation_supervisor(group.folders[-1], slice_ns, period_ns),
        cgroups.keep(lab).folders,
        _log(lab, host),
    )


async def unreserve(lab: str, host: str) -> None:
    """Ends the supervisor of a host's reservation, which gives its threads back first."""
    await commands.stop_helper(_log(lab, host), signal.SIGTERM)


def _log(lab: str, host: str) -> Path:
    return names.directory(lab) / f"reserve-{host}.log"
