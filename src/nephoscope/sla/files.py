"""Agreements by name or from files: built-in contracts, files of the user, OpenSLO documents."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from nephoscope.errors import PlanError, UnknownName
from nephoscope.reading import recordfile, textfile, yamltext
from nephoscope.reading.sentences import did_you_mean, place_in
from nephoscope.sla import openslo
from nephoscope.sla.terms import Agreement

SUFFIXES = (".yaml", ".yml", ".json")


def names() -> list[str]:
    """Returns the names of the built-in contracts."""
    folder = resources.files("nephoscope.sla").joinpath("contracts")
    return sorted(
        path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml")
    )


def load(name: str) -> Agreement:
    """Returns the built-in contract of this name, or the agreement in the file of this path."""
    return from_text(*text_of(name))


def text_of(name: str) -> tuple[str, str]:
    """Returns the text of an agreement and the name that its errors begin with."""
    if name.endswith(SUFFIXES) or "/" in name:
        return textfile.read(Path(name), "agreement", pipe=True), name
    if name not in names():
        raise UnknownName(
            f"There is no contract '{name[:80]}'{did_you_mean(name, names())}.",
            f"Name a file, or one of: {', '.join(names())}.",
        )
    path = resources.files("nephoscope.sla").joinpath("contracts", f"{name}.yaml")
    return path.read_text(encoding="utf-8"), f"{name}.yaml"


def from_text(text: str, name: str) -> Agreement:
    """Returns the agreement in a YAML text. PlanError with file, line and column."""
    values = yamltext.parse(text, name)
    if not isinstance(values, dict):
        raise PlanError(f"{name}:1:1: an agreement is a mapping of keys.", "Begin with `sla: 1`.")
    if openslo.is_document(values):
        values = openslo.agreement_values(values, name)
    return recordfile.validated(values, Agreement, place_in(text, name))
