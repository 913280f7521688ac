"""Reads a machine's fingerprint: facts by dotted name, and why a fact is missing.

The document is that of `sys.fingerprint` (crates/probe/src/machine): one object per section, null
for what the machine does not show, and `missing` with a reason for each null. Anything may be
absent; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core.naming import as_number


def fact(document: Any, name: str) -> Any:
    """The fact of a dotted name ('cpu.by_cpuid.brand'); None where it is missing."""
    value = document
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def number(document: Any, name: str) -> float | None:
    """A fact that is a number; None where it is missing or something else."""
    return as_number(fact(document, name))


def text(document: Any, name: str) -> str | None:
    """A fact that is a text; None where it is missing, empty or something else."""
    value = fact(document, name)
    return value if isinstance(value, str) and value else None


def items(document: Any, name: str) -> list[Any] | None:
    """A fact that is a list; None where it is missing or something else."""
    value = fact(document, name)
    return list(value) if isinstance(value, list | tuple) else None


def reason(document: Any, name: str) -> str:
    """Why a fact is missing, in the probe's words."""
    for entry in items(document, "missing") or []:
        if isinstance(entry, Mapping) and entry.get("fact") == name:
            return str(entry.get("reason", "")) or "no reason was given"
    return "the fingerprint does not have it"


def is_virtual(document: Any) -> bool | None:
    """Returns whether the machine runs under a hypervisor; None where that is not known."""
    name, present = fact(document, "hypervisor.name"), fact(document, "hypervisor.present")
    if isinstance(name, str) and name:
        return name != "none"
    return present if isinstance(present, bool) else None


def is_simulated(document: Any) -> bool:
    """Returns whether a simulator answered in a machine's place."""
    return isinstance(fact(document, "simulated"), Mapping)


RECORDING = "recording"
"""How a target was reached that answered from a recording."""


def is_recorded(document: Any) -> bool:
    """Returns whether a recording answered in a machine's place."""
    return bool(fact(document, "reached.by") == RECORDING)


def is_machine(document: Any) -> bool:
    """Returns whether it can describe a machine: neither a simulator nor a service."""
    return not is_simulated(document) and service(document) is None


def service(document: Any) -> Mapping[str, Any] | None:
    """Returns what the plan said of a service; None of a machine."""
    known = fact(document, "service")
    return known if isinstance(known, Mapping) else None


def cache_sizes(document: Any) -> dict[str, int]:
    """Bytes of one instance of the data or unified caches by level: {'L1': 32768, …}.

    By the kernel's account, else by the cpuid instruction's.
    """
    listed = items(document, "caches.by_sysfs") or items(document, "caches.by_cpuid") or []
    sizes: dict[str, int] = {}
    for cache in listed:
        level, size = number(cache, "level"), number(cache, "size_bytes")
        if level is not None and size and text(cache, "kind") != "instruction":
            sizes[f"L{int(level)}"] = int(size)
    return dict(sorted(sizes.items()))
