"""The verdict on a size, and what to measure next, as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.core.model import Estimate
from nephoscope.features.sizing.records import (
    MeasurementValue,
    SizeAnalysis,
    SizedDeployment,
    UnknownDeployment,
)
from nephoscope.features.sizing.search import MOST_INSTANCES, RegionPlan
from nephoscope.report import wording

ROUND_TRIPS = "round trips"
_FEW = 0.10
"""Below this share a probability has one digit after the point, where it needs it."""


def verdict(analysis: SizeAnalysis) -> str:
    """Returns the answer in one sentence."""
    if analysis.is_answered:
        best = analysis.deployments[0]
        return (
            f"{instances(best)}: {monthly(best.cost_per_month)}; misses {analysis.objective} with "
            f"a probability of {chance(best.miss_probability)}{_survives(best)}."
        )
    if not analysis.unknown:
        return (
            f"No deployment keeps {analysis.objective}, with up to {MOST_INSTANCES:,} instances "
            "in a region."
        )
    first = analysis.unknown[0]
    return f"The data are too thin to recommend a deployment: {first.reason}."


def _survives(best: SizedDeployment) -> str:
    if not best.survived_failures:
        return ""
    failing = "a region fails" if best.survived_failures == 1 else "some regions fail"
    return f", also while {failing}"


def recommendation(analysis: SizeAnalysis) -> str:
    """Returns what to measure next; empty where no measurement is worth its cost."""
    if not analysis.measurements:
        return ""
    currency = analysis.currency
    if not analysis.is_answered:
        first = analysis.unknown[0]
        name = next((m for m in analysis.measurements if is_of(m, first)), analysis.measurements[0])
        if "price" in first.missing:
            return f"State {name.name}, or name a price list with it, first."
        if "availability" in first.missing:
            return f"State {name.name}, or a contract (`sla`) that promises it, first."
        return f"Measure {name.name} first{_price(name, currency)}."
    best = analysis.measurements[0]
    if best.saving_per_month <= best.cost:
        return ""
    saving = wording.amount(best.saving_per_month, currency)
    if best.change_probability is None:
        return (
            f"Measure {best.name} next{_price(best, currency)}: it may save up to {saving} a month."
        )
    return (
        f"Measure {best.name} next{_price(best, currency)}: with a probability of "
        f"{_percent(best.change_probability)} the answer changes, by {saving} a month on average."
    )


def is_of(measurement: MeasurementValue, unknown: UnknownDeployment) -> bool:
    """Returns whether a measurement is that of what a deployment lacks."""
    return measurement.name == named(unknown)


def named(unknown: UnknownDeployment) -> str:
    """Returns the name of the quantity that a deployment lacks."""
    if unknown.missing == ROUND_TRIPS:
        return f"the {ROUND_TRIPS} to a region of {unknown.type}"
    is_name = unknown.missing.startswith("the ")
    return unknown.missing if is_name else f"the {unknown.missing} of {unknown.type}"


def _price(measurement: MeasurementValue, currency: str) -> str:
    if measurement.cost == 0:
        return ""
    return f" (about {wording.amount(measurement.cost, currency)})"


def instances(deployment: SizedDeployment) -> str:
    """Returns '3 c7g.large in eu-west-1 and 2 in us-east-1', with how they are bought."""
    spot = "spot instances of " if deployment.purchase == "spot" else ""
    kind = wording.clean(deployment.type)
    (first, count), *rest = deployment.counts.items()
    parts = [f"{count:,} {spot}{kind} in {wording.clean(first)}"]
    parts += [f"{more:,} in {wording.clean(region)}" for region, more in rest]
    return wording.joined(parts)


def monthly(cost: Estimate) -> str:
    """Returns '214.00 USD a month [207.00, 230.00]'."""
    interval = "" if cost.low is None else f" {wording.amount_interval(cost)}"
    return f"{wording.amount(cost.value, cost.unit)} a month{interval}"


def chance(probability: Estimate) -> str:
    """Returns '2 % [1, 3]'."""
    ends = [
        _percent(end).removesuffix(" %")
        for end in (probability.low, probability.high)
        if end is not None
    ]
    return f"{_percent(probability.value)} [{', '.join(ends)}]"


def _percent(ratio: float) -> str:
    percent = 100 * ratio
    return f"{percent:.1f} %" if 0 < ratio < _FEW else f"{percent:.0f} %"


def unbounded(
    plan: RegionPlan, missed: Estimate, most: Mapping[str, int], risk: float, open_input: str
) -> str:
    """Returns that the allowed risk cannot be kept, and which input leaves it open."""
    regions = wording.joined(f"{count:,} in {wording.clean(name)}" for name, count in most.items())
    return (
        f"{wording.clean(plan.kind.name)} misses the objective with a probability of "
        f"{chance(missed)} even with {regions} that work, three times as many as the values alone "
        f"need, where {_percent(risk)} is allowed; mostly {open_input} is open"
    )


def hopeless(plans: Sequence[RegionPlan], objective: str) -> str:
    """Returns that some plans keep the objective with no number of instances."""
    names = sorted({f"{plan.kind.name} in {wording.joined(plan.regions)}" for plan in plans})
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f"Up to {MOST_INSTANCES:,} instances in a region do not keep {objective} with "
        f"{wording.clean('; '.join(names[:3]))}{more}."
    )
