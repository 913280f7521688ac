"""Pairs each alternative with its baseline in the same round."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from nephoscope.core.model import Setting, factors_key

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
            plain = {name: level for name, level in setting.factors.items() if name not in of_loads}
            exact.setdefault(_key(setting.benchmark, plain), []).append(setting)
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
    candidates = exact.get(_key(setting.benchmark, factors), ())
    if not candidates:
        plain = {name: level for name, level in factors.items() if name not in of_loads}
        candidates = exact.get(_key(setting.benchmark, plain), ())
    partners_by_target: dict[str, Pair] = {}
    for name in setting.targets:
        baseline_target = target or name
        matches = [candidate for candidate in candidates if baseline_target in candidate.targets]
        if not matches:
            matches = _only(setting, settings, levels, baseline_target)
        if len(matches) == 1 and (matches[0].index, baseline_target) != (setting.index, name):
            partners_by_target[name] = (matches[0].index, baseline_target)
    return partners_by_target


def _only(
    setting: Setting, settings: Sequence[Setting], levels: Mapping[str, Any], target: str
) -> list[Setting]:
    """The settings of that benchmark and arm that have the baseline's levels, on that target."""
    return [
        candidate
        for candidate in settings
        if candidate.benchmark == setting.benchmark
        and candidate.arm == setting.arm
        and target in candidate.targets
        and all(name in candidate.factors for name in levels)
        and _key("", {name: candidate.factors[name] for name in levels}) == _key("", levels)
    ]


def _key(benchmark: str, factors: Mapping[str, Any]) -> str:
    return f"{benchmark} {factors_key(factors)}"
