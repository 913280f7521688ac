"""Results of the Phoronix Test Suite: its composite.xml.

Each run of a test (`RawString`) is a repetition; the systems of the file are levels of the factor
`system`, the arguments of the test those of `arguments`.
"""

from __future__ import annotations

from nephoscope.model import Better
from nephoscope.reading.phoronix import read_composite
from nephoscope.store.imports.rows import Figures, Row, Source
from nephoscope.store.imports.units import Unit, unit_of

_DIRECTIONS = {"HIB": Better.HIGHER, "LIB": Better.LOWER}


def read(source: Source) -> Figures:
    """Returns the runs of each test. ValueError for what is no such file."""
    results, skipped = read_composite(source.text)
    rows: list[Row] = []
    for result in results:
        known = unit_of(result.scale)
        better = _DIRECTIONS.get(result.proportion, known.better)
        factors = {"system": result.system}
        if result.arguments:
            factors["arguments"] = result.arguments
        rows += (
            Row(
                place=f"Test '{result.test}' on '{result.system}'",
                test=result.test,
                metric=result.scale,
                value=value,
                unit=Unit(known.unit, known.factor, better),
                factors=factors,
                at_s=result.at_s,
            )
            for value in result.values
        )
    missing = [
        "The suite runs the repetitions of a test one after the other, and one system after the "
        "other: slow changes look like differences.",
        "Times of the suite have no time zone; they are read as UTC.",
    ]
    if skipped:
        missing.append(f"{skipped} graphs of the file that are no single figures were left out.")
    return Figures("Phoronix Test Suite", rows, tuple(missing))
