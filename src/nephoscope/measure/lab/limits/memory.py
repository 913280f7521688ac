"""A host's memory limit. What is over it is not swapped out but refused or killed."""

from __future__ import annotations

import os

from nephoscope.core.errors import UsageError
from nephoscope.measure.lab.limits.cgroups import HostCgroup, numbers, put

MIN_BYTES = 1 << 20
_V1_NONE = 1 << 60
"""Version 1 writes 2^63 rounded down to a page for "no limit"."""


def apply(group: HostCgroup, limit_bytes: int | None) -> None:
    """Sets the limit (None: none), whole pages, and reads it back.

    The limit holds for memory and swap together: version 1 counts both in `memsw`, version 2 gives
    no swap at all. Raises UsageError below 1 MiB, Lacking without the memory controller.
    """
    if limit_bytes is not None and limit_bytes < MIN_BYTES:
        raise UsageError(f"A memory limit of {limit_bytes} B is too small.", "Give at least 1MiB.")
    file = group.file("memory", "memory.limit_in_bytes", "memory.max")
    is_v2 = group.version("memory") == 2
    with_swap = file.with_name("memory.swap.max" if is_v2 else "memory.memsw.limit_in_bytes")
    unlimited = "max" if is_v2 else "-1"
    text = unlimited if limit_bytes is None else str(limit_bytes)

    def accepts(text: str) -> bool:
        return _is(text, limit_bytes)

    if with_swap.exists() and not is_v2:
        # The kernel keeps memory <= memory with swap on every write: free the outer one first.
        put(with_swap, unlimited, lambda text: int(text) >= _V1_NONE)
    put(file, text, accepts)
    if with_swap.exists() and is_v2:
        put(with_swap, "max" if limit_bytes is None else "0")
    elif with_swap.exists():
        put(with_swap, text, accepts)


def killed(group: HostCgroup) -> int:
    """Returns how many processes of the group the kernel has killed for want of memory."""
    v1, v2 = "memory.oom_control", "memory.events"
    return numbers(group.file("memory", v1, v2)).get("oom_kill", 0)


def _is(current: str, wanted: int | None) -> bool:
    if wanted is None:
        return current == "max" or int(current) >= _V1_NONE
    page = os.sysconf("SC_PAGE_SIZE")
    return current != "max" and int(current) == wanted // page * page
