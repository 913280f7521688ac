"""Documents of the spread of rates behind one CPU model."""

from __future__ import annotations

from nephoscope.core.model import Estimate
from nephoscope.core.records import dataclass


@dataclass(frozen=True, slots=True)
class ProviderSpread:
    """Machines of one CPU model at one provider. typical: geometric mean of their rates. variation:
    robust coefficient of variation; None below 6 machines."""

    provider: str
    machines: int
    typical: Estimate
    variation: Estimate | None


@dataclass(frozen=True, slots=True)
class SpeedGroup:
    """Machines of similar rates, between two gaps. share: of all machines of the model."""

    low: float
    high: float
    machines: int
    share: Estimate


@dataclass(frozen=True, slots=True)
class ModelSpread:
    """What one CPU model name stands for. machines: each of another server type.

    range_ratio: the 95th percentile of the rates over the 5th. between: geometric mean at the
    fastest provider over that at the slowest. groups: more than one where the rates have several
    modes. p_one_group: of Silverman's test that there is one. launches_to_know: launches after
    which a machine of each group was there with 95 % probability, with the interval of the shares.
    """

    cpu_model: str
    machines: int
    providers: tuple[ProviderSpread, ...]
    range_ratio: Estimate
    variation: Estimate
    between: Estimate | None
    groups: tuple[SpeedGroup, ...]
    p_one_group: float | None
    launches_to_know: Estimate | None


@dataclass(frozen=True, slots=True)
class CpuSpread:
    """The CPU models with at least 6 machines, the one whose range is surely widest first."""

    title: str
    unit: str
    models: tuple[ModelSpread, ...]
    models_left_out: int
    machines_left_out: int
    lacks: str
    notes: tuple[str, ...] = ()
