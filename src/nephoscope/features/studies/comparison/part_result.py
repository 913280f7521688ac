"""Everything that a run of a part shows in comparison with the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nephoscope.core.model import RunResult
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.comparison.emulation import RowOutcome, compare_rows
from nephoscope.features.studies.comparison.figures import FilledFigure, fill_figures
from nephoscope.features.studies.comparison.predictions import ModelPrediction, compare_predictions
from nephoscope.features.studies.comparison.side_by_side import ComparisonOutcome, compare
from nephoscope.features.studies.comparison.tables import FilledTable, fill_tables
from nephoscope.features.studies.definition.study import Part


@dataclass(frozen=True, slots=True)
class PartResult:
    """Comparisons, tables, figures, emulated rows and predictions of one run, and its warnings."""

    part: Part
    run: str
    outcomes: tuple[ComparisonOutcome, ...]
    tables: tuple[FilledTable, ...] = ()
    figures: tuple[FilledFigure, ...] = ()
    warnings: tuple[str, ...] = ()
    emulated: tuple[RowOutcome, ...] = ()
    predictions: tuple[ModelPrediction, ...] = ()


def compare_part(
    study: ReferenceStudy, part: Part, result: RunResult, warnings: Sequence[str] = ()
) -> PartResult:
    """Returns the comparison of a run of the part's plan with the study."""
    return PartResult(
        part,
        str(result.run.id),
        tuple(compare(study, part, result, warnings)),
        tuple(fill_tables(study, part, result)),
        tuple(fill_figures(study, part, result)),
        tuple(warnings),
        tuple(compare_rows(study, part, result)),
        tuple(compare_predictions(part, result)),
    )
