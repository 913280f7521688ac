"""Merges two settings into one plan, which measures both in every round."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope import catalog
from nephoscope.core.errors import UsageError
from nephoscope.core.model import SELF
from nephoscope.features.comparison.result import Ignored
from nephoscope.measure.plans import Plan, expand, plan_values
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import ROUNDS_TO_DECIDE, Entry

NAME = "interleaved"
SIMPLE = ("lab", "factors", "design", "backgrounds", "before", "after", "money")
"""Keys of a plan that name targets, or that two plans may set against each other."""


def interleave(
    a: Plan, b: Plan, budget_s: float | None = None, *, until_decided: bool = False
) -> Plan:
    """Returns a plan that measures the target of `a` and that of `b` alternately.

    An entry that both have runs on both targets; the others run on their own. budget_s: replaces
    the sum of both budgets. until_decided: measure until the comparison is. Raises UsageError where
    the plans have nothing in common, or more than a target each.
    """
    for plan in (a, b):
        _require_simple(plan)
    if not {entry.benchmark for entry in a.benchmarks} & {e.benchmark for e in b.benchmarks}:
        raise UsageError("A and B have no common benchmark.", "Name plans that measure the same.")
    names = (a.targets[0].name, b.targets[0].name)
    if names[0] == names[1]:
        names = (f"{names[0]}-a", f"{names[1]}-b")
    targets = []
    for plan, name in zip((a, b), names, strict=True):
        (target,) = plan.targets
        # A target whose host is found by its name, which changes here, keeps the host.
        host = {"host": target.topology_host} if target.topology_host else {}
        targets.append(target.model_copy(update={"name": name, "roles": (), **host}))
    if budget_s is None and a.budget_s is not None and b.budget_s is not None:
        budget_s = a.budget_s + b.budget_s
    deciding = {"until": "decided", "max": ROUNDS_TO_DECIDE} if until_decided else {}
    merged = a.model_copy(
        update={
            "name": NAME,
            "question": "",
            "seed": None,
            "budget_s": budget_s,
            # Settings that are compared need equal numbers of rounds.
            "repeat": a.repeat.model_copy(update={"allocation": "even", **deciding}),
            "targets": tuple(targets),
            "benchmarks": tuple(_entries(a.benchmarks, b.benchmarks, names)),
            "accept": tuple(dict.fromkeys((*a.accept, *b.accept))),
        }
    )
    return from_values(plan_values(merged), catalog.load(), lambda _: "")


def names_of_sides(a: Plan, b: Plan, merged: Plan) -> Ignored:
    """Returns the parameters that became factors only because both sides stand in one plan."""
    of_merged, of_a, of_b = (_factor_names(plan) for plan in (merged, a, b))
    return {
        benchmark: frozenset(names - of_a.get(benchmark, set()) - of_b.get(benchmark, set()))
        for benchmark, names in of_merged.items()
    }


def _factor_names(plan: Plan) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for setting in expand(plan, catalog.load()):
        names.setdefault(setting.benchmark, set()).update(setting.factors)
    return names


def _require_simple(plan: Plan) -> None:
    if len(plan.targets) != 1:
        raise UsageError(
            f"The plan '{plan.name}' has {len(plan.targets)} targets; --interleave takes one a "
            "side.",
            "Run the plan itself: it measures its targets interleaved.",
        )
    empty = Plan(name="empty", benchmarks=plan.benchmarks)
    for key in SIMPLE:
        if getattr(plan, key) != getattr(empty, key):
            raise UsageError(
                f"The plan '{plan.name}' sets `{key}`, which --interleave cannot merge.",
                "Write one plan with both targets and run it.",
            )


def _entries(a: Sequence[Entry], b: Sequence[Entry], names: tuple[str, str]) -> list[Entry]:
    """Returns the entries of both, each on the targets that have it."""
    left = [_movable(entry) for entry in b]
    merged = []
    for entry in map(_movable, a):
        common = entry in left
        if common:
            left.remove(entry)
        merged.append(_placed(entry, names if common else names[:1]))
    return merged + [_placed(entry, names[1:]) for entry in left]


def _movable(entry: Entry) -> Entry:
    """Returns an entry of a plan of one target without its name: such a target serves itself."""
    return entry.model_copy(update={"on": (), "peer": SELF if entry.peer else ""})


def _placed(entry: Entry, names: Sequence[str]) -> Entry:
    return entry.model_copy(update={"on": tuple(names)})
