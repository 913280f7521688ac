"""Reads a plan from a file, with file, line and column in errors; gives its values and hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from nephoscope import catalog
from nephoscope.core import units
from nephoscope.core.errors import PlanError, StoreError, UsageError
from nephoscope.core.reading import textfile
from nephoscope.core.reading.fields import BY_HAND
from nephoscope.core.reading.sentences import Place, record_at, validation_errors
from nephoscope.core.reading.yamltext import Loc
from nephoscope.measure.plans.check import check_readable_entries
from nephoscope.measure.plans.expand import check_all
from nephoscope.measure.plans.files.includes import IncludedDocument, gather
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds import DEFAULT, KINDS
from nephoscope.measure.targets.kinds.record import TargetRecord

if TYPE_CHECKING:
    from nephoscope.measure.lab.topology import Topology


def load(
    path: Path | str,
    sets: Mapping[str, str] | None = None,
    known: catalog.Catalog | None = None,
) -> Plan:
    """The plan in the file `path`, with `sets` (dotted path -> YAML value) put over it.

    Raises PlanError (`file:line:column: …`) for whatever keeps the plan from being run as written.
    """
    return read(path, sets, known)[0]


def read(
    path: Path | str,
    sets: Mapping[str, str] | None = None,
    known: catalog.Catalog | None = None,
) -> tuple[Plan, Place]:
    """As `load`, with the function that tells where in its files a part of the plan stands."""
    file = Path(path)
    document = gather(textfile.read(file, pipe=True), str(file), sets or {})
    plan = _from_document(document, known or catalog.load())
    return plan, document.place


def from_text(text: str, name: str, sets: Mapping[str, str], known: catalog.Catalog) -> Plan:
    """As `load`, of a text; `name` stands where the file name stands in errors."""
    return _from_document(gather(text, name, sets), known)


def _from_document(document: IncludedDocument, known: catalog.Catalog) -> Plan:
    """The checked plan of what a person wrote, whose numbers need their units."""
    plan = from_values(document.values, known, document.place, context=BY_HAND)
    lab = document.values.get("lab")
    # The delays of a matrix were read with their units, and stand here as seconds.
    if isinstance(lab, dict) and "geo" not in lab:
        from nephoscope.measure.lab import files

        topology = files.from_values(
            lab, lambda loc: document.place(("lab", *loc)), context=BY_HAND
        )
        _refuse_bare_levels(plan, topology, document.place)
    return plan


def _refuse_bare_levels(plan: Plan, topology: Topology, place: Place) -> None:
    """Raises PlanError for the levels of a condition that need a unit and have none."""
    from nephoscope.measure.lab import files

    for name, factor in plan.factors.items():
        numbers = [level for level in factor.levels if isinstance(level, int | float)]
        for level in numbers if factor.path.startswith("lab.") else ():
            try:
                files.with_condition(topology, factor.path.removeprefix("lab."), str(level))
            except UsageError as error:  # a count is no text, and is told apart by that
                if units.NEEDS_UNIT in str(error):
                    where = place(("factors", name, "levels"))
                    raise PlanError(f"{where}{error.message}", error.hint) from error


def from_values(
    values: Mapping[str, Any], known: catalog.Catalog, place: Place, context: str | None = None
) -> Plan:
    """The checked plan of plain values; `place` begins each error. context: of `read_by`."""
    try:
        plan = Plan.model_validate(values, context=context)
    except ValidationError as error:
        every = validation_errors(error, place, partial(_record_at, values))
        check_readable_entries(every, values, known, place)
        every.report()
        raise
    return check_all(plan, known, place)


def plan_values(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, as a manifest keeps it; `plan_of` reads it back."""
    values: dict[str, Any] = plan.model_dump(mode="json", by_alias=True, exclude_none=True)
    return values


def plan_of(run: str, values: Mapping[str, Any]) -> Plan | None:
    """The plan of a stored run from its manifest's values; None for no values. StoreError."""
    try:
        return Plan.model_validate(values) if values else None
    except ValidationError as error:
        raise StoreError(
            f"The plan of run {run} cannot be read.",
            "`nephoscope verify` checks the run; its samples can be exported.",
        ) from error


def plan_hash(plan: Plan) -> str:
    """16 hex digits of the plan's content; a seed counts only where the plan gives one."""
    text = json.dumps(plan_values(plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _record_at(values: Mapping[str, Any], loc: Loc) -> Any:
    """The record at a place; of a target that of its kind."""
    if loc[:1] == ("targets",) and len(loc) > 1:
        return KINDS.get(values["targets"][loc[1]].get("kind", DEFAULT), TargetRecord)
    return record_at(Plan, loc)
