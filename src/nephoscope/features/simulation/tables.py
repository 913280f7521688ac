"""What was simulated, in tables: regions, sites, costs, choices, guests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nephoscope.core import units
from nephoscope.core.model import Estimate, RunResult
from nephoscope.features.simulation.records import (
    Deployment,
    Placement,
    Sensitivity,
    Share,
    SimulatedScheduler,
    Simulation,
)
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Heading, Sentence, Table, items
from nephoscope.report.columns import number, spread, table, text

MEAN, WITHIN, REQUESTS = "response_time_mean_ns", "within_objective_ratio", "requests"
UNSERVED = "unserved_ratio"

_ROOMY = ("least", "greatest", "fixed work, median", "response, mean")
"""Columns that the terminal has no room for."""


def blocks_of(
    simulation: Simulation,
    part: str,
    build: Callable[[Any, str, int], list[Block]],
    limit: int | None = None,
) -> list[Block]:
    """The blocks of each simulated thing of a part, under its name where there are several.

    limit: things that have blocks, where a table above holds all. The notes on what could not be
    read end the first section that the simulation has.
    """
    things = getattr(simulation, part)
    names = names_of(things)
    blocks: list[Block] = []
    for position, (thing, name) in enumerate(zip(things[:limit], names, strict=False)):
        own = build(thing, name, position)
        blocks += [Heading(name), *own] if own and len(names) > 1 else own
    if limit is not None and len(things) > limit:
        left = wording.plural(len(things) - limit, f"further {part.removesuffix('s')}")
        blocks.append(Sentence(f"{left}: see the table above."))
    parts = ("placements", "deployments", "schedulers", "selections")
    first = next(name for name in parts if getattr(simulation, name))
    notes = simulation.notes if first == part else ()
    return [*blocks, *items(notes, title="Unavailable statistics")]


def names_of(results: Sequence[Any]) -> list[str]:
    """A name for each of several simulated things: the shortest that tells them apart."""
    whole = [wording.target_text(result.target, result.conditions) for result in results]
    for names in (
        [wording.clean(result.scenario) for result in results],
        [wording.clean(result.target) for result in results],
        [wording.factors_text(result.conditions) for result in results],
        whole,
    ):
        if all(names) and len(set(names)) == len(names):
            return names
    return [f"{name} ({place})" for place, name in enumerate(whole, 1)]


def keys_of(
    result: RunResult, benchmark: str, deployment: Any, own: Sequence[str], metric: str = ""
) -> list[selection.HistogramKey]:
    """Histograms of one simulated thing: its conditions, and no other factors but `own`."""
    out = []
    for key in selection.histogram_keys(
        result, benchmark, lambda metric_of_key: metric in ("", metric_of_key)
    ):
        factors = selection.key_factors(key)
        rest = {k: v for k, v in factors.items() if k in deployment.conditions or k not in own}
        rest.pop("seed", None)
        if key[2] == deployment.target and rest == dict(deployment.conditions):
            out.append(key)
    return out


def estimate_text(estimate: Estimate | None) -> str:
    """Value and interval in short, '–' where there is none; an interval of no width is left out."""
    if estimate is None:
        return "–"
    if estimate.unit in ("none", "usd"):
        return priced(estimate)
    if estimate.low == estimate.high == estimate.value:
        return wording.value_text(estimate)
    interval = wording.interval_text(estimate)
    value = wording.value_text(estimate)
    return f"{value} {interval}" if interval.startswith("[") else value


def priced(estimate: Estimate) -> str:
    """'$49.21 [$48.90, $49.60]'; of what is the same in every replication the value alone."""
    low, high = estimate.low, estimate.high
    if low is None or high is None or low == high:
        return money(estimate.value)
    return f"{money(estimate.value)} [{money(low)}, {money(high)}]"


def over(figures: Iterable[Mapping[str, Estimate]]) -> str:
    """', n = 10': over how many replications, where all figures are over as many; and what a
    figure without an interval means."""
    every = [estimate for own in figures for estimate in own.values()]
    several = {estimate.n for estimate in every}
    size = f", n = {min(several)}" if len(several) == 1 else ""
    alone = any(estimate.low == estimate.high == estimate.value for estimate in every)
    return f"{size}; without an interval where replications agree" if alone else size


def money(value: float) -> str:
    """Dollars: '$0.507', '$1,234.50'."""
    return f"${value:,.2f}" if abs(value) >= 10 else f"${units.format_number(value)}"


def comparison(deployments: Sequence[Deployment], names: Sequence[str]) -> Table:
    """Rows: overall and each region; a column for each deployment; mean response times."""
    regions = dict.fromkeys(share.name for each in deployments for share in each.regions)
    overall = [each.overall for each in deployments]
    shares_of = [{share.name: share for share in each.regions} for each in deployments]
    lines: list[tuple[str, Sequence[Share | None], str]] = [
        ("overall", overall, MEAN),
        *((name, [by_name.get(name) for by_name in shares_of], MEAN) for name in regions),
        ("within the objective", overall, WITHIN),
        ("cost", overall, "cost_usd"),
    ]
    rows = [
        (title, [estimate_text(item.figures.get(metric) if item else None) for item in own])
        for title, own, metric in lines
    ]
    return table(
        [row for row in rows if any(text != "–" for text in row[1])],
        text("mean response time", lambda row: row[0]),
        *spread(names, lambda row: row[1]),
        caption="Comparison of deployments, with intervals"
        f"{over(deployment.overall.figures for deployment in deployments)}",
    )


def shares(
    deployment: Sequence[Share], what: str, caption: str, *, collapsed: bool = False
) -> Table:
    """A line for each region or user base: mean, p99, extremes, within, unserved."""
    columns = {
        "mean": MEAN,
        "p99": "response_time_p99_ns",
        "least": "response_time_min_ns",
        "greatest": "response_time_max_ns",
        "within": WITHIN,
    }
    if any(share.figures[UNSERVED].value > 0 for share in deployment if UNSERVED in share.figures):
        columns["unserved"] = UNSERVED
    return _filled(deployment, what, columns, caption, collapsed)


def sites(deployment: Deployment) -> Table:
    """A line for each site: requests, processing, utilisation, cost."""
    columns = {
        "requests": REQUESTS,
        "processing, mean": "processing_time_mean_ns",
        "response, mean": MEAN,
        "utilisation": "utilisation_ratio",
    }
    return _filled(deployment.sites, "site", columns, "By site", False)


def _filled(
    shares: Sequence[Share], what: str, columns: Mapping[str, str], caption: str, collapsed: bool
) -> Table:
    def figure(metric: str) -> Callable[[Share], str]:
        return lambda row: estimate_text(row.figures.get(metric))

    return table(
        shares,
        text(what, lambda row: row.name),
        *(
            number(title, figure(metric), roomy=title in _ROOMY)
            for title, metric in columns.items()
            if any(metric in share.figures for share in shares)
        ),
        caption=f"{caption}{over(share.figures for share in shares)}",
        collapsed=collapsed,
    )


def costs(deployment: Deployment) -> list[Block]:
    """Returns what each site costs, by part; nothing where no price was given."""
    if not deployment.costs:
        return []
    listing = table(
        deployment.costs,
        text("site", lambda row: row.site),
        text("for", lambda row: row.part),
        number("cost", lambda row: priced(row.estimate)),
        caption=f"Costs{over({'': cost.estimate} for cost in deployment.costs)}",
    )
    return [listing]


def sensitivity(placement: Placement) -> list[Block]:
    """Returns what would be chosen if latency or growth were other than assumed."""
    if not placement.sensitivity:
        return []

    def best(changed: Sensitivity) -> str:
        sites = wording.joined(wording.clean(site) for site in changed.best)
        return "unchanged" if changed.same else sites or "none"

    def cost(changed: Sensitivity) -> str | None:
        cost_usd = changed.best_cost_usd_per_h
        return None if cost_usd is None else money(cost_usd)

    listing = table(
        placement.sensitivity,
        text("if", changed),
        number("chosen sites: within objective", lambda row: row.within_ratio, "ratio"),
        text("enough", lambda row: row.met),
        text("best choice", best),
        number("cost per hour", cost),
        caption="Sensitivity of the choice to the assumptions",
    )
    return [listing]


def changed(sensitivity_case: Sensitivity) -> str:
    """'latency × 1.25', 'load × 2': what is other than assumed."""
    cells = [
        f"{what} × {factor:g}"
        for what, factor in (
            ("latency", sensitivity_case.latency),
            ("load", sensitivity_case.growth),
        )
        if factor != 1
    ]
    return ", ".join(cells) or "as assumed"


def guests(scheduler: SimulatedScheduler) -> list[Table]:
    """A line for each virtual CPU: share, runs, waits, periods; one for each server of requests."""
    own = {
        "share of a CPU": "cpu_share_ratio",
        "run, median": "run_p50_ns",
        "wait, median": "wait_p50_ns",
        "period, median": "period_p50_ns",
        "fixed work, median": "fixed_work_share_p50_ratio",
    }
    answers = {
        "response, median": "response_time_p50_ns",
        "p90": "response_time_p90_ns",
        "p99": "response_time_p99_ns",
    }
    named = [
        (
            guest.vcpu,
            Share(
                guest.vm if guest.vcpu is None else f"{guest.vm}, CPU {guest.vcpu}", guest.figures
            ),
        )
        for guest in scheduler.guests
    ]
    machines = [share for vcpu, share in named if vcpu is None]
    cpus = [share for vcpu, share in named if vcpu is not None]
    out = [_filled(cpus, "virtual machine", own, "Shares and lengths", False)] if cpus else []
    if machines:
        out.append(_filled(machines, "web server", answers, "Response times", False))
    return out
