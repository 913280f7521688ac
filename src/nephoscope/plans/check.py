"""A plan against the catalogue: names, types, units and bounds, before anything runs.

The same rules as `Params::check` of the probe, with the place in the user's file, and with sizes
and times in the units people write.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from nephoscope import units
from nephoscope.catalog import BenchmarkSpec, Catalog, ParamSpec
from nephoscope.errors import PlanError, UnknownName, UsageError
from nephoscope.plans.model import Entry, Plan
from nephoscope.reading.sentences import Place, did_you_mean
from nephoscope.reading.yamltext import Loc


def checked(plan: Plan, catalog: Catalog, place: Place = lambda _: "") -> Plan:
    """The plan with every parameter in its own unit and type; PlanError for what cannot run."""
    _unique_targets(plan, place)
    entries = []
    for index, entry in enumerate(plan.benchmarks):
        loc: Loc = ("benchmarks", index)
        try:
            spec = catalog.benchmark(entry.benchmark)
        except UnknownName as error:
            raise PlanError(f"{place((*loc, 'benchmark'))}{error.message}", error.hint) from error
        entries.append(_entry(entry, spec, loc, place))
        _repeat(plan, index, place)
    return plan.model_copy(update={"benchmarks": tuple(entries)})


def _unique_targets(plan: Plan, place: Place) -> None:
    seen: set[str] = set()
    for index, target in enumerate(plan.targets):
        if target.name in seen:
            raise PlanError(
                f"{place(('targets', index, 'name'))}two targets are named '{target.name}'.",
                "Give each target its own name.",
            )
        seen.add(target.name)


def _repeat(plan: Plan, index: int, place: Place) -> None:
    try:
        plan.repeat_of(index)
    except ValueError as error:
        raise PlanError(
            f"{place(('benchmarks', index, 'repeat'))}repeat.max is less than repeat.min.",
            "Raise max, or lower min.",
        ) from error


def _entry(entry: Entry, spec: BenchmarkSpec, loc: Loc, place: Place) -> Entry:
    for name in entry.headline:
        if name not in {metric.id for metric in spec.metrics}:
            known = [metric.id for metric in spec.metrics]
            raise PlanError(
                f"{place((*loc, 'headline'))}{spec.id} has no metric '{name}'"
                f"{did_you_mean(name, known)}.",
                f"It has: {', '.join(known)}.",
            )
    both = sorted(set(entry.params) & set(entry.factors))
    if both:
        raise PlanError(
            f"{place((*loc, 'factors', both[0]))}'{both[0]}' is both a fixed parameter and a "
            "factor.",
            "Keep it in one of the two.",
        )
    params = {
        name: _param(spec, name, value, (*loc, "params", name), place)
        for name, value in entry.params.items()
    }
    factors = {}
    for name, levels in entry.factors.items():
        where = (*loc, "factors", name)
        factors[name] = [
            _param(spec, name, level, (*where, position), place)
            for position, level in enumerate(levels)
        ]
        if len({json.dumps(level) for level in factors[name]}) < len(levels):
            raise PlanError(
                f"{place(where)}the factor '{name}' has the same level twice.", "Remove one."
            )
    return entry.model_copy(update={"params": params, "factors": factors})


def _param(spec: BenchmarkSpec, name: str, value: Any, loc: Loc, place: Place) -> Any:
    try:
        return checked_value(spec.id, spec.param(name), value)
    except UnknownName as error:
        named = loc[: loc.index(name) + 1]
        raise PlanError(f"{place(named)}{error.message}", error.hint) from error
    except UsageError as error:
        raise PlanError(f"{place(loc)}{error.message}", error.hint) from error


def checked_value(benchmark: str, param: ParamSpec, value: Any) -> Any:
    """One value in the parameter's type and unit. UsageError names the bound and the value."""
    reader = _READERS.get(param.type)
    if reader is None:
        raise UsageError(
            f"{benchmark}: {param.id} has a type that this version does not know: {param.type}.",
            "Install nephoscope and its probe in the same version.",
        )
    read = reader(param, value)
    if read is None:
        shown = json.dumps(value, default=str)
        raise UsageError(
            f"{benchmark}: {param.id} must be {_wanted(param)}, not {shown}.{_trap(param, value)}",
            f"It means: {param.doc}",
        )
    return read


def _number(param: ParamSpec, value: Any) -> float | None:
    """A finite number; a text may carry the unit of its parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        if isinstance(value, str):
            value = _UNIT_READERS.get(param.unit, float)(value)
    except (UsageError, ValueError):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    low, high = param.min, param.max
    inside = (low is None or value >= low) and (high is None or value <= high)
    return value if inside else None


def _whole(param: ParamSpec, value: Any) -> int | None:
    number = _number(param, value)
    return None if number is None or number != int(number) else int(number)


def _real(param: ParamSpec, value: Any) -> float | None:
    number = _number(param, value)
    return None if number is None else float(number)


def _switch(_: ParamSpec, value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _word(param: ParamSpec, value: Any) -> str | None:
    return value if isinstance(value, str) and value in param.choices else None


def _text(_: ParamSpec, value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _list_of(read: Callable[[ParamSpec, Any], Any]) -> Callable[[ParamSpec, Any], list[Any] | None]:
    def items(param: ParamSpec, value: Any) -> list[Any] | None:
        if not isinstance(value, list):
            return None
        out = [read(param, item) for item in value]
        return None if None in out else out

    return items


_READERS: Mapping[str, Callable[[ParamSpec, Any], Any]] = {
    "int": _whole,
    "float": _real,
    "bool": _switch,
    "choice": _word,
    "text": _text,
    "int_list": _list_of(_whole),
    "choice_list": _list_of(_word),
}
_UNIT_READERS: Mapping[str, Callable[[str], float]] = {
    "bytes": units.parse_bytes,
    # A bare number in a text is in the parameter's own unit, as it is without quotes.
    "ns": lambda text: units.parse_duration_ns(text, bare="ns"),
    "ratio": units.parse_ratio,
}
_EXAMPLES = {"bytes": " of bytes, such as 64MiB", "ns": " of ns, such as 100ms"}


def _wanted(param: ParamSpec) -> str:
    bounds = "" if param.min is None else f" from {_bound(param.min)} to {_bound(param.max)}"
    unit = _EXAMPLES.get(param.unit, "")
    return {
        "int": f"a whole number{bounds}{unit}",
        "float": f"a number{bounds}{unit}",
        "bool": "true or false",
        "choice": f"one of {', '.join(param.choices)}",
        "text": "a text",
        "int_list": f"a list of whole numbers{bounds}{unit}",
        "choice_list": f"a list of words out of {', '.join(param.choices)}",
    }[param.type]


def _bound(value: float | None) -> str:
    return "any" if value is None else f"{value:.12g}"


def _trap(param: ParamSpec, value: Any) -> str:
    """What a reader of YAML may have stumbled over."""
    if param.type in ("text", "choice") and isinstance(value, bool | int | float):
        return " Put it in quotes if it is meant as a text."
    if param.type == "bool" and str(value).lower() in ("yes", "no", "on", "off"):
        return " A plan says true and false."
    return ""
