"""What `elastic` prints."""

from __future__ import annotations

from nephoscope.cli.kit import output
from nephoscope.core.model import RunResult
from nephoscope.features.elastic import section
from nephoscope.features.elastic.records import Elasticity
from nephoscope.report import wording
from nephoscope.report.blocks import Table


def text(result: RunResult) -> str:
    """Returns the answer, its tables, and what was excluded."""
    elastic = result.part(Elasticity)
    if elastic is None:
        nothing = ["No autoscaler can be judged: no trial is valid."]
        return "\n".join([*nothing, *wording.exclusions_by_reason(result)])
    parts = [output.wrapped(sentence, rest="") for sentence in section.answer(result)]
    tables = [section.service_table(elastic), section.measures_table(elastic)]
    if segments := section.segments_table(elastic):
        tables.append(segments)
    if elastic.comparisons:
        tables.append(section.comparisons_table(elastic))
    parts += map(table_text, tables)
    rows = [
        *section.warnings(elastic),
        *wording.excluded_rows(result),
        *wording.exclusions_by_reason(result),
    ]
    parts += [output.wrapped(f"! {row}", rest="") for row in rows]
    parts.append(wording.run_line(result))
    return "\n\n".join(parts)


def table_text(table: Table) -> str:
    """Returns a table of the report as lines of text."""
    head = tuple(column.title.upper() for column in table.columns)
    right = tuple(at for at, column in enumerate(table.columns) if column.numeric)
    rows = [tuple(str(cell) for cell in row) for row in table.rows]
    return output.table(head, rows, right=right)
