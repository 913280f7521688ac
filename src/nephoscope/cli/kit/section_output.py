"""Prints an analysis as JSON or as a section, and writes it to a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import output

if TYPE_CHECKING:
    from nephoscope.report.blocks import Section


def present(
    analysis: Any,
    page: Section,
    *,
    as_json: bool,
    to: Path | None = None,
    source: str = "",
) -> int:
    """Returns the exit code. to: report to write as well; source: its subtitle.

    Prints first, so that a report that cannot be written loses no measurement.
    """
    from nephoscope.report import files, terminal_output

    if as_json:
        output.document(analysis)
    else:
        text = terminal_output.render(
            page.title, [page], colour=output.colour_wanted(), width=output.width()
        )
        output.say(text.rstrip("\n"))
    if to is not None:
        files.write([to], page.title, source, [page], analysis, "Name another file.")
        output.log(f"Written: {to}")
    return 0
