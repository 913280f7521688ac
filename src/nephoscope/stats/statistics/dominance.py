"""The relation behind Pareto fronts."""

from __future__ import annotations

from nephoscope.stats.statistics.values import Numbers


def dominates(a: Numbers, b: Numbers) -> bool:
    """Returns whether A costs less than B in some respect and more in none."""
    sides = list(zip(a, b, strict=True))
    return all(x <= y for x, y in sides) and any(x < y for x, y in sides)
