"""Documents of `nephoscope capacity --json`, which files of cost and of sizes name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nephoscope.core.errors import UsageError
from nephoscope.core.format_versions import CAPACITY
from nephoscope.core.model import Estimate
from nephoscope.core.reading import jsontext, textfile
from nephoscope.features.cost.quantities import Quantity


def capacity_document(file: Path) -> Any:
    """Returns a document of `nephoscope capacity --json`. Raises UsageError for no JSON."""
    try:
        return jsontext.parse(textfile.read(file, "result of `nephoscope capacity`", UsageError))
    except ValueError as error:
        raise UsageError(f"{file}: this is no JSON: {error}.", "Use `capacity --json`.") from None


def capacity_in(document: Any, file: Path) -> Estimate:
    """The estimate in a document of `nephoscope capacity --json`."""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if CAPACITY.is_later(version):
        raise UsageError(*CAPACITY.refusal(file, version))
    stated = document.get("capacity_per_s") if isinstance(document, dict) else None
    if not isinstance(stated, Mapping):
        raise UsageError(
            f"{file}: it states no capacity.", "Use the output of `nephoscope capacity --json`."
        )
    keys = ("value", "low", "high", "confidence", "n")
    numbers = {key: stated[key] for key in keys if stated.get(key) is not None}
    if ("low" in numbers) != ("high" in numbers):
        numbers = {key: numbers[key] for key in numbers if key not in ("low", "high")}
    try:
        return Quantity.model_validate(numbers).estimate("per_s")
    except ValidationError:
        raise UsageError(
            f"{file}: capacity_per_s is no estimate above zero.", "Measure the capacity again."
        ) from None
