"""What it is worth to know an input exactly: the expected value of perfect information on it.

An input is set to one of its possible values, the best deployment is chosen anew, and its cost is
compared with that of the deployment that is best now. The mean over the values is what the
measurement could save at most; the share of values with another best deployment is the probability
that it changes the answer. Source: Raiffa & Schlaifer, Applied Statistical Decision Theory (1961).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nephoscope.features.sizing import search
from nephoscope.features.sizing.application import MeasurementCosts
from nephoscope.features.sizing.drawing import InputDraws, Sample, draw
from nephoscope.features.sizing.fleet import Fleet
from nephoscope.features.sizing.knowledge import ApplicationKnowledge, TypeKnowledge
from nephoscope.features.sizing.records import MeasurementValue
from nephoscope.features.sizing.search import PlanKey, RegionPlan, Sized

_DRAWS, _MISSES = 500, 5
"""Draws, and those of them that miss at the allowed risk."""
_VALUES = 9
"""Values of an input: the middles of so many parts of equal probability."""
_TYPE_H, _RTT_H = 10.0, 1.0
"""Instance hours of a measurement: ten instances of a type, of which a single one may be far from
the others, and one in a region, an hour each."""


@dataclass(frozen=True, slots=True)
class Measurable:
    """Inputs that one measurement would show. cost: in the currency of the prices."""

    name: str
    inputs: frozenset[int]
    cost: float


def measurables(
    known: ApplicationKnowledge, plans: Sequence[RegionPlan], costs: MeasurementCosts
) -> Iterator[Measurable]:
    """Yields what can be measured of the inputs of some plans, each once."""
    yield Measurable("the demand", frozenset({known.demand.id}), costs.demand or 0.0)
    kinds = {plan.kind.name: plan.kind for plan in plans}
    for name, kind in kinds.items():
        if kind.capacity is not None:
            price = measurement_cost(kind, "capacity", costs)
            yield Measurable(f"the capacity of {name}", frozenset({kind.capacity.input.id}), price)
        if kind.spread is not None:
            price = measurement_cost(kind, "spread", costs)
            yield Measurable(f"the spread of {name}", frozenset({kind.spread.input.id}), price)
    for region in dict.fromkeys(region for plan in plans for region in plan.regions):
        ids = frozenset(
            trips.input.id for (_, name), trips in known.round_trips.items() if name == region
        )
        own = [
            entry.estimate.value
            for kind in known.types
            for (name, _), entry in kind.prices.items()
            if name == region
        ]
        price = _RTT_H * min(own) if costs.rtt is None else costs.rtt
        if ids:
            yield Measurable(f"the round trips to {region}", ids, price)


def measurement_cost(kind: TypeKnowledge, quantity: str, costs: MeasurementCosts) -> float:
    """Returns what it costs to measure the capacity or the spread of a type."""
    stated = costs.spread if quantity == "spread" else costs.capacity
    if stated is not None:
        return stated
    return _TYPE_H * min((entry.estimate.value for entry in kind.prices.values()), default=0.0)


def values(
    known: ApplicationKnowledge, best: Sequence[Sized], costs: MeasurementCosts
) -> list[MeasurementValue]:
    """Returns the value of each measurement for the choice between some deployments."""
    draws = draw(known, max(_DRAWS, math.ceil(_MISSES / known.risk)))
    start = {each.plan.key: each.working for each in best}
    plans = [each.plan for each in best]
    baseline = _best(known, plans, draws, start)
    if baseline is None:
        return []
    result = []
    for measurable in measurables(known, plans, costs):
        samples = [draws.samples[number] for number in sorted(measurable.inputs)]
        if all(np.ptp(array) == 0 for sample in samples for array in sample):
            continue
        changes, savings = 0, []
        for place in middles(samples[0], _VALUES):
            chosen = _best(known, plans, draws.known(measurable.inputs, place), start)
            if chosen is None:
                changes += 1
                continue
            changes += chosen[1:] != baseline[1:]
            savings.append(baseline[0] - chosen[0])
        saving = float(np.mean(savings)) if savings else 0.0
        ids = tuple(sorted(measurable.inputs))
        result.append(
            MeasurementValue(measurable.name, measurable.cost, changes / _VALUES, saving, ids)
        )
    return result


def middles(sample: Sample, count: int) -> list[int]:
    """Returns the draws at the middles of so many parts of equal probability of an input."""
    level = sample[0] if len(sample) == 1 else (sample[0] * sample[1]).sum(axis=1)
    order = np.argsort(level, kind="stable")
    return [int(order[round((part + 0.5) / count * order.size - 0.5)]) for part in range(count)]


def _best(
    known: ApplicationKnowledge,
    plans: Sequence[RegionPlan],
    draws: InputDraws,
    start: Mapping[PlanKey, Mapping[str, int]],
) -> tuple[float, PlanKey, dict[str, int]] | None:
    """Returns cost, plan and instances of the cheapest plan under some draws; None without any."""
    fleets = {plan.kind.name: Fleet(known, plan.kind, draws) for plan in plans}
    is_kept = search.risk_kept(known.risk, bounded=False)
    answers = []
    for plan in plans:
        begin = start[plan.key]
        most = {region: 3 * count + 2 for region, count in begin.items()}
        own = search.sized(fleets[plan.kind.name], plan, is_kept, most, begin)
        if own is not None:
            counts = search.counts_of(own, known)
            price = search.cost(plan, counts, known).value
            answers.append((price, plan.key, counts))
    return min(answers, key=lambda answer: answer[0], default=None)


def critical(
    known: ApplicationKnowledge, fleet: Fleet, plan: RegionPlan, most: Mapping[str, int]
) -> Measurable:
    """Returns the measurable without whose uncertainty the fewest draws miss the objective."""

    def misses(measurable: Measurable) -> int:
        (first, *_) = sorted(measurable.inputs)
        (place,) = middles(fleet.draws.samples[first], 1)
        draws = fleet.draws.known(measurable.inputs, place)
        return int(search.missed(Fleet(known, plan.kind, draws), plan, most).sum())

    return min(measurables(known, [plan], MeasurementCosts()), key=misses)
