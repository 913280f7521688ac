"""The check of a host's disk limits, where the kernel has them."""

from __future__ import annotations

from typing import Literal

from nephoscope.lab.handle import Lab
from nephoscope.lab.limits import cgroups, disk, host_limits
from nephoscope.labcheck.frame import Check, Measured, NotHere
from nephoscope.labcheck.measuring import mean, trials, value

_FILE_BYTES = 8 << 20
_RECORD_BYTES = 64 << 10
_TRIALS = 3


def disk_check(direction: Literal["read", "write"], bytes_per_s: float) -> Check:
    """A limit of one direction: what direct I/O of 64 KiB records gets."""

    async def measure(lab: Lab, check: Check) -> Measured:
        if not disk.supported(cgroups.host(lab.name, "a")):
            raise NotHere("This kernel cannot limit disk bandwidth (no blkio or io controller).")
        params = {
            "operation": direction,
            "directory": str(host_limits.disk_path()),
            "file_bytes": _FILE_BYTES,
            "record_bytes": _RECORD_BYTES,
            "duration_ns": 2_000_000_000,
            "direct": True,
        }
        seen = await trials(lab, "a", "disk.io", [params] * _TRIALS)
        return mean([value(trial, "disk_bytes_per_s") for trial in seen])

    return Check(
        id=f"disk.{direction}-{bytes_per_s / (1 << 20):g}MiB",
        mechanism="disk bandwidth",
        what=f"{direction}s past the page cache under a limit of {bytes_per_s / (1 << 20):g} MiB/s",
        set=bytes_per_s,
        unit="bytes_per_s",
        low=0.9 * bytes_per_s,
        high=1.1 * bytes_per_s,
        how=f"disk.io, {_TRIALS} windows of 2 s. 10 %: the kernel gives bandwidth in slices of "
        "100 ms, and a window holds a part of one at each end.",
        topology={"hosts": {"a": {"disk": {direction: bytes_per_s}}}},
        measure=measure,
    )


CHECKS: tuple[Check, ...] = (
    disk_check("write", 10 * (1 << 20)),
    disk_check("read", 20 * (1 << 20)),
)
