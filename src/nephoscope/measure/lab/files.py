"""A topology from a file: YAML in, checked Topology out, errors with file, line and column."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nephoscope.core import units
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.reading import foreign, textfile
from nephoscope.core.reading.fields import BY_HAND
from nephoscope.core.reading.sentences import Place, choices, place_in, record_at, validation_errors
from nephoscope.measure.lab import check
from nephoscope.measure.lab.topology import Topology


def load(path: Path | str, *, here: bool = False) -> Topology:
    """The topology in the file `path`. PlanError (`file:line:column: …`) when it cannot be used.

    here: also when this machine cannot give what it asks for.
    """
    file = Path(path)
    return from_text(textfile.read(file, "topology", pipe=True), str(file), file.parent, here=here)


def from_text(text: str, name: str, base: Path = Path(), *, here: bool = False) -> Topology:
    """As `load`, of a text; `name` stands where the file name stands in errors."""
    hint = "Begin with `name: …` and `hosts:`."
    values = foreign.mapping_in(text, name, "topology", Topology, hint)
    place = place_in(text, name)
    topology = from_values(values, place, base, context=BY_HAND)
    if here:
        check.fits_here(topology, place)
    return topology


def from_values(
    values: Mapping[str, Any],
    place: Place = lambda loc: "",
    base: Path = Path(),
    context: str | None = None,
) -> Topology:
    """The checked topology of plain values; `place` begins each error.

    base: where files that it names (a latency matrix) are looked for. context: of `read_by`.
    """
    try:
        topology = Topology.model_validate(values, context=context)
    except ValidationError as error:
        validation_errors(error, place, partial(record_at, Topology)).report()
        raise
    if topology.geo is not None and isinstance(topology.geo.latency, str):
        matrix = _matrix(base / topology.geo.latency)
        geo = topology.geo.model_copy(update={"latency": matrix})
        topology = topology.model_copy(update={"geo": geo})
    return check.checked(topology, place)


def values_of(topology: Topology) -> dict[str, Any]:
    """Plain values (JSON) that `from_values` reads as the same topology."""
    return topology.model_dump(mode="json", by_alias=True, exclude_unset=True)


def with_condition(topology: Topology, path: str, value: Any) -> Topology:
    """The topology with another value at a dotted path, checked anew.

    Raises UsageError with one sentence for a path that names no setting that may change while the
    lab is up, or a value that it cannot have.
    """
    _known(topology, path.split("."), path)
    try:
        return with_conditions(topology, {path: value})
    except UsageError as error:
        raise UsageError(f"{path}={value}: {error.message}", error.hint) from error


def with_conditions(topology: Topology, conditions: Mapping[str, Any]) -> Topology:
    """The topology with other values at dotted paths, set all at once. Raises UsageError."""
    values = values_of(topology)
    for path, value in conditions.items():
        node = values
        *steps, last = path.split(".")
        for step in steps:
            if not isinstance(node.get(step), dict):
                node[step] = {}
            node = node[step]
        node[last] = value
    return from_values(values)


CHANGEABLE: Mapping[str, tuple[str, ...]] = {
    "links": ("rate", "delay", "jitter", "loss", "duplicate", "ingress", "queue", "up", "down"),
    "hosts": ("platform", "cpu", "memory", "disk", "vcpus", "tcp"),
    "geo": ("latency", "jitter", "loss"),
}
"""What may change while a lab is up; the rest is its shape."""


def _known(topology: Topology, steps: list[str], path: str) -> None:
    """UsageError unless the path begins with a thing of this lab and a setting that may change."""
    kinds = ", ".join(CHANGEABLE)
    if steps[0] not in CHANGEABLE:
        raise UsageError(f"'{path}' is no setting of a lab.", f"It begins with one of: {kinds}.")
    if steps[0] == "geo":
        rest = steps[1:]
    else:
        named: Mapping[str, Any] = getattr(topology, steps[0])
        if len(steps) < 2 or steps[1] not in named:
            raise UsageError(
                f"'{path}': lab {topology.name} has no such {steps[0].removesuffix('s')}.",
                choices("It has", named, f"Its topology has no `{steps[0]}`; add one there."),
            )
        rest = steps[2:]
    may = CHANGEABLE[steps[0]]
    if not rest or rest[0] not in may:
        raise UsageError(
            f"'{path}' cannot change while the lab is up.", f"These can: {', '.join(may)}."
        )


def _matrix(file: Path) -> dict[str, dict[str, float]]:
    """A matrix of a CSV file: names in the first row and column; empty cells are left out."""
    text = textfile.read(file, "latency matrix", PlanError)
    rows = [cells for _, cells in textfile.csv_rows(text, str(file), PlanError)]
    if len(rows) < 2 or len(rows[0]) < 2:
        raise PlanError(
            f"{file}:1:1: a latency matrix has site names in its first row and column.",
            "Write `,paris,tokyo` and below it `paris,,110ms`.",
        )
    heads = [cell.strip() for cell in rows[0][1:]]
    matrix: dict[str, dict[str, float]] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(rows[0]):
            raise PlanError(
                f"{file}:{number}:1: this line has {len(row)} columns, the first {len(rows[0])}.",
                "Give each line one cell for each site.",
            )
        name = row[0].strip()
        matrix[name] = {}
        for column, (head, cell) in enumerate(zip(heads, row[1:], strict=True), 2):
            if cell.strip() in ("", "-") or head == name:
                continue
            try:
                matrix[name][head] = units.parse_duration_ns(cell.strip()) / 1e9
            except UsageError as error:
                # A stranger's plan may name any file here: only what looks like a number is quoted.
                is_near = len(cell) < 12 and cell.strip()[:1].isdigit()
                problem = error.message if is_near else "this is no duration."
                raise PlanError(
                    f"{file}:{number}: column {column}: {problem}", "Write 110ms."
                ) from error
    return matrix
