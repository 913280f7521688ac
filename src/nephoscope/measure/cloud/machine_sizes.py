"""Types of machines that are nothing but limits: `2cpu-1gib`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nephoscope.measure.cloud.model import MachineType
from nephoscope.measure.cloud.provider import Cause, CloudError

_TYPE = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)cpu-(\d{1,7})(mib|gib)")
_UNITS = {"mib": 1 << 20, "gib": 1 << 30}
_CPUS = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_MIB = tuple(64 << power for power in range(16))


def parse_size(cloud: str, name: str) -> MachineType:
    """Returns the type of a name. Raises CloudError."""
    match = _TYPE.fullmatch(name)
    if match is None or float(match[1]) <= 0 or int(match[2]) <= 0:
        raise CloudError(
            Cause.UNKNOWN,
            f"{cloud}: '{name}' is no type of machine.",
            "A type is its limits: write 2cpu-1gib or 0.5cpu-512mib.",
        )
    return MachineType(name, float(match[1]), int(match[2]) * _UNITS[match[3]])


def size_name(vcpus: float, memory_bytes: int) -> str:
    """Returns the name of limits."""
    unit = "gib" if memory_bytes % _UNITS["gib"] == 0 else "mib"
    return f"{vcpus:g}cpu-{memory_bytes // _UNITS[unit]}{unit}"


def sizes_up_to(vcpus: float, memory_bytes: int, *, whole_cpus: bool = False) -> list[MachineType]:
    """Returns the usual sizes that fit into a machine; any other is taken too."""
    cpus: Sequence[float] = [
        entry for entry in _CPUS if entry <= vcpus and (entry >= 1 or not whole_cpus)
    ]
    memories = [mib << 20 for mib in _MIB if mib << 20 <= memory_bytes]
    return [MachineType(size_name(cpu, memory), cpu, memory) for cpu in cpus for memory in memories]
