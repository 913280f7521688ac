"""A plan from a file: YAML in, checked Plan out, errors with file, line and column."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nephoscope import catalog
from nephoscope.errors import PlanError
from nephoscope.plans.check import checked
from nephoscope.plans.model import Entry, Plan, Repeat, RepeatChange, Target
from nephoscope.reading import yamltext
from nephoscope.reading.sentences import Place, RecordsAt, sentence
from nephoscope.reading.yamltext import Loc


def load(
    path: Path | str,
    sets: Mapping[str, str] | None = None,
    known: catalog.Catalog | None = None,
) -> Plan:
    """The plan in the file `path`, with `sets` (dotted path -> YAML value) put over it.

    Raises PlanError (`file:line:column: …`) for whatever keeps the plan from being run as written.
    """
    file = Path(path)
    text = _read(file)
    return from_text(text, str(file), sets or {}, known or catalog.load())


def from_text(text: str, name: str, sets: Mapping[str, str], known: catalog.Catalog) -> Plan:
    """As `load`, of a text; `name` stands where the file name stands in errors."""
    values = yamltext.parse(text, name)
    if values is None:
        raise PlanError(f"{name}: the plan is empty.", "It needs at least a name and benchmarks.")
    if not isinstance(values, dict):
        raise PlanError(
            f"{name}:1:1: a plan is a mapping of keys, not {_kind_of(values)}.",
            "Begin with `name: …` and `benchmarks:`.",
        )
    for path, value in sets.items():
        _put(values, path, yamltext.parse_scalar(value))

    def place(loc: Loc) -> str:
        dotted = ".".join(map(str, loc))
        for path in sets:
            if f"{dotted}.".startswith(f"{path}.") or path.startswith(f"{dotted}."):
                return f"--set {path}={sets[path]}: "
        found = yamltext.locate(text, loc)
        return f"{name}:{found[0]}:{found[1]}: " if found else f"{name}: "

    return from_values(values, known, place)


def from_values(values: Mapping[str, Any], known: catalog.Catalog, place: Place) -> Plan:
    """The checked plan of plain values; `place` begins each error."""
    try:
        plan = Plan.model_validate(values)
    except ValidationError as error:
        # A misspelt key first: it is the reason why the right one is missing.
        errors = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        raise sentence(errors[0], place, _RECORDS_AT) from error
    return checked(plan, known, place)


def _read(file: Path) -> str:
    try:
        if file.is_dir():
            raise PlanError(f"{file}: this is a directory.", "Name the plan's YAML file in it.")
        with file.open("rb") as stream:
            raw = stream.read(yamltext.MAX_TEXT_BYTES + 1)
    except FileNotFoundError as error:
        raise PlanError(f"{file}: there is no such file.", "Check the path.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PlanError(
            f"{file}: the plan cannot be read: {reason}.", "Check its permissions."
        ) from error
    if len(raw) > yamltext.MAX_TEXT_BYTES:
        raise PlanError(f"{file}: this is larger than 1 MiB.", "Is it a plan?")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        raise PlanError(
            f"{file}:{line}:{column}: this is no UTF-8 text (byte 0x{raw[error.start]:02x}).",
            "Save the plan as UTF-8.",
        ) from error


def _put(values: Any, path: str, value: Any) -> None:
    """Puts `value` at a dotted path; missing mappings are made, lists are not lengthened."""
    steps = path.split(".")
    node = values
    for depth, step in enumerate(steps):
        last = depth == len(steps) - 1
        if isinstance(node, list):
            if not (step.isascii() and step.isdigit() and int(step) < len(node)):
                raise PlanError(
                    f"--set {path}: '{step}' is no position of a list of {len(node)}.",
                    "Positions count from 0: --set benchmarks.0.params.threads=2.",
                )
            if last:
                node[int(step)] = value
            else:
                node = node[int(step)]
        elif isinstance(node, MutableMapping):
            if last:
                node[step] = value
            else:
                node = node.setdefault(step, {})
        else:
            raise PlanError(
                f"--set {path}: '{'.'.join(steps[:depth])}' holds no keys.", "Shorten the path."
            )


_RECORDS_AT: RecordsAt = {
    (): Plan,
    ("repeat",): Repeat,
    ("targets",): Target,
    ("benchmarks",): Entry,
    ("benchmarks", "repeat"): RepeatChange,
}


def _kind_of(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a switch"}.get(type(value), "a number")
