"""Catalogues of server types with planted rates, without the files that they are imported from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope.core.model import Better
from nephoscope.features.market.records import PricedOffer
from nephoscope.features.market.works import WORKS
from nephoscope.store.market import catalogue
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import MarketMetric, ServerType, TypeReading

METRIC = {work.name: work.metric for work in WORKS}
UNITS = {"geekbench": "points", "sha256": "bytes_per_s"}


def server(name: str, rates: Mapping[str, float], **facts: Any) -> TypeReading:
    """Returns a type PROVIDER/NAME with rates of works; `latency` is a time."""
    provider, _, kind = name.partition("/")
    reading = TypeReading(ServerType(provider, kind, "made", "1", **facts))
    for work, rate in rates.items():
        metric = "membench/latency kib=largest" if work == "latency" else METRIC[work]
        unit = "ns" if work == "latency" else UNITS.get(work, "per_s")
        better = Better.LOWER if work == "latency" else Better.HIGHER
        reading.figures.append((metric, rate, 0))
        reading.metrics[metric] = MarketMetric(unit, better)
    return reading


def catalogue_of(store: Path, servers: Sequence[TypeReading]) -> MarketCatalogue:
    """Returns the catalogue of a store with these types."""
    folder = catalogue.folder_of(store)
    folder.mkdir(parents=True, exist_ok=True)
    catalogue.write_part(folder, 1, servers)
    present = {reading.type.key: "1" for reading in servers}
    return catalogue.merge(folder, "made", present, {"tool": "Spare Cores"})


def offer(name: str, price: float, region: str = "r1", **more: Any) -> PricedOffer:
    """Returns the price of PROVIDER/TYPE."""
    provider, _, kind = name.rpartition("/")
    values = {"currency": "USD", "spot_per_h": None, "date": "2026-01-01", "source": "made"}
    return PricedOffer(provider, kind, region, on_demand_per_h=price, **{**values, **more})
