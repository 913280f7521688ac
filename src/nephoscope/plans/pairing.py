"""Which alternative is held against which: the pairs that share a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.model import Setting

Pair = tuple[int, str]
"""Index of a setting, name of a target."""


def partners(
    settings: Sequence[Setting], labels: Sequence[Mapping[str, Any]], target: str
) -> dict[int, dict[str, Pair]]:
    """Of each setting: target -> the alternative that is its baseline; absent where there is none.

    labels: the baseline's levels, for each entry of the plan. target: the baseline's target, ''
    for the same one. The partner has the baseline's levels and agrees in all other factors; where
    none does and only one alternative of the benchmark has the baseline's levels, it is that one
    (one quiet setting against loads of several strengths).
    """
    return {setting.index: _of(setting, settings, labels, target) for setting in settings}


def _of(
    setting: Setting,
    settings: Sequence[Setting],
    labels: Sequence[Mapping[str, Any]],
    target: str,
) -> dict[str, Pair]:
    levels = {n: v for n, v in labels[setting.entry].items() if n in setting.factors}
    if not levels and not target:
        return {}
    wanted = {**setting.factors, **levels}
    of_benchmark = [one for one in settings if one.benchmark == setting.benchmark]
    found: dict[str, Pair] = {}
    for name in setting.targets:
        other = target or name
        there = [one for one in of_benchmark if other in one.targets]
        same = [one for one in there if _equal(one.factors, wanted)]
        if not same:
            same = [one for one in there if _has(one.factors, levels) and one.arm == setting.arm]
        if len(same) == 1 and (same[0].index, other) != (setting.index, name):
            found[name] = (same[0].index, other)
    return found


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and _has(one, other)


def _has(factors: Mapping[str, Any], levels: Mapping[str, Any]) -> bool:
    return all(
        name in factors and factors[name] == level and type(factors[name]) is type(level)
        for name, level in levels.items()
    )
