"""Documents of the market: server types by price and performance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PricedOffer:
    """The price of an hour of a server type in a region. date: of the price. source: of it."""

    provider: str
    type: str
    region: str
    currency: str
    on_demand_per_h: float | None
    spot_per_h: float | None
    date: str
    source: str


@dataclass(frozen=True, slots=True)
class MarketRow:
    """A server type in a region.

    performance: of one work, in its unit; units of work per hour of several. cost_per_unit: price
    of what the table's `unit_of_work` names; None without a price. on_front: no type has more
    performance for the same price or less. metrics: further figures.
    """

    provider: str
    type: str
    region: str
    cpus: int | None
    memory_bytes: int | None
    architecture: str
    cpu_model: str
    gpus: int
    gpu_model: str
    price_per_h: float | None
    price_date: str
    performance: float
    cost_per_unit: float | None
    on_front: bool
    metrics: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class MarketPoint:
    """A row as a point of the scatter. name: PROVIDER/TYPE and region."""

    name: str
    price_per_h: float
    performance: float
    on_front: bool


@dataclass(frozen=True, slots=True)
class MarketTable:
    """Server types that meet all conditions, the cheapest for a unit of work first.

    title: of the work. unit: of `performance`. unit_of_work: what `cost_per_unit` is the price of.
    metrics: unit of each further figure. considered: types that were imported. left_out: reason ->
    types. lacks: what the figures lack. rows_in_all: before --top. points: the front, and the
    cheapest rows of those besides.
    """

    title: str
    unit: str
    unit_of_work: str
    currency: str
    purchase: str
    rows: tuple[MarketRow, ...]
    rows_in_all: int
    considered: int
    left_out: Mapping[str, int]
    metrics: Mapping[str, str] = field(default_factory=dict)
    points: tuple[MarketPoint, ...] = ()
    sources: tuple[str, ...] = ()
    lacks: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MarketListing:
    """The works and metrics that can be named. works: name -> metric; missing ones are left out."""

    works: Mapping[str, str]
    metrics: Mapping[str, str]
    types: int
    figures: int
    lacks: str = ""
