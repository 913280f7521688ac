"""Figures that somebody wrote down: the CSV files of `rank FILE.csv`.

One row for each value of an alternative; rows of the same metric and alternative are repetitions.
The full description is docs/how-to/rank.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Estimate, MetricResult
from nephoscope.core.reading import numbers, textfile
from nephoscope.core.reading.sentences import did_you_mean, listed
from nephoscope.features.rank.records import RowKind
from nephoscope.features.rank.resources import RESOURCES
from nephoscope.features.rank.rows import FEW, RANK, Alternatives, Measurement
from nephoscope.stats.statistics import estimates, variation

NEEDED = ("metric", "alternative", "value")
COLUMNS = (*NEEDED, "parameter", "benchmark", "kind", "resource", "unit", "better", "round", "note")
_OF_METRIC = ("metric", "parameter", "benchmark", "kind", "resource", "unit", "better")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "kind": get_args(RowKind),
    "resource": RESOURCES,
    "better": ("lower", "higher"),
}
_NO_VALUE = "no value in the file"
MAX_ALTERNATIVES = 20_000
MAX_VALUES = 10_000
"""Repetitions of one metric and alternative."""


@dataclass(slots=True)
class _Series:
    head: Mapping[str, str]
    values: list[float] = field(default_factory=list)
    rounds: dict[int, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


def read(file: Path, confidence: float) -> Alternatives:
    """Reads the values of a CSV file. UsageError with file and line for whatever is wrong."""
    text = textfile.read(file, "list of values", UsageError, pipe=True, largest=limits.IMPORT_BYTES)
    figures = Alternatives(confidence, no_reason=_NO_VALUE)
    heads: dict[tuple[str, ...], Mapping[str, str]] = {}
    series: dict[tuple[str, ...], _Series] = {}
    names: dict[str, None] = {}
    checked: dict[tuple[str, ...], tuple[str, ...]] = {}
    for where, row in textfile.csv_records(text, str(file), COLUMNS, NEEDED):
        _add(row, where, figures, names, heads, series, checked)
    figures.names = list(names)
    of_few = len(names) <= FEW
    figures.measurements = [_measurement(item, confidence, of_few) for item in series.values()]
    if assumed := [head["metric"] for head in heads.values() if _lacks_direction(head)]:
        figures.warnings.append(
            f"`better` is not stated for {listed(dict.fromkeys(assumed), 5)}: lower values count "
            "as better."
        )
    if not figures.measurements:
        raise UsageError(
            f"{file}: no values.", f"The first line must name columns: {', '.join(COLUMNS)}."
        )
    return figures


def _add(
    row: dict[str, str],
    where: str,
    figures: Alternatives,
    names: dict[str, None],
    heads: dict[tuple[str, ...], Mapping[str, str]],
    series: dict[tuple[str, ...], _Series],
    checked: dict[tuple[str, ...], tuple[str, ...]],
) -> None:
    """Adds one row of the file to the series that it belongs to, or as a gap.

    heads: the first row of each metric. checked: cells that describe a metric -> its key.
    """
    alternative = row["alternative"]
    described = tuple([row.get(name, "") for name in _OF_METRIC])
    metric = checked.get(described)
    if metric is None or not alternative:
        metric = checked[described] = _checked(row, where, heads)
    row["benchmark"] = row.get("benchmark") or row["metric"]
    names[alternative] = None
    if len(names) > MAX_ALTERNATIVES:
        raise UsageError(
            f"{where}: more than {MAX_ALTERNATIVES:,} alternatives.", "Rank fewer at a time."
        )
    if not row["value"]:
        key = (alternative, row["benchmark"], row["metric"])
        figures.reasons[key] = row.get("note") or _NO_VALUE
        return
    place = (*metric, alternative)
    item = series.get(place)
    if item is None:  # most rows are repetitions of a series that exists
        item = series[place] = _Series(row)
    item.values.append(_positive(row["value"], where))
    if len(item.values) > MAX_VALUES:
        raise UsageError(
            f"{where}: more than {MAX_VALUES} values of one metric and alternative.",
            "Use one value a round.",
        )
    if row.get("round"):
        number = _round(row["round"], where)
        if number in item.rounds:
            raise UsageError(
                f"{where}: '{alternative[:40]}' has two values of '{row['metric'][:40]}' in round "
                f"{number}.",
                "Give each value a round of its own.",
            )
        item.rounds[number] = None
    if row.get("note"):
        item.notes[row["note"]] = None


def _checked(
    row: dict[str, str], where: str, heads: dict[tuple[str, ...], Mapping[str, str]]
) -> tuple[str, ...]:
    """Returns the key of a row's metric. UsageError for a word that is none, or that differs."""
    _check_words(row, where)
    row["benchmark"] = row.get("benchmark") or row["metric"]
    metric = tuple(row.get(name, "") for name in ("kind", "parameter", "benchmark", "metric"))
    first = heads.setdefault(metric, row)
    for name in ("unit", "better", "resource"):
        if row.get(name, "") != first.get(name, ""):
            raise UsageError(
                f"{where}: '{row['metric'][:40]}' has another {name} here than above.",
                "Use one for each metric.",
            )
    return metric


def _check_words(row: Mapping[str, str], where: str) -> None:
    for name in ("metric", "alternative"):
        if not row[name]:
            raise UsageError(f"{where}: '{name}' is empty.", "Fill in every row.")
    for name, choices in CHOICES.items():
        if row.get(name) and row[name] not in choices:
            raise UsageError(
                f"{where}: unknown {name} '{row[name][:40]}'{did_you_mean(row[name], choices)}.",
                f"Use {', '.join(choices)}.",
            )


def _round(text: str, where: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{where}: round '{text[:40]}' is no number.", "Use 1, 2, ….")
    return int(text)


def _positive(text: str, where: str) -> float:
    try:
        return numbers.POSITIVE.read(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: '{text[:40]}' {error}.",
            "Leave a missing value empty and give its reason in 'note'.",
        ) from None


def _lacks_direction(head: Mapping[str, str]) -> bool:
    """States whether a metric has a unit or a name, but no direction. A rank has one."""
    return not head.get("better") and head.get("unit") != RANK


def _measurement(series: _Series, confidence: float, of_few: bool) -> Measurement:
    """Returns a series as a line; of_few: with interval and consistency of its own.

    Those of many alternatives are estimated together (`rank.many`).
    """
    head, values = series.head, series.values
    unit = head.get("unit") or "none"
    middle = Estimate(
        statistics.median(values), None, None, confidence, len(values), unit, "median"
    )
    line = MetricResult(
        head["benchmark"],
        head["metric"],
        head["alternative"],
        {},
        Better(head.get("better") or "lower"),
        estimates.median(values, unit=unit, confidence=confidence) if of_few else middle,
        variation.consistency(values, confidence=confidence) if of_few else variation.UNKNOWN,
        trial_values=tuple(values),
        rounds=tuple(series.rounds) if len(series.rounds) == len(values) else (),
    )
    return Measurement(
        head["alternative"],
        0,
        line,
        head.get("parameter") or head["benchmark"],
        head.get("resource", ""),
        head.get("kind") or "value",  # type: ignore[arg-type]
        "; ".join(series.notes),
    )
