"""Reports of UnixBench: each run of one or several copies of its tests."""

from __future__ import annotations

import re

from nephoscope.core.model import Better
from nephoscope.store.imports.rows import PLAIN, ImportedFigures
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit

_RUN = re.compile(r"^Benchmark Run: ", re.MULTILINE)
_NAME = r"^(\S.{0,80}?)(?: {2,80}|\t[ \t]{0,80})"
_NUMBER = r"([0-9]+\.[0-9]+)"
_RESULT = re.compile(
    rf"{_NAME}{_NUMBER}[ \t](\S+)[ \t]+\([0-9.]+ s, [0-9]+ samples\)$", re.MULTILINE
)
_INDEX = re.compile(rf"{_NAME}{_NUMBER}[ \t]+{_NUMBER}[ \t]+{_NUMBER}$", re.MULTILINE)
_SCORE = re.compile(
    r"^System Benchmarks Index Score(?: \(Partial Only\))?[ \t]+([0-9]+\.[0-9]+)$", re.MULTILINE
)
_COPIES = re.compile(r"running ([0-9]+) parallel cop(?:y|ies) of tests")
_SCORE_UNIT = PLAIN._replace(better=Better.HIGHER)


def is_unixbench(text: str) -> bool:
    """States whether a text has a report of UnixBench."""
    return "BYTE UNIX Benchmarks" in text and (
        bool(_RUN.search(text)) or "System Benchmarks Index" in text
    )


def read(source: Source) -> ImportedFigures:
    """Returns the results and indexes of each run; the number of copies is a factor."""
    text = source.text
    starts = [match.start() for match in _RUN.finditer(text)] or [0]
    figures = ImportedFigures("UnixBench")
    for index, (start, end) in enumerate(
        zip(starts, [*starts[1:], len(text)], strict=True), start=1
    ):
        _add_run(figures, text[start:end], f"Run {index}")
    return figures


def _add_run(figures: ImportedFigures, text: str, place: str) -> None:
    copies = _COPIES.search(text)
    factors = {"copies": copies.group(1)} if copies else {}
    score = _SCORE.search(text)
    if score is None:
        figures.left_out.append(f"{place}: it has no index score, so that it was cut off or failed")
    else:
        figures.add(
            *(place, "", "index_score", float(score.group(1)), _SCORE_UNIT),
            factors={**factors, "test": "all"},
            headline=True,
        )
    for name, value, unit in _RESULT.findall(text):
        figures.add(
            *(place, "", f"result_{unit}", float(value)),
            Unit(unit, 1.0, Better.HIGHER),
            factors={**factors, "test": name},
        )
    for name, _, _, index in _INDEX.findall(text):
        figures.add(
            *(place, "", "index_score", float(index), _SCORE_UNIT),
            factors={**factors, "test": name},
        )
