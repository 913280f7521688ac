"""Who does what: names and roles of targets, as entries, loads and hooks give them."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.errors import PlanError
from nephoscope.plans.model import Plan
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc

MEASURED = ("victim", "client")
"""Roles whose targets run the benchmarks that name no target."""

AGGRESSOR = "aggressor"
"""Role whose targets run the background loads that name no target."""


def default_targets(plan: Plan) -> tuple[str, ...]:
    """The targets of an entry without `on`: those without a role, and victims and clients."""
    return tuple(
        target.name
        for target in plan.targets
        if not target.roles or any(role in MEASURED for role in target.roles)
    )


def targets_of(plan: Plan, names: Sequence[str], loc: Loc, place: Place) -> tuple[str, ...]:
    """The targets that names and roles stand for, in the plan's order, each once."""
    wanted: set[str] = set()
    for name in names:
        wanted |= set(_of_name(plan, name, loc, place))
    return tuple(target.name for target in plan.targets if target.name in wanted)


def one_target(plan: Plan, name: str, loc: Loc, place: Place) -> str:
    """The one target that a name or role stands for."""
    found = _of_name(plan, name, loc, place)
    if len(found) > 1:
        raise PlanError(
            f"{place(loc)}'{name}' is the role of {len(found)} targets ({', '.join(found)}), and "
            "one is needed.",
            "Write its name.",
        )
    return found[0]


def _of_name(plan: Plan, name: str, loc: Loc, place: Place) -> list[str]:
    names = [target.name for target in plan.targets]
    players = [target.name for target in plan.targets if name in target.roles]
    if name in names and players not in ([], [name]):
        raise PlanError(
            f"{place(loc)}'{name}' is a target, and a role of {', '.join(players)}.",
            "Rename one of the two.",
        )
    if name in names:
        return [name]
    if players:
        return players
    roles = sorted({role for target in plan.targets for role in target.roles})
    known = f"Targets: {', '.join(names)}; roles: {', '.join(roles) or 'none'}."
    raise PlanError(
        f"{place(loc)}no target is named '{name}' or has that role"
        f"{did_you_mean(name, [*names, *roles])}.",
        known,
    )
