"""Writes the comparison as files: in a run's report, and over all parts of a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from nephoscope.store.files import translating_os_errors, write_atomically
from nephoscope.studies.catalogue import ReferenceStudy
from nephoscope.studies.comparison.conclusions import ConclusionOutcome
from nephoscope.studies.comparison.part_result import PartResult, three_way_numbers
from nephoscope.studies.report import page


def write(
    study: ReferenceStudy,
    parts: Sequence[PartResult],
    directory: Path,
    conclusions: Sequence[ConclusionOutcome] = (),
) -> Path:
    """Writes study.html, study.md and study.json into a folder; returns study.html's path."""
    path = directory / "study.html"
    document = {"study": study.name, **document_of(parts, conclusions)}
    texts = {
        ".html": page.render_html(study, parts, conclusions),
        ".md": page.render_markdown(study, parts, conclusions),
        ".json": json.dumps(document, indent=2, ensure_ascii=False) + "\n",
    }
    with translating_os_errors(directory, "created"):
        directory.mkdir(parents=True, exist_ok=True)
    for suffix, text in texts.items():
        write_atomically(path.with_suffix(suffix), text.encode())
    return path


def document_of(
    parts: Sequence[PartResult], conclusions: Sequence[ConclusionOutcome]
) -> dict[str, Any]:
    """Returns the comparison as JSON values, for study.json and `--json`."""
    document: dict[str, Any] = as_json(
        {
            "runs": [part.run for part in parts],
            "warnings": {part.run: part.warnings for part in parts},
            "comparisons": [outcome for part in parts for outcome in part.outcomes],
            "tables": [table for part in parts for table in part.tables],
            "emulated": [row for part in parts for row in part.emulated],
            "measured_and_simulated": three_way_numbers(parts),
            "figures": [figure for part in parts for figure in part.figures],
            "conclusions": conclusions,
        }
    )
    return document


def as_json(value: Any) -> Any:
    """Returns records as JSON values; numbers that JSON lacks become null."""
    return to_jsonable_python(value, inf_nan_mode="null")
