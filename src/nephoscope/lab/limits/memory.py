"""A host's memory limit. What is over it is not swapped out but refused or killed."""

from __future__ import annotations

import os
from dataclasses import dataclass

from nephoscope.errors import UsageError
from nephoscope.lab.limits.cgroups import Group, numbers, put

MIN_BYTES = 1 << 20
_V1_NONE = 1 << 60
"""Version 1 writes 2^63 rounded down to a page for "no limit"."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What the kernel says after a setting. swap: whether swap is inside the limit.

    limit_bytes: None without a limit; the kernel rounds down to whole pages.
    """

    limit_bytes: int | None
    swap: bool
    says: str


def apply(group: Group, limit_bytes: int | None) -> Applied:
    """Sets the limit (None: none) and reads it back.

    The limit holds for memory and swap together: version 1 counts both in `memsw`, version 2 gives
    no swap at all. Raises UsageError below 1 MiB, Lacking without the memory controller.
    """
    if limit_bytes is not None and limit_bytes < MIN_BYTES:
        raise UsageError(f"A memory limit of {limit_bytes} B is too small.", "Give at least 1MiB.")
    if group.version("memory") == 2:
        return _apply_v2(group, limit_bytes)
    return _apply_v1(group, limit_bytes)


def killed(group: Group) -> int:
    """How many processes of the group the kernel has killed for want of memory."""
    v1, v2 = "memory.oom_control", "memory.events"
    return numbers(group.file("memory", v1, v2)).get("oom_kill", 0)


def _apply_v2(group: Group, limit_bytes: int | None) -> Applied:
    file = group.file("memory", "", "memory.max")
    found = put(file, _text(limit_bytes, "max"), lambda value: _is(value, limit_bytes))
    swap = file.with_name("memory.swap.max")
    if swap.exists():
        put(swap, "max" if limit_bytes is None else "0")
    return _applied(limit_bytes, found, swap.exists())


def _apply_v1(group: Group, limit_bytes: int | None) -> Applied:
    file = group.file("memory", "memory.limit_in_bytes", "")
    both = file.with_name("memory.memsw.limit_in_bytes")
    text = _text(limit_bytes, "-1")

    def accepts(value: str) -> bool:
        return _is(value, limit_bytes)

    if both.exists():
        # The kernel keeps memory <= memory with swap on every write: free the outer one first.
        put(both, "-1", lambda value: int(value) >= _V1_NONE)
    found = put(file, text, accepts)
    if both.exists():
        put(both, text, accepts)
    return _applied(limit_bytes, found, both.exists())


def _text(limit_bytes: int | None, none: str) -> str:
    return none if limit_bytes is None else str(limit_bytes)


def _is(found: str, wanted: int | None) -> bool:
    if wanted is None:
        return found == "max" or int(found) >= _V1_NONE
    page = os.sysconf("SC_PAGE_SIZE")
    return found != "max" and int(found) == wanted // page * page


def _applied(wanted: int | None, found: str, swap: bool) -> Applied:
    if wanted is None:
        return Applied(None, swap, "no memory limit")
    says = "swap inside the limit" if swap else "this kernel does not count swap"
    return Applied(int(found), swap, f"memory limit {int(found)} B, {says}")
