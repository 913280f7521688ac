"""From the file of an application to what is known, with the origin of each quantity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading.named_files import hiding_content_elsewhere
from nephoscope.features.census.result import of_files
from nephoscope.features.cost.mix import of_census
from nephoscope.features.cost.quantities import Quantity
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.features.simulation import measured_latency
from nephoscope.features.sizing import drawing
from nephoscope.features.sizing.application import ApplicationSource, SizeType
from nephoscope.features.sizing.capacities import LEAST_VALUES, known_capacity
from nephoscope.features.sizing.imported_spreads import add_imported_spreads
from nephoscope.features.sizing.knowledge import (
    ApplicationKnowledge,
    DataToUsers,
    InstanceSpread,
    Ledger,
    MissingQuantity,
    Purchase,
    RoundTrips,
    TypeKnowledge,
    bought,
)
from nephoscope.features.sizing.prices import KnownPrices, add_prices
from nephoscope.features.sizing.records import SizingInput
from nephoscope.features.sizing.transfer import add_market_types
from nephoscope.features.sla import files as sla_files
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.values import Array

_MS, _NS = 1e-3, 1e9


def resolved(source: ApplicationSource) -> ApplicationKnowledge:
    """Returns what is known. Raises UsageError for files, runs and names that cannot be used."""
    file, ledger = source.file, Ledger()
    rate = file.demand.quantity().estimate("per_s")
    key = "rate_per_s" if file.demand.hours is None else "hours"
    demand = ledger.add("demand", rate, "stated", source.at("demand", key))
    round_trips = _round_trips(source, ledger)
    types = [_type_knowledge(name, kind, source, ledger) for name, kind in file.types.items()]
    prices = KnownPrices.of(file, source.folder, source.store)
    notes = [*prices.notes, *add_market_types(source, types, prices, ledger)]
    notes += add_imported_spreads(source, types, ledger)
    for known in types:
        _complete(known, source, ledger)
        add_prices(known, file, prices, source.at, ledger)
    if not file.users:
        notes.append("The file names no users: round trips are not part of the response time.")
    if file.availability_goal is None:
        notes.append(
            "No `availability` is wanted: instances are taken to work all the time, without spares."
        )
    application = ApplicationKnowledge(
        LatencyObjective.of(file.objective),
        " ".join(file.objective.split()),
        file.risk,
        file.availability_goal,
        file.users or {"": 1.0},
        file.round_trips,
        file.balancing,
        demand,
        round_trips,
        tuple(file.regions),
        types,
        file.purchase,
        prices.currency,
        file.most_regions,
        ledger,
        notes,
        _region_availability(source, ledger),
        _egress(source, ledger),
    )
    _check_regions(application, source)
    return application


def _check_regions(known: ApplicationKnowledge, source: ApplicationSource) -> None:
    """Raises UsageError where even all regions together work too small a share of the time."""
    most = min(known.most_regions, len(known.regions))
    if known.availability is None or 1 - (1 - known.region_works) ** most > known.availability:
        return
    raise UsageError(
        f"{source.at('availability')}: no {most} regions reach {100 * known.availability:g} %, "
        f"where each works {100 * known.region_works:g} % of the time.",
        "Add regions, raise most_regions, or lower the goal.",
    )


def _region_availability(source: ApplicationSource, ledger: Ledger) -> SizingInput | None:
    quantity = source.file.region_availability
    if quantity is None:
        return None
    where = source.at("region_availability")
    return ledger.add("availability of a region", quantity.estimate("ratio"), "stated", where)


def _egress(source: ApplicationSource, ledger: Ledger) -> DataToUsers | None:
    volume = source.file.egress_gb_per_month
    if volume is None:
        return None
    where = source.at("egress_gb_per_month")
    entry = ledger.add("GB to users in a month", volume.estimate("none"), "stated", where)
    prices = {}
    for region, own in source.file.regions.items():
        assert own.egress_price_per_gb is not None
        estimate = own.egress_price_per_gb.estimate("none")
        where = source.at("regions", region, "egress_price_per_gb")
        prices[region] = ledger.add(f"price of a GB from {region}", estimate, "stated", where)
    return DataToUsers(entry, prices)


def _round_trips(source: ApplicationSource, ledger: Ledger) -> dict[tuple[str, str], RoundTrips]:
    """Returns those that are known. A stated one replaces that of the run."""
    known: dict[tuple[str, str], RoundTrips] = {}
    for site, region, values in _measured_round_trips(source):
        seconds, weights = _shape(values)
        value = float(seconds @ weights)
        estimate = Estimate(
            value * _NS, None, None, 0.95, len(values), "ns", "mean of the run's round trips"
        )
        origin = f"run {source.file.rtt_run}, {site} to {region}"
        entry = ledger.add(f"round trip from {site} to {region}", estimate, "measured", origin)
        known[site, region] = RoundTrips(entry, seconds, weights, is_exact=True)
    for region, own in source.file.regions.items():
        for site, quantity in own.rtt_ms.items():
            stated = _scaled(quantity.estimate("ns"), _MS * _NS)
            where = source.at("regions", region, "rtt_ms", site)
            entry = ledger.add(f"round trip from {site} to {region}", stated, "stated", where)
            known[site, region] = RoundTrips(entry, np.array([stated.value / _NS]), np.ones(1))
    return known


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    low, high = (None if e is None else e * factor for e in (estimate.low, estimate.high))
    return replace(estimate, value=estimate.value * factor, low=low, high=high)


def _measured_round_trips(source: ApplicationSource) -> Iterator[tuple[str, str, list[float]]]:
    if source.file.rtt_run is None:
        return
    pairs = measured_latency.latency(source.file.rtt_run, source.store)["measured"]
    missing = True
    for site in source.file.users:
        for region in source.file.regions:
            values = pairs.get(site, {}).get(region) or pairs.get(region, {}).get(site)
            if values:
                missing = False
                yield site, region, values
    if missing:
        raise UsageError(
            f"{source.at('rtt_run')}: run {source.file.rtt_run} has no round trip between a site "
            "of `users` and one of `regions`.",
            "Give them the names of the run's targets.",
        )


_TAIL = (0, 100, 150, 170, 180, 190, 194, 196, 198, 199, 200)
"""Groups of 200 quantiles, finer towards the longest round trips, which decide a p99."""


def _shape(values: list[float]) -> tuple[Array, Array]:
    """Returns means of groups of quantiles in seconds, and their weights."""
    ordered = np.sort(values) * _MS
    ends = np.unique(np.array(_TAIL) * ordered.size // _TAIL[-1])
    groups = np.split(ordered, ends[1:-1])
    weights = np.array([group.size for group in groups]) / ordered.size
    return np.array([group.mean() for group in groups]), weights


def _type_knowledge(
    name: str, kind: SizeType, source: ApplicationSource, ledger: Ledger
) -> TypeKnowledge:
    """Returns what the file itself states of a type's capacity and spread."""
    known = TypeKnowledge(name, kind.workers)
    capacity = known_capacity(name, kind, source, ledger)
    if isinstance(capacity, MissingQuantity):
        known.gaps.append(capacity)
    else:
        known.capacity = capacity
    values: tuple[float, ...] = ()
    if kind.capacity_per_s is not None:
        values = kind.capacity_per_s.values
    if kind.spread is not None:
        where = source.at("types", name, "spread")
        known.spread = InstanceSpread(_spread_input(name, kind.spread, where, ledger))
    elif kind.census is not None:
        known.spread = _spread_of_census(name, kind, source, ledger)
    elif len(values) >= LEAST_VALUES:
        # Speeds scale the rate of service, of which the capacity is what the objective leaves.
        deviation = means.summary(np.log(drawing.services(known, np.array(values)))).s
        method = "standard deviation of the logarithms of service rates"
        low, high = (deviation / end for end in _deviation_factors(len(values)))
        estimate = Estimate(deviation, low, high, 0.95, len(values), "ratio", method)
        where = source.at("types", name, "capacity_per_s")
        entry = ledger.add(f"spread of {name}", estimate, "measured", where)
        known.spread = InstanceSpread(entry, repeated=len(values))
    return known


def _deviation_factors(count: int) -> tuple[float, float]:
    """Returns what a standard deviation is divided by for the ends of its 95 % interval."""
    from scipy.special import gammaincinv

    freedom = count - 1
    high, low = (math.sqrt(2 * gammaincinv(freedom / 2, p) / freedom) for p in (0.975, 0.025))
    return high, low


def _spread_input(name: str, quantity: Quantity, where: str, ledger: Ledger) -> SizingInput:
    return ledger.add(f"spread of {name}", quantity.estimate("ratio"), "stated", where)


def _spread_of_census(
    name: str, kind: SizeType, source: ApplicationSource, ledger: Ledger
) -> InstanceSpread:
    file = source.folder / str(kind.census)
    with hiding_content_elsewhere(file, source.folder, "list of counts"):
        mix = of_census(of_files([file]), kind=kind.instance_type, benchmark=kind.benchmark)
    counts = np.array([float(model.machines or 0) for model in mix.models])
    speeds = np.log([model.speed.value for model in mix.models])
    shares = counts / counts.sum()
    deviation = float(np.sqrt(shares @ (speeds - shares @ speeds) ** 2))
    method = "standard deviation of the logarithms of the models' speeds"
    estimate = Estimate(deviation, None, None, 0.95, int(counts.sum()), "ratio", method)
    origin = f"{kind.census}: {mix.source}"
    entry = ledger.add(f"spread of {name}", estimate, "measured", origin)
    return InstanceSpread(entry, mix=(counts, tuple(model.speed for model in mix.models)))


def _complete(known: TypeKnowledge, source: ApplicationSource, ledger: Ledger) -> None:
    """Adds what the file states for all types, and names what is still missing."""
    file, kind = source.file, source.file.types.get(known.name, SizeType())
    if known.spread is None and file.spread is not None:
        entry = _spread_input(known.name, file.spread, source.at("spread"), ledger)
        known.spread = InstanceSpread(entry)
    if known.spread is None and not any(gap.missing == "spread" for gap in known.gaps):
        reason = f"how much instances of {known.name} differ is not known"
        known.gaps.append(MissingQuantity("spread", reason))
    if known.capacity is None and not any(gap.missing == "capacity" for gap in known.gaps):
        known.gaps.append(MissingQuantity("capacity", f"the capacity of {known.name} is not known"))
    if file.availability_goal is None:
        return
    for purchase in file.purchase:
        availability = _availability(known.name, kind, purchase, source, ledger)
        if availability is not None:
            known.availability[purchase] = availability
        else:
            words = "spot instances" if purchase == "spot" else "instances"
            reason = f"the availability of {words} of {known.name} is not known"
            known.gaps.append(MissingQuantity(bought("availability", purchase), reason))


def _availability(
    name: str, kind: SizeType, purchase: Purchase, source: ApplicationSource, ledger: Ledger
) -> SizingInput | None:
    title = f"availability of instances of {name}"
    if purchase == "spot":
        if kind.spot_availability is None:
            return None
        where = source.at("types", name, "spot_availability")
        estimate = kind.spot_availability.estimate("ratio")
        return ledger.add(f"availability of spot instances of {name}", estimate, "stated", where)
    for own, loc in ((kind, ("types", name)), (source.file, ())):
        if own.instance_availability is not None:
            where = source.at(*loc, "instance_availability")
            return ledger.add(title, own.instance_availability.estimate("ratio"), "stated", where)
        if own.sla is not None:
            return ledger.add(title, _promise(own.sla, source.at(*loc, "sla")), "promised", own.sla)
    return None


def _promise(name: str, where: str) -> Estimate:
    """Returns the availability that a built-in contract promises. Raises UsageError."""
    if name not in sla_files.names():
        raise UsageError(
            f"{where}: there is no built-in contract '{name[:60]}'.",
            f"Contracts: {', '.join(sla_files.names())}.",
        )
    targets = [
        float(objective.target)
        for objective in sla_files.load(name).objectives
        if objective.measure == "availability" and objective.target is not None
    ]
    if not targets:
        raise UsageError(f"{where}: {name} promises no availability.", "Name another contract.")
    return Estimate(min(targets), None, None, 0.95, 0, "ratio", "promise of the contract")
