"""Records of a census: counts and speeds that go in, types and expectations that come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from nephoscope.core.model import Better, stated
from nephoscope.core.naming import line_name
from nephoscope.core.records import dataclass
from nephoscope.features.census.analysis import Expected, Machines, ModelShare, RelativeSpeed
from nephoscope.results.run_settings import HiddenSetting

UNKNOWN_TYPE = "unknown type"

IDENTITY = (
    "A machine is one cloud instance (hash of its identifier) or, without cloud "
    "metadata, one machine identifier. Each machine counts once, with the CPU model, "
    "zone and hour (UTC) of its first measurement."
)


@dataclass(frozen=True, slots=True)
class MachineCount:
    """So many machines of a model; zone '' and hour None where they are not known.

    machines: None where a model is told without a number.
    clock_hz: as told. source: file and line, table, or ''. notes: of the source.
    """

    instance_type: str
    model: str
    machines: int | None
    zone: str = ""
    hour: int | None = None
    clock_hz: float | None = None
    source: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelValues:
    """Trial values of one metric at one setting: model -> machine -> run -> values."""

    instance_type: str
    benchmark: str
    metric: str
    factors: Mapping[str, Any]
    better: Better
    values: Mapping[str, Machines]


@dataclass(frozen=True, slots=True)
class StatedSpeed:
    """A speed that a source gives as a ratio, with an interval or without."""

    instance_type: str
    model: str
    benchmark: str
    speed: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Observations:
    """Counts and speeds from which a census is made.

    looked_at: stored runs that were read; runs: those of them that show a machine. sources: files
    or tables, of which a census keeps the order. flags, left_out: as of the census.
    """

    counts: tuple[MachineCount, ...] = ()
    measured: tuple[ModelValues, ...] = ()
    stated: tuple[StatedSpeed, ...] = ()
    looked_at: int = 0
    runs: int = 0
    sources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    hidden_settings: tuple[HiddenSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """Shares within a zone or an hour."""

    name: str
    machines: int
    models: tuple[ModelShare, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark's speeds of the models of a type, fastest first, and what to expect of it.

    source: 'measured' or where the ratios were read. refused: why there is no expectation.
    """

    benchmark: str
    metric: str | None
    factors: Mapping[str, Any]
    source: str
    speeds: tuple[RelativeSpeed, ...]
    expected: Expected | None
    refused: str | None = None

    @stated
    def label(self) -> str:
        """Its name in a sentence."""
        return (
            line_name(self.benchmark, self.metric, self.factors) if self.metric else self.benchmark
        )


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One instance type. clocks: model -> the clock that was told, Hz. uncounted: models that a
    source names without a number. unseen_at_most: most that all unseen models may have together.
    """

    name: str
    machines: int
    models: tuple[ModelShare, ...]
    zones: tuple[ShareGroup, ...]
    hours: tuple[ShareGroup, ...]
    benches: tuple[Bench, ...]
    clocks: Mapping[str, float] = field(default_factory=dict)
    uncounted: tuple[str, ...] = ()
    unseen_at_most: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Census:
    """Every type, the most machines first. runs: how many stored runs were read. sources: files
    and tables. flags: what does not fit together. left_out: what was not counted, and why. notes:
    what the sources say of their own rows. hidden_settings: what differs between the measurements.
    """

    kinds: tuple[InstanceType, ...]
    confidence: float
    runs: int = 0
    sources: tuple[str, ...] = ()
    identity: str | None = None
    flags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    hidden_settings: tuple[HiddenSetting, ...] = ()

    @stated
    def machines(self) -> int:
        """Returns how many were counted in all."""
        return sum(kind.machines for kind in self.kinds)
