"""Agreements by name or from files: built-in contracts, files of the user, OpenSLO documents."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from nephoscope.core.errors import PlanError, UnknownName, UsageError
from nephoscope.core.reading import foreign, recordfile, textfile, yamltext
from nephoscope.core.reading.sentences import did_you_mean, place_in
from nephoscope.features.sla import openslo
from nephoscope.features.sla.terms import Agreement, TermsReading

SUFFIXES = (".yaml", ".yml", ".json")
_AS_WRITTEN = TermsReading()
_HINT = (
    "Write its objectives as a contract (`sla: 1`; `nephoscope sla contracts ec2-region` prints "
    "one), or as an OpenSLO v1 SLO."
)


def names() -> list[str]:
    """Returns the names of the built-in contracts."""
    folder = resources.files("nephoscope.features.sla").joinpath("contracts")
    return sorted(
        path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml")
    )


def load(name: str, reading: TermsReading = _AS_WRITTEN) -> Agreement:
    """Returns the built-in contract of this name, or the agreement in the file of this path."""
    return from_text(*text_of(name), reading)


def text_of(name: str) -> tuple[str, str]:
    """Returns the text of an agreement and the name that its errors begin with."""
    if name.endswith(SUFFIXES) or "/" in name:
        return textfile.read(Path(name), "agreement", pipe=True), name
    if name not in names():
        raise UnknownName(
            f"There is no contract '{name[:80]}'{did_you_mean(name, names())}.",
            f"Name a file, or one of: {', '.join(names())}.",
        )
    path = resources.files("nephoscope.features.sla").joinpath("contracts", f"{name}.yaml")
    return path.read_text(encoding="utf-8"), f"{name}.yaml"


def from_text(text: str, name: str, reading: TermsReading = _AS_WRITTEN) -> Agreement:
    """Returns the agreement in a YAML text. PlanError with file, line and column.

    reading: how an OpenSLO document is to be read; UsageError where the text is none.
    """
    documents = [] if foreign.text_format_of(text) else yamltext.parse_all(text, name)
    if any(map(openslo.is_document, documents)):
        values = openslo.agreement_values(documents, text, name, reading)
        return recordfile.validated(values, Agreement, lambda loc: f"{name}: ")
    values = foreign.mapping_in(text, name, "contract", Agreement, _HINT)
    if "sla" not in values and (kind := foreign.format_of(values)):
        raise PlanError(f"{name}: this is {kind}, which is not read.", _HINT)
    if reading.unit or reading.slo:
        option = "--unit" if reading.unit else "--slo"
        raise UsageError(f"{option} is for OpenSLO documents; {name} is none.", "Leave it out.")
    return recordfile.validated(values, Agreement, place_in(text, name))
