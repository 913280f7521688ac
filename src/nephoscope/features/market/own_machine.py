"""Figures of a machine that was not imported, in a CSV file: `metric,value` lines."""

from __future__ import annotations

import math
from pathlib import Path

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import textfile
from nephoscope.features.market.micro_benchmarks import MachineFacts
from nephoscope.features.market.prediction import OwnMachine

_COLUMNS = ["metric", "value"]
_ARCHITECTURES = ("x86_64", "aarch64")


def read(file: Path) -> OwnMachine:
    """Returns the machine of a file. Besides metrics, lines `cpus`, `threads_per_core` and
    `architecture` state its facts. Raises UsageError with file and line."""
    text = textfile.read(file, "figures", UsageError, pipe=True)
    rates: dict[str, float] = {}
    facts: dict[str, str] = {}
    for where, row in textfile.csv_records(text, str(file), _COLUMNS):
        name, value = row["metric"].strip(), row["value"].strip()
        if name in rates or name in facts:
            raise UsageError(f"{where}: {name[:80]} is there twice.", "Keep one of the lines.")
        if name in ("cpus", "threads_per_core", "architecture"):
            facts[name] = value
        else:
            rates[name] = _positive(value, where)
    if facts.get("architecture", "x86_64") not in _ARCHITECTURES:
        raise UsageError(
            f"{file}: the architecture '{facts['architecture'][:30]}' is none of those that were "
            "measured.",
            "Write architecture,x86_64 or architecture,aarch64.",
        )
    if "cpus" not in facts:
        raise UsageError(f"{file}: the number of CPUs is missing.", "Add a line cpus,NUMBER.")
    counts = {key: _whole(facts.get(key, "1"), key, file) for key in ("cpus", "threads_per_core")}
    known = MachineFacts(
        counts["cpus"], counts["threads_per_core"], facts.get("architecture", "x86_64")
    )
    return OwnMachine(file.stem, known, rates)


def _positive(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(
            f"{where}: '{text[:40]}' is no rate.", "Write a number above 0, or omit the line."
        )
    return value


def _whole(text: str, key: str, file: Path) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 100_000:
        raise UsageError(f"{file}: {key} is '{text[:30]}'.", f"Write {key},NUMBER.")
    return value
