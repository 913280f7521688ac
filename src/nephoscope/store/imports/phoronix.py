"""Results of the Phoronix Test Suite: its composite.xml, and what `result-file-to-json` writes.

Each run of a test (`RawString`) is a repetition; the systems of the file are levels of the factor
`system`, the arguments of the test those of `arguments`.
"""

from __future__ import annotations

from nephoscope.core.model import Better
from nephoscope.core.reading import phoronix
from nephoscope.store.imports.rows import ImportedFigures
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit, unit_of

_DIRECTIONS = {"HIB": Better.HIGHER, "LIB": Better.LOWER}


def read(source: Source) -> ImportedFigures:
    """Returns the runs of each test. ValueError for what is no such file."""
    if source.text.lstrip().startswith("<"):
        suite = phoronix.read_composite(source.text.lstrip())
    else:
        suite = phoronix.read_json(source.document)
    figures = ImportedFigures("Phoronix Test Suite")
    figures.left_out += [f"Test {words}" for words in suite.failed]
    for result in suite.results:
        known = unit_of(result.scale)
        better = _DIRECTIONS.get(result.proportion, known.better)
        factors = {"system": result.system}
        if result.arguments:
            factors["arguments"] = result.arguments
        for value in result.values:
            figures.add(
                *(f"Test '{result.test}' on '{result.system}'", result.test, result.scale, value),
                Unit(known.unit, known.factor, better),
                factors=factors,
                at_s=result.at_s,
            )
    figures.missing += [
        "The suite runs the repetitions of a test one after the other, and one system after the "
        "other: slow changes look like differences.",
        "Times of the suite have no time zone; they are read as UTC.",
    ]
    if suite.graphs:
        figures.missing.append(
            f"{suite.graphs} graphs of the file that are no single figures were left out."
        )
    return figures
