"""A plan's files put together: includes, the lab's topology, `--set`; every value keeps its place.

The file that is named wins over what it includes, mapping by mapping; lists are replaced whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import PlanError
from nephoscope.core.reading import foreign, textfile, yamltext
from nephoscope.core.reading.fields import Record
from nephoscope.core.reading.paths import put
from nephoscope.core.reading.sentences import Place, place_in
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.model import Plan

_HINT = "Begin with `name: …` and `{}:`."
_QUOTED = re.compile("'[^']*'")


@dataclass(frozen=True, slots=True)
class PlanSource:
    """A file and where its values stand in the plan; at: the place of its root."""

    name: str
    text: str
    at: Loc = ()
    _place: Place = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", place_in(self.text, self.name))

    def place(self, loc: Loc) -> str:
        """'file:line:column: ' of a place in the plan."""
        return self._place(loc[len(self.at) :])


@dataclass(slots=True)
class IncludedDocument:
    """Plain values, and for each part of them the file that it came from.

    owners: place -> source; the nearest place above a value that is a key here is its owner.
    sets: what the command line put over the files.
    """

    values: dict[str, Any]
    owners: dict[Loc, PlanSource]
    sets: Mapping[str, str] = field(default_factory=dict)

    def place(self, loc: Loc) -> str:
        """Text of a place, to begin an error with: that of `--set` where it gave the value."""
        dotted = ".".join(map(str, loc))
        for path, text in self.sets.items():
            if f"{dotted}.".startswith(f"{path}.") or path.startswith(f"{dotted}."):
                return f"--set {path}={text}: "
        return self.owner(loc).place(loc)

    def owner(self, loc: Loc) -> PlanSource:
        """The file that a value came from."""
        for length in range(len(loc), 0, -1):
            if loc[:length] in self.owners:
                return self.owners[loc[:length]]
        return self.owners[()]


def gather(text: str, name: str, sets: Mapping[str, str]) -> IncludedDocument:
    """The document of a plan's text: its includes, `sets` (dotted path -> YAML value), its lab.

    name: the file's name in errors; other files are found beside it. Raises PlanError.
    """
    document = _with_includes(text, name, (), [])
    document.sets = sets
    inside = {path: value for path, value in sets.items() if path.startswith("lab.")}
    for path, value in sets.items():
        if path.split(".")[0] == "include":
            raise PlanError(
                f"--set {path}={value}: files are not included from the command line.",
                "Write `include:` into the plan.",
            )
        if path not in inside:
            put(document.values, path, yamltext.parse_scalar(value))
    _take_in_lab(document)
    for path, value in inside.items():
        put(document.values, path, yamltext.parse_scalar(value))
    _take_in_matrix(document)
    return document


def _with_includes(
    text: str, name: str, chain: tuple[Path, ...], files: list[Path]
) -> IncludedDocument:
    """The document of a file. chain: what includes it; files: all included so far, of any file."""
    source = PlanSource(name, text)
    values = (
        _of_named_file(text, name, Plan, "plan")
        if chain
        else foreign.mapping_in(text, name, "plan", Plan, _HINT.format("benchmarks"))
    )
    document = IncludedDocument(values, {(): source})
    names = document.values.pop("include", ())
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list | tuple) or not all(
        isinstance(included, str) for included in names
    ):
        raise PlanError(
            f"{source.place(('include',))}include is a list of files.",
            "Write include: [base.yaml].",
        )
    own = _real(name)
    below: IncludedDocument | None = None
    for index, included in enumerate(names):
        at = source.place(("include", index))
        file = Path(name).parent / included
        lower_text = _read(file, "plan", at)
        files.append(file)
        if len(files) > limits.INCLUDED_FILES:
            raise PlanError(
                f"{at}the plan includes more than {limits.INCLUDED_FILES} files.", "Merge some."
            )
        if _real(file) in (*chain, own):
            ring = " -> ".join(path.name for path in (*chain, own, file))
            raise PlanError(f"{at}the files include one another: {ring}.", "Break the ring.")
        if len(chain) + 1 >= limits.INCLUDE_DEPTH:
            raise PlanError(
                f"{at}more than {limits.INCLUDE_DEPTH} files include one another in a row.",
                "Flatten them.",
            )
        lower = _with_includes(lower_text, str(file), (*chain, own), files)
        below = lower if below is None else _over(lower, below)
    return document if below is None else _over(document, below)


def _over(above: IncludedDocument, below: IncludedDocument) -> IncludedDocument:
    """Two documents as one; where both say something, `above` wins."""
    values = dict(above.values)
    owners = dict(above.owners)
    _fill(values, below.values, (), owners, below)
    return IncludedDocument(values, owners)


def _fill(
    values: dict[str, Any],
    lower: Mapping[str, Any],
    loc: Loc,
    owners: dict[Loc, PlanSource],
    below: IncludedDocument,
) -> None:
    for key, value in lower.items():
        at = (*loc, key)
        if key not in values:
            values[key] = value
            owners[at] = below.owner(at)
            size = len(at)
            owners |= {owned: src for owned, src in below.owners.items() if owned[:size] == at}
        elif isinstance(values[key], dict) and isinstance(value, dict):
            values[key] = dict(values[key])
            _fill(values[key], value, at, owners, below)


def _take_in_lab(document: IncludedDocument) -> None:
    """The topology in place of its file's name, so that a run keeps all that it depends on."""
    name = document.values.get("lab")
    if not isinstance(name, str):
        return
    at = document.place(("lab",))
    file = Path(document.owner(("lab",)).name).parent / name
    text = _read(file, "topology", at)
    from nephoscope.measure.lab.topology import Topology

    document.values["lab"] = _of_named_file(text, str(file), Topology, "topology")
    document.owners[("lab",)] = PlanSource(str(file), text, ("lab",))
    # The option named the file; what stands in it has its own places.
    document.sets = {path: value for path, value in document.sets.items() if path != "lab"}


def _take_in_matrix(document: IncludedDocument) -> None:
    """The delays between sites in place of the name of their CSV file."""
    lab: Any = document.values.get("lab")
    geo = lab.get("geo") if isinstance(lab, dict) else None
    if not isinstance(geo, dict) or not isinstance(geo.get("latency"), str):
        return
    from nephoscope.measure.lab import files

    base = Path(document.owner(("lab", "geo", "latency")).name).parent
    topology = files.from_values(lab, lambda loc: document.place(("lab", *loc)), base)
    matrix = files.values_of(topology)["geo"]["latency"]
    document.values["lab"] = {**lab, "geo": {**geo, "latency": matrix}}


def _read(file: Path, what: str, at: str) -> str:
    """The text of a file that another one names; `at` is the place where it does."""
    try:
        return textfile.read(file, what)
    except PlanError as error:
        raise PlanError(f"{at}{error.message}", error.hint) from error


def _of_named_file(text: str, name: str, record: type[Record], what: str) -> dict[str, Any]:
    """The values of a file that a plan names; an error quotes nothing of it unless it is one.

    A stranger's plan may name any file that this user can read.
    """
    try:
        holds = "benchmarks" if what == "plan" else "hosts"
        values = foreign.mapping_in(text, name, what, record, _HINT.format(holds))
    except PlanError as error:
        raise PlanError(_QUOTED.sub("'…'", error.message), error.hint) from None
    if not values.keys() & {
        word for key, of in record.model_fields.items() for word in (key, of.alias)
    }:
        raise PlanError(f"{name}: this is no {what}; it has none of its keys.", "Check the name.")
    return values


def _real(name: Path | str) -> Path:
    """The path without links; unlike Path.resolve, it accepts links that lead in a ring."""
    return Path(os.path.realpath(name))
