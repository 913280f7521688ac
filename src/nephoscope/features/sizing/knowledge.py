"""What is known of an application and its server types, each quantity with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nephoscope.core.model import Estimate
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.sizing.records import SizingInput
from nephoscope.stats.statistics.values import Array

Purchase = Literal["on_demand", "spot"]


@dataclass(slots=True)
class Ledger:
    """Inputs by id, in the order in which they were read."""

    inputs: list[SizingInput] = field(default_factory=list)

    def add(self, name: str, estimate: Estimate, origin: str, source: str) -> SizingInput:
        """Returns the new input."""
        self.inputs.append(SizingInput(len(self.inputs) + 1, name, estimate, origin, source))
        return self.inputs[-1]


@dataclass(frozen=True, slots=True)
class InstanceSpread:
    """Speeds that instances of a type have. deviation: standard deviation of their logarithms.

    repeated: the deviation is that of so many instances, 0 where it is stated. mix: counts and
    speeds of CPU models instead; speed 1 is that at which the capacity was measured.
    """

    input: SizingInput
    repeated: int = 0
    mix: tuple[Array, tuple[Estimate, ...]] | None = None


@dataclass(frozen=True, slots=True)
class MeasuredCapacity:
    """Requests per second of an instance under an objective.

    machines: number of instances behind the value. is_repeated: the interval is that of values of
    different instances, which the spread alone explains.
    """

    input: SizingInput
    objective: LatencyObjective
    machines: int
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class MissingQuantity:
    """A quantity of a type that is not known: which one, and a sentence with the reason."""

    missing: str
    reason: str


@dataclass(slots=True)
class TypeKnowledge:
    """What is known of a server type. prices: (region, purchase) -> price of an hour. gaps: by the
    quantity, of which a missing price has the purchase."""

    name: str
    workers: int = 1
    capacity: MeasuredCapacity | None = None
    spread: InstanceSpread | None = None
    availability: dict[Purchase, SizingInput] = field(default_factory=dict)
    prices: dict[tuple[str, Purchase], SizingInput] = field(default_factory=dict)
    gaps: list[MissingQuantity] = field(default_factory=list)

    def gaps_of(self, purchase: Purchase) -> list[MissingQuantity]:
        """Returns what hinders a deployment that is bought so."""
        names = ("capacity", "spread", bought("availability", purchase), bought("price", purchase))
        return [gap for gap in self.gaps if gap.missing in names]


def bought(quantity: str, purchase: Purchase) -> str:
    """Returns the name of an availability or a price, that of spot instances with the word."""
    return f"spot {quantity}" if purchase == "spot" else quantity


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Round trips between a site and a region, in seconds: values with weights that sum to 1.

    is_exact: the values are a measured distribution; else one value with its interval.
    """

    input: SizingInput
    seconds: Array
    weights: Array
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class DataToUsers:
    """Data that users receive. volume: gigabytes of a month; prices: of one, by region."""

    volume: SizingInput
    prices: Mapping[str, SizingInput]


@dataclass(slots=True)
class ApplicationKnowledge:
    """All that a size depends on. users: site -> share, or all under an empty name; round_trips:
    (site, region). availability: None where instances are taken to work always;
    region_availability: where regions are, egress: where it costs nothing."""

    objective: LatencyObjective
    objective_text: str
    risk: float
    availability: float | None
    users: Mapping[str, float]
    trips_per_request: int
    balancing: str
    demand: SizingInput
    round_trips: Mapping[tuple[str, str], RoundTrips]
    regions: tuple[str, ...]
    types: list[TypeKnowledge]
    purchases: tuple[Purchase, ...]
    currency: str
    most_regions: int
    ledger: Ledger
    notes: list[str] = field(default_factory=list)
    region_availability: SizingInput | None = None
    egress: DataToUsers | None = None

    @property
    def region_works(self) -> float:
        """Returns the share of the time in which a region works: the lower bound."""
        if self.region_availability is None:
            return 1.0
        estimate = self.region_availability.estimate
        return estimate.value if estimate.low is None else estimate.low

    @property
    def has_places(self) -> bool:
        """Returns whether the file names sites of users."""
        return "" not in self.users
