"""The fewest instances with which a plan of regions keeps an objective, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from nephoscope.core.model import Estimate
from nephoscope.features.cost.work import MONTH_H
from nephoscope.features.sizing.fleet import Fleet
from nephoscope.features.sizing.knowledge import ApplicationKnowledge, Purchase, TypeKnowledge
from nephoscope.stats.redundancy import spares_needed
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Array

MOST_INSTANCES = 2_000
"""Of a region by the values alone. Beyond, an application is planned by parts."""
IsKept = Callable[[int, int], bool]
"""Whether so many misses in so many draws keep the allowed risk."""


ServedSites = tuple[tuple[str, tuple[str, ...]], ...]
PlanKey = tuple[str, Purchase, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A type, how it is bought, and the sites that each region serves.

    failures: regions that may fail at one time. failed: the sites that each remaining region serves
    then, for all regions that may.
    """

    kind: TypeKnowledge
    purchase: Purchase
    served: ServedSites
    failures: int = 0
    failed: tuple[ServedSites, ...] = ()

    @property
    def regions(self) -> tuple[str, ...]:
        """Returns the regions."""
        return tuple(region for region, _ in self.served)

    @property
    def key(self) -> PlanKey:
        """Type, purchase and regions."""
        return self.kind.name, self.purchase, self.regions


@dataclass(frozen=True, slots=True)
class Sized:
    """A plan with its instances that have to work, by region, and the draws that miss."""

    plan: RegionPlan
    working: Mapping[str, int]
    misses: int
    draws: int


def plans(known: ApplicationKnowledge) -> Iterator[RegionPlan]:
    """Yields each type in each set of regions; users go to the region with the least round trip.

    A set of which a region would serve nobody is not among them, nor one that some users have no
    round trip to.
    """
    for kind in known.types:
        for purchase in known.purchases:
            priced = [name for name in known.regions if (name, purchase) in kind.prices]
            for count in range(1, known.most_regions + 1):
                for regions in combinations(priced, count):
                    served = _served(known, regions)
                    failures = failures_to_survive(known, count)
                    if served is None or failures is None or not all(own for _, own in served):
                        continue
                    failed = _failed(known, regions, failures)
                    if failed is not None:
                        yield RegionPlan(kind, purchase, served, failures, failed)


def failures_to_survive(known: ApplicationKnowledge, regions: int) -> int | None:
    """Returns how many of some regions may fail at one time, so that the share of the time in which
    no more of them do reaches the wanted availability; None where the failure of all does not."""
    if known.region_availability is None:
        return 0
    assert known.availability is not None
    return next(
        (
            failures
            for failures in range(regions)
            if share_of_time(known, regions, failures) > known.availability
        ),
        None,
    )


def share_of_time(known: ApplicationKnowledge, regions: int, failures: int) -> float:
    """Returns the share of the time in which at most so many of some regions fail."""
    works = known.region_works
    return math.fsum(
        math.comb(regions, failed) * (1 - works) ** failed * works ** (regions - failed)
        for failed in range(failures + 1)
    )


def _failed(
    known: ApplicationKnowledge, regions: Sequence[str], failures: int
) -> tuple[ServedSites, ...] | None:
    """Returns who serves whom where up to so many regions fail; None where somebody is left out."""
    result = []
    for remaining in range(len(regions) - failures, len(regions)):
        for works in combinations(regions, remaining):
            served = _served(known, works)
            if served is None:
                return None
            result.append(tuple((region, sites) for region, sites in served if sites))
    return tuple(result)


def _served(known: ApplicationKnowledge, regions: Sequence[str]) -> ServedSites | None:
    """Returns the sites by region, each at the nearest; None where a site has no round trip."""
    if not known.has_places:
        return ((regions[0], tuple(known.users)),) if len(regions) == 1 else None
    by_region: dict[str, list[str]] = {region: [] for region in regions}
    for site, share in known.users.items():
        trips = {
            region: known.round_trips[site, region].input.estimate.value
            for region in regions
            if (site, region) in known.round_trips
        }
        if share > 0 and not trips:
            return None
        if share > 0:
            by_region[min(trips, key=lambda region: trips[region])].append(site)
    return tuple((region, tuple(sites)) for region, sites in by_region.items())


def risk_kept(risk: float, *, bounded: bool) -> IsKept:
    """Returns whether the share of misses is at most the risk; bounded: its 95 % upper bound."""

    def is_kept(misses: int, draws: int) -> bool:
        if bounded:
            high = wilson(misses, draws).high
            return high is not None and high <= risk
        return misses <= risk * draws

    return is_kept


def sized(
    fleet: Fleet,
    plan: RegionPlan,
    is_kept: IsKept,
    most: Mapping[str, int],
    start: Mapping[str, int],
) -> Sized | None:
    """Returns the cheapest instances that keep the risk; None where `most` of them do not.

    start: where the search begins. All regions grow by the least common factor; then each, the
    dearest first, loses what it does not need.
    """
    served = dict(plan.served)

    def misses(working: Mapping[str, int]) -> int:
        return int(missed(fleet, plan, working).sum())

    def keeps(working: Mapping[str, int]) -> bool:
        return is_kept(misses(working), fleet.draws.count)

    if not keeps(most):
        return None
    largest = max(start.values())

    def grown(count: int) -> dict[str, int]:
        ratio = count / largest
        return {r: min(most[r], math.ceil(ratio * begin - 1e-9)) for r, begin in start.items()}

    top = max(math.ceil(largest * most[region] / begin) for region, begin in start.items())
    working = grown(_least(lambda count: keeps(grown(count)), largest, top))
    for region in sorted(served, key=lambda name: -_price(plan, name)) if len(served) > 1 else ():
        is_enough = partial(_keeps_with, keeps, working, region)
        working = {**working, region: _least(is_enough, working[region], working[region])}
    return Sized(plan, working, misses(working), fleet.draws.count)


def missed(fleet: Fleet, plan: RegionPlan, working: Mapping[str, int]) -> Array:
    """Returns in which draws the objective is missed, with all regions or without those that may
    fail."""
    result = fleet.misses(dict(plan.served), working)
    for served in plan.failed:
        result = np.logical_or(result, fleet.misses(dict(served), working))
    return result


def _keeps_with(
    keeps: Callable[[Mapping[str, int]], bool], working: Mapping[str, int], region: str, count: int
) -> bool:
    return keeps({**working, region: count})


def _least(is_enough: Callable[[int], bool], start: int, most: int) -> int:
    """Returns the least count that is enough, of which `most` is; tries those near `start` first.

    Steps double until the answer is between two counts, which are halved then.
    """
    low, high, step = 0, most, max(1, start // 32)
    guess = min(start, most - 1)
    while low < guess < high:
        if is_enough(guess):
            high, guess = guess, guess - step
        else:
            low, guess = guess, guess + step
        step *= 2
        if low > 0 and high < most:
            break
    while high - low > 1:
        guess = (low + high) // 2
        low, high = (low, guess) if is_enough(guess) else (guess, high)
    return high


def nominal(fleet: Fleet, plan: RegionPlan) -> dict[str, int] | None:
    """Returns the instances that would do if the values were exact; None where none would.

    fleet: with one draw. Each region keeps the objective for its own users.
    """
    share, capacity = 1 - fleet.known.objective.share_ratio, fleet.kind.capacity
    assert capacity is not None
    working: dict[str, int] = {}
    for region, sites in sorted({own for served in (plan.served, *plan.failed) for own in served}):
        users = sum(fleet.known.users[site] for site in sites)

        is_enough = partial(_does, fleet, region, sites, share * users)
        served_per_s = fleet.known.demand.estimate.value * users
        start = min(MOST_INSTANCES, math.ceil(served_per_s / capacity.input.estimate.value))
        if not is_enough(MOST_INSTANCES):
            return None
        working[region] = max(working.get(region, 0), _least(is_enough, start, MOST_INSTANCES))
    return working


def _does(fleet: Fleet, region: str, sites: tuple[str, ...], most: float, count: int) -> bool:
    return bool(fleet.share_beyond(region, sites, count)[0] <= most)


def spare(
    plan: RegionPlan, known: ApplicationKnowledge, working: Mapping[str, int]
) -> dict[str, int]:
    """Returns the spare instances by region: with them enough work for the wanted share of time.

    The lower bound of the instances' availability counts, and failures are independent; those of
    regions leave less time for them. Raises Refused where no number of them would do.
    """
    if known.availability is None:
        return dict.fromkeys(working, 0)
    entry = plan.kind.availability[plan.purchase].estimate
    up = entry.value if entry.low is None else entry.low
    regions = share_of_time(known, len(working), plan.failures)
    wanted = (known.availability / regions) ** (1 / len(working))
    return {region: spares_needed(count, up, wanted) for region, count in working.items()}


def cost(plan: RegionPlan, counts: Mapping[str, int], known: ApplicationKnowledge) -> Estimate:
    """Returns the cost of a month, data to users included, with the interval of the prices and of
    the volume, whose errors are independent."""
    parts = [
        (MONTH_H * count, plan.kind.prices[region, plan.purchase].estimate)
        for region, count in counts.items()
    ]
    method = f"{MONTH_H:g} h at the price of an hour"
    if known.egress is not None:
        volume = known.egress.volume.estimate
        share = {region: sum(known.users[site] for site in sites) for region, sites in plan.served}
        prices = {region: known.egress.prices[region].estimate for region in share}
        parts += [(volume.value * share[region], price) for region, price in prices.items()]
        # The volume is part of the value already: only its error is added.
        mean = math.fsum(share[region] * price.value for region, price in prices.items())
        low, high = (
            None if end is None else end - volume.value for end in (volume.low, volume.high)
        )
        parts.append((mean, replace(volume, value=0.0, low=low, high=high)))
        method = f"{method}, and data to users"
    value = math.fsum(count * price.value for count, price in parts)
    below, above = (
        math.hypot(
            *(
                count * (price.value - end)
                for count, price in parts
                if (end := price.low if is_low else price.high) is not None
            )
        )
        for is_low in (True, False)
    )
    is_exact = all(price.low is None for _, price in parts)
    low, high = (None, None) if is_exact else (value - below, value + above)
    method = f"{method}{'' if is_exact else ', interval as stated'}"
    return Estimate(value, low, high, 0.95, 0, known.currency, method)


def egress_cost(plan: RegionPlan, known: ApplicationKnowledge) -> float | None:
    """Returns what the data to users cost in a month; None where nothing is stated."""
    if known.egress is None:
        return None
    return known.egress.volume.estimate.value * math.fsum(
        known.egress.prices[region].estimate.value * known.users[site]
        for region, sites in plan.served
        for site in sites
    )


def _price(plan: RegionPlan, region: str) -> float:
    return plan.kind.prices[region, plan.purchase].estimate.value


def counts_of(sized: Sized, known: ApplicationKnowledge) -> dict[str, int]:
    """Returns the instances by region, with those that may fail. Raises Refused."""
    extra = spare(sized.plan, known, sized.working)
    return {region: count + extra[region] for region, count in sized.working.items()}
