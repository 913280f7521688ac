"""The check of a host's memory limit: programs that fit live, programs that do not are ended."""

from __future__ import annotations

import asyncio

from nephoscope.errors import RunFailed
from nephoscope.lab.handle import Lab
from nephoscope.lab.limits import cgroups, memory
from nephoscope.labcheck.frame import Check, Measured
from nephoscope.labcheck.measuring import TIMEOUT_S

_PARTS = (0.5, 0.85, 1.15, 1.5)
"""Sizes tried, in parts of the limit. The program itself takes some MiB beside its buffer, which
is why the sizes next to the limit keep away from it."""


def memory_check(limit_bytes: int) -> Check:
    """A limit: the largest of some buffers that a program may fill."""

    async def measure(lab: Lab, check: Check) -> Measured:
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
        return Measured(float(largest), float(largest), high, len(sizes), note, {"killed": killed})

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
    """Whether a program inside lives that writes to so many bytes of its memory."""
    words = ["dd", "if=/dev/zero", "of=/dev/null", f"bs={size_bytes}", "count=1"]
    none = asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(
        *lab.hosts["a"].enter(), *words, stdin=none, stdout=none, stderr=none
    )
    return await asyncio.wait_for(child.wait(), TIMEOUT_S) == 0


CHECKS: tuple[Check, ...] = (memory_check(64 << 20),)
