"""What `elastic` prints of the growth of a service."""

from __future__ import annotations

from nephoscope.cli.kit import output
from nephoscope.core.model import RunResult
from nephoscope.features.elastic import growth_section as section
from nephoscope.features.elastic.growth_records import ServiceGrowth
from nephoscope.features.elastic.terminal import table_text
from nephoscope.report import wording


def text(result: RunResult) -> str:
    """Returns the verdict, its tables, and what was excluded."""
    growth = result.part(ServiceGrowth)
    if growth is None:
        nothing = ["The growth of the service is not judged: no ramp is valid."]
        return "\n".join([*nothing, *wording.exclusions_by_reason(result)])
    parts = [output.wrapped(sentence, rest="") for sentence in section.sentences_of(growth)]
    tables = [section.levels_table(growth)] if growth.levels else []
    parts += map(table_text, [*tables, section.ramps_table(growth)])
    rows = [
        *section.warnings(growth),
        *wording.excluded_rows(result),
        *wording.exclusions_by_reason(result),
    ]
    parts += [output.wrapped(f"! {row}", rest="") for row in rows]
    parts.append(wording.run_line(result))
    return "\n\n".join(parts)
