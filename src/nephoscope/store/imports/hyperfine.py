"""Exports of hyperfine (`--export-json`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core.model import Better
from nephoscope.store.imports.rows import SECONDS, ImportedFigures, items, mapping, texts
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit

_BYTES = Unit("bytes", 1.0, Better.LOWER)
_IN_SEQUENCE = (
    "hyperfine measures one command after the other, so that a slow change of the machine looks "
    "like a difference between commands.",
    "hyperfine states user and system time as means over all executions; they are not imported.",
)
_MARKS = frozenset({"times", "mean", "median", "stddev", "user", "system", "exit_codes"})


def is_hyperfine(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is an export of hyperfine."""
    results = document.get("results")
    if not isinstance(results, list) or not results:
        return False
    entries = [result for result in results if isinstance(result, dict)]
    return bool(entries) and any(
        _MARKS & entry.keys() and ("command" in entry or "times" in entry) for entry in entries
    )


def read(source: Source) -> ImportedFigures:
    """Returns the executions of each command. ValueError for what is no export."""
    figures = ImportedFigures("hyperfine", missing=list(_IN_SEQUENCE))
    for position, result in enumerate(items(source.document["results"], "results"), start=1):
        try:
            _add_command(figures, mapping(result, "results"))
        except (ValueError, KeyError) as error:
            reason = str(error) if isinstance(error, ValueError) else f"{error} is missing"
            name = result.get("command") if isinstance(result, dict) else None
            where = f"Command '{name!s:.60}'" if name else f"Result {position}"
            figures.left_out.append(f"{where}: {reason}")
    return figures


def _add_command(figures: ImportedFigures, result: Mapping[str, Any]) -> None:
    parameters = mapping(result.get("parameters") or {}, "parameters")
    factors = {"command": str(result["command"]), **texts(parameters)}
    codes = items(result.get("exit_codes") or [], "exit_codes")
    if "times" not in result:
        raise ValueError(
            "'times' is missing: the times of the single executions were removed from the export "
            "and only their summary is left"
        )
    failed = set()
    for index, seconds in enumerate(items(result["times"], "times")):
        place = f"Execution {index + 1} of '{factors['command']}'"
        code = codes[index] if index < len(codes) else 0
        if code != 0:
            how = "was killed by a signal" if code is None else f"ended with exit code {code!s:.10}"
            figures.left_out.append(f"{place} {how}")
            failed.add(index)
            continue
        figures.add(place, "command", "wall_ns", seconds, SECONDS, factors=factors, headline=True)
    sizes = items(result.get("memory_usage_byte") or [], "memory_usage_byte")
    for index, size in enumerate(sizes):
        if index not in failed:
            place = f"Execution {index + 1} of '{factors['command']}'"
            figures.add(place, "command", "max_rss_bytes", size, _BYTES, factors=factors)
