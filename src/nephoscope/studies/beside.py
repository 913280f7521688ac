"""Everything that one run of a part says beside the study."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.model import RunResult
from nephoscope.studies import comparing, drawing, emulating, filling
from nephoscope.studies.page import PartResult
from nephoscope.studies.records import Part
from nephoscope.studies.shelf import Shelf


def beside(shelf: Shelf, part: Part, result: RunResult, warnings: Sequence[str] = ()) -> PartResult:
    """Comparisons, tables and figures of a run of the part's plan."""
    return PartResult(
        part,
        str(result.run["id"]),
        tuple(comparing.compare(shelf, part, result)),
        tuple(filling.fill(shelf, part, result)),
        tuple(drawing.draw(shelf, part, result)),
        tuple(warnings),
        tuple(emulating.emulate(shelf, part, result)),
    )
