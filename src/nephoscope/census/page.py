"""A census as a page of its own, as a file or on the terminal."""

from __future__ import annotations

from pathlib import Path

from nephoscope import documents
from nephoscope.census.records import Census
from nephoscope.census.section import section
from nephoscope.errors import StoreError
from nephoscope.report import html_output, markdown_output, terminal_output
from nephoscope.report.files import replace_file

TITLE = "CPU census"


def terminal(census: Census, *, colour: bool, width: int) -> str:
    """The text for a terminal; no line is longer than `width` or 79 columns."""
    text = terminal_output.render(TITLE, [section(census)], colour=colour, width=width)
    return text.rstrip("\n")


def write(census: Census, file: Path) -> None:
    """Writes the census as its ending says: .html, .md or .json. StoreError where it cannot."""
    parts = [section(census)]
    if file.suffix == ".html":
        text = html_output.render(TITLE, ", ".join(census.sources), parts)
    elif file.suffix == ".md":
        text = markdown_output.render(TITLE, parts)
    else:
        text = documents.to_text(documents.to_json(census)) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, text)
    except OSError as error:
        raise StoreError(
            f"Cannot write '{file}': {error.strerror or error}.", "Name another file."
        ) from error
