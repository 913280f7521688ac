"""The JSON documents that several commands print, and the schemas of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.cli.kit import command, registered
from nephoscope.cli.kit.command import Document
from nephoscope.core.records import dataclass

Row = Mapping[str, Any]
Rows = tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """A plan that was not run: settings, order of trials, estimated time and side effects."""

    plan: str
    question: str
    seed: int | None
    targets: Rows
    settings: Rows
    designs: Rows
    schedule: Rows
    estimate: Row
    side_effects: Rows


RESULT = Document("result", ".report.report_files:document_record", "Result of a Nephoscope run")
PREVIEW = Document("preview", Preview)


def documents() -> dict[str, Document]:
    """Returns the documents of all commands by name, in the order of the help."""
    records = command.records(registered.program()).values()
    return {printed.name: printed for record in records for printed in record.prints.values()}


def commands_schema() -> dict[str, Any]:
    """Returns the schema of all documents without a file of their own, each under `$defs`."""
    from nephoscope.core.documents import DRAFT

    definitions: dict[str, Any] = {}
    for name, document in documents().items():
        if not document.title:
            schema = document.schema()
            definitions |= schema.pop("$defs", {})
            schema.pop("$schema")
            definitions[name] = schema
    return {"$schema": DRAFT, "title": "Documents of Nephoscope's commands", "$defs": definitions}
