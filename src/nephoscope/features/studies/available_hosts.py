"""Leaves the hosts out of a part's lab whose platform does not run on this machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nephoscope.measure.plans import Plan


def without_missing_platforms(plan: Plan) -> tuple[Plan, str]:
    """Returns the plan for the hosts that this machine can run, and a sentence on the others.

    The sentence is empty where every host runs. The plan is unchanged where none would be left to
    measure: its run then states the reason.
    """
    from nephoscope.measure.lab.platforms import PLATFORMS

    if not isinstance(plan.lab, dict):
        return plan, ""
    hosts = plan.lab.get("hosts", {})
    platforms = {name: (spec or {}).get("platform", "bare") for name, spec in hosts.items()}
    problems = {
        name: lacking
        for name in dict.fromkeys(platforms.values())
        if (lacking := PLATFORMS[name].lacking()) is not None
    }
    missing = {name for name, platform in platforms.items() if platform in problems}
    remaining = tuple(target for target in plan.targets if _host_of(target) not in missing)
    if not missing or not any(_is_measured(target) for target in remaining):
        return plan, ""
    reasons = " ".join(str(lacking) for lacking in problems.values())
    return _of_targets(plan, missing, remaining), f"Without {', '.join(sorted(missing))}: {reasons}"


def _host_of(target: Any) -> str:
    return getattr(target, "host", "") or str(target.name)


def _is_measured(target: Any) -> bool:
    return "aggressor" not in target.roles


def _of_targets(plan: Plan, missing: Collection[str], remaining: tuple[Any, ...]) -> Plan:
    names = {name for target in remaining for name in (target.name, *target.roles)}

    def some_on(entry: Any) -> bool:
        return not entry.on or any(name in names for name in entry.on)

    def on_remaining(entry: Any) -> Any:
        return entry.model_copy(update={"on": tuple(name for name in entry.on if name in names)})

    entries = tuple(on_remaining(entry) for entry in plan.benchmarks if some_on(entry))
    loads = tuple(on_remaining(load) for load in plan.backgrounds if some_on(load))
    gone = {load.name for load in plan.backgrounds} - {load.name for load in loads}
    factors = {
        name: factor.model_copy(
            update={"levels": [level for level in factor.levels if level not in gone]}
        )
        for name, factor in plan.factors.items()
    }
    levels = {
        key: {level for entry in entries for level in map(str, entry.factors.get(key, ()))}
        for key in {key for entry in plan.benchmarks for key in entry.factors}
    }
    rules = tuple(
        rule
        for rule in plan.design.exclude
        if not gone & set(map(str, rule.values()))
        and all(key not in levels or str(level) in levels[key] for key, level in rule.items())
    )
    assert isinstance(plan.lab, dict)
    hosts = {name: spec for name, spec in plan.lab["hosts"].items() if name not in missing}
    return plan.model_copy(
        update={
            "lab": {**plan.lab, "hosts": hosts},
            "targets": remaining,
            "benchmarks": entries,
            "backgrounds": loads,
            "factors": factors,
            "design": plan.design.model_copy(update={"exclude": rules}),
        }
    )
