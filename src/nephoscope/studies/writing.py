"""The comparison as files: beside a run's report, and over all parts of a study in the store."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nephoscope.errors import StoreError
from nephoscope.studies import page
from nephoscope.studies.concluding import Concluded
from nephoscope.studies.page import PartResult
from nephoscope.studies.shelf import Shelf


def write(
    shelf: Shelf,
    parts: Sequence[PartResult],
    directory: Path,
    concluded: Sequence[Concluded] = (),
) -> Path:
    """Writes study.html, study.md and study.json into a folder; returns the path of study.html."""
    path = directory / "study.html"
    document = {"study": shelf.name, **document_of(parts, concluded)}
    texts = {
        path: page.html(shelf, parts, concluded),
        path.with_suffix(".md"): page.markdown(shelf, parts, concluded),
        path.with_suffix(".json"): json.dumps(finite(document), indent=2, ensure_ascii=False)
        + "\n",
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            aside = file.with_name(f".{file.name}.part")
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, file)
    except OSError as error:
        raise StoreError(
            f"Cannot write the comparison to '{directory}': {error.strerror or error}.",
            f"Free some space, then run `nephoscope study show {shelf.name}`.",
        ) from error
    return path


def document_of(parts: Sequence[PartResult], concluded: Sequence[Concluded]) -> dict[str, Any]:
    """What runs of the parts say, as it stands in study.json and in `--json`."""
    return {
        "runs": [one.run for one in parts],
        "warnings": {one.run: list(one.warnings) for one in parts},
        "comparisons": [outcome.to_json() for one in parts for outcome in one.outcomes],
        "tables_filled": [sheet.to_json() for one in parts for sheet in one.sheets],
        "emulated": [row.to_json() for one in parts for row in one.emulated],
        "together": [one.to_json() for one in page.joined(parts)],
        "figures": [picture.to_json() for one in parts for picture in one.pictures],
        "conclusions": [one.to_json() for one in concluded],
    }


def finite(value: Any) -> Any:
    """The value with numbers that JSON lacks as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list) else value
