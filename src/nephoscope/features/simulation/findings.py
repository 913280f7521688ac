"""Findings on what was simulated: users beyond the objective, sites too busy, fragile choices.

They speak of the scenario, never of a machine: what a simulation says holds as far as its scenario
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import Estimate, Finding, Severity
from nephoscope.core.naming import factors_text
from nephoscope.features.simulation import tables
from nephoscope.features.simulation.records import Simulation
from nephoscope.report import wording
from nephoscope.stats.target_evidence import (
    Answers,
    TargetEvidence,
    is_above,
    is_below,
    limit_lines,
)

ENOUGH = 0.95
"""Less than this share of a region within the objective is reported."""

TOO_BUSY = 0.9
"""From here on waits grow tenfold and more: 1 / (1 - 0.9) for one server (M/M/1)."""

_SHIFT = 0.05
"""A region that many sites serve by so much faster than each of them alone is no chance."""

_MEAN, _WITHIN = "response_time_mean_ns", "within_objective_ratio"


def _of(case: TargetEvidence, part: str) -> list[Any]:
    """Returns the records of this target."""
    simulation = case.part(Simulation)
    return [
        target_result
        for target_result in getattr(simulation, part, ())
        if target_result.target == case.target
    ]


def _name(result: Any) -> str:
    return f" ({factors_text(result.conditions)})" if result.conditions else ""


def beyond_objective(case: TargetEvidence) -> Answers:
    """Regions of which too few answers come in time."""
    late: list[tuple[Estimate, str]] = []
    total, objective = 0, None
    for deployment in _of(case, "deployments"):
        for region in deployment.regions:
            within = region.figures.get(_WITHIN)
            total += within is not None
            if within is not None and is_below(within, ENOUGH):
                late.append((within, f"{region.name}{_name(deployment)}"))
                objective = deployment.objective_ns or objective
    if not late:
        return
    late.sort(key=lambda figure: figure[0].value)
    worst, where = late[0]
    time = "the objective" if objective is None else units.format_value(objective, "ns")
    yield Finding(
        "beyond_objective",
        Severity.WARNING if worst.value < 0.5 else Severity.NOTICE,
        f"{len(late)} of {total} regions get fewer than {ENOUGH:.0%} of their responses "
        f"within {time}; the worst is {where} with {estimate_text(worst)}.",
        _each(late),
        "Run `nephoscope simulate geo --place` to find better sites.",
    )


def too_busy(case: TargetEvidence) -> Answers:
    """Sites that are busy nearly all the time."""
    regions = _beyond(case, "utilisation_ratio", TOO_BUSY, lambda deployment: deployment.sites)
    if regions:
        worst, where = regions[0]
        yield Finding(
            "site_too_busy",
            Severity.WARNING,
            f"The utilisation of site {where} is {estimate_text(worst)}; waiting times grow "
            "without bound near 100 %.",
            _each(regions),
            "Add instances, enable autoscaling, or move users to another site.",
        )


def unserved(case: TargetEvidence) -> Answers:
    """Requests without an answer."""
    busy = _beyond(
        case, "unserved_ratio", 0.0, lambda deployment: (deployment.overall, *deployment.regions)
    )
    if busy:
        worst, where = busy[0]
        yield Finding(
            "unserved",
            Severity.WARNING,
            f"Some requests get no response; most are lost in {where}: {estimate_text(worst)}.",
            _each(busy),
            "Check the failures of sites and links in the scenario, and the failover.",
        )


def _beyond(
    case: TargetEvidence, metric: str, limit: float, shares: Callable[[Any], Iterable[Any]]
) -> list[tuple[Estimate, str]]:
    """(figure, whose) of the deployments' shares that lie surely above the limit, worst first."""
    figures = [
        (figure, f"{share.name or 'all users'}{_name(deployment)}")
        for deployment in _of(case, "deployments")
        for share in shares(deployment)
        if (figure := share.figures.get(metric)) and is_above(figure, limit)
    ]
    return sorted(figures, key=lambda figure: -figure[0].value)


def _each(named_figures: Iterable[tuple[Estimate, str]]) -> tuple[str, ...]:
    return limit_lines([f"{name}: {estimate_text(figure)}" for figure, name in named_figures])


def better_than_each(case: TargetEvidence) -> Answers:
    """A region served faster by several sites than by the best of them alone.

    Where each region goes to its closest site, that cannot be but by less load; so the scenarios
    differ in something else, such as their latencies.
    """
    simulated = case.part(Simulation) or Simulation()
    deployments = [(deployment, _sites(deployment)) for deployment in simulated.deployments]
    evidence = []
    for several, sites in deployments:
        if several.target != case.target:
            continue
        alone = [deployment for deployment, own in deployments if len(own) == 1 and own <= sites]
        if len(sites) < 2 or len({next(iter(_sites(deployment))) for deployment in alone}) < len(
            sites
        ):
            continue
        for region in several.regions:
            mean = region.figures.get(_MEAN)
            single_sites = [
                mean_of_site
                for deployment in alone
                if (mean_of_site := _mean(deployment, region.name)) is not None
            ]
            if mean is None or len(single_sites) < len(alone):
                continue
            best = min(single_sites, key=lambda estimate: estimate.value)
            if is_below(mean, (1 - _SHIFT) * (best.low or best.value)):
                evidence.append(
                    f"{region.name}: {estimate_text(mean)} with {len(sites)} sites, "
                    f"{estimate_text(best)} with the better single site"
                )
    if evidence:
        yield Finding(
            "scenarios_disagree",
            Severity.WARNING,
            "With several sites, a region is faster than with the better single site. Routing "
            "to the closest site cannot cause this, so the scenarios differ in more than their "
            "sites.",
            limit_lines(evidence),
            "Compare the latencies of the scenarios; use one matrix for all of them.",
        )


def _sites(deployment: Any) -> frozenset[str]:
    """Returns where the sites are: their regions, else their names."""
    return frozenset(
        place.region or place.name for place in deployment.places if place.kind == "site"
    )


def _mean(deployment: Any, region: str) -> Estimate | None:
    regions: Sequence[Any] = [share for share in deployment.regions if share.name == region]
    return regions[0].figures.get(_MEAN) if regions else None


def choices(case: TargetEvidence) -> Answers:
    """Placements that do not exist, are perhaps not the best, or do not stand small changes."""
    for placement in _of(case, "placements"):
        if not placement.chosen or placement.met is False:
            yield Finding(
                "no_choice",
                Severity.WARNING,
                f"No choice of sites meets the objective{_name(placement)}.",
                tuple(
                    f"{', '.join(map(wording.clean, choice.sites))}, "
                    f"{tables.money(choice.cost_usd_per_h)} per hour: "
                    f"{units.format_value(choice.within_ratio, 'ratio')} within the objective"
                    for choice in placement.front[-3:]
                ),
                "Raise the budget, relax the objective, or add candidate sites.",
            )
            continue
        if placement.confirmed is False:
            yield Finding(
                "choice_not_confirmed",
                Severity.WARNING,
                "The chosen sites meet the objective by the formula but not in the "
                f"simulation{_name(placement)}.",
                (f"chosen: {', '.join(placement.chosen)}",),
                "Rely on the simulation; it includes queueing, which the formula omits.",
            )
        bound = placement.figures.get("bound_ratio")
        if bound is not None and bound.value > _SHIFT:
            yield Finding(
                "choice_not_proven",
                Severity.NOTICE,
                "A better choice of sites may exist: it would gain at most "
                f"{units.format_value(bound.value, 'ratio')}{_name(placement)}.",
                (f"chosen: {', '.join(placement.chosen)}",),
                "Reduce the number of candidate sites so that every choice can be evaluated.",
            )
        moved = [change for change in placement.sensitivity if not change.met]
        if moved:
            yield Finding(
                "fragile_choice",
                Severity.NOTICE,
                f"The chosen sites miss the objective under {len(moved)} of "
                f"{len(placement.sensitivity)} changed assumptions{_name(placement)}.",
                limit_lines(
                    [
                        f"latency × {change.latency:g}, load × {change.growth:g}: "
                        f"{', '.join(change.best) or 'no choice'} would be best"
                        for change in moved
                    ]
                ),
                "Measure the assumptions that the choice depends on before deciding.",
            )


def no_saving(case: TargetEvidence) -> Answers:
    """Choosing among instances that costs more than it saves."""
    for saving_study in _of(case, "selections"):
        saving = saving_study.figures.get("saving_ratio")
        if saving is not None and is_below(saving, 0.0):
            yield Finding(
                "no_saving",
                Severity.NOTICE,
                f"Instance selection costs more than it saves{_name(saving_study)}: "
                f"{estimate_text(saving)}.",
                tuple(
                    f"break-even after {figure.value:.3g} hours"
                    for name, figure in saving_study.figures.items()
                    if name == "break_even_h"
                ),
                "Keep instances longer than the break-even time, or do not select.",
            )


RULES = (unserved, too_busy, beyond_objective, better_than_each, choices, no_saving)
