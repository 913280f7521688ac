"""Results of the Phoronix Test Suite: its composite.xml.

Each run of a test (`RawString`) is a repetition; the systems of the file are levels of the factor
`system`, the arguments of the test those of `arguments`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from xml.etree import ElementTree

from nephoscope.model import Better
from nephoscope.store.imports.rows import Figures, Row, Source
from nephoscope.store.imports.units import Unit, unit_of

_DIRECTIONS = {"HIB": Better.HIGHER, "LIB": Better.LOWER}
_ONE_RESULT = "BAR_GRAPH"


def read(source: Source) -> Figures:
    """Returns the runs of each test. ValueError for what is no such file."""
    text = source.text
    # Neither does the suite write any; entities could make a short file endless.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it has a document type declaration")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is no XML: {error}") from error
    if root.tag != "PhoronixTestSuite":
        raise ValueError(f"its root is <{root.tag[:40]}>, and not <PhoronixTestSuite>")
    at_s = {_text(system, "Identifier"): _time(system) for system in root.iter("System")}
    rows: list[Row] = []
    skipped = 0
    for result in root.iter("Result"):
        if result.findtext("DisplayFormat", _ONE_RESULT) != _ONE_RESULT:
            skipped += 1
            continue
        rows += _rows(result, at_s)
    missing = [
        "The suite runs the repetitions of a test one after the other, and one system after the "
        "other: slow changes look like differences.",
        "Times of the suite have no time zone; they are read as UTC.",
    ]
    if skipped:
        missing.append(f"{skipped} graphs of the file that are no single figures were left out.")
    return Figures("Phoronix Test Suite", rows, tuple(missing))


def _rows(result: ElementTree.Element, at_s: dict[str, float | None]) -> Iterator[Row]:
    test = _text(result, "Identifier") or _text(result, "Title")
    scale = _text(result, "Scale") or "result"
    known = unit_of(scale)
    better = _DIRECTIONS.get(_text(result, "Proportion"), known.better)
    for entry in result.iter("Entry"):
        system = _text(entry, "Identifier")
        factors = {"system": system}
        if arguments := _text(result, "Description"):
            factors["arguments"] = arguments
        # The mean stands alone where single runs are not in the file.
        for value in (_text(entry, "RawString") or _text(entry, "Value")).split(":"):
            try:
                figure = float(value)
            except ValueError:
                raise ValueError(f"{test} on {system} has '{value[:40]}' for a result") from None
            yield Row(
                place=f"Test '{test}' on '{system}'",
                test=test,
                metric=scale,
                value=figure,
                unit=Unit(known.unit, known.factor, better),
                factors=factors,
                at_s=at_s.get(system),
            )


def _text(element: ElementTree.Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _time(system: ElementTree.Element) -> float | None:
    try:
        moment = datetime.fromisoformat(_text(system, "TimeStamp"))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).timestamp()
