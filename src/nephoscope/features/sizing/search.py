"""The fewest instances with which a plan of regions keeps an objective, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from nephoscope.core.model import Estimate
from nephoscope.features.cost.work import MONTH_H
from nephoscope.features.sizing.fleet import Fleet
from nephoscope.features.sizing.knowledge import ApplicationKnowledge, Purchase, TypeKnowledge
from nephoscope.stats.redundancy import spares_needed
from nephoscope.stats.statistics.proportions import wilson

MOST_INSTANCES = 2_000
"""Of a region by the values alone. Beyond, an application is planned by parts."""
IsKept = Callable[[int, int], bool]
"""Whether so many misses in so many draws keep the allowed risk."""


PlanKey = tuple[str, Purchase, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A type, how it is bought, and the sites that each region serves."""

    kind: TypeKnowledge
    purchase: Purchase
    served: tuple[tuple[str, tuple[str, ...]], ...]

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
                    if served is not None:
                        yield RegionPlan(kind, purchase, served)


def _served(
    known: ApplicationKnowledge, regions: Sequence[str]
) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
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
    if not all(by_region.values()):
        return None
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
        return int(fleet.misses(served, working).sum())

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
    working = {}
    for region, sites in plan.served:
        users = sum(fleet.known.users[site] for site in sites)

        is_enough = partial(_does, fleet, region, sites, share * users)
        served_per_s = fleet.known.demand.estimate.value * users
        start = min(MOST_INSTANCES, math.ceil(served_per_s / capacity.input.estimate.value))
        if not is_enough(MOST_INSTANCES):
            return None
        working[region] = _least(is_enough, start, MOST_INSTANCES)
    return working


def _does(fleet: Fleet, region: str, sites: tuple[str, ...], most: float, count: int) -> bool:
    return bool(fleet.share_beyond(region, sites, count)[0] <= most)


def spare(
    plan: RegionPlan, known: ApplicationKnowledge, working: Mapping[str, int]
) -> dict[str, int]:
    """Returns the spare instances by region: with them enough work for the wanted share of time.

    The lower bound of the instances' availability counts, and failures are independent. Raises
    Refused where no number of them would do.
    """
    if known.availability is None:
        return dict.fromkeys(working, 0)
    entry = plan.kind.availability[plan.purchase].estimate
    up = entry.value if entry.low is None else entry.low
    wanted = known.availability ** (1 / len(working))
    return {region: spares_needed(count, up, wanted) for region, count in working.items()}


def cost(plan: RegionPlan, counts: Mapping[str, int], currency: str) -> Estimate:
    """Returns the price of a month with the interval of the prices."""
    prices = {region: plan.kind.prices[region, plan.purchase].estimate for region in counts}
    value = math.fsum(MONTH_H * counts[region] * prices[region].value for region in counts)
    below, above = (
        math.hypot(
            *(
                MONTH_H * counts[region] * (price.value - end)
                for region, price in prices.items()
                if (end := price.low if is_low else price.high) is not None
            )
        )
        for is_low in (True, False)
    )
    is_exact = all(price.low is None for price in prices.values())
    low, high = (None, None) if is_exact else (value - below, value + above)
    method = f"{MONTH_H:g} h at the price of an hour{'' if is_exact else ', interval as stated'}"
    return Estimate(value, low, high, 0.95, 0, currency, method)


def _price(plan: RegionPlan, region: str) -> float:
    return plan.kind.prices[region, plan.purchase].estimate.value


def counts_of(sized: Sized, known: ApplicationKnowledge) -> dict[str, int]:
    """Returns the instances by region, with those that may fail. Raises Refused."""
    extra = spare(sized.plan, known, sized.working)
    return {region: count + extra[region] for region, count in sized.working.items()}
