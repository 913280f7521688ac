"""Which type, how many, where, for how much: the deployments that keep an objective."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nephoscope.features.sizing import information, search, sentences
from nephoscope.features.sizing.application import ApplicationSource
from nephoscope.features.sizing.drawing import InputDraws, draw, values_alone
from nephoscope.features.sizing.fleet import Fleet
from nephoscope.features.sizing.knowledge import (
    ApplicationKnowledge,
    MissingQuantity,
    Purchase,
    TypeKnowledge,
)
from nephoscope.features.sizing.records import (
    MeasurementValue,
    SizeAnalysis,
    SizedDeployment,
    UnknownDeployment,
)
from nephoscope.features.sizing.resolving import resolved
from nephoscope.features.sizing.search import RegionPlan, Sized
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.stats.statistics.values import Refused

_DRAWS, _MISSES = 2_000, 20
"""Draws, and those of them that miss at the allowed risk: fewer would not bound it."""
_MOST_SIZED = 40
"""Plans that are simulated, those that are cheapest by the values alone."""
_RANKED = 10
_COMPARED = 3
"""Deployments among which a measurement may change the choice."""


@dataclass(slots=True)
class _Search:
    """The state of a search. fleets: by type, under all draws; alone: under the values alone."""

    known: ApplicationKnowledge
    draws: InputDraws
    single: InputDraws
    fleets: dict[str, Fleet] = field(default_factory=dict)
    alone: dict[str, Fleet] = field(default_factory=dict)

    def fleet(self, kind: TypeKnowledge) -> Fleet:
        """Returns the fleet of a type under all draws."""
        if kind.name not in self.fleets:
            self.fleets[kind.name] = Fleet(self.known, kind, self.draws)
        return self.fleets[kind.name]

    def least(self, plan: RegionPlan) -> tuple[float, dict[str, int]] | None:
        """Returns the cost and the working instances by the values alone; None where none do."""
        kind = plan.kind
        if kind.name not in self.alone:
            self.alone[kind.name] = Fleet(self.known, kind, self.single)
        working = search.nominal(self.alone[kind.name], plan)
        if working is None:
            return None
        counts = working
        if plan.purchase in kind.availability:
            spare = search.spare(plan, self.known, working)
            counts = {region: count + spare[region] for region, count in working.items()}
        return search.cost(plan, counts, self.known).value, working


def analyse(source: ApplicationSource) -> SizeAnalysis:
    """Returns the deployments, or what has to be measured first. Raises UsageError."""
    known = resolved(source)
    draws = max(_DRAWS, math.ceil(_MISSES / known.risk))
    state = _Search(known, draw(known, draws), values_alone(known))
    possible, unknown, notes = _possible(state)
    answers: list[tuple[float, Sized]] = []
    for place, (least_cost, plan, working) in enumerate(possible):
        enough = sorted(price for price, _ in answers)[_RANKED - 1 : _RANKED]
        if place >= _MOST_SIZED or (enough and least_cost > enough[0]):
            break
        sized = _sized(state, plan, working)
        if isinstance(sized, UnknownDeployment):
            unknown.append(replace(sized, least_cost_per_month=least_cost))
        else:
            counts = search.counts_of(sized, known)
            answers.append((search.cost(plan, counts, known).value, sized))
    answers.sort(key=lambda answer: (answer[0], answer[1].misses))
    deployments = tuple(_deployment(known, sized) for _, sized in answers[:_RANKED])
    costs = source.file.measurement_costs
    compared = [sized for _, sized in answers[:_COMPARED]]
    measurements = information.values(known, compared, costs) if compared else []
    best_cost = answers[0][0] if answers else None
    unknown = _possibly_cheaper(unknown, best_cost)
    measurements += _of_unknown(known, unknown, best_cost, source)
    measurements.sort(key=lambda each: each.cost - each.saving_per_month)
    analysis = SizeAnalysis(
        source.file.application,
        "",
        bool(deployments),
        known.objective_text,
        known.risk,
        known.availability,
        known.currency,
        deployments,
        len(answers),
        tuple(unknown),
        tuple(measurements),
        "",
        tuple(known.ledger.inputs),
        draws,
        (*known.notes, *notes),
    )
    return replace(
        analysis,
        sentence=sentences.verdict(analysis),
        recommended_measurement=sentences.recommendation(analysis),
    )


def _possible(
    state: _Search,
) -> tuple[list[tuple[float, RegionPlan, dict[str, int]]], list[UnknownDeployment], list[str]]:
    """Returns the plans by their cost of the values alone, and those that lack a value."""
    known = state.known
    possible: list[tuple[float, RegionPlan, dict[str, int]]] = []
    plans = list(search.plans(known))
    lacking = _lacking(known, {(plan.kind.name, plan.purchase) for plan in plans})
    hopeless: list[RegionPlan] = []
    for plan in plans:
        kind = plan.kind
        try:
            least = state.least(plan) if kind.capacity is not None else None
        except Refused as why:
            gap = UnknownDeployment(
                kind.name, plan.purchase, f"{kind.name}: {why}", "availability", None, ()
            )
            lacking.setdefault((kind.name, plan.purchase), gap)
            continue
        own = lacking.get((kind.name, plan.purchase))
        if own is not None and least is not None:
            cheapest = min(least[0], own.least_cost_per_month or least[0])
            lacking[kind.name, plan.purchase] = replace(own, least_cost_per_month=cheapest)
        elif own is None and least is not None:
            possible.append((least[0], plan, least[1]))
        elif own is None:
            hopeless.append(plan)
    possible.sort(key=lambda entry: entry[0])
    notes = [sentences.hopeless(hopeless, known.objective_text)] if hopeless else []
    return possible, list(lacking.values()), notes


def _lacking(
    known: ApplicationKnowledge, planned: Collection[tuple[str, Purchase]]
) -> dict[tuple[str, Purchase], UnknownDeployment]:
    """Returns the types that lack a value, by type and purchase. planned: those that have plans."""
    lacking = {}
    for kind in known.types:
        for purchase in known.purchases:
            gaps = kind.gaps_of(purchase)
            if not gaps and (kind.name, purchase) not in planned:
                reason = f"no region with a price of {kind.name} has round trips from all users"
                gaps = [MissingQuantity(sentences.ROUND_TRIPS, reason)]
            if gaps:
                lacking[kind.name, purchase] = UnknownDeployment(
                    kind.name, purchase, gaps[0].reason, gaps[0].missing, None, _ids(known, kind)
                )
    return lacking


def _sized(
    state: _Search, plan: RegionPlan, working: Mapping[str, int]
) -> Sized | UnknownDeployment:
    """Returns the instances of a plan, or why the risk cannot be bounded."""
    known, fleet = state.known, state.fleet(plan.kind)
    most = {region: 3 * count + 2 for region, count in working.items()}
    is_kept = search.risk_kept(known.risk, bounded=True)
    sized = search.sized(fleet, plan, is_kept, most, working)
    if sized is not None:
        return sized
    missed = wilson(int(search.missed(fleet, plan, most).sum()), state.draws.count)
    open_input = information.critical(known, fleet, plan, most)
    reason = sentences.unbounded(plan, missed, most, known.risk, open_input.name)
    ids = _ids(known, plan.kind, plan)
    return UnknownDeployment(plan.kind.name, plan.purchase, reason, open_input.name, None, ids)


def _deployment(known: ApplicationKnowledge, sized: Sized) -> SizedDeployment:
    plan = sized.plan
    counts = search.counts_of(sized, known)
    missed = wilson(sized.misses, sized.draws)
    missed = replace(missed, method=f"{sized.draws} draws of inputs and instances; Wilson interval")
    return SizedDeployment(
        plan.kind.name,
        plan.purchase,
        counts,
        {region: count - sized.working[region] for region, count in counts.items()},
        search.cost(plan, counts, known),
        missed,
        {site: region for region, sites in plan.served for site in sites if site},
        _ids(known, plan.kind, plan),
        plan.failures,
        search.egress_cost(plan, known),
    )


def _ids(
    known: ApplicationKnowledge, kind: TypeKnowledge, plan: RegionPlan | None = None
) -> tuple[int, ...]:
    """Returns the ids of all inputs of a plan; without one those of the type."""
    ids = {known.demand.id}
    if kind.capacity is not None:
        ids.add(kind.capacity.input.id)
    if kind.spread is not None:
        ids.add(kind.spread.input.id)
    if plan is not None:
        if plan.purchase in kind.availability:
            ids.add(kind.availability[plan.purchase].id)
        if known.region_availability is not None:
            ids.add(known.region_availability.id)
        if known.egress is not None:
            ids |= {known.egress.volume.id, *(known.egress.prices[own].id for own in plan.regions)}
        for region, sites in (*plan.served, *(own for failed in plan.failed for own in failed)):
            ids.add(kind.prices[region, plan.purchase].id)
            ids |= {
                known.round_trips[site, region].input.id
                for site in sites
                if (site, region) in known.round_trips
            }
    return tuple(sorted(ids))


def _possibly_cheaper(
    unknown: Sequence[UnknownDeployment], best_cost: float | None
) -> list[UnknownDeployment]:
    """Returns the unknown deployments that may be cheaper than the best, the cheapest of a type."""
    cheapest: dict[tuple[str, str], UnknownDeployment] = {}
    for each in sorted(unknown, key=_least_cost):
        if best_cost is None or each.least_cost_per_month is None or _least_cost(each) < best_cost:
            cheapest.setdefault((each.type, each.purchase), each)
    return list(cheapest.values())


def _least_cost(unknown: UnknownDeployment) -> float:
    cost = unknown.least_cost_per_month
    return float("inf") if cost is None else cost


def _of_unknown(
    known: ApplicationKnowledge,
    unknown: Sequence[UnknownDeployment],
    best_cost: float | None,
    source: ApplicationSource,
) -> list[MeasurementValue]:
    """Returns the measurements that unknown deployments lack."""
    kinds = {kind.name: kind for kind in known.types}
    result = []
    for each in unknown:
        kind, quantity = kinds[each.type], each.missing
        costs = source.file.measurement_costs
        name = sentences.named(each)
        price = 0.0
        if "capacity" in quantity or "spread" in quantity:
            word = "spread" if "spread" in quantity else "capacity"
            price = information.measurement_cost(kind, word, costs)
        cheaper = each.least_cost_per_month is not None and best_cost is not None
        saving = best_cost - each.least_cost_per_month if cheaper else 0.0  # type: ignore[operator]
        result.append(MeasurementValue(name, price, None, saving, each.inputs))
    return result
