"""Which alternative is held against which: the pairs that share a round."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nephoscope.model import Setting, factors_key

Pair = tuple[int, str]
"""Index of a setting, name of a target."""


def partners(
    settings: Sequence[Setting],
    labels: Sequence[Mapping[str, Any]],
    target: str,
    of_loads: Collection[str] = (),
) -> dict[int, dict[str, Pair]]:
    """Of each setting: target -> the alternative that is its baseline; absent where there is none.

    labels: the baseline's levels, for each entry of the plan. target: the baseline's target, ''
    for the same one. of_loads: factors that say how loads run; without a load they say nothing, so
    that a partner need not agree in them.
    The partner has the baseline's levels and agrees in all other factors; where
    none does and only one alternative of the benchmark has the baseline's levels, it is that one
    (one quiet setting against loads of several strengths).
    """
    exact: dict[str, list[Setting]] = {}
    for setting in settings:
        exact.setdefault(_key(setting.benchmark, setting.factors), []).append(setting)
        if of_loads and not setting.backgrounds:
            loose = {name: one for name, one in setting.factors.items() if name not in of_loads}
            exact.setdefault(_key(setting.benchmark, loose), []).append(setting)
    return {
        setting.index: _of(setting, settings, exact, labels[setting.entry], target, of_loads)
        for setting in settings
    }


def _of(
    setting: Setting,
    settings: Sequence[Setting],
    exact: Mapping[str, Sequence[Setting]],
    labels: Mapping[str, Any],
    target: str,
    of_loads: Collection[str],
) -> dict[str, Pair]:
    levels = {name: level for name, level in labels.items() if name in setting.factors}
    if not levels and not target:
        return {}
    factors = {**setting.factors, **levels}
    wanted = exact.get(_key(setting.benchmark, factors), ())
    if not wanted:
        loose = {name: one for name, one in factors.items() if name not in of_loads}
        wanted = exact.get(_key(setting.benchmark, loose), ())
    found: dict[str, Pair] = {}
    for name in setting.targets:
        other = target or name
        same = [one for one in wanted if other in one.targets]
        if not same:
            same = _only(setting, settings, levels, other)
        if len(same) == 1 and (same[0].index, other) != (setting.index, name):
            found[name] = (same[0].index, other)
    return found


def _only(
    setting: Setting, settings: Sequence[Setting], levels: Mapping[str, Any], target: str
) -> list[Setting]:
    """The settings of that benchmark and arm that have the baseline's levels, on that target."""
    return [
        one
        for one in settings
        if one.benchmark == setting.benchmark
        and one.arm == setting.arm
        and target in one.targets
        and all(name in one.factors for name in levels)
        and _key("", {name: one.factors[name] for name in levels}) == _key("", levels)
    ]


def _key(benchmark: str, factors: Mapping[str, Any]) -> str:
    return f"{benchmark} {factors_key(factors)}"
