"""The design behind a run, from its manifest: settings, their lines, what the crossing tells."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from nephoscope.catalog import HOST_BOOT
from nephoscope.core.model import Better, MetricResult, Setting, factors_key
from nephoscope.core.records import dataclass
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.design import fraction
from nephoscope.results.names import AUXILIARY_FACTORS
from nephoscope.store import RunManifest

DesignKind = Literal["full", "regular", "balanced", "partial"]

Place = tuple[int, str, str, tuple[tuple[str, Any], ...]]
"""Setting, metric, target, and what the benchmark varied within the trial."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the result with the setting that it is of."""

    setting: Setting
    result: MetricResult
    inner: tuple[tuple[str, Any], ...]

    @property
    def place(self) -> Place:
        """Returns what tells it from every other line."""
        return (self.setting.index, self.result.metric, self.result.target, self.inner)

    def place_of(self, setting: int, target: str) -> Place:
        """The place of the same metric of another setting and target."""
        return (setting, self.result.metric, target, self.inner)


@dataclass(frozen=True, slots=True)
class FactorialDesign:
    """Crossing of the factors of one entry.

    kind: full, regular, balanced or partial. levels: factor -> levels, of those with two and more.
    reference: factor -> the level that effects are held against. settings: number of combinations,
    each arm of an A/A control for itself. confounded: sentences.
    """

    entry: int
    benchmark: str
    kind: DesignKind
    levels: Mapping[str, tuple[Any, ...]]
    reference: Mapping[str, Any]
    settings: int
    resolution: int | None
    confounded: tuple[str, ...]

    @property
    def tells_main_effects(self) -> bool:
        """Returns whether the other factors stand equally often on both sides of each one."""
        return self.kind in ("full", "regular")

    @property
    def why_not(self) -> str:
        """Why there are no main effects."""
        return {
            "balanced": "a balanced fraction confounds them with interactions",
            "partial": "combinations are excluded, so the other factors do not cancel",
        }.get(self.kind, "")


def settings_of(manifest: RunManifest) -> list[Setting]:
    """The settings of the plan's entries as records again; keys of other versions are left out.

    The boots between the cells of a nested design are no entry of the plan.
    """
    every = TypeAdapter(list[Setting]).validate_python(list(manifest.settings))
    entries = manifest.plan.get("benchmarks") or ()
    booted = {at for at, entry in enumerate(entries) if entry.get("benchmark") == HOST_BOOT}
    return [
        setting for setting in every if setting.benchmark != HOST_BOOT or setting.entry in booted
    ]


def lines_of(metrics: Iterable[MetricResult], settings: Sequence[Setting]) -> list[Line]:
    """The lines that can be compared, each with its setting: of no load and no hook, with a value
    for each trial and with a good direction."""
    known = _by_factors(settings)
    lines = []
    for line in metrics:
        if (
            not line.trial_values
            or line.better is Better.NONE
            or AUXILIARY_FACTORS & line.factors.keys()
        ):
            continue
        for names, of_names in known.get(line.benchmark, ()):
            own = {name: line.factors[name] for name in names if name in line.factors}
            if len(own) < len(names):
                continue
            fits = of_names.get(factors_key(own), ())
            setting = next((setting for setting in fits if line.target in setting.targets), None)
            if setting is not None:
                inner = tuple(sorted((n, v) for n, v in line.factors.items() if n not in own))
                lines.append(Line(setting, line, inner))
                break
    return lines


_Known = dict[str, list[tuple[tuple[str, ...], dict[str, list[Setting]]]]]


def _by_factors(settings: Sequence[Setting]) -> _Known:
    """Benchmark -> the sets of factors its settings have, most first -> settings by their levels.

    Two entries of a benchmark may have the same levels, on different targets.
    """
    groups: dict[str, dict[tuple[str, ...], dict[str, list[Setting]]]] = {}
    for setting in settings:
        names = tuple(sorted(setting.factors))
        of_names = groups.setdefault(setting.benchmark, {}).setdefault(names, {})
        of_names.setdefault(factors_key(setting.factors), []).append(setting)
    return {
        benchmark: sorted(sets.items(), key=lambda pair: -len(pair[0]))
        for benchmark, sets in groups.items()
    }


def without_arm(setting: Setting) -> str:
    """Returns what two arms have in common and no other setting has."""
    factors = {name: level for name, level in setting.factors.items() if name != "arm"}
    return json.dumps([setting.entry, setting.benchmark, factors], sort_keys=True)


def designs(plan: Plan, settings: Sequence[Setting]) -> list[FactorialDesign]:
    """The design of each entry that has settings."""
    entries = dict.fromkeys(setting.entry for setting in settings)
    unique = {setting.index: setting for setting in settings}
    return [_design(plan, entry, list(unique.values())) for entry in entries]


def _design(plan: Plan, entry: int, settings: Sequence[Setting]) -> FactorialDesign:
    own = [setting for setting in settings if setting.entry == entry]
    levels: dict[str, dict[str, Any]] = {}
    for setting in own:
        for name, level in setting.factors.items():
            if name != "arm":
                levels.setdefault(name, {}).setdefault(factors_key({"": level}), level)
    varied = {n: tuple(by_key.values()) for n, by_key in levels.items() if len(by_key) > 1}
    combinations = {without_arm(setting) for setting in own}
    kind, resolution, confounded = _kind(plan, varied, len(combinations))
    return FactorialDesign(
        entry=entry,
        benchmark=own[0].benchmark,
        kind=kind,
        levels=varied,
        reference=_reference(own, settings),
        settings=len(own),
        resolution=resolution,
        confounded=confounded,
    )


def _kind(
    plan: Plan, varied: Mapping[str, Sequence[Any]], combinations: int
) -> tuple[DesignKind, int | None, tuple[str, ...]]:
    sizes = [len(levels) for levels in varied.values()]
    if combinations == math.prod(sizes):
        return "full", None, ()
    divisor = int(plan.design.fraction.partition("/")[2] or 1)
    if divisor == 1:
        return "partial", None, ()
    try:
        part = fraction.part(list(varied), sizes, divisor, plan.seed or 0)
    except fraction.UnbalancedFraction:
        return "partial", None, ()
    return part.kind, part.resolution, (*part.generators, *part.aliases)


def _reference(own: Sequence[Setting], settings: Sequence[Setting]) -> dict[str, Any]:
    """The baseline's level of each factor, as its settings have it."""
    by_index = {setting.index: setting for setting in settings}
    levels: dict[str, Any] = {}
    for setting in own:
        for index, _ in setting.baseline.values():
            base = by_index.get(int(index))
            for name, level in base.factors.items() if base else ():
                if setting.factors.get(name) != level:
                    levels.setdefault(name, level)
    return levels
