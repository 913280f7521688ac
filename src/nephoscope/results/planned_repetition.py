"""How often the plan of a stored run repeats its benchmarks, and how narrow intervals shall be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nephoscope.core import limits, repetition


@dataclass(frozen=True, slots=True)
class PlannedRepetition:
    """Plain values of a plan. changes: `repeat` of each entry of `benchmarks`, where it differs.

    boots, rounds_of_boot: of a nested design, else 0.
    """

    repeat: Mapping[str, Any]
    changes: tuple[Mapping[str, Any], ...]
    boots: int = 0
    rounds_of_boot: int = 0

    def of_entry(self, entry: int | None) -> dict[str, Any]:
        """Returns `min`, `max`, `relative_half_width` and `until`; of the plan for None."""
        if entry is None:
            return dict(self.repeat)
        if self.boots:
            rounds = self.boots * self.rounds_of_boot
            return {**self.repeat, "min": rounds, "max": rounds, "until": "narrow"}
        return repetition.changed(self.repeat, self.changes[entry])


def planned_repetition(run: str, plan: Mapping[str, Any]) -> PlannedRepetition | None:
    """Returns what the manifest of a run states; None without a plan.

    Raises StoreError for a plan that cannot be read.
    """
    if not plan:
        return None
    if not _is_complete(plan):
        # Its models fill in what another version left out, and refuse what cannot be; they take
        # longer to import than most runs to analyse.
        from nephoscope.measure.plans.files.load import plan_of, plan_values

        checked = plan_of(run, plan)
        plan = {} if checked is None else plan_values(checked)
    nest = plan["design"].get("nest")
    return PlannedRepetition(
        plan["repeat"],
        tuple(entry["repeat"] for entry in plan["benchmarks"]),
        nest["instance"] * nest["boot"] if nest else 0,
        nest["rounds"] if nest else 0,
    )


def _is_complete(plan: Mapping[str, Any]) -> bool:
    """Returns whether a plan has all values that are used, each in its bounds."""
    repeat, design, entries = (plan.get(key) for key in ("repeat", "design", "benchmarks"))
    if not (isinstance(repeat, dict) and isinstance(design, dict) and isinstance(entries, list)):
        return False
    changes = [
        entry["repeat"] for entry in entries if isinstance(entry, dict) and "repeat" in entry
    ]
    nest = design.get("nest", {"instance": 1, "boot": 1, "rounds": 1})
    return (
        len(changes) == len(entries)
        and {"min", "max", "relative_half_width", "until"} <= repeat.keys()
        and repeat["until"] in ("narrow", "decided")
        and all(isinstance(change, dict) and _is_possible(change) for change in changes)
        and _is_possible(repeat)
        and all(_is_possible(repetition.changed(repeat, change)) for change in changes)
        and isinstance(nest, dict)
        and all(_is_count(nest.get(key)) for key in ("instance", "boot", "rounds"))
    )


def _is_possible(values: Mapping[str, Any]) -> bool:
    least, most = values.get("min", 1), values.get("max", limits.ROUNDS)
    width = values.get("relative_half_width", 0.5)
    return (
        _is_count(least)
        and _is_count(most)
        and least <= most
        and isinstance(width, int | float)
        and 0 < width < 1
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value <= limits.ROUNDS
