"""What a host is given: CPUs, weight, cap, reservation, memory and disk, through its groups."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from nephoscope.lab import helpers, names
from nephoscope.lab.limits import cgroups, cpu, disk, memory
from nephoscope.lab.topology import GUESTS, CpuSpec, HostSpec

_DEFAULT = HostSpec()


def make(lab: str, host: str, spec: HostSpec) -> list[str]:
    """Makes a host's groups and sets its limits; what was set, for people."""
    group = cgroups.host(lab, host)
    group.make()
    return change(lab, host, _DEFAULT, spec)


def change(lab: str, host: str, old: HostSpec, new: HostSpec) -> list[str]:
    """Sets what differs, in place; what was set, for people.

    Raises Lacking for what this kernel cannot limit.
    """
    group = cgroups.host(lab, host)
    says = []
    if _given(old.cpu) != _given(new.cpu):
        given = cpu.apply(
            group,
            cpus=new.cpu.cpus,
            weight=new.cpu.weight,
            cap_cpus=new.cpu.cap,
            period_us=round(new.cpu.cap_period_s * 1e6),
        )
        says.append(given.says)
    # The memory of a guest is the size of its machine; a limit beside it would kill the machine.
    limits = [spec.memory_bytes if spec.platform not in GUESTS else None for spec in (old, new)]
    if limits[0] != limits[1]:
        says.append(memory.apply(group, limits[1]).says)
    if old.disk != new.disk:
        says.append(
            disk.apply(
                group,
                disk_path(),
                read_bytes_per_s=new.disk.read_bytes_per_s,
                write_bytes_per_s=new.disk.write_bytes_per_s,
            ).says
        )
    return says


def _given(spec: CpuSpec) -> tuple[object, ...]:
    return spec.cpus, spec.weight, spec.cap, spec.cap_period_s


def disk_path() -> Path:
    """Where hosts write: benchmarks' files lie there."""
    return Path(os.environ.get("TMPDIR") or "/var/tmp")


async def reserve(lab: str, host: str, spec: HostSpec) -> str:
    """Starts the keeper of a host's reservation; what it keeps, for people; empty without one."""
    wanted = spec.cpu.reservation
    if wanted is None:
        return ""
    group = cgroups.host(lab, host)
    cpu.check_reservation(group, spec.cpu.cpus)
    slice_ns, period_ns = round(wanted.slice_s * 1e9), round(wanted.period_s * 1e9)
    await helpers.start(
        cpu.keeper(group.folders[-1], slice_ns, period_ns),
        cgroups.keep(lab).folders,
        _log(lab, host),
    )
    return f"reservation {wanted.slice_s * 1e3:g} ms in {wanted.period_s * 1e3:g} ms"


async def unreserve(lab: str, host: str) -> None:
    """Ends the keeper of a host's reservation, which gives its threads back first."""
    await helpers.stop(_log(lab, host), signal.SIGTERM)


def _log(lab: str, host: str) -> Path:
    return names.directory(lab) / f"reserve-{host}.log"
