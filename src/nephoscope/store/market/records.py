"""Server types, their figures and their launches, as published measurements state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from nephoscope.core.model import Better

MOMENTS = (
    "api_start",
    "api_end",
    "machine_start",
    "user_data_start",
    "user_data_end",
    "inspector_start",
    "inspector_end",
)
"""Moments of a launch in their usual order: request, its answer, start of the kernel, first and
last command of the machine's start script, and the measurement."""

LACKS = (
    "Each figure is of one machine of its type, measured once: there is no interval, and machines "
    "of one type may differ."
)
"""What these data lack: stated wherever a figure of them is printed."""


class MarketMetric(NamedTuple):
    """Unit of core.units and good direction of a metric."""

    unit: str
    better: Better


@dataclass(slots=True)
class ServerType:
    """A type of machine that a provider offers.

    memory_source: what stated the memory: smbios, kernel or passmark. root: folder that it was read
    from. digest: of the names, sizes and times of its files.
    """

    provider: str
    name: str
    root: str = ""
    digest: str = ""
    architecture: str = ""
    cpus: int | None = None
    threads_per_core: int | None = None
    cpu_model: str = ""
    l3_bytes: int | None = None
    hypervisor: str = ""
    memory_bytes: int | None = None
    memory_source: str = ""
    gpus: int = 0
    gpu_model: str = ""
    gpu_memory_bytes: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Provider and name."""
        return (self.provider, self.name)


@dataclass(frozen=True, slots=True)
class PublishedLaunch:
    """A launch of a machine: seconds since 1970 of each moment that is known."""

    provider: str
    type: str
    run: str
    at_s: Mapping[str, float]


@dataclass(slots=True)
class TypeReading:
    """What was read of the files of one server type.

    figures: (metric, value, seconds since 1970 or 0). metrics: those of the figures. left_out:
    'file: reason' of whatever cannot be used. not_read: task -> files that no reader is for.
    counts: files that were read, figures without a value, and tasks that ended with an error.
    """

    type: ServerType
    figures: list[tuple[str, float, int]] = field(default_factory=list)
    metrics: dict[str, MarketMetric] = field(default_factory=dict)
    launches: list[PublishedLaunch] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    not_read: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, by: int = 1) -> None:
        """Adds to a count."""
        self.counts[what] = self.counts.get(what, 0) + by


def type_values(server: ServerType) -> dict[str, Any]:
    """Returns the plain values of a type that are known."""
    return {name: value for name, value in asdict(server).items() if value not in (None, "", 0)}
