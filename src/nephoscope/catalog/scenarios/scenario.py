"""A scenario: named, read, changed from the command line, checked by the simulator itself."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.catalog.scenarios import error_location, program, time_zones
from nephoscope.core import units
from nephoscope.core.errors import BenchmarkFailed, PlanError, UnknownName
from nephoscope.core.reading import foreign, textfile, yamltext
from nephoscope.core.reading.paths import put
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass

_USAGE = 2
_UNKNOWN = re.compile(r"unknown (?:field|variant) `([^`]*)`")
_QUOTED = re.compile(r"`([^`]*)`")
_WRONG_TYPE = re.compile(r"invalid (?:type|value): (.*), expected ([^,.]*)(.*)")
_TYPES: Mapping[str, str] = {
    "f64": "a number",
    **dict.fromkeys(("u8", "u16", "u32", "u64", "usize", "i32", "i64"), "a whole number"),
    "sequence": "a list",
    "map": "a mapping",
    "a map": "a mapping of keys and values",
    "a sequence": "a list",
    "null": "nothing",
    "unit value": "nothing",
    "a boolean": "true or false",
}
"""Words of the simulator's reader -> words of a user."""
_PERCENTAGE = re.compile(r"\s*[0-9.]+\s*%\s*")
_RATIO_KEY = re.compile(r"(?:^|_)(?:ratio|share)$")


@dataclass(frozen=True, slots=True)
class SimulationKind:
    """Kind of simulation: the word on the command line, its benchmark, whose scenarios it takes."""

    word: str
    benchmark: str
    scenarios: str


GEO = SimulationKind("geo", "sim.geo", "sim.geo")
PLACE = SimulationKind("geo", "sim.place", "sim.geo")
SCHEDULER = SimulationKind("scheduler", "sim.scheduler", "sim.scheduler")
SELECTION = SimulationKind("selection", "sim.selection", "sim.selection")
KINDS = (GEO, SCHEDULER, SELECTION)
"""Kinds that have a word of their own, in the order of lists."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A checked scenario. text: its JSON, as the simulator takes it."""

    name: str
    values: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class _Source:
    """Source of the values; text: of a file, to find lines in."""

    name: str
    values: dict[str, Any]
    text: str | None
    sets: Mapping[str, str]

    def place(self, loc: Loc) -> str:
        """Text of a place, to begin an error with: that of `--set` where it gave the value."""
        dotted = ".".join(map(str, loc))
        for path, value in self.sets.items():
            if loc and f"{dotted}.".startswith(f"{path}."):
                return f"--set {path}={value}: "
        position = yamltext.locate(self.text, loc) if self.text is not None else None
        return f"{self.name}:{position[0]}:{position[1]}: " if position else f"{self.name}: "


def builtin(kind: SimulationKind) -> Mapping[str, Mapping[str, Any]]:
    """The built-in scenarios of a kind by name."""
    return program.scenarios().get(kind.scenarios, {})


def load(
    kind: SimulationKind,
    name: str,
    sets: Mapping[str, str] | None = None,
    over: Mapping[str, Any] | None = None,
) -> Scenario:
    """The scenario of a file or of a built-in name.

    sets: dotted path -> YAML value, put over it. over: keys that are put over all of that. Raises
    PlanError with file, line and column for what the simulator refuses; UnknownName when there is
    neither file nor name.
    """
    source = _source(kind, name, sets or {})
    source.values.update(over or {})
    text = _checked_text(kind, source.values, source.place)
    return Scenario(str(source.values.get("name") or Path(name).stem), source.values, text)


def read(
    kind: SimulationKind, name: str, sets: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """The values of a scenario as they were written, before anything checks them; see `load`."""
    return _source(kind, name, sets or {}).values


def text_of(benchmark: str, values: Mapping[str, Any], place: Callable[[Loc], str]) -> str:
    """The JSON of a scenario that stands in a plan; `place` tells where its parts do.

    Raises PlanError for what the simulator refuses.
    """
    kind = next(kind for kind in (GEO, PLACE, SCHEDULER, SELECTION) if kind.benchmark == benchmark)
    return _checked_text(kind, copy.deepcopy(dict(values)), place)


def _source(kind: SimulationKind, name: str, sets: Mapping[str, str]) -> _Source:
    source = _read_source(kind, name, sets)
    for path, value in sets.items():
        put(source.values, path, yamltext.parse_scalar(value))
    return source


def _read_source(kind: SimulationKind, name: str, sets: Mapping[str, str]) -> _Source:
    known = builtin(kind)
    if name in known:
        return _Source(f"built-in {name}", dict(known[name]), None, sets)
    file = Path(name)
    if not file.exists() and not file.suffix:
        raise UnknownName(
            f"There is no scenario '{name}'{did_you_mean(name, known)}.",
            f"Name a file, or a built-in one: {', '.join(known) or 'there is none'}.",
        )
    text = textfile.read(file, "scenario", pipe=True)
    hint = "Begin with `version: 1`; docs/how-to/simulate.md describes the keys."
    values = foreign.mapping_in(text, str(file), "scenario", hint=hint)
    return _Source(str(file), values, text, sets)


def _checked_text(kind: SimulationKind, values: dict[str, Any], place: Callable[[Loc], str]) -> str:
    """Returns the JSON of a scenario that the simulator accepts; zones in it become hours."""
    if kind.scenarios == GEO.scenarios:
        time_zones.resolve(values, place)
    _read_percentages(values)
    text = error_location.as_text(values)
    try:
        program.check(kind.benchmark, {"scenario": text})
    except BenchmarkFailed as failure:
        if failure.exit_code != _USAGE:
            raise
        message, loc = error_location.place_in(failure.message, text, values)
        message = message.removeprefix("The scenario cannot be read: ")
        raise PlanError(f"{place(loc)}{_in_words(message)}", failure.hint) from failure
    return text


def _read_percentages(values: Any) -> None:
    """Replaces '95%' by 0.95, in place, where the key is a ratio or a share."""
    if isinstance(values, list):
        for part in values:
            _read_percentages(part)
    if not isinstance(values, dict):
        return
    for key, value in values.items():
        if isinstance(value, str) and _PERCENTAGE.fullmatch(value) and _RATIO_KEY.search(str(key)):
            values[key] = units.parse_ratio(value)
        else:
            _read_percentages(value)


def _in_words(message: str) -> str:
    """The simulator's message without the names of its types, and with the nearest known name."""
    if wrong := _WRONG_TYPE.match(message):
        type_given, expected, rest = wrong.groups()
        type_given = _QUOTED.sub(r"\1", type_given.removeprefix("string "))
        type_given = re.sub(r"^(?:integer|floating point|boolean) ", "", type_given)
        type_given = _TYPES.get(type_given, f"'{type_given.strip(chr(34))}'")
        takes = "a mapping of keys and values" if expected.startswith("struct ") else expected
        return f"found {type_given}, but this key takes {_TYPES.get(takes, takes)}{rest}"
    match = _UNKNOWN.match(message)
    if match is None:
        return message
    known = _QUOTED.findall(message[match.end() :])
    return f"{match[0]}{did_you_mean(match[1], known)}{message[match.end() :]}"
