"""Planted worlds: fleets of which the truth is known, and noisy measurements of them as a file.

Nothing here uses the code of `nephoscope size`: the truth has formulas of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.stats import beta, binom

Array = NDArray[np.float64]
LIMIT_S, BEYOND, GOAL, KEPT = 0.05, 0.01, 0.999, 0.95
_MONTH_H = 730


@dataclass(frozen=True)
class TrueType:
    """Median capacity at the objective without a network, spread of its logarithm, price."""

    capacity: float
    spread: float
    availability: float
    price: Mapping[str, float]


@dataclass(frozen=True)
class World:
    """The truth. trips_s: (site, region)."""

    seed: int
    rate: float
    users: Mapping[str, float]
    trips_s: Mapping[tuple[str, str], float]
    types: Mapping[str, TrueType]
    gb_per_month: float = 0.0
    gb_prices: Mapping[str, float] = field(default_factory=dict)

    @property
    def regions(self) -> list[str]:
        return sorted({region for _, region in self.trips_s})


def draw_world(seed: int, types_in_all: int = 4, places: int = 3) -> World:
    """Returns a world of so many types; places: regions, and sites of users."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([4, 3, 3][:places])
    trips = {
        (f"site{site}", f"region{region}"): float(
            rng.uniform(0.001, 0.006) if site == region else rng.uniform(0.012, 0.030)
        )
        for site, region in product(range(places), range(places))
    }
    types = {}
    for number in range(types_in_all):
        capacity = float(np.exp(rng.uniform(np.log(300), np.log(900))))
        price = capacity / 5_000 * rng.uniform(0.85, 1.2)
        types[f"type{number}"] = TrueType(
            capacity,
            float(rng.uniform(0.02, 0.08)),
            float(1 - 10 ** rng.uniform(-3.3, -2)),
            {f"region{region}": round(price * rng.uniform(1, 1.15), 4) for region in range(places)},
        )
    rate = float(np.exp(rng.uniform(np.log(10_000), np.log(40_000))))
    return World(seed, rate, {f"site{n}": float(s) for n, s in enumerate(shares)}, trips, types)


def with_data_to_users(world: World) -> World:
    """Returns the world with traffic that costs about as much as the instances."""
    rng = np.random.default_rng([world.seed, 3])
    prices = {region: round(float(rng.uniform(0.02, 0.12)), 3) for region in world.regions}
    return replace(world, gb_per_month=round(world.rate), gb_prices=prices)


def measured(world: World, instances: int = 30, noise: float = 0.01) -> dict[str, Any]:
    """Returns what measurements of a world show, as the file of an application.

    instances: of each type, of which the capacity is measured. noise: relative error of one
    measurement of a capacity, a rate or a round trip.
    """
    rng = np.random.default_rng([world.seed, 1])

    def seen(value: float, digits: int = 4) -> dict[str, float]:
        value *= float(np.exp(noise * rng.standard_normal()))
        return {
            "value": round(value, digits),
            "low": round(value * math.exp(-1.96 * noise), digits),
            "high": round(value * math.exp(1.96 * noise), digits),
        }

    shares = {site: round(share, 4) for site, share in world.users.items()}
    shares["site0"] = round(1 - sum(shares.values()) + shares["site0"], 4)
    regions: dict[str, dict[str, Any]] = {
        region: {"rtt_ms": {site: seen(1e3 * world.trips_s[site, region]) for site in world.users}}
        for region in world.regions
    }
    for region, price in world.gb_prices.items():
        regions[region]["egress_price_per_gb"] = price
    return {
        **({"egress_gb_per_month": world.gb_per_month} if world.gb_prices else {}),
        "application": f"world {world.seed}",
        "demand": {"rate_per_s": seen(world.rate)},
        "objective": "p99 < 50ms",
        "availability": GOAL,
        "users": shares,
        "regions": regions,
        "types": {
            name: _measured_type(kind, rng, instances, noise) for name, kind in world.types.items()
        },
    }


def _measured_type(
    kind: TrueType, rng: np.random.Generator, instances: int, noise: float
) -> dict[str, Any]:
    ratios = rng.standard_normal(instances)
    capacities = _services(kind, ratios) - _needed()
    capacities *= np.exp(noise * rng.standard_normal(instances))
    # So many hours of instances were watched; the interval is Clopper's and Pearson's.
    hours = 20_000
    down = int(rng.binomial(hours, 1 - kind.availability))
    low = float(beta.ppf(0.025, hours - down, down + 1))
    high = min(0.999999, float(beta.ppf(0.975, hours - down + 1, down))) if down else 0.999999
    return {
        "capacity_per_s": [round(float(each), 2) for each in capacities],
        "regional_price_per_h": dict(kind.price),
        "instance_availability": {"value": (hours - down) / hours, "low": low, "high": high},
    }


def write(values: Mapping[str, Any], folder: Path) -> Path:
    file = folder / "app.yaml"
    file.write_text(yaml.safe_dump(dict(values), sort_keys=False))
    return file


def kept_ratio(world: World, kind: TrueType, counts: Mapping[str, int], draws: int) -> float:
    """Returns the share of draws of the instances in which the objective holds for long enough.

    An instance answers as M/M/1 does: its response time is exponential with the rate that is spare.
    Each number of failed instances has its binomial probability.
    """
    rng = np.random.default_rng([world.seed, 2])
    sites = served(world, list(counts))
    tables = []
    for region, count in counts.items():
        ratios = rng.standard_normal((draws, count))
        services = _services(kind, ratios)
        failures = range(min(count, int(binom.ppf(1 - 1e-7, count, 1 - kind.availability)) + 1))
        late = [_late(world, services[:, failed:], region, sites[region]) for failed in failures]
        masses = binom.pmf(failures, count, 1 - kind.availability).tolist()
        tables.append(list(zip(masses, late, strict=True)))
    held = np.zeros(draws)
    for cells in product(*tables):
        probability = np.prod([mass for mass, _ in cells])
        held += probability * (sum(own for _, own in cells) <= BEYOND)
    return float(np.mean(held >= GOAL))


def held_ratio(
    world: World, kind: TrueType, counts: Mapping[str, int], draws: int, failures: int = 0
) -> float:
    """Returns the least `kept_ratio` over all ways in which so many regions, or fewer, fail."""
    return min(
        kept_ratio(world, kind, {region: counts[region] for region in works}, draws)
        for remaining in range(len(counts) - failures, len(counts) + 1)
        for works in combinations(counts, remaining)
    )


def _services(kind: TrueType, ratios: Array) -> Array:
    """Returns services per second of instances whose speeds have these normal scores."""
    return (kind.capacity + _needed()) * np.exp(kind.spread * ratios)


def _needed() -> float:
    """Returns the services per second beyond the rate with which 1 % exceed the limit."""
    return math.log(1 / BEYOND) / LIMIT_S


def _late(world: World, services: Array, region: str, sites: Sequence[str]) -> Array:
    rate = world.rate * sum(world.users[site] for site in sites) / max(1, services.shape[1])
    spare = services - rate
    late = np.zeros(services.shape[0])
    for site in sites:
        room = max(0.0, LIMIT_S - world.trips_s[site, region])
        beyond = np.where(spare > 0, np.exp(-np.maximum(spare, 0) * room), 1.0)
        late += world.users[site] * beyond.mean(axis=1)
    return late


def served(world: World, regions: Sequence[str]) -> dict[str, list[str]]:
    """Returns the sites of each region: those that are nearest to it."""
    sites: dict[str, list[str]] = {region: [] for region in regions}
    for site in world.users:
        nearest = min(regions, key=lambda region, site=site: world.trips_s[site, region])
        sites[nearest].append(site)
    return sites


def cost(kind: TrueType, counts: Mapping[str, int], world: World | None = None) -> float:
    """Returns the price of a month, with that of the data to users of a world."""
    price = _MONTH_H * sum(count * kind.price[region] for region, count in counts.items())
    if world is None or not world.gb_prices:
        return price
    return price + world.gb_per_month * sum(
        world.gb_prices[region] * world.users[site]
        for region, sites in served(world, list(counts)).items()
        for site in sites
    )


def clairvoyant(
    world: World, draws: int = 400, failures: int = 0
) -> tuple[float, str, dict[str, int]]:
    """Returns cost, type and instances of the cheapest deployment that holds in 95 % of the draws.

    It knows the truth, but not which instances it gets. failures: regions that may fail.
    """
    best: tuple[float, str, dict[str, int]] | None = None
    for name, kind in world.types.items():
        for count in range(1 + failures, 4):
            for regions in combinations(world.regions, count):
                if not all(served(world, regions).values()):
                    continue
                bound = np.inf if best is None else best[0]
                for counts in _cheapest(world, kind, regions, bound, draws, failures):
                    price = cost(kind, counts, world)
                    if best is None or price < best[0]:
                        best = price, name, counts
    assert best is not None
    return best


def _cheapest(
    world: World, kind: TrueType, regions: Sequence[str], bound: float, draws: int, failures: int
) -> Iterator[dict[str, int]]:
    """Yields the best instances of a type in some regions, if they may cost less than a bound."""
    fewest = {
        region: max(1, int(world.rate * sum(map(world.users.__getitem__, sites)) / kind.capacity))
        for region, sites in served(world, regions).items()
    }
    if 0.75 * cost(kind, fewest, world) > bound:
        return
    counts = dict(fewest)
    while held_ratio(world, kind, counts, draws, failures) < KEPT:
        if cost(kind, counts, world) > bound:
            return
        counts = {region: n + max(1, n // 30) for region, n in counts.items()}
    for _ in range(2):
        for region in sorted(regions, key=lambda each: -kind.price[each]):
            low, high = 0, counts[region]
            while high - low > 1:
                middle = (low + high) // 2
                less = {**counts, region: middle}
                if held_ratio(world, kind, less, draws, failures) >= KEPT:
                    high = middle
                else:
                    low = middle
            counts[region] = high
    yield counts
