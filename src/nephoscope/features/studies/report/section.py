"""The study's report: conclusions, filled tables, figures, every comparison; as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nephoscope.core import documents
from nephoscope.core.grouping import group_by
from nephoscope.features.studies.catalogue import ReferenceStudy
from nephoscope.features.studies.comparison import emulation, lab_and_model, predictions
from nephoscope.features.studies.comparison.conclusions import ConclusionOutcome
from nephoscope.features.studies.comparison.emulation import RowOutcome
from nephoscope.features.studies.comparison.part_result import PartResult
from nephoscope.features.studies.comparison.predictions import ModelPrediction
from nephoscope.features.studies.comparison.rules import Mark
from nephoscope.features.studies.comparison.side_by_side import ComparisonOutcome
from nephoscope.features.studies.comparison.tables import FilledTable
from nephoscope.features.studies.report import charts
from nephoscope.features.studies.report.wording import (
    estimate_text,
    measured_cell,
    measured_text,
    published_cell,
    published_share,
    published_text,
    verdict_text,
)
from nephoscope.report import files, wording
from nephoscope.report.blocks import Block, Heading, Item, Section, Sentence, Table, items
from nephoscope.report.columns import number, table, text

_TONES = {
    Mark.IN_NUMBER: "info",
    Mark.IN_KIND: "info",
    Mark.CONTRADICTED: "warning",
    Mark.FITTED: "",
    Mark.SET: "",
    Mark.NOT_COMPARABLE: "notice",
}


def write(
    study: ReferenceStudy,
    parts: Sequence[PartResult],
    directory: Path,
    conclusions: Sequence[ConclusionOutcome] = (),
) -> Path:
    """Writes study.html, study.md and study.json into a folder; returns study.html's path."""
    about = study.definition
    path = directory / "study.html"
    files.write(
        [path, path.with_suffix(".md"), path.with_suffix(".json")],
        title_of(study),
        f"{', '.join(about.authors)}: {about.title} ({about.year})",
        sections(study, parts, conclusions),
        {"study": study.name, **document_of(parts, conclusions)},
        f"Free disk space or make it writable, then run `nephoscope study run {study.name}`.",
    )
    return path


def document_of(
    parts: Sequence[PartResult], conclusions: Sequence[ConclusionOutcome]
) -> dict[str, Any]:
    """Returns the comparison as JSON values, for study.json and `--json`."""
    document: dict[str, Any] = documents.to_json(
        {
            "runs": [part.run for part in parts],
            "warnings": {part.run: part.warnings for part in parts},
            "comparisons": [outcome for part in parts for outcome in part.outcomes],
            "tables": [table for part in parts for table in part.tables],
            "emulated": [row for part in parts for row in part.emulated],
            "predictions": [metric for part in parts for metric in part.predictions],
            "measured_and_simulated": lab_and_model.three_way_numbers(parts),
            "figures": [figure for part in parts for figure in part.figures],
            "conclusions": conclusions,
        }
    )
    return document


def title_of(study: ReferenceStudy) -> str:
    """Returns the title of the report."""
    return f"{study.name}: published and measured here"


def sections(
    study: ReferenceStudy,
    parts: Sequence[PartResult],
    conclusions: Sequence[ConclusionOutcome] = (),
) -> list[Section]:
    """Returns a summary, then a section for each part that was run."""
    return [
        _summary(study, parts, conclusions),
        *_three_ways(parts),
        *(_part(part) for part in parts),
    ]


def count_marks(outcomes: Sequence[ComparisonOutcome]) -> str:
    """Returns '4 reproduced in kind, 1 contradicted, 2 fitted, 3 not comparable'."""
    counts = Counter(outcome.mark for outcome in outcomes)
    return ", ".join(f"{counts[mark]} {mark.value}" for mark in Mark if counts[mark]) or "nothing"


def _summary(
    study: ReferenceStudy, parts: Sequence[PartResult], conclusions: Sequence[ConclusionOutcome]
) -> Section:
    blocks: list[Block] = [Sentence(study.definition.question, lead=True)]
    outcomes = {outcome.name: outcome for part in parts for outcome in part.outcomes}
    judged = (
        _marked(each.mark, each.claim, each.sentence, *_evidence(each, outcomes))
        for each in conclusions
    )
    blocks += items(judged, title="Conclusions of the study")
    rows = table(
        parts,
        text("part", lambda result: result.part.name),
        text("title", lambda result: result.part.title),
        text("comparisons", lambda result: count_marks(result.outcomes)),
        text("run", lambda result: result.run),
    )
    blocks += [Heading("Parts"), rows]
    parts_missing = (part for part in study.definition.parts if part.not_yet)
    texts = (f"{part.name}: {part.title}; {part.not_yet}" for part in parts_missing)
    blocks += items(texts, title="Parts that are not implemented")
    return Section("summary", "Summary", tuple(blocks))


def _marked(mark: Mark, claim: str, *details: str) -> Item:
    text = wording.clean(f"{mark.value}: {claim}")
    return Item(text, tone=_TONES[mark], details=details)


def _evidence(conclusion: ConclusionOutcome, outcomes: dict[str, ComparisonOutcome]) -> list[str]:
    lines = []
    for name, mark in conclusion.evidence.items():
        line = f"{name}: {mark.value if mark else 'not measured'}"
        if outcome := outcomes.get(name):  # a part of an earlier run shows its mark only
            line += f"; published {published_text(outcome)}; measured {measured_text(outcome)}"
        lines.append(line)
    return lines


def _three_ways(parts: Sequence[PartResult]) -> list[Section]:
    """Published, measured and simulated, side by side; nothing where not both exist."""
    numbers = lab_and_model.three_way_numbers(parts)
    if not numbers:
        return []
    blocks: list[Block] = [Sentence(lab_and_model.summarise(numbers), lead=True)]
    for name, of_table in group_by(numbers, lambda number: number.location[0]).items():
        rows = table(
            of_table,
            text("row", lambda row: row.location[1][0]),
            text("figure", lambda row: row.location[1][1]),
            number("published", lambda row: f"{row.published:g} {row.unit}".rstrip()),
            number("measured in the lab", lambda row: estimate_text(row.measured, "")),
            number("simulated", lambda row: estimate_text(row.simulated, "")),
            text("", lambda row: row.verdict),
        )
        blocks += [Heading(name), rows]
    blocks.append(
        Sentence(
            "A figure is 'as published' where the comparison below is 'reproduced in number': "
            "its whole interval lies within the margin. Figures that are fitted, or that the plan "
            "sets, are left out. The study gives these figures without interval or n."
        )
    )
    return [Section("three-ways", "Published, measured and simulated", tuple(blocks))]


def _part(result: PartResult) -> Section:
    blocks: list[Block] = [Sentence(f"{result.part.section}; run {result.run}.")]
    blocks += items(result.warnings, "warning")
    blocks += _emulated(result.emulated)
    for filled in result.tables:
        blocks += [Heading(f"{filled.table}: {filled.title}"), _table(filled), Sentence(filled.why)]
    for prediction in result.predictions:
        blocks += _prediction(prediction)
    blocks += [charts.chart(figure) for figure in result.figures]
    compared = (
        _marked(
            outcome.mark,
            outcome.claim,
            f"published: {published_text(outcome)}",
            f"measured: {measured_text(outcome)}",
            outcome.sentence,
            *(f"note on the published figure: {note}" for note in outcome.published.notes),
        )
        for outcome in result.outcomes
    )
    blocks += items(compared, title="Comparisons")
    return Section(result.part.name, result.part.title, tuple(blocks))


def _emulated(rows: Sequence[RowOutcome]) -> list[Block]:
    """Set, measured and published, row by row; then the inferred scheduler of each."""
    if not rows:
        return []
    shares = table(
        [(row, share) for row in rows for share in row.shares],
        text("row", lambda pair: pair[0].title),
        text("share of", lambda pair: pair[1].name),
        number("set", lambda pair: f"{pair[1].set_to:.4g}"),
        text(
            "measured",
            lambda pair: estimate_text(pair[1].measured, pair[0].unit, pair[1].absent),
        ),
        text("", lambda pair: pair[1].status),
        text("published", lambda pair: published_share(pair[1])),
        grouped=1,
    )
    inferred = (
        Item(
            wording.clean(f"{row.title}: {verdict_text(row) or 'scheduler not inferred.'}"),
            tone="" if row.verdict == row.expected else "notice" if row.obstacle else "warning",
            details=(row.why,),
        )
        for row in rows
    )
    return [
        Heading("Emulated rows: set, measured, published"),
        Sentence(emulation.summarise(rows)),
        shares,
        *items(inferred),
    ]


def _prediction(prediction: ModelPrediction) -> list[Block]:
    """Measured beside simulated, a line for each condition."""
    unit = f" ({prediction.unit})" if prediction.unit else ""
    rows = table(
        prediction.values,
        text("condition", lambda value: value.name),
        text(f"measured{unit}", lambda value: estimate_text(value.measured, "", value.absent)),
        text(f"simulated{unit}", lambda value: estimate_text(value.simulated, "")),
        number("ratio", lambda value: value.ratio and f"{value.ratio.value:.2f}"),
        text("", lambda value: value.verdict),
    )
    return [
        Heading(f"Measured and simulated: {prediction.title}"),
        Sentence(predictions.summarise(prediction)),
        rows,
        Sentence(prediction.why),
        *([charts.prediction_chart(prediction)] if any(x.ratio for x in prediction.values) else []),
    ]


def _table(filled: FilledTable) -> Table:
    return table(
        filled.cells,
        text("", lambda row: row.row),
        text("", lambda row: row.column),
        text("published", published_cell),
        text("measured", measured_cell),
    )
