"""`--dry-run`: prints the settings, schedule, duration, cost and side effects of a plan.

Creates, opens and writes nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.documents import to_json
from nephoscope.core.model import SELF
from nephoscope.core.naming import factors_text, plural

if TYPE_CHECKING:
    from nephoscope.core.model import Setting
    from nephoscope.measure.plans import Crossing, Plan, SideEffect
    from nephoscope.measure.plans.estimate import RunEstimate
    from nephoscope.store import Store

ROUNDS_SHOWN = 3
ROWS_SHOWN = 40
"""Lines of a table, or settings of a round, on the terminal; --json has them all."""
NAMES_SHOWN = 8
"""Targets that a cell names."""


def of_plan(plan: Plan, store: Store, *, as_json: bool) -> int:
    """Prints the preview of a plan; returns the exit code."""
    from nephoscope import catalog
    from nephoscope.measure import plans
    from nephoscope.results.earlier_runs import times_of_earlier_runs

    known = catalog.load()
    settings = plans.expand(plan, known)
    estimate = plans.estimate(plan, settings, known, times_of_earlier_runs(store))
    if plan.seed is None:
        # A run that was interrupted goes on with the seed that it drew.
        old = store.resumable(plans.plan_hash(plan))
        plan = plan.model_copy(update={"seed": old.manifest.seed}) if old else plan
    crossings = plans.crossings(plan, known)
    effects = [
        *plans.side_effects(plan, settings, known),
        plans.SideEffect(
            "folder", f"{store.address}/runs", "samples, event log and report of the run; kept"
        ),
    ]
    rent = _rent(plan)
    if as_json:
        document = _document(plan, settings, estimate, crossings, effects)
        output.document({**document, "rent": rent} if rent else document)
    else:
        output.say(_text(plan, settings, estimate, crossings, effects))
        if rent:
            output.say(f"\nRent: {_rent_text(rent)}")
    return 0


def _rent(plan: Plan) -> dict[str, Any]:
    """Returns what the rented machines of a plan cost; empty where nothing is rented.

    The clouds are asked whether they have them, and what for; nothing is created.
    """
    rented = [target for target in plan.targets if target.kind == "rented"]
    if not rented:
        return {}
    import asyncio

    from nephoscope.measure.runs.rented_environment import price_of

    price = asyncio.run(price_of(plan))
    quote, hours, traffic = price.quote, price.hours, price.traffic
    return {
        "machines": len(rented),
        "hours": hours,
        "cost_most": None if quote is None else quote.cost(hours),
        "currency": None if quote is None else quote.currency,
        "traffic_bytes_most": traffic.sent_bytes,
        "traffic_cost_most": traffic.cost,
    }


def _rent_text(rent: Mapping[str, Any]) -> str:
    machines = plural(rent["machines"], "machine")
    if rent["cost_most"] is None:
        return f"{machines}, for which nobody is paid."
    time = units.format_duration(3600 * rent["hours"])
    text = f"{machines} for up to {time}: up to {rent['cost_most']:.2f} {rent['currency']}."
    if rent["traffic_bytes_most"]:
        sent = units.format_value(rent["traffic_bytes_most"], "bytes")
        text += (
            f" Of it up to {rent['traffic_cost_most']:.2f} {rent['currency']} are for {sent} of "
            "traffic between regions or clouds."
        )
    return text


def _document(
    plan: Plan,
    settings: Sequence[Setting],
    estimate: RunEstimate,
    crossings: Sequence[Crossing],
    effects: Sequence[SideEffect],
) -> dict[str, Any]:
    return {
        "plan": plan.name,
        "question": plan.question,
        "seed": plan.seed,
        "targets": [
            {"name": target.name, "kind": target.kind, "roles": list(target.roles)}
            for target in plan.targets
        ],
        "settings": [
            {
                "index": setting.index,
                "benchmark": setting.benchmark,
                "targets": list(setting.targets),
                "together": setting.together,
                "peer": setting.peer,
                "client": setting.client,
                "factors": dict(setting.factors),
                "params": dict(setting.params),
                "conditions": dict(setting.conditions),
                "backgrounds": [load.name for load in setting.backgrounds],
                "baseline": {name: list(pair) for name, pair in setting.baseline.items()},
                "trial_s": estimate.settings[setting.index].seconds,
                "trial_s_from": estimate.settings[setting.index].how,
            }
            for setting in settings
        ],
        "designs": [
            {
                "entry": crossing.entry,
                "factors": list(crossing.factors),
                "kind": crossing.fraction.kind,
                "resolution": crossing.fraction.resolution,
                "generators": list(crossing.fraction.generators),
                "confounded": list(crossing.fraction.aliases),
                "excluded": crossing.excluded,
            }
            for crossing in crossings
        ],
        "schedule": [
            {"round": number, "order": [[position, list(names)] for position, names in order]}
            for number, order in _rounds(plan, settings)
        ],
        "estimate": estimate.to_json(),
        "side_effects": to_json(effects),
    }


def _rounds(
    plan: Plan, settings: Sequence[Setting]
) -> list[tuple[int, list[tuple[int, tuple[str, ...]]]]]:
    """The first rounds in their real order; without a seed of the plan's, in that of seed 0."""
    from nephoscope.measure import plans
    from nephoscope.measure.runs.schedule import groups

    numbers = [*plans.warmup_rounds(plan.warmup), *range(1, ROUNDS_SHOWN + 1)]
    out = []
    for number in numbers:
        active = [
            (setting.index, target)
            for setting in settings
            for target in setting.targets
            if (plan.repeat_of(setting.entry).max > 1 if number < 1 else True)
            and number <= plan.repeat_of(setting.entry).max
        ]
        if not active:
            continue
        order = groups.scheduled(plan, plan.seed or 0, number, active, settings)
        out.append((number, [(group.setting.index, group.targets) for group in order]))
    return out


def _text(
    plan: Plan,
    settings: Sequence[Setting],
    estimate: RunEstimate,
    crossings: Sequence[Crossing],
    effects: Sequence[SideEffect],
) -> str:
    parts = [f"Plan {plan.name}: preview, nothing is run."]
    parts += [plan.question] if plan.question else []
    parts.append(_targets(plan))
    parts.append(_settings(settings, estimate))
    parts += [_designs(plan, crossings)] if plan.factors or plan.design.fraction != "1" else []
    parts.append(_schedule(plan, settings))
    parts.append(_cost(plan, estimate))
    rows = [[effect.kind, effect.what, effect.why] for effect in effects]
    parts.append("Touched:\n" + _shortened(["what", "which", "why"], rows))
    return "\n\n".join(parts)


def _targets(plan: Plan) -> str:
    rows = [
        [
            target.name,
            target.kind,
            ", ".join(target.roles) or "-",
            "-" if target.per_hour is None else f"{target.per_hour:g}",
        ]
        for target in plan.targets
    ]
    return _shortened(["target", "kind", "roles", "per hour"], rows)


def _shortened(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """Returns a table of the first rows, and how many more there are."""
    left = f"\n… and {len(rows) - ROWS_SHOWN} more (--json)" if len(rows) > ROWS_SHOWN else ""
    return f"{output.table(head, rows[:ROWS_SHOWN], right=right)}{left}"


def _named(names: Sequence[str], between: str = ", ") -> str:
    """Returns names; of many the first, and how many more."""
    more = len(names) - NAMES_SHOWN
    if more < 2:
        return between.join(names)
    return f"{between.join(names[:NAMES_SHOWN])}{between}{more} others"


def _settings(settings: Sequence[Setting], estimate: RunEstimate) -> str:
    rows = [
        [
            str(setting.index),
            setting.benchmark,
            factors_text(setting.factors) or "-",
            _who(setting),
            units.format_value(estimate.settings[setting.index].seconds * 1e9, "ns", 2),
        ]
        for setting in settings
    ]
    head = ["no", "benchmark", "factors", "on", "per trial"]
    return f"Settings:\n{_shortened(head, rows, (0, 4))}"


def _who(setting: Setting) -> str:
    names = _named(setting.targets, " + " if setting.together else ", ")
    if setting.client:
        return f"{setting.client} -> {names}"
    if setting.peer == SELF:
        return f"{names} (each with itself)" if len(setting.targets) > 1 else f"{names} -> {names}"
    return f"{names} -> {setting.peer}" if setting.peer else names


def _designs(plan: Plan, crossings: Sequence[Crossing]) -> str:
    lines = []
    for crossing in crossings:
        name = plan.benchmarks[crossing.entry].benchmark
        part = crossing.fraction
        if part.kind == "full":
            what = "full crossing"
        elif part.kind == "regular":
            what = f"regular fraction {plan.design.fraction} of resolution {part.resolution}"
        else:
            what = f"balanced fraction {plan.design.fraction}, not regular"
        left = f", {crossing.excluded} combinations excluded" if crossing.excluded else ""
        lines.append(f"{name}: {what} of {', '.join(crossing.factors) or 'no factors'}{left}.")
        lines += [f"  {text}" for text in (*part.generators, *part.aliases)]
    return "Design:\n" + "\n".join(lines)


def _schedule(plan: Plan, settings: Sequence[Setting]) -> str:
    head = "Schedule (settings in order of execution"
    if plan.seed is None:
        head += "; the run uses a random seed, this preview seed 0"
    lines = [f"{head}):"]
    for number, order in _rounds(plan, settings):
        several = len({names for _, names in order}) > 1
        entries = [
            f"{index}:{'+'.join(names)}" if several else str(index)
            for index, names in order[:ROWS_SHOWN]
        ]
        more = f" … {len(order)} in total" if len(order) > ROWS_SHOWN else ""
        name = f"round {number}" if number > 0 else "warm-up"
        line = f"  {name}: {' '.join(entries)}{more}"
        lines += textwrap.wrap(line, output.width(), subsequent_indent="    ")
    return "\n".join(lines)


def _range(least: object, most: object) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _without_price(plan: Plan) -> str:
    names = [target.name for target in plan.targets if not target.is_priced]
    return f"; without {_named(names)}, which no `per_hour` is given for" if names else ""


def _cost(plan: Plan, estimate: RunEstimate) -> str:
    from nephoscope.measure.plans import long_time

    lines = [
        f"Trials: {_range(estimate.trials_least, estimate.trials_most)} "
        f"({estimate.alternatives} alternatives, "
        f"{_range(estimate.rounds_least, estimate.rounds_most)} rounds, "
        "warm-up included).",
        f"Time: {_range(long_time(estimate.least_s), long_time(estimate.most_s))}; a round takes "
        f"{units.format_value(estimate.round_s * 1e9, 'ns', 2)}"
        + (f"; the budget is {long_time(plan.budget_s)}." if plan.budget_s else "."),
    ]
    known = len(estimate.settings) - estimate.guessed
    how = []
    how += [f"{known} settings from earlier trials"] if known else []
    how += [f"{estimate.guessed} estimated from their parameters"] if estimate.guessed else []
    lines.append(f"Source of the estimate: {', '.join(how)}.")
    if estimate.money_least is not None and estimate.money_most is not None:
        limit = f"; the limit is {plan.money.limit:g}" if plan.money else ""
        lines.append(
            f"Money: {_range(f'{estimate.money_least:.2f}', f'{estimate.money_most:.2f}')} "
            f"{estimate.currency}{limit}{_without_price(plan)}."
        )
    return "\n".join(lines)
